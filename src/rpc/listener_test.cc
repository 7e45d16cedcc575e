// SPDX-License-Identifier: Apache-2.0
#include "rpc/listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <vector>

#include "io/descriptor.h"

#undef NO_DATA  // of netdb.h; messages have the name, too

namespace trainyard::rpc {
namespace {

// A listener that keeps what it takes, and what it says.
class Desk {
 public:
  explicit Desk(ConnectionLimits limits, const std::string& address = "127.0.0.1:0") {
    auto opened = Listener::Open(address, limits, [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    });
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    listener_ = std::move(opened).value();
    listener_->Serve([this](int fd) {
      const std::lock_guard lock(mutex_);
      taken_.emplace_back(fd);
      changed_.notify_all();
    });
  }

  [[nodiscard]] io::Descriptor Connect() const {
    io::Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(listener_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    return client;
  }
  void AwaitTaken(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return taken_.size() >= count; }));
  }
  // The server's end of a connection.
  void Close(std::size_t which) {
    const std::lock_guard lock(mutex_);
    shutdown(taken_[which].get(), SHUT_RDWR);
    taken_[which].Close();
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  Listener& listener() { return *listener_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<io::Descriptor> taken_;
  std::vector<std::string> lines_;
  std::unique_ptr<Listener> listener_;  // first to go: it uses the rest
};

// Whether the other end closes it, which is waited for; a connection that is taken says nothing.
bool IsRefused(const io::Descriptor& client) {
  char byte = 0;
  return recv(client.get(), &byte, 1, 0) <= 0;
}

TEST(Listener, TakesNoMoreOfOneThanItMayHaveOpen) {
  Desk desk({.open = 2, .opens = {}, .on_loopback = true});
  const io::Descriptor first = desk.Connect();
  const io::Descriptor second = desk.Connect();
  desk.AwaitTaken(2);
  EXPECT_TRUE(IsRefused(desk.Connect()));
  EXPECT_TRUE(IsRefused(desk.Connect()));
  EXPECT_EQ(desk.lines(), std::vector<std::string>{
                              "refused loopback: it has 2 connections open, as many as one may"});
}

TEST(Listener, AConnectionThatHasEndedMakesRoom) {
  Desk desk({.open = 1, .opens = {}, .on_loopback = true});
  std::size_t taken = 0;
  const auto again = [&] {  // until its end is known
    io::Descriptor client = desk.Connect();
    pollfd closed{.fd = client.get(), .events = POLLIN};
    while (poll(&closed, 1, 5) != 0) {
      client = desk.Connect();
      closed.fd = client.get();
    }
    desk.AwaitTaken(++taken);
    return client;
  };
  io::Descriptor client = again();
  EXPECT_TRUE(IsRefused(desk.Connect())) << "there is no room";
  client.Close();  // by the peer
  client = again();
  desk.Close(1);  // by the server
  client = again();
  EXPECT_TRUE(IsRefused(desk.Connect())) << "what has ended makes room for one";
}

TEST(Listener, TakesNoMoreOfOneInATimeThanItsRate) {
  Desk desk({.open = 100, .opens = {.per_s = 1e-6, .burst = 3}, .on_loopback = true});
  for (int i = 0; i < 3; ++i) {
    const io::Descriptor client = desk.Connect();
    desk.AwaitTaken(static_cast<std::size_t>(i) + 1);
  }
  EXPECT_TRUE(IsRefused(desk.Connect()));
  EXPECT_EQ(desk.lines(), std::vector<std::string>{
                              "refused loopback: it opens more than 1e-06 connections per second"});
}

TEST(Listener, TheMachineItselfHasNoLimit) {
  Desk desk({.open = 1, .opens = {.per_s = 1e-6, .burst = 1}});
  const io::Descriptor first = desk.Connect();
  const io::Descriptor second = desk.Connect();
  desk.AwaitTaken(2);
}

// An address of the machine that others reach, if it has one.
in_addr OwnAddress() {
  in_addr found{.s_addr = htonl(INADDR_LOOPBACK)};
  ifaddrs* first = nullptr;
  EXPECT_EQ(getifaddrs(&first), 0);
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
        (at->ifa_flags & IFF_LOOPBACK) == 0 && (at->ifa_flags & IFF_UP) != 0) {
      found = reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr;
    }
  }
  freeifaddrs(first);
  return found;
}

TEST(Listener, TheMachineItselfHasNoLimitAtItsOtherAddressesEither) {
  const in_addr own = OwnAddress();
  Desk desk({.open = 1, .opens = {.per_s = 1e-6, .burst = 1}}, inet_ntoa(own) + std::string(":0"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(desk.listener().port()));
  address.sin_addr = own;
  std::vector<io::Descriptor> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        connect(clients.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        0);
  }
  desk.AwaitTaken(3);
}

TEST(Listener, ANameListensAtAllItsAddressesOnOnePort) {
  Desk desk({}, "localhost:0");
  addrinfo* first = nullptr;
  const addrinfo hints{.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  ASSERT_EQ(getaddrinfo("localhost", nullptr, &hints, &first), 0);
  std::vector<io::Descriptor> clients;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, at->ai_addr, at->ai_addrlen);
    const io::Descriptor probe(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(probe.get(), at->ai_addr, at->ai_addrlen) != 0) {
      continue;  // the machine has no such address
    }
    // The port is at the same place of both.
    reinterpret_cast<sockaddr_in*>(&address)->sin_port =
        htons(static_cast<std::uint16_t>(desk.listener().port()));
    clients.emplace_back(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        connect(clients.back().get(), reinterpret_cast<const sockaddr*>(&address), at->ai_addrlen),
        0)
        << "address " << clients.size() << " of localhost: " << std::strerror(errno);
  }
  freeaddrinfo(first);
  EXPECT_GE(clients.size(), 1U);
  desk.AwaitTaken(clients.size());
}

TEST(Listener, AfterItsEndNothingIsTaken) {
  Desk desk({});
  desk.listener().End();
  desk.listener().End();
  const io::Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(desk.listener().port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_NE(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

}  // namespace
}  // namespace trainyard::rpc
