// SPDX-License-Identifier: Apache-2.0
// Unix stream sockets in a folder, however long its path is, and what is on its way in and out of
// one. Nothing here ever waits.
#pragma once

#include <google/protobuf/message_lite.h>
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/descriptor.h"
#include "trainyard/status.h"

namespace trainyard::supervisor {

// The most bytes that the path of a Unix socket may have.
inline constexpr std::size_t kMaxSocketPath = 107;

// `folder` is an open one. A socket of that name that is left there is replaced.
[[nodiscard]] Result<io::Descriptor> ListenIn(const io::Descriptor& folder, const char* name);
[[nodiscard]] io::Descriptor ConnectIn(const std::string& folder, const char* name);
[[nodiscard]] io::Descriptor OpenFolder(const std::string& folder);

// One end of a connection.
class Connection {
 public:
  explicit Connection(io::Descriptor socket) : socket_(std::move(socket)) {}

  // Takes what has come, at most 64 KiB, and sends what can be sent. False: it is over; what has
  // come is still in received().
  [[nodiscard]] bool Transfer();
  [[nodiscard]] std::string& received() { return received_; }
  void Send(std::string_view bytes) { unsent_ += bytes; }
  // Only sends. False: it is over.
  [[nodiscard]] bool Flush();
  // What to wait for. A peer that does not take its answers is not read any further.
  [[nodiscard]] pollfd Awaited() const;

  bool skips_line = false;   // the owner's: the rest of a line that is too long is skipped
  std::uint64_t number = 0;  // the owner's

 private:
  [[nodiscard]] bool IsReading() const { return unsent_.size() < kMaxUnsent; }
  bool Receive();

  static constexpr std::size_t kMaxUnsent = std::size_t{1} << 16;
  io::Descriptor socket_;
  std::string received_;
  std::string unsent_;
};

// The connections that have come to one listening socket. More than `most` have to wait, unless
// room is made for them.
class Connections {
 public:
  Connections(io::Descriptor socket, std::size_t most) : socket_(std::move(socket)), most_(most) {}

  void SendAll(std::string_view bytes);
  [[nodiscard]] bool empty() const { return open_.empty(); }
  [[nodiscard]] std::vector<Connection>& open() { return open_; }
  // After Serve(): closes the oldest of those that `spare` names if there is no room for another
  // one.
  void MakeRoom(const std::function<bool(const Connection&)>& spare);
  // What to wait for before calling Serve() again.
  void AddAwaited(std::vector<pollfd>& polls) const;
  // Takes those that have come, greets each, and then serves all: one of which `serve` says false
  // is closed.
  void Serve(const std::function<void(Connection&)>& greet,
             const std::function<bool(Connection&)>& serve);

 private:
  io::Descriptor socket_;
  std::size_t most_;
  std::vector<Connection> open_;
};

// Messages, each after its length in four bytes (of this machine's order).
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 20;
[[nodiscard]] std::string Framed(const google::protobuf::MessageLite& message);
enum class Taken : unsigned char { kOne, kNone, kMalformed };
// Takes the first message from `received`, if it is there in full.
[[nodiscard]] Taken TakeMessage(std::string& received, google::protobuf::MessageLite& message);

}  // namespace trainyard::supervisor
