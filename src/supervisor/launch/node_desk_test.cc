// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/node_desk.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
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

class NodeDeskTest : public testing::Test {
 protected:
  NodeDeskTest() {
    start_.mutable_id()->set_job(1);
    start_.mutable_id()->set_attempt(1);
    start_.mutable_launch()->set_client_token("secret");
    start_.set_nodes(3);
    start_.set_master_address("127.0.0.1");
    start_.set_master_port(FreePort());
  }
  ~NodeDeskTest() override {
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
  std::future<std::string> Ask(int rank, std::uint64_t after = 0) {
    return std::async(std::launch::async, [start = Node(rank), after] {
      return AwaitNodeCommand(start, after, -1).value().text;
    });
  }
  // As a supervisor does it, until all have their commands.
  void Serve() {
    Result<NodeDesk> opened = NodeDesk::Open(start_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    desk_ = std::thread([this, desk = std::move(opened).value()]() mutable {
      while (!ending_ && !desk.done()) {
        std::vector<pollfd> polls;
        desk.AddAwaited(polls);
        poll(polls.data(), polls.size(), 100);
        desk.Serve();
        if (std::string refusal = desk.TakeRefusal(); !refusal.empty()) {
          refusals_.push_back(std::move(refusal));
        }
      }
      done_ = desk.done();
    });
  }

  v1::StartAttempt start_;
  std::thread desk_;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> done_ = false;
  std::vector<std::string> refusals_;  // once the desk has ended
};

TEST_F(NodeDeskTest, EachNodeGetsItsOwnCommandWhoeverComesFirst) {
  std::future<std::string> first = Ask(1);  // before anybody is there
  Serve();
  EXPECT_TRUE(BringNodeCommand(start_, 2, "orted two").ok());
  std::future<std::string> second = Ask(2);
  EXPECT_EQ(second.get(), "orted two");
  EXPECT_TRUE(BringNodeCommand(start_, 1, "orted one").ok());
  EXPECT_EQ(first.get(), "orted one");
  desk_.join();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(NodeDesk::Open(start_).ok()) << "the port is free again";
}

// A node that has not heard the answer asks for the same again.
TEST_F(NodeDeskTest, ANodeGetsOneCommandAfterTheOther) {
  Serve();
  EXPECT_TRUE(BringNodeCommand(start_, 1, "first").ok());
  EXPECT_TRUE(BringNodeCommand(start_, 1, "second").ok());
  const std::optional<NodeCommand> first = AwaitNodeCommand(Node(1), 0, -1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text, "first");
  EXPECT_EQ(Ask(1).get(), "first");
  const std::optional<NodeCommand> second = AwaitNodeCommand(Node(1), first->number, -1);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->text, "second");
  std::future<std::string> third = Ask(1, second->number);
  EXPECT_TRUE(BringNodeCommand(start_, 2, "of another node").ok());
  EXPECT_TRUE(BringNodeCommand(start_, 1, "third").ok());
  EXPECT_EQ(third.get(), "third");
}

TEST_F(NodeDeskTest, WhoWaitsForACommandCanBeWoken) {
  Serve();
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const io::Descriptor reader(ends[0]);
  const io::Descriptor writer(ends[1]);
  std::future<bool> asked = std::async(std::launch::async, [start = Node(1), waker = ends[0]] {
    return AwaitNodeCommand(start, 0, waker).has_value();
  });
  ASSERT_EQ(write(writer.get(), "x", 1), 1);
  EXPECT_FALSE(asked.get());
}

TEST_F(NodeDeskTest, TheSecretIsTheControllersWhereItHasOne) {
  v1::StartAttempt with = start_;
  with.set_secret("of the controller");
  EXPECT_NE(SecretOf(with), SecretOf(start_));
  v1::StartAttempt guessed = with;
  guessed.mutable_launch()->set_client_token("another");
  EXPECT_EQ(SecretOf(with), SecretOf(guessed)) << "what a user has chosen is of no use";
}

TEST_F(NodeDeskTest, ALongCommandArrivesWhole) {
  Serve();
  const std::string command = "orted " + std::string(200'000, 'x');
  EXPECT_TRUE(BringNodeCommand(start_, 1, command).ok());
  EXPECT_EQ(Ask(1).get(), command);
}

TEST_F(NodeDeskTest, WhoDoesNotKnowTheSecretBringsNothing) {
  Serve();
  v1::StartAttempt other = start_;
  other.mutable_launch()->set_client_token("guessed");
  EXPECT_EQ(BringNodeCommand(other, 1, "rm -rf /").error().message,
            "the attempt's supervisor does not answer at 127.0.0.1 port " +
                std::to_string(start_.master_port()));
  EXPECT_FALSE(BringNodeCommand(start_, 3, "orted three").ok()) << "there are three nodes";
  EXPECT_TRUE(BringNodeCommand(start_, 1, "orted one").ok());
  EXPECT_EQ(Ask(1).get(), "orted one");
}

// More than the desk keeps, and none of them ever says a word.
TEST_F(NodeDeskTest, SilentCallsKeepNobodyOut) {
  Serve();
  std::vector<io::Descriptor> silent;
  constexpr int kMany = 300;
  silent.reserve(kMany);
  for (int i = 0; i < kMany; ++i) {
    silent.push_back(ConnectToMaster(start_, start_.master_port()));
    ASSERT_TRUE(silent.back().open());
  }
  std::future<std::string> asked = Ask(1);
  EXPECT_TRUE(BringNodeCommand(start_, 1, "orted one").ok());
  EXPECT_EQ(asked.get(), "orted one");
  ending_ = true;
  desk_.join();
  ASSERT_FALSE(refusals_.empty());
  EXPECT_TRUE(refusals_.front().starts_with("refused: 1 call without the secret of the attempt"));
  EXPECT_LT(refusals_.size(), 12U) << "no more lines than powers of two";
}

// Whoever has taken the port cannot have anything run on the other nodes.
TEST_F(NodeDeskTest, ANodeRunsNothingOfADeskThatDoesNotKnowTheSecret) {
  std::future<std::string> asked;
  {
    v1::StartAttempt other = start_;
    other.mutable_launch()->set_client_token("guessed");
    Result<NodeDesk> impostor = NodeDesk::Open(other);
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
  EXPECT_TRUE(BringNodeCommand(start_, 1, "orted one").ok());
  EXPECT_EQ(asked.get(), "orted one");
}

TEST_F(NodeDeskTest, APortThatIsTakenIsNamed) {
  Serve();
  const Result<NodeDesk> second = NodeDesk::Open(start_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, "port " + std::to_string(start_.master_port()) +
                                        " of '127.0.0.1', where the other nodes ask for what they "
                                        "are to start: Address already in use");
}

}  // namespace
}  // namespace trainyard::supervisor
