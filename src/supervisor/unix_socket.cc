// SPDX-License-Identifier: Apache-2.0
#include "supervisor/unix_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace trainyard::supervisor {
namespace {

// Short, wherever the folder is.
sockaddr_un AddressIn(const io::Descriptor& folder, const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  fmt::format_to_n(address.sun_path, kMaxSocketPath, "/proc/self/fd/{}/{}", folder.get(), name);
  return address;
}

io::Descriptor NewSocket() {
  return io::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool IsOnlyLater(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

io::Descriptor OpenFolder(const std::string& folder) {
  return io::Descriptor(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Result<io::Descriptor> ListenIn(const io::Descriptor& folder, const char* name) {
  constexpr int kWaiting = 64;
  const sockaddr_un address = AddressIn(folder, name);
  unlinkat(folder.get(), name, 0);
  io::Descriptor socket = NewSocket();
  if (!socket.open() ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(socket.get(), kWaiting) != 0) {
    return Failed(
        fmt::format("{}: cannot listen: {}", name, std::generic_category().message(errno)));
  }
  return socket;
}

io::Descriptor ConnectIn(const std::string& folder, const char* name) {
  const io::Descriptor opened = OpenFolder(folder);
  const sockaddr_un address = AddressIn(opened, name);
  io::Descriptor socket = NewSocket();
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return {};
  }
  return socket;
}

bool Connection::Transfer() {
  const bool more = !IsReading() || Receive();
  return Flush() && more;
}

bool Connection::Receive() {
  std::array<char, kMaxUnsent> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (got > 0) {
    received_.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return got > 0 || (got < 0 && IsOnlyLater(errno));
}

bool Connection::Flush() {
  while (!unsent_.empty()) {
    const ssize_t sent = send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return IsOnlyLater(errno);
    }
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

pollfd Connection::Awaited() const {
  const int in = IsReading() ? POLLIN : 0;
  const int out = unsent_.empty() ? 0 : POLLOUT;
  return {.fd = socket_.get(), .events = static_cast<short>(in | out)};
}

void Connections::SendAll(std::string_view bytes) {
  for (Connection& connection : open_) {
    connection.Send(bytes);
  }
}

void Connections::MakeRoom(const std::function<bool(const Connection&)>& spare) {
  if (open_.size() >= most_) {
    if (const auto oldest = std::find_if(open_.begin(), open_.end(), spare);
        oldest != open_.end()) {
      open_.erase(oldest);
    }
  }
}

void Connections::AddAwaited(std::vector<pollfd>& polls) const {
  polls.push_back({.fd = open_.size() < most_ ? socket_.get() : -1, .events = POLLIN});
  for (const Connection& connection : open_) {
    polls.push_back(connection.Awaited());
  }
}

void Connections::Serve(const std::function<void(Connection&)>& greet,
                        const std::function<bool(Connection&)>& serve) {
  while (open_.size() < most_) {
    io::Descriptor come(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!come.open()) {
      break;
    }
    greet(open_.emplace_back(std::move(come)));
  }
  std::erase_if(open_, [&serve](Connection& connection) { return !serve(connection); });
}

std::string Framed(const google::protobuf::MessageLite& message) {
  const auto length = static_cast<std::uint32_t>(message.ByteSizeLong());
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  message.AppendToString(&bytes);
  return bytes;
}

Taken TakeMessage(std::string& received, google::protobuf::MessageLite& message) {
  std::uint32_t length = 0;
  if (received.size() < sizeof(length)) {
    return Taken::kNone;
  }
  std::memcpy(&length, received.data(), sizeof(length));
  if (length > kMaxMessageBytes) {
    return Taken::kMalformed;
  }
  if (received.size() < sizeof(length) + length) {
    return Taken::kNone;
  }
  const bool parsed =
      message.ParseFromArray(received.data() + sizeof(length), static_cast<int>(length));
  received.erase(0, sizeof(length) + length);
  return parsed ? Taken::kOne : Taken::kMalformed;
}

}  // namespace trainyard::supervisor
