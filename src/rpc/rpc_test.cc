// SPDX-License-Identifier: Apache-2.0
// Server and clients over loopback.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "rpc/client.h"
#include "rpc/server.h"
#include "service/access_control.h"
#include "trainyard/live.grpc.pb.h"

namespace trainyard::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kTimeout = seconds(10);  // none of the tests comes near it
constexpr int kManyMessages = 10'000;

v1::ClientReply ErrorReply(grpc::StatusCode code, const std::string& message) {
  v1::ClientReply reply;
  reply.mutable_error()->set_code(code);
  reply.mutable_error()->set_message(message);
  return reply;
}

v1::ClientReply EmptyReplyTo(const v1::ClientRequest& request) {
  v1::ClientReply reply;
  switch (request.kind_case()) {
    case v1::ClientRequest::kSubmit:
      reply.mutable_submit()->set_job(11);
      break;
    case v1::ClientRequest::kCancel:
      reply.mutable_cancel()->mutable_status()->set_job(request.cancel().job());
      break;
    case v1::ClientRequest::kResize:
      reply.mutable_resize()->mutable_status()->mutable_request()->set_gpus(
          request.resize().gpus());
      break;
    case v1::ClientRequest::kJobs:
      reply.mutable_jobs()->set_now(12.5);
      break;
    case v1::ClientRequest::kNodes:
      reply.mutable_nodes()->set_policy("fifo");
      break;
    case v1::ClientRequest::kDrain:
      reply.mutable_drain()->mutable_status()->set_node(request.drain().node());
      break;
    case v1::ClientRequest::kLogs:
      reply.mutable_logs()->set_data(std::string("\0\xff\n", 3));
      break;
    case v1::ClientRequest::kHold:
    case v1::ClientRequest::kRequeue:
    case v1::ClientRequest::kUpdate:
    case v1::ClientRequest::kProfiles:
    case v1::ClientRequest::kConfiguration:
    case v1::ClientRequest::kSignal:
    case v1::ClientRequest::kAttach:
    case v1::ClientRequest::kSwitches:
    case v1::ClientRequest::kConfigure:
    case v1::ClientRequest::kUsage:
    case v1::ClientRequest::kAudit:
    case v1::ClientRequest::KIND_NOT_SET:
      break;
  }
  return reply;
}

// Writes down what comes in; tests wait until it has.
class FakeInbox final : public Inbox {
 public:
  struct Call {
    std::uint64_t number = 0;
    v1::ClientRequest request;
  };
  struct AgentEvent {
    std::uint64_t connection = 0;
    v1::AgentMessage message;
    bool gone = false;
  };

  // What a call is answered at once; none: it stays open.
  std::function<void(const Call&)> on_call;
  std::function<void(const AgentEvent&)> on_agent;

  void OnCall(std::uint64_t call, v1::ClientRequest request) override {
    const Call seen{call, std::move(request)};
    if (on_call) {
      on_call(seen);
    }
    Note([&] { calls_.push_back(seen); });
  }
  void OnCallGone(std::uint64_t call) override {
    Note([&] { gone_.push_back(call); });
  }
  void OnAgent(std::uint64_t connection, v1::AgentMessage message) override {
    NoteAgent({connection, std::move(message), false});
  }
  void OnAgentGone(std::uint64_t connection) override { NoteAgent({connection, {}, true}); }

  std::vector<Call> WaitForCalls(std::size_t count) {
    return WaitFor([&] { return calls_.size() >= count; }, calls_);
  }
  std::vector<std::uint64_t> WaitForGone(std::size_t count) {
    return WaitFor([&] { return gone_.size() >= count; }, gone_);
  }
  std::vector<AgentEvent> WaitForAgentEvents(std::size_t count) {
    return WaitFor([&] { return agent_events_.size() >= count; }, agent_events_);
  }

 private:
  void Note(const std::function<void()>& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  void NoteAgent(const AgentEvent& event) {
    if (on_agent) {
      on_agent(event);
    }
    Note([&] { agent_events_.push_back(event); });
  }
  template <typename T>
  T WaitFor(const std::function<bool()>& reached, const T& list) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(100), reached)) << "has not come";
    return list;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
  std::vector<std::uint64_t> gone_;
  std::vector<AgentEvent> agent_events_;
};

std::unique_ptr<RpcServer> MustStart(Inbox& inbox, ServerOptions options = {}) {
  auto server = StartServer(options, inbox);
  EXPECT_TRUE(server.ok()) << server.error().message;
  return std::move(server).value();
}

std::string AddressOf(int port) { return "127.0.0.1:" + std::to_string(port); }

// These servers have no socket.
std::unique_ptr<ClusterClient> ConnectTo(int port) {
  return Connect(AddressOf(port), {}, {.trusts_port = true});
}

v1::ClientRequest NodesCall() {
  v1::ClientRequest request;
  request.mutable_nodes();
  return request;
}

v1::ClientRequest SubmitCall(const std::string& name) {
  v1::ClientRequest request;
  request.mutable_submit()->mutable_job()->set_name(name);
  return request;
}

std::string MessageOf(const Result<v1::ClientReply>& reply) {
  return reply.ok() ? "no error" : reply.error().message;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

v1::AgentMessage HelloFrom(const std::string& node) {
  v1::AgentMessage message;
  message.mutable_hello()->set_node(node);
  return message;
}

v1::AgentMessage HeartbeatOf(std::uint64_t number) {
  v1::AgentMessage message;
  message.mutable_heartbeat()->set_number(number);
  return message;
}

v1::ControllerMessage AnswerOf(std::uint64_t number) {
  v1::ControllerMessage message;
  message.mutable_heartbeat()->set_number(number);
  return message;
}

// An agent that says Hello and writes down what it hears.
class FakeAgent {
 public:
  explicit FakeAgent(int port)
      : stream_(AttachAgent(AddressOf(port),
                            {.on_connected = [this] { OnConnected(); },
                             .on_message =
                                 [this](const v1::ControllerMessage& message) {
                                   Note([&] { heard_.push_back(message); });
                                 },
                             .on_disconnected = [this] { Note([&] { ++disconnected_; }); }},
                            {.trusts_port = true})) {
    ready_.set_value();
  }

  AgentStream& stream() { return *stream_; }

  std::vector<v1::ControllerMessage> WaitForMessages(std::size_t count) {
    return WaitFor([&] { return heard_.size() >= count; });
  }
  void WaitForConnections(int count) {
    WaitFor([&] { return connected_ >= count; });
  }
  void WaitForDisconnections(int count) {
    WaitFor([&] { return disconnected_ >= count; });
  }

 private:
  void OnConnected() {
    ready_future_.wait();  // the constructor has the stream
    stream_->Send(HelloFrom("n0"));
    Note([&] { ++connected_; });
  }
  void Note(const std::function<void()>& change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  std::vector<v1::ControllerMessage> WaitFor(const std::function<bool()>& reached) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(100), reached)) << "has not come";
    return heard_;
  }

  std::promise<void> ready_;
  std::shared_future<void> ready_future_ = ready_.get_future().share();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<v1::ControllerMessage> heard_;
  int connected_ = 0;
  int disconnected_ = 0;
  std::unique_ptr<AgentStream> stream_;
};

// ------------------------------------------------------------------------------------------- calls

class CallTest : public testing::Test {
 protected:
  // Every call is answered from within.
  void AnswerAtOnce(std::function<v1::ClientReply(const v1::ClientRequest&)> answer) {
    inbox_.on_call = [this, answer = std::move(answer)](const FakeInbox::Call& call) {
      server_->Reply(call.number, answer(call.request));
    };
  }
  [[nodiscard]] std::unique_ptr<ClusterClient> NewClient() const {
    return ConnectTo(server_->port());
  }

  FakeInbox inbox_;
  std::unique_ptr<RpcServer> server_ = MustStart(inbox_);
};

TEST_F(CallTest, EveryKindGoesThereAndBack) {
  AnswerAtOnce(EmptyReplyTo);
  const auto client = NewClient();
  std::vector<v1::ClientRequest> requests(7);
  requests[0].mutable_submit()->mutable_job()->set_gpus(4);
  requests[1].mutable_cancel()->set_job(7);
  requests[2].mutable_resize()->set_gpus(3);
  requests[3].mutable_jobs()->add_jobs(5);
  requests[4].mutable_nodes();
  requests[5].mutable_drain()->set_node("n1");
  requests[6].mutable_logs()->set_offset(99);
  for (const v1::ClientRequest& request : requests) {
    const auto reply = client->Call(request, kTimeout);
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply.value().SerializeAsString(), EmptyReplyTo(request).SerializeAsString());
  }
  const auto calls = inbox_.WaitForCalls(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(calls[i].request.SerializeAsString(), requests[i].SerializeAsString());
  }
}

TEST_F(CallTest, TheControllersErrorsArriveInItsWords) {
  struct Case {
    grpc::StatusCode code;
    ErrorCode expected;
  };
  for (const auto& [code, expected] :
       {Case{grpc::StatusCode::INVALID_ARGUMENT, ErrorCode::kInvalidArgument},
        Case{grpc::StatusCode::NOT_FOUND, ErrorCode::kNotFound},
        Case{grpc::StatusCode::FAILED_PRECONDITION, ErrorCode::kFailedPrecondition},
        Case{grpc::StatusCode::RESOURCE_EXHAUSTED, ErrorCode::kResourceExhausted},
        Case{grpc::StatusCode::UNAVAILABLE, ErrorCode::kUnavailable}}) {
    AnswerAtOnce([code = code](const v1::ClientRequest&) {
      return ErrorReply(code, "trainyard: job 7: in its words");
    });
    // With patience: what the controller itself says is final.
    const auto reply = NewClient()->Call(NodesCall(), kTimeout, kTimeout);
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().message, "trainyard: job 7: in its words");
    EXPECT_EQ(reply.error().code, expected);
  }
}

TEST_F(CallTest, AReplyMayComeLaterFromAnotherThread) {
  auto reply = std::async([&] { return NewClient()->Call(SubmitCall("a"), kTimeout); });
  const auto calls = inbox_.WaitForCalls(1);
  EXPECT_EQ(reply.wait_for(milliseconds(50)), std::future_status::timeout);
  server_->Reply(calls[0].number, EmptyReplyTo(calls[0].request));
  ASSERT_TRUE(reply.get().ok());
  server_->Reply(calls[0].number, EmptyReplyTo(calls[0].request));  // gone: does nothing
}

TEST_F(CallTest, AClientThatGoesAwayIsReported) {
  const auto reply = NewClient()->Call(NodesCall(), milliseconds(100));
  EXPECT_TRUE(Contains(MessageOf(reply), "has not answered within 100ms")) << MessageOf(reply);
  const auto calls = inbox_.WaitForCalls(1);
  EXPECT_EQ(inbox_.WaitForGone(1), std::vector{calls[0].number});
  server_->Reply(calls[0].number, EmptyReplyTo(calls[0].request));  // does nothing
}

TEST_F(CallTest, ManyClientsAtOnceGetTheirOwnAnswers) {
  AnswerAtOnce([](const v1::ClientRequest& request) {
    v1::ClientReply reply;
    reply.mutable_cancel()->mutable_status()->set_job(request.cancel().job());
    return reply;
  });
  std::vector<std::thread> clients;
  for (std::uint64_t first = 1; first <= 800; first += 100) {
    clients.emplace_back([this, first] {
      const auto client = NewClient();
      for (std::uint64_t job = first; job < first + 100; ++job) {
        v1::ClientRequest request;
        request.mutable_cancel()->set_job(job);
        const auto reply = client->Call(request, kTimeout);
        ASSERT_TRUE(reply.ok()) << reply.error().message;
        EXPECT_EQ(reply.value().cancel().status().job(), job);
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
}

TEST_F(CallTest, AMessageOverTheLimitIsRefused) {
  const auto client = NewClient();
  const auto reply = client->Call(SubmitCall(std::string(2 << 20, 'x')), kTimeout);
  EXPECT_TRUE(Contains(MessageOf(reply), "larger than max")) << MessageOf(reply);
  AnswerAtOnce(EmptyReplyTo);
  EXPECT_TRUE(client->Call(SubmitCall("small"), kTimeout).ok());
}

TEST_F(CallTest, ALongListOfJobsComesBack) {
  AnswerAtOnce([](const v1::ClientRequest&) {
    v1::ClientReply reply;
    for (int i = 0; i < 100'000; ++i) {
      reply.mutable_jobs()->add_jobs()->set_reason(std::string(80, 'x'));
    }
    return reply;
  });
  v1::ClientRequest request;
  request.mutable_jobs();
  const auto reply = NewClient()->Call(request, kTimeout);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply.value().jobs().jobs_size(), 100'000);
}

TEST_F(CallTest, TheServersEndAnswersOpenCalls) {
  auto reply = std::async([&] { return NewClient()->Call(NodesCall(), kTimeout); });
  const auto calls = inbox_.WaitForCalls(1);
  server_.reset();
  EXPECT_TRUE(Contains(MessageOf(reply.get()), "no controller answers"));
  EXPECT_TRUE(inbox_.WaitForGone(0).empty());
}

TEST(ServerTest, TooManyCallsAreRefused) {
  FakeInbox inbox;
  service::AccessControl access(nullptr, {.max_calls = 1});
  const auto server = MustStart(inbox, {.access = &access});
  const auto call = [&] { return ConnectTo(server->port())->Call(NodesCall(), kTimeout); };
  auto first = std::async(call);
  const auto calls = inbox.WaitForCalls(1);
  EXPECT_EQ(MessageOf(call()), "trainyard: 1 calls are open already; try again later");
  server->Reply(calls[0].number, EmptyReplyTo(calls[0].request));
  EXPECT_TRUE(first.get().ok());
}

TEST(ServerTest, AnAddressWhereItCannotListenIsNamed) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  const std::string taken = AddressOf(server->port());
  for (const auto& [address, why] :
       {std::pair<std::string, std::string>{taken, "Address already in use"},
        {"192.0.2.1:7077", "Cannot assign requested address"},
        {"no.such.host.invalid:7077", "expected HOST:PORT"}}) {
    const auto second = StartServer({.listen = address}, inbox);
    ASSERT_FALSE(second.ok());
    EXPECT_TRUE(second.error().message.starts_with("cannot listen at '" + address + "': "))
        << second.error().message;
    EXPECT_TRUE(Contains(second.error().message, why)) << second.error().message;
  }
}

TEST(ServerTest, APortThatThereIsNotIsRefused) {
  FakeInbox inbox;
  const auto server = StartServer({.listen = "127.0.0.1:65536"}, inbox);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().message,
            "--listen is '127.0.0.1:65536': '65536' is no port; expected a number from 0 to 65535");
}

// Descriptors and threads of this process.
std::size_t Holds() {
  std::size_t held = 0;
  for (const char* const folder : {"/proc/self/fd", "/proc/self/task"}) {
    const std::filesystem::directory_iterator entries(folder);
    held += static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }
  return held;
}

TEST(ServerTest, EndsUnderFireLeaveNothingBehind) {
  constexpr int kRounds = 40;
  constexpr int kWarm = 10;  // then gRPC has all threads of its own
  std::size_t before = 0;
  for (int round = 0; round < kRounds; ++round) {
    before = round == kWarm ? Holds() : before;
    FakeInbox inbox;
    auto server = MustStart(inbox);
    const int port = server->port();
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&] {
        const auto client = ConnectTo(port);
        while (!MessageOf(client->Call(NodesCall(), milliseconds(20))).starts_with("no c")) {
        }
      });
    }
    FakeAgent agent(port);
    inbox.WaitForCalls(1);
    const auto hello = inbox.WaitForAgentEvents(1);
    std::thread replies([&] {
      for (std::uint64_t number = 1; number < 200; ++number) {
        server->Reply(number, ErrorReply(grpc::StatusCode::NOT_FOUND, "x"));
        server->Send(hello[0].connection, AnswerOf(number));
      }
    });
    replies.join();
    server.reset();
    for (std::thread& client : clients) {
      client.join();
    }
  }
  // Some go later than the calls that end them; one of each round would be as many as rounds.
  EXPECT_LT(Holds(), before + (kRounds - kWarm) / 2);
}

TEST(ClientTest, WithoutAControllerItSaysWhatToDo) {
  int port = 0;
  {
    FakeInbox inbox;
    port = MustStart(inbox)->port();
  }
  const auto reply = ConnectTo(port)->Call(NodesCall(), kTimeout);
  EXPECT_EQ(MessageOf(reply), "no controller answers at " + AddressOf(port) +
                                  "; start one with 'trainyard up' or name it with --controller");
}

TEST(ClientTest, APatientCallSaysAtOnceThatItGoesOnTrying) {
  int port = 0;
  {
    FakeInbox inbox;
    port = MustStart(inbox)->port();
  }
  std::vector<std::string> lines;
  const auto client =
      Connect(AddressOf(port), [&lines](const std::string& line) { lines.push_back(line); });
  EXPECT_FALSE(client->Call(NodesCall(), kTimeout, milliseconds(1500)).ok());
  ASSERT_EQ(lines.size(), 1U);  // once, however often it tries
  EXPECT_EQ(lines.front(), "no controller answers at " + AddressOf(port) +
                               "; start one with 'trainyard up' or name it with --controller; "
                               "trying again for 1.5s");
}

TEST(ClientTest, ACallThatTakesLongSaysWhatItWaitsFor) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  std::vector<std::string> lines;
  const auto answer_once_told = [&](const std::string& line) {
    lines.push_back(line);
    const auto calls = inbox.WaitForCalls(1);
    server->Reply(calls[0].number, EmptyReplyTo(calls[0].request));
  };
  const auto client = Connect(AddressOf(server->port()), answer_once_told, {.trusts_port = true});
  EXPECT_EQ(MessageOf(client->Call(NodesCall(), seconds(100))), "no error");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines.front(), "the controller at " + AddressOf(server->port()) +
                               " has not answered yet; waiting up to 1m40s (it answers once its "
                               "journal is written: if its disk is full or slow, its log says so)");
}

TEST(ClientTest, ACallThatWaitsForAChangeOfJobsSaysNothing) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  std::vector<std::string> lines;
  const auto tell = [&lines](const std::string& line) { lines.push_back(line); };
  const auto client = Connect(AddressOf(server->port()), tell, {.trusts_port = true});
  v1::ClientRequest request;
  request.mutable_jobs()->set_wait(20'000);
  auto reply = std::async([&] { return client->Call(request, seconds(100)); });
  const auto calls = inbox.WaitForCalls(1);
  std::this_thread::sleep_for(milliseconds(2'500));  // longer than other calls are silent
  server->Reply(calls[0].number, EmptyReplyTo(calls[0].request));
  EXPECT_EQ(MessageOf(reply.get()), "no error");
  EXPECT_EQ(lines, std::vector<std::string>());
}

TEST(ClientTest, ATextThatIsNotUtf8IsNamed) {
  v1::ClientRequest request;
  request.mutable_submit()->mutable_job()->set_name("caf\xe9");
  const auto reply = Connect("127.0.0.1:1")->Call(request, kTimeout);
  EXPECT_EQ(MessageOf(reply), "the name is not UTF-8; expected UTF-8 text");
  request.mutable_submit()->mutable_job()->clear_name();
  request.mutable_submit()->mutable_job()->mutable_launch()->add_command("caf\xe9");
  EXPECT_EQ(MessageOf(Connect("127.0.0.1:1")->Call(request, kTimeout)),
            "the command is not UTF-8; expected UTF-8 text");
}

TEST(ClientTest, APatientCallOutlastsARestart) {
  FakeInbox inbox;
  FakeInbox second_inbox;
  auto server = MustStart(inbox);
  const int port = server->port();
  const auto client = ConnectTo(port);
  auto reply = std::async([&] { return client->Call(NodesCall(), kTimeout, kTimeout); });
  inbox.WaitForCalls(1);
  server.reset();
  std::this_thread::sleep_for(milliseconds(300));
  server = MustStart(second_inbox, {.listen = AddressOf(port)});
  const auto calls = second_inbox.WaitForCalls(1);
  server->Reply(calls[0].number, EmptyReplyTo(calls[0].request));
  EXPECT_EQ(MessageOf(reply.get()), "no error");
}

// ------------------------------------------------------------------------------------------ agents

TEST(AgentTest, MessagesGoBothWaysInOrder) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  inbox.on_agent = [&](const FakeInbox::AgentEvent& event) {
    if (event.message.has_heartbeat()) {
      server->Send(event.connection, AnswerOf(event.message.heartbeat().number()));
    }
  };
  FakeAgent agent(server->port());
  agent.WaitForConnections(1);
  for (std::uint64_t i = 0; i < kManyMessages; ++i) {
    agent.stream().Send(HeartbeatOf(i));
  }
  const auto heard = agent.WaitForMessages(kManyMessages);
  const auto events = inbox.WaitForAgentEvents(kManyMessages + 1);
  EXPECT_EQ(events[0].message.hello().node(), "n0");
  for (std::uint64_t i = 0; i < kManyMessages; ++i) {
    ASSERT_EQ(events[i + 1].message.heartbeat().number(), i);
    ASSERT_EQ(heard[i].heartbeat().number(), i);
  }
}

TEST(AgentTest, ItsEndIsReported) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  auto agent = std::make_unique<FakeAgent>(server->port());
  const auto hello = inbox.WaitForAgentEvents(1);
  agent.reset();
  const auto events = inbox.WaitForAgentEvents(2);
  EXPECT_TRUE(events[1].gone);
  EXPECT_EQ(events[1].connection, hello[0].connection);
  server->Send(hello[0].connection, AnswerOf(1));  // does nothing
  server->Close(hello[0].connection);
}

TEST(AgentTest, ItComesBackAfterTheServersRestartAndSaysHelloAgain) {
  FakeInbox inbox;
  FakeInbox second_inbox;
  auto server = MustStart(inbox);
  const int port = server->port();
  FakeAgent agent(port);
  inbox.WaitForAgentEvents(1);
  server.reset();
  EXPECT_TRUE(inbox.WaitForAgentEvents(2)[1].gone);
  agent.WaitForDisconnections(1);
  agent.stream().Send(HeartbeatOf(1));  // dropped
  server = MustStart(second_inbox, {.listen = AddressOf(port)});
  const auto events = second_inbox.WaitForAgentEvents(1);
  EXPECT_TRUE(events[0].message.has_hello());
  server->Send(events[0].connection, AnswerOf(5));
  EXPECT_EQ(agent.WaitForMessages(1)[0].heartbeat().number(), 5U);
}

TEST(AgentTest, ItWaitsForAServerThatIsNotYetThere) {
  int port = 0;
  {
    FakeInbox inbox;
    port = MustStart(inbox)->port();
  }
  FakeAgent agent(port);
  std::this_thread::sleep_for(milliseconds(200));
  FakeInbox inbox;
  const auto server = MustStart(inbox, {.listen = AddressOf(port)});
  EXPECT_TRUE(inbox.WaitForAgentEvents(1)[0].message.has_hello());
}

TEST(AgentTest, CloseComesAfterWhatWasSent) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  FakeAgent agent(server->port());
  const auto hello = inbox.WaitForAgentEvents(1);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    server->Send(hello[0].connection, AnswerOf(i));
  }
  server->Close(hello[0].connection);
  agent.WaitForDisconnections(1);
  EXPECT_EQ(agent.WaitForMessages(1000).size(), 1000U);
  EXPECT_TRUE(inbox.WaitForAgentEvents(2)[1].gone);
  agent.WaitForConnections(2);  // it tries again
}

TEST(AgentTest, TooManyAreRefused) {
  FakeInbox inbox;
  service::AccessControl access(nullptr, {.max_agents = 1});
  const auto server = MustStart(inbox, {.access = &access});
  auto first = std::make_unique<FakeAgent>(server->port());
  inbox.WaitForAgentEvents(1);
  FakeAgent second(server->port());
  std::this_thread::sleep_for(milliseconds(200));
  first.reset();
  const auto events = inbox.WaitForAgentEvents(3);  // its end, and then the other's Hello
  EXPECT_TRUE(events[1].gone);
  EXPECT_TRUE(events[2].message.has_hello());
}

// Also while the server sends, and while a connection is only being made.
TEST(AgentTest, CallbacksStopWithTheStream) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  inbox.on_agent = [&server](const FakeInbox::AgentEvent& event) {
    for (std::uint64_t i = 0; !event.gone && i < 100; ++i) {
      server->Send(event.connection, AnswerOf(i));
    }
  };
  std::atomic<bool> stream_lives = false;
  std::atomic<int> too_late = 0;
  std::atomic<int> connected = 0;
  std::atomic<int> heard = 0;
  std::atomic<int> disconnected = 0;
  const auto count = [&](std::atomic<int>& calls) {
    too_late += stream_lives ? 0 : 1;
    ++calls;
  };
  for (int round = 0; round < 50; ++round) {
    stream_lives = true;
    std::promise<AgentStream*> made;
    std::unique_ptr<AgentStream> stream =
        AttachAgent(AddressOf(server->port()),
                    {.on_connected =
                         [&, future = made.get_future().share()] {
                           future.get()->Send(HelloFrom("n0"));
                           count(connected);
                         },
                     .on_message = [&](const v1::ControllerMessage& /*message*/) { count(heard); },
                     .on_disconnected = [&] { count(disconnected); }},
                    {.trusts_port = true});
    made.set_value(stream.get());
    for (const int before = heard; round % 2 == 0 && heard == before;) {
      std::this_thread::yield();
    }
    stream.reset();
    stream_lives = false;
    EXPECT_EQ(disconnected, connected) << "round " << round;
  }
  EXPECT_EQ(too_late, 0);
  EXPECT_GE(connected, 25);
  EXPECT_GE(heard, 25);
}

// A client that is no agent of ours.
class ForeignAgent {
 public:
  explicit ForeignAgent(int port)
      : stub_(v1::Agents::NewStub(
            grpc::CreateChannel(AddressOf(port), grpc::InsecureChannelCredentials()))),
        stream_(stub_->Attach(&context_)) {}
  grpc::ClientReaderWriter<v1::AgentMessage, v1::ControllerMessage>& stream() { return *stream_; }
  grpc::Status ReadToEnd() {
    v1::ControllerMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }

 private:
  std::unique_ptr<v1::Agents::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ControllerMessage>> stream_;
};

TEST(AgentTest, TheFirstMessageMustBeAHello) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  ForeignAgent agent(server->port());
  agent.stream().Write(HeartbeatOf(1));
  EXPECT_EQ(agent.ReadToEnd().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(inbox.WaitForAgentEvents(0).empty());
}

TEST(AgentTest, AHalfClosedStreamEnds) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  ForeignAgent agent(server->port());
  agent.stream().Write(HelloFrom("n0"));
  agent.stream().WritesDone();
  EXPECT_TRUE(agent.ReadToEnd().ok());
  EXPECT_TRUE(inbox.WaitForAgentEvents(2)[1].gone);
}

TEST(AgentTest, AStreamThatIsNotReadIsCutAt64Mib) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  ForeignAgent agent(server->port());
  agent.stream().Write(HelloFrom("n0"));
  const auto hello = inbox.WaitForAgentEvents(1);
  v1::ControllerMessage message;
  message.mutable_start()->set_job_name(std::string(1 << 20, 'x'));
  for (int i = 0; i < 60; ++i) {
    server->Send(hello[0].connection, message);
  }
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(inbox.WaitForAgentEvents(1).size(), 1U);
  for (int i = 0; i < 20; ++i) {
    server->Send(hello[0].connection, message);
  }
  EXPECT_TRUE(inbox.WaitForAgentEvents(2)[1].gone);
}

TEST(AgentTest, AStreamThatIsNotReadDoesNotHoldUpTheServersEnd) {
  FakeInbox inbox;
  auto server = MustStart(inbox);
  ForeignAgent agent(server->port());
  agent.stream().Write(HelloFrom("n0"));
  const auto hello = inbox.WaitForAgentEvents(1);
  v1::ControllerMessage message;
  message.mutable_start()->set_job_name(std::string(1 << 20, 'x'));
  for (int i = 0; i < 20; ++i) {
    server->Send(hello[0].connection, message);
  }
  server.reset();
  EXPECT_TRUE(inbox.WaitForAgentEvents(2)[1].gone);
}

TEST(ServerTest, SendingWhileItIsClosedIsSafe) {
  FakeInbox inbox;
  const auto server = MustStart(inbox);
  FakeAgent agent(server->port());
  std::size_t events = 0;
  for (int round = 0; round < 5; ++round) {
    const auto seen = inbox.WaitForAgentEvents(events + 1);
    events = seen.size() + 1;
    const std::uint64_t connection = seen.back().connection;
    std::thread sender([&] {
      for (std::uint64_t i = 0; i < 1000; ++i) {
        server->Send(connection, AnswerOf(i));
      }
    });
    server->Close(connection);
    sender.join();
    EXPECT_TRUE(inbox.WaitForAgentEvents(events).back().gone);
  }
}

}  // namespace
}  // namespace trainyard::rpc
