// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/daemon_desk.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "base/try.h"
#include "io/sha256.h"

namespace trainyard::supervisor {
namespace {

using std::chrono::milliseconds;

// ------------------------------------------------------------------------------------- the secret

// The token of the submission, which is random unless the user has chosen it, for this attempt.
std::string SecretOf(const v1::StartAttempt& start) {
  return fmt::format("{} {} {}", start.id().job(), start.id().attempt(),
                     start.launch().client_token());
}

std::string NewNonce() {
  std::random_device random;
  std::string nonce;
  for (int i = 0; i < 4; ++i) {
    nonce += fmt::format("{:08x}", random());
  }
  return nonce;
}

// Of what one side says in answer to the other side's nonce. `answers` tells the desk's words from
// those of its callers.
std::string MacOf(const std::string& secret, bool answers, const std::string& desks_nonce,
                  const std::string& callers_nonce, const v1::DaemonCall& call) {
  return io::HmacSha256(secret, fmt::format("{} {}:{} {}:{} {} {}", answers ? "desk" : "caller",
                                            desks_nonce.size(), desks_nonce, callers_nonce.size(),
                                            callers_nonce, call.node_rank(), call.command()));
}

// In a time that does not depend on where they differ.
bool AreSame(const std::string& a, const std::string& b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    different |= static_cast<unsigned>(a[i] ^ b[i]);
  }
  return different == 0;
}

// ------------------------------------------------------------------------------------ the network

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Null: there are none. No host: all addresses of this machine.
Addresses AddressesOf(const char* host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (host == nullptr ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  getaddrinfo(host, std::to_string(port).c_str(), &hints, &list);
  return Addresses(list);
}

// The first address with which `use` succeeds. Not open: errno says why.
io::Descriptor SocketFor(const Addresses& addresses, int flags,
                         const std::function<bool(int, const addrinfo&)>& use) {
  errno = EADDRNOTAVAIL;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    io::Descriptor socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
    if (socket.open() && use(socket.get(), *at)) {
      return socket;
    }
  }
  return {};
}

io::Descriptor ListenAt(const char* host, int port) {
  constexpr int kWaiting = 64;
  return SocketFor(AddressesOf(host, port), SOCK_NONBLOCK, [](int socket, const addrinfo& at) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(socket, at.ai_addr, at.ai_addrlen) == 0 && listen(socket, kWaiting) == 0;
  });
}

// A caller's connection, which may wait.
class Call {
 public:
  explicit Call(const v1::StartAttempt& start)
      : secret_(SecretOf(start)),
        socket_(SocketFor(AddressesOf(start.master_address().c_str(), start.master_port()), 0,
                          [](int socket, const addrinfo& at) {
                            return connect(socket, at.ai_addr, at.ai_addrlen) == 0;
                          })) {}

  // None: nobody is there, or somebody else, or it has hung up.
  std::optional<v1::DaemonCall> Say(v1::DaemonCall call) {
    const std::optional<v1::DaemonCall> greeting = Hear();
    if (!greeting.has_value()) {
      return std::nullopt;
    }
    call.set_nonce(NewNonce());
    call.set_mac(MacOf(secret_, false, greeting->nonce(), call.nonce(), call));
    if (!Send(Framed(call))) {
      return std::nullopt;
    }
    std::optional<v1::DaemonCall> answer = Hear();
    const bool genuine =
        answer.has_value() && answer->node_rank() == call.node_rank() &&
        AreSame(answer->mac(), MacOf(secret_, true, greeting->nonce(), call.nonce(), *answer));
    return genuine ? answer : std::nullopt;
  }

 private:
  [[nodiscard]] bool Send(const std::string& bytes) const {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t got =
          send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (got < 0 && errno != EINTR) {
        return false;
      }
      sent += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return true;
  }

  [[nodiscard]] std::optional<v1::DaemonCall> Hear() {
    while (true) {
      v1::DaemonCall call;
      const Taken taken = TakeMessage(received_, call);
      if (taken != Taken::kNone) {
        return taken == Taken::kOne ? std::optional(std::move(call)) : std::nullopt;
      }
      std::array<char, 4096> bytes{};
      const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (got == 0 || (got < 0 && errno != EINTR)) {
        return std::nullopt;
      }
      received_.append(bytes.data(), static_cast<std::size_t>(got > 0 ? got : 0));
    }
  }

  std::string secret_;
  io::Descriptor socket_;
  std::string received_;
};

}  // namespace

// ----------------------------------------------------------------------------------------- the
// desk

DaemonDesk::DaemonDesk(io::Descriptor socket, const v1::StartAttempt& start)
    : secret_(SecretOf(start)),
      nodes_(start.nodes()),
      // Each node has one that asks and one that brings; strangers shall not keep them out.
      callers_(std::move(socket), static_cast<std::size_t>(4 * start.nodes())) {}

Result<DaemonDesk> DaemonDesk::Open(const v1::StartAttempt& start) {
  io::Descriptor socket = ListenAt(start.master_address().c_str(), start.master_port());
  if (!socket.open() && errno == EADDRNOTAVAIL) {  // other machines have another name for it
    socket = ListenAt(nullptr, start.master_port());
  }
  if (!socket.open()) {
    return Failed(fmt::format("port {} of '{}', where mpirun starts its daemons: {}",
                              start.master_port(), start.master_address(),
                              std::generic_category().message(errno)));
  }
  return DaemonDesk(std::move(socket), start);
}

void DaemonDesk::Greet(Connection& connection) {
  connection.number = ++last_number_;
  Caller& caller = by_number_[connection.number];
  caller.nonce = NewNonce();
  v1::DaemonCall greeting;
  greeting.set_nonce(caller.nonce);
  connection.Send(Framed(greeting));
}

void DaemonDesk::Serve() {
  do {  // a command that comes answers who has asked before
    news_ = false;
    callers_.Serve([this](Connection& connection) { Greet(connection); },
                   [this](Connection& connection) {
                     const bool open = ServeOne(connection);
                     if (!open) {
                       by_number_.erase(connection.number);
                     }
                     return open;
                   });
  } while (news_);
}

bool DaemonDesk::ServeOne(Connection& connection) {
  Caller& caller = by_number_[connection.number];
  const bool open = connection.Transfer();
  v1::DaemonCall call;
  const Taken taken = TakeMessage(connection.received(), call);
  if (taken == Taken::kMalformed || (taken == Taken::kOne && !Take(caller, std::move(call)))) {
    return false;
  }
  Answer(caller, connection);
  return connection.Flush() && open;
}

bool DaemonDesk::Take(Caller& caller, v1::DaemonCall call) {
  const bool genuine = caller.call.node_rank() == 0 && call.node_rank() > 0 &&
                       call.node_rank() < nodes_ &&
                       AreSame(call.mac(), MacOf(secret_, false, caller.nonce, call.nonce(), call));
  if (!genuine) {
    return false;
  }
  if (!call.command().empty()) {
    commands_[call.node_rank()] = call.command();
    news_ = true;
  }
  caller.call = std::move(call);
  return true;
}

void DaemonDesk::Answer(Caller& caller, Connection& connection) {
  const int node = caller.call.node_rank();
  const auto command = commands_.find(node);
  if (node == 0 || caller.answered || command == commands_.end()) {
    return;
  }
  v1::DaemonCall answer;
  answer.set_node_rank(node);
  if (caller.call.command().empty()) {
    answer.set_command(command->second);
    told_[node] = true;
  }
  answer.set_mac(MacOf(secret_, true, caller.nonce, caller.call.nonce(), answer));
  connection.Send(Framed(answer));
  caller.answered = true;
}

bool DaemonDesk::done() const {
  return static_cast<int>(told_.size()) == nodes_ - 1 && callers_.empty();
}

// -------------------------------------------------------------------------------------- its
// callers

std::string AwaitDaemonCommand(const v1::StartAttempt& start) {
  constexpr milliseconds kLongest(500);
  milliseconds pause(10);
  v1::DaemonCall question;
  question.set_node_rank(start.node_rank());
  while (true) {
    if (const std::optional<v1::DaemonCall> answer = Call(start).Say(question)) {
      return answer->command();
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongest);
  }
}

Status BringDaemonCommand(const v1::StartAttempt& start, int node_rank,
                          const std::string& command) {
  v1::DaemonCall call;
  call.set_node_rank(node_rank);
  call.set_command(command);
  if (!Call(start).Say(std::move(call)).has_value()) {
    return Failed(fmt::format("the attempt's supervisor does not answer at {} port {}",
                              start.master_address(), start.master_port()));
  }
  return {};
}

}  // namespace trainyard::supervisor
