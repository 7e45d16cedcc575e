// SPDX-License-Identifier: Apache-2.0
#include "identity/door.h"

#include <fmt/core.h>
#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/descriptor.h"

namespace trainyard::identity {
namespace {

constexpr int kWaiting = 256;  // connections that the kernel keeps until they are answered
constexpr std::chrono::milliseconds kNoDescriptors{10};
constexpr std::size_t kMostReply = std::size_t{1} << 16;

struct SocketAddress {
  sockaddr_un address{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<SocketAddress> AddressOf(const std::string& name) {
  SocketAddress made;
  made.address.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof(made.address.sun_path)) {
    return InvalidArgument(fmt::format("'{}' is no name of a socket; expected 1 to {} bytes", name,
                                       sizeof(made.address.sun_path) - 1));
  }
  std::copy(name.begin(), name.end(), made.address.sun_path);
  const bool abstract = name.front() == '@';
  if (abstract) {
    made.address.sun_path[0] = '\0';
  }
  made.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
  return made;
}

std::optional<uid_t> PeerOf(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return std::nullopt;
  }
  return peer.uid;
}

io::Descriptor NewSocket(int flags) {
  return io::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

bool IsTaken(const SocketAddress& address) {
  const io::Descriptor probe = NewSocket(0);
  return connect(probe.get(), address.get(), address.size) == 0;
}

class OpenDoor final : public Door {
 public:
  OpenDoor(io::Descriptor socket, std::string path, Answer answer)
      : socket_(std::move(socket)),
        path_(std::move(path)),
        answer_(std::move(answer)),
        stop_(eventfd(0, EFD_CLOEXEC)),
        thread_([this] { Serve(); }) {}
  ~OpenDoor() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = write(stop_.get(), &one, sizeof one);
    thread_.join();
    if (!path_.empty()) {
      unlink(path_.c_str());
    }
  }
  OpenDoor(const OpenDoor&) = delete;
  OpenDoor& operator=(const OpenDoor&) = delete;

 private:
  void Serve() {
    while (true) {
      std::array<pollfd, 2> polls{
          {{.fd = socket_.get(), .events = POLLIN}, {.fd = stop_.get(), .events = POLLIN}}};
      if (poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) {
        return;
      }
      if (polls[1].revents != 0) {
        return;
      }
      const io::Descriptor come(
          accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!come.open()) {
        std::this_thread::sleep_for(kNoDescriptors);  // or the peer has left
        continue;
      }
      // Nobody can keep the door waiting: it reads nothing, and the answer fits into the buffer
      // of a socket.
      if (const std::optional<uid_t> uid = PeerOf(come.get())) {
        const std::string bytes = answer_(*uid);
        [[maybe_unused]] const ssize_t sent =
            send(come.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      }
    }
  }

  io::Descriptor socket_;
  std::string path_;  // empty: it has no file
  Answer answer_;
  io::Descriptor stop_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::string DoorName(int port) { return fmt::format("@trainyard-controller-{}", port); }

Result<std::unique_ptr<Door>> Door::Open(const std::string& name, Answer answer) {
  ASSIGN_OR_RETURN(const SocketAddress address, AddressOf(name));
  const auto failed = [&name] {
    return Failed(fmt::format("cannot listen at the socket '{}': {}", name,
                              std::generic_category().message(errno)));
  };
  const bool has_file = name.front() != '@';
  if (has_file && !IsTaken(address)) {
    unlink(name.c_str());  // left by one that was killed
  }
  io::Descriptor socket = NewSocket(SOCK_NONBLOCK);
  if (!socket.open() || bind(socket.get(), address.get(), address.size) != 0) {
    return failed();
  }
  constexpr mode_t kAll = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  if ((has_file && chmod(name.c_str(), kAll) != 0) || listen(socket.get(), kWaiting) != 0) {
    return failed();
  }
  return std::unique_ptr<Door>(std::make_unique<OpenDoor>(
      std::move(socket), has_file ? name : std::string(), std::move(answer)));
}

Result<std::optional<DoorReply>> Knock(const std::string& name) {
  constexpr int kPatienceMs = 5'000;
  ASSIGN_OR_RETURN(const SocketAddress address, AddressOf(name));
  const io::Descriptor socket = NewSocket(0);
  if (!socket.open() || connect(socket.get(), address.get(), address.size) != 0) {
    return std::optional<DoorReply>();
  }
  DoorReply reply{.bytes = {}, .uid = PeerOf(socket.get()).value_or(static_cast<uid_t>(-1))};
  std::array<char, 4096> room{};
  while (reply.bytes.size() < kMostReply) {
    pollfd awaited{.fd = socket.get(), .events = POLLIN};
    const int ready = poll(&awaited, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    const ssize_t got = ready > 0 ? recv(socket.get(), room.data(), room.size(), 0) : -1;
    if (got < 0) {
      return Failed(fmt::format("the controller's socket '{}' does not answer", name));
    }
    if (got == 0) {
      break;
    }
    reply.bytes.append(room.data(), static_cast<std::size_t>(got));
  }
  return std::optional(std::move(reply));
}

std::string UserName(uid_t uid) {
  std::vector<char> room(1 << 14);
  passwd entry{};
  passwd* found = nullptr;
  return getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 && found != nullptr
             ? entry.pw_name
             : std::to_string(uid);
}

std::optional<uid_t> UserId(const std::string& name) {
  std::vector<char> room(1 << 14);
  passwd entry{};
  passwd* found = nullptr;
  return getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) == 0 && found != nullptr
             ? std::optional(entry.pw_uid)
             : std::nullopt;
}

}  // namespace trainyard::identity
