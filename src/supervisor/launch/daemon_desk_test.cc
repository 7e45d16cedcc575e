// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/daemon_desk.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace trainyard::supervisor {
namespace {

// A port of this machine that was free a moment ago.
int FreePort() {
  const io::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

class DaemonDeskTest : public testing::Test {
 protected:
  DaemonDeskTest() {
    start_.mutable_id()->set_job(1);
    start_.mutable_id()->set_attempt(1);
    start_.mutable_launch()->set_client_token("secret");
    start_.set_nodes(3);
    start_.set_master_address("127.0.0.1");
    start_.set_master_port(FreePort());
  }
  ~DaemonDeskTest() override {
    ending_ = true;
    if (desk_.joinable()) {
      desk_.join();
    }
  }

  [[nodiscard]] v1::StartAttempt Node(int rank) const {
    v1::StartAttempt start = start_;
    start.set_node_rank(rank);
    return start;
  }
  std::future<std::string> Ask(int rank) {
    return std::async(std::launch::async,
                      [start = Node(rank)] { return AwaitDaemonCommand(start); });
  }
  // As a supervisor does it, until all have their commands.
  void Serve() {
    Result<DaemonDesk> opened = DaemonDesk::Open(start_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    desk_ = std::thread([this, desk = std::move(opened).value()]() mutable {
      while (!ending_ && !desk.done()) {
        std::vector<pollfd> polls;
        desk.AddAwaited(polls);
        poll(polls.data(), polls.size(), 100);
        desk.Serve();
      }
      done_ = desk.done();
    });
  }

  v1::StartAttempt start_;
  std::thread desk_;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> done_ = false;
};

TEST_F(DaemonDeskTest, EachNodeGetsItsOwnCommandWhoeverComesFirst) {
  std::future<std::string> first = Ask(1);  // before anybody is there
  Serve();
  EXPECT_TRUE(BringDaemonCommand(start_, 2, "orted two").ok());
  std::future<std::string> second = Ask(2);
  EXPECT_EQ(second.get(), "orted two");
  EXPECT_TRUE(BringDaemonCommand(start_, 1, "orted one").ok());
  EXPECT_EQ(first.get(), "orted one");
  desk_.join();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(DaemonDesk::Open(start_).ok()) << "the port is free again";
}

TEST_F(DaemonDeskTest, ALongCommandArrivesWhole) {
  Serve();
  const std::string command = "orted " + std::string(200'000, 'x');
  EXPECT_TRUE(BringDaemonCommand(start_, 1, command).ok());
  EXPECT_EQ(Ask(1).get(), command);
}

TEST_F(DaemonDeskTest, WhoDoesNotKnowTheSecretBringsNothing) {
  Serve();
  v1::StartAttempt other = start_;
  other.mutable_launch()->set_client_token("guessed");
  EXPECT_EQ(BringDaemonCommand(other, 1, "rm -rf /").error().message,
            "the attempt's supervisor does not answer at 127.0.0.1 port " +
                std::to_string(start_.master_port()));
  EXPECT_FALSE(BringDaemonCommand(start_, 3, "orted three").ok()) << "there are three nodes";
  EXPECT_TRUE(BringDaemonCommand(start_, 1, "orted one").ok());
  EXPECT_EQ(Ask(1).get(), "orted one");
}

// Whoever has taken the port cannot have anything run on the other nodes.
TEST_F(DaemonDeskTest, ANodeRunsNothingOfADeskThatDoesNotKnowTheSecret) {
  std::future<std::string> asked;
  {
    v1::StartAttempt other = start_;
    other.mutable_launch()->set_client_token("guessed");
    Result<DaemonDesk> impostor = DaemonDesk::Open(other);
    ASSERT_TRUE(impostor.ok());
    asked = Ask(1);
    int calls = 0;
    for (int round = 0; round < 1000 && calls < 3; ++round) {  // it is called again and again
      std::vector<pollfd> polls;
      impostor.value().AddAwaited(polls);
      const auto before = polls.size();
      poll(polls.data(), polls.size(), 100);
      impostor.value().Serve();
      polls.clear();
      impostor.value().AddAwaited(polls);
      calls += polls.size() < before ? 1 : 0;
    }
    EXPECT_EQ(calls, 3);
  }
  EXPECT_NE(asked.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  Serve();
  EXPECT_TRUE(BringDaemonCommand(start_, 1, "orted one").ok());
  EXPECT_EQ(asked.get(), "orted one");
}

TEST_F(DaemonDeskTest, APortThatIsTakenIsNamed) {
  Serve();
  const Result<DaemonDesk> second = DaemonDesk::Open(start_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, "port " + std::to_string(start_.master_port()) +
                                        " of '127.0.0.1', where mpirun starts its daemons: Address "
                                        "already in use");
}

}  // namespace
}  // namespace trainyard::supervisor
