// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/node_desk.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "base/try.h"
#include "io/sha256.h"

namespace trainyard::supervisor {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kToProve(10);  // that a caller knows the secret

// ------------------------------------------------------------------------------------- the secret

// Of what one side says in answer to the other side's nonce. `answers` tells the desk's words from
// those of its callers.
std::string MacOf(const std::string& secret, bool answers, const std::string& desks_nonce,
                  const std::string& callers_nonce, const v1::DeskCall& call) {
  return io::HmacSha256(
      secret, fmt::format("{} {}:{} {}:{} {} {} {}", answers ? "desk" : "caller",
                          desks_nonce.size(), desks_nonce, callers_nonce.size(), callers_nonce,
                          call.node_rank(), call.number(), call.command()));
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
  const bool found = getaddrinfo(host, std::to_string(port).c_str(), &hints, &list) == 0;
  return Addresses(found ? list : nullptr);
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
  return SocketFor(AddressesOf(host, port), SOCK_NONBLOCK, [](int socket, const addrinfo& at) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(socket, at.ai_addr, at.ai_addrlen) == 0 && listen(socket, SOMAXCONN) == 0;
  });
}

// A connection that nobody uses is not to be forgotten by what lies between its ends, and the end
// of a machine is to be noticed.
void KeepAlive(int socket) {
  constexpr int kSeconds = 30;
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kSeconds, sizeof(kSeconds));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kSeconds, sizeof(kSeconds));
}

// A caller's connection, which may wait: until `waker` can be read (-1: never).
class Call {
 public:
  explicit Call(const v1::StartAttempt& start, int waker = -1)
      : secret_(SecretOf(start)),
        socket_(ConnectToMaster(start, start.master_port())),
        waker_(waker) {}

  // None: nobody is there, or somebody else, or it has hung up.
  std::optional<v1::DeskCall> Say(v1::DeskCall call) {
    const std::optional<v1::DeskCall> greeting = Hear();
    if (!greeting.has_value()) {
      return std::nullopt;
    }
    call.set_nonce(NewNonce());
    call.set_mac(MacOf(secret_, false, greeting->nonce(), call.nonce(), call));
    if (!Send(Framed(call))) {
      return std::nullopt;
    }
    std::optional<v1::DeskCall> answer = Hear();
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

  [[nodiscard]] std::optional<v1::DeskCall> Hear() {
    while (true) {
      v1::DeskCall call;
      const Taken taken = TakeMessage(received_, call);
      if (taken != Taken::kNone) {
        return taken == Taken::kOne ? std::optional(std::move(call)) : std::nullopt;
      }
      std::array<pollfd, 2> awaited{pollfd{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                                    pollfd{.fd = waker_, .events = POLLIN, .revents = 0}};
      if (!socket_.open() || (poll(awaited.data(), awaited.size(), -1) < 0 && errno != EINTR) ||
          awaited[1].revents != 0) {
        return std::nullopt;
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
  int waker_;
  std::string received_;
};

}  // namespace

// The controller's secret; of one without, the token of the submission, which is random unless the
// user has chosen it.
std::string SecretOf(const v1::StartAttempt& start) {
  const std::string& own = start.secret();
  return fmt::format("{} {} {}", start.id().job(), start.id().attempt(),
                     own.empty() ? start.launch().client_token() : own);
}

std::string NewNonce() {
  std::random_device random;
  std::string nonce;
  for (int i = 0; i < 4; ++i) {
    nonce += fmt::format("{:08x}", random());
  }
  return nonce;
}

std::string PeerOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  std::array<char, NI_MAXHOST> host{};
  const bool known = getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                     getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(),
                                 host.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  return known ? host.data() : "an address that has gone";
}

io::Descriptor ConnectToMaster(const v1::StartAttempt& start, int port) {
  return SocketFor(AddressesOf(start.master_address().c_str(), port), 0,
                   [](int socket, const addrinfo& at) {
                     KeepAlive(socket);
                     return connect(socket, at.ai_addr, at.ai_addrlen) == 0;
                   });
}

io::Descriptor ListenAtMaster(const v1::StartAttempt& start, int port) {
  io::Descriptor socket = ListenAt(start.master_address().c_str(), port);
  if (!socket.open() && errno == EADDRNOTAVAIL) {  // other machines have another name for it
    socket = ListenAt(nullptr, port);
  }
  return socket;
}

// ----------------------------------------------------------------------------------------- the
// desk

NodeDesk::NodeDesk(io::Descriptor socket, const v1::StartAttempt& start)
    : secret_(SecretOf(start)),
      nodes_(start.nodes()),
      // Each node has one that asks, and some bring; strangers shall not keep them out.
      callers_(std::move(socket), static_cast<std::size_t>(4 * start.nodes() + 64)) {}

Result<NodeDesk> NodeDesk::Open(const v1::StartAttempt& start) {
  io::Descriptor socket = ListenAtMaster(start, start.master_port());
  if (!socket.open()) {
    return Failed(fmt::format(
        "port {} of '{}', where the other nodes ask for what they are to start: {}",
        start.master_port(), start.master_address(), std::generic_category().message(errno)));
  }
  return NodeDesk(std::move(socket), start);
}

void NodeDesk::Greet(Connection& connection) {
  connection.number = ++last_number_;
  Caller& caller = by_number_[connection.number];
  caller.nonce = NewNonce();
  caller.since = Clock::now();
  v1::DeskCall greeting;
  greeting.set_nonce(caller.nonce);
  connection.Send(Framed(greeting));
}

void NodeDesk::Serve() {
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
    callers_.MakeRoom([this](const Connection& connection) {
      const bool spare = IsStranger(connection);
      if (spare) {
        Refuse(connection);
        by_number_.erase(connection.number);
      }
      return spare;
    });
  } while (news_);
}

// It has proved nothing yet.
bool NodeDesk::IsStranger(const Connection& connection) const {
  const auto caller = by_number_.find(connection.number);
  return caller != by_number_.end() && caller->second.call.node_rank() == 0;
}

void NodeDesk::Refuse(const Connection& connection) {
  ++refused_;
  if (std::has_single_bit(refused_)) {
    refusal_ = fmt::format(
        "refused: {} call{} without the secret of the attempt, the last from {}; where the other "
        "nodes ask for their commands nobody else has anything to ask",
        refused_, refused_ == 1 ? "" : "s", PeerOf(connection.Awaited().fd));
  }
}

std::string NodeDesk::TakeRefusal() { return std::exchange(refusal_, {}); }

bool NodeDesk::ServeOne(Connection& connection) {
  Caller& caller = by_number_[connection.number];
  const bool open = connection.Transfer();
  v1::DeskCall call;
  const Taken taken = TakeMessage(connection.received(), call);
  const bool refused =
      taken == Taken::kMalformed || (taken == Taken::kOne && !Take(caller, std::move(call)));
  if (refused || (caller.call.node_rank() == 0 && Clock::now() >= caller.since + kToProve)) {
    Refuse(connection);
    return false;
  }
  Answer(caller, connection);
  return connection.Flush() && open;
}

bool NodeDesk::Take(Caller& caller, v1::DeskCall call) {
  const bool genuine = caller.call.node_rank() == 0 && call.node_rank() > 0 &&
                       call.node_rank() < nodes_ &&
                       AreSame(call.mac(), MacOf(secret_, false, caller.nonce, call.nonce(), call));
  if (!genuine) {
    return false;
  }
  std::map<std::uint64_t, std::string>& commands = commands_[call.node_rank()];
  if (!call.command().empty()) {
    commands[++last_command_] = call.command();
    news_ = true;
  } else {
    commands.erase(commands.begin(), commands.upper_bound(call.number()));
  }
  caller.call = std::move(call);
  return true;
}

void NodeDesk::Answer(Caller& caller, Connection& connection) {
  const int node = caller.call.node_rank();
  if (node == 0 || caller.answered) {
    return;
  }
  v1::DeskCall answer;
  answer.set_node_rank(node);
  if (caller.call.command().empty()) {
    const auto& commands = commands_[node];
    const auto next = commands.upper_bound(caller.call.number());
    if (next == commands.end()) {
      return;
    }
    answer.set_number(next->first);
    answer.set_command(next->second);
    told_[node] = true;
  }
  answer.set_mac(MacOf(secret_, true, caller.nonce, caller.call.nonce(), answer));
  connection.Send(Framed(answer));
  caller.answered = true;
}

bool NodeDesk::done() const {
  return static_cast<int>(told_.size()) == nodes_ - 1 && callers_.empty();
}

// -------------------------------------------------------------------------------------- its
// callers

std::optional<NodeCommand> AwaitNodeCommand(const v1::StartAttempt& start, std::uint64_t after,
                                            int waker) {
  constexpr milliseconds kLongest(500);
  milliseconds pause(10);
  v1::DeskCall question;
  question.set_node_rank(start.node_rank());
  question.set_number(after);
  while (true) {
    if (const std::optional<v1::DeskCall> answer = Call(start, waker).Say(question)) {
      return NodeCommand{.number = answer->number(), .text = answer->command()};
    }
    pollfd awaited{.fd = waker, .events = POLLIN, .revents = 0};
    if (poll(&awaited, 1, static_cast<int>(pause.count())) > 0) {
      return std::nullopt;
    }
    pause = std::min(pause * 2, kLongest);
  }
}

Status BringNodeCommand(const v1::StartAttempt& start, int node_rank, const std::string& command) {
  v1::DeskCall call;
  call.set_node_rank(node_rank);
  call.set_command(command);
  if (!Call(start).Say(std::move(call)).has_value()) {
    return Failed(fmt::format("the attempt's supervisor does not answer at {} port {}",
                              start.master_address(), start.master_port()));
  }
  return {};
}

}  // namespace trainyard::supervisor
