// SPDX-License-Identifier: Apache-2.0
#include "rpc/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/descriptor.h"

#undef NO_DATA  // of netdb.h; messages have the name, too

namespace trainyard::rpc {
namespace {

constexpr std::chrono::milliseconds kNoDescriptors{10};

std::string SystemError() { return std::generic_category().message(errno); }

const sockaddr* Generic(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// What counts as one peer; none: the machine itself.
std::optional<std::string> PeerOf(const sockaddr_storage& address) {
  constexpr std::size_t kPrefix = 8;  // bytes of an IPv6 address that one machine may fill up
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const in_addr ip = reinterpret_cast<const sockaddr_in*>(&address)->sin_addr;
    constexpr unsigned kLoopback = 127;
    constexpr unsigned kNetBits = 24;
    return ntohl(ip.s_addr) >> kNetBits == kLoopback
               ? std::nullopt
               : std::optional<std::string>(inet_ntop(AF_INET, &ip, text.data(), text.size()));
  }
  in6_addr ip = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&ip)) {
    sockaddr_storage mapped{};
    mapped.ss_family = AF_INET;
    std::memcpy(&reinterpret_cast<sockaddr_in*>(&mapped)->sin_addr, &ip.s6_addr[12], 4);
    return PeerOf(mapped);
  }
  if (IN6_IS_ADDR_LOOPBACK(&ip)) {
    return std::nullopt;
  }
  std::fill(&ip.s6_addr[kPrefix], std::end(ip.s6_addr), std::uint8_t{0});
  return std::string(inet_ntop(AF_INET6, &ip, text.data(), text.size())) + "/64";
}

// A socket that listens there, on `port` unless that is 0. errno says why there is none.
io::Descriptor ListenAt(const addrinfo& at, int port) {
  constexpr int kWaiting = 1024;
  const int on = 1;
  const int off = 0;
  io::Descriptor socket(
      ::socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, at.ai_protocol));
  if (!socket.open()) {
    return socket;
  }
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // connections inherit it
  sockaddr_storage address{};
  std::memcpy(&address, at.ai_addr, at.ai_addrlen);
  if (at.ai_family == AF_INET6) {  // "[::]" is every address of the machine
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (port != 0) {  // sin_port and sin6_port are at the same place
    reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(static_cast<std::uint16_t>(port));
  }
  if (bind(socket.get(), Generic(address), at.ai_addrlen) != 0 ||
      listen(socket.get(), kWaiting) != 0) {
    socket.Close();
  }
  return socket;
}

std::string_view BytesOf(const sockaddr_storage& address) {
  const auto& four = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return address.ss_family == AF_INET
             ? std::string_view(reinterpret_cast<const char*>(&four), sizeof four)
             : std::string_view(reinterpret_cast<const char*>(&six), sizeof six);
}

// Whether the peer comes from the address at which it is taken, as processes of this machine do.
bool IsOwn(int connection, const sockaddr_storage& peer) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  return getsockname(connection, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
         own.ss_family == peer.ss_family && BytesOf(own) == BytesOf(peer);
}

int BoundPortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// What of so many connections leaves most of the process's descriptors to others. One takes two.
int WithinDescriptors(int connections) {
  constexpr rlim_t kPart = 8;
  constexpr rlim_t kLeast = 16;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(
      std::min<rlim_t>(static_cast<rlim_t>(connections), std::max(kLeast, limit.rlim_cur / kPart)));
}

class OpenListener final : public Listener {
 public:
  OpenListener(std::vector<io::Descriptor> sockets, ConnectionLimits limits, Log log)
      : sockets_(std::move(sockets)),
        port_(BoundPortOf(sockets_.front().get())),
        limits_(limits),
        opens_(limits.opens),
        log_(std::move(log)) {
    limits_.open = WithinDescriptors(limits_.open);
    for (const io::Descriptor& socket : sockets_) {
      Watch(socket.get(), EPOLLIN);
    }
    Watch(stop_.get(), EPOLLIN);
  }
  ~OpenListener() override { End(); }
  OpenListener(const OpenListener&) = delete;
  OpenListener& operator=(const OpenListener&) = delete;

  void End() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = write(stop_.get(), &one, sizeof one);
    if (thread_.joinable()) {
      thread_.join();
    }
    sockets_.clear();
  }

  [[nodiscard]] int port() const override { return port_; }

  void Serve(Take take) override {
    take_ = std::move(take);
    thread_ = std::thread([this] { Loop(); });
  }

 private:
  struct Connection {
    io::Descriptor copy;  // says when it has ended; its owner has the other
    std::string peer;
  };
  struct Peer {
    int open = 0;
    bool refused = false;  // the last one
  };

  void Watch(int fd, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  void Loop() {
    std::array<epoll_event, 64> events{};
    while (true) {
      const int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == stop_.get()) {
          return;
        }
        if (const auto ended = connections_.find(fd); ended != connections_.end()) {
          Forget(ended);
        } else {
          Accept(fd);
        }
      }
    }
  }

  void Accept(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    io::Descriptor come(accept4(socket, reinterpret_cast<sockaddr*>(&address), &size,
                                SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!come.open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        std::this_thread::sleep_for(kNoDescriptors);
      }
      return;
    }
    std::optional<std::string> peer = IsOwn(come.get(), address) ? std::nullopt : PeerOf(address);
    if (!peer && limits_.on_loopback) {
      peer = "loopback";
    }
    if (!peer || Count(come, *peer)) {
      take_(come.Release());
    }
  }

  // Whether there may be another one of the peer's.
  [[nodiscard]] bool Count(const io::Descriptor& connection, const std::string& name) {
    Peer& peer = peers_[name];
    const bool too_many = peer.open >= limits_.open;
    if (too_many || opens_.Take(name, service::MonotonicSeconds())) {
      if (!std::exchange(peer.refused, true) && log_) {
        log_(fmt::format(
            "refused {}: {}", name,
            too_many ? fmt::format("it has {} connections open, as many as one may", peer.open)
                     : fmt::format("it opens more than {:g} connections per second",
                                   limits_.opens.per_s)));
      }
      return false;
    }
    io::Descriptor copy(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.open()) {
      return false;
    }
    peer.refused = false;
    ++peer.open;
    Watch(copy.get(), EPOLLRDHUP);  // EPOLLHUP always
    const int key = copy.get();
    connections_.emplace(key, Connection{.copy = std::move(copy), .peer = name});
    return true;
  }

  void Forget(std::map<int, Connection>::iterator connection) {
    const auto peer = peers_.find(connection->second.peer);
    if (--peer->second.open == 0) {
      peers_.erase(peer);
    }
    connections_.erase(connection);
  }

  std::vector<io::Descriptor> sockets_;
  const int port_;
  ConnectionLimits limits_;
  service::RateLimit opens_;
  const Log log_;
  const io::Descriptor epoll_{epoll_create1(EPOLL_CLOEXEC)};
  const io::Descriptor stop_{eventfd(0, EFD_CLOEXEC)};
  Take take_;
  // The thread's own.
  std::map<int, Connection> connections_;  // by their copies; only those that count
  std::map<std::string, Peer> peers_;

  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Open(const std::string& address,
                                                 ConnectionLimits limits, Log log) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo* found = nullptr;
  const addrinfo wanted{.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
  if (const int code =
          getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &wanted, &found);
      code != 0) {
    return Failed(fmt::format("{}; expected HOST:PORT", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  std::vector<io::Descriptor> sockets;
  std::string why;
  for (const addrinfo* at = all.get(); at != nullptr; at = at->ai_next) {
    io::Descriptor socket = ListenAt(*at, sockets.empty() ? 0 : BoundPortOf(sockets.front().get()));
    if (socket.open()) {
      sockets.push_back(std::move(socket));
    } else if (why.empty()) {
      why = SystemError();
    }
  }
  if (sockets.empty()) {
    return Failed(why);
  }
  return std::unique_ptr<Listener>(
      std::make_unique<OpenListener>(std::move(sockets), limits, std::move(log)));
}

}  // namespace trainyard::rpc
