// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launcher_calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "supervisor/launch/spawn.h"

namespace trainyard::supervisor {
namespace {

namespace fs = std::filesystem;

std::string AttemptName(const v1::AttemptId& id) {
  return fmt::format("{}-{}", id.job(), id.attempt());
}

std::vector<std::string> LimitWords(const char* call, const v1::AttemptId& id,
                                    const v1::NodeShare& share) {
  return {call, AttemptName(id), std::to_string(std::max<std::int64_t>(0, share.memory_mib())),
          std::to_string(std::max<std::int64_t>(0, share.milli_cpus()))};
}

// The bytes as a file that can be read from its beginning: they stand in no list of processes.
io::Descriptor Pipe(const std::string& bytes) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return {};
  }
  const io::Descriptor writer(ends[1]);
  io::Descriptor reader(ends[0]);
  const bool written =
      write(writer.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  return written ? std::move(reader) : io::Descriptor();
}

// A message of one byte with room for one descriptor.
struct DescriptorMessage {
  DescriptorMessage() {
    piece = {&byte, 1};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = space.data();
    header.msg_controllen = space.size();
  }
  char byte = 0;
  iovec piece{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr header{};
};

bool SendDescriptor(int socket, int descriptor) {
  DescriptorMessage message;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  return sendmsg(socket, &message.header, MSG_NOSIGNAL) == 1;
}

io::Descriptor ReceiveDescriptor(int socket) {
  DescriptorMessage message;
  if (recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) {
    return {};
  }
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message.header);
  int descriptor = -1;
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&descriptor, CMSG_DATA(rights), sizeof(int));
  }
  return io::Descriptor(descriptor);
}

int StatusOf(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

int LauncherCalls::BeginStart(const AttemptFolder& folder, const v1::StartAttempt& start,
                              pid_t& pid) const {
  constexpr mode_t kMine = 0600;
  std::vector<std::string> words = LimitWords("start", folder.id(), start.share());
  words.insert(words.begin(), program_);
  const io::Descriptor credential = Pipe(start.credential());
  const io::Descriptor log(
      open(folder.LauncherLog().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMine));
  return credential.open() ? Spawn(words, environ, pid, {.in = credential.get(), .err = log.get()})
                           : EMFILE;
}

int LauncherCalls::BeginEnd(const AttemptFolder& folder, pid_t& pid, io::Descriptor& words) const {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return errno;
  }
  words = io::Descriptor(ends[0]);
  const io::Descriptor theirs(ends[1]);
  return Spawn({program_, "end", AttemptName(folder.id())}, environ, pid, {.err = theirs.get()});
}

int LauncherCalls::BeginLimit(const AttemptFolder& folder, const v1::NodeShare& share,
                              pid_t& pid) const {
  std::vector<std::string> words = LimitWords("limit", folder.id(), share);
  words.insert(words.begin(), program_);
  return Spawn(words, environ, pid);
}

io::Descriptor LauncherCalls::OpenLog(const v1::AttemptId& id, int rank) const {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return {};
  }
  const io::Descriptor mine(ends[0]);
  const io::Descriptor theirs(ends[1]);
  pid_t pid = 0;
  if (Spawn({program_, "log", AttemptName(id), std::to_string(rank)}, environ, pid,
            {.in = theirs.get()}) != 0 ||
      StatusOf(pid) != 0) {
    return {};
  }
  io::Descriptor log = ReceiveDescriptor(mine.get());
  struct stat status {};
  const bool plain = log.open() && fstat(log.get(), &status) == 0 && S_ISREG(status.st_mode);
  return plain ? std::move(log) : io::Descriptor();
}

void LauncherCalls::Clear(const AttemptFolder& folder) const {
  pid_t pid = 0;
  if (Spawn({program_, "clear", AttemptName(folder.id())}, environ, pid) == 0) {
    StatusOf(pid);
  }
}

int HandOutLog(int rank) {
  const io::Descriptor log(open(fmt::format("rank-{}.log", rank).c_str(),
                                O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return log.open() && SendDescriptor(STDIN_FILENO, log.get()) ? 0 : 1;
}

int ClearFolder(const std::string& attempt_folder) {
  std::error_code error;
  if (const Result<AttemptFolder> folder = AttemptFolder::At(attempt_folder); folder.ok()) {
    fs::remove_all(folder.value().SharedMemoryFolder(), error);
  }
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(".", error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    left.push_back(entry->path());
  }
  for (const fs::path& path : left) {
    fs::remove_all(path, error);
  }
  return error ? 1 : 0;
}

}  // namespace trainyard::supervisor
