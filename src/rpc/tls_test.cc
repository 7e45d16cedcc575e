// SPDX-License-Identifier: Apache-2.0
// Who gets in over TLS and by tokens, and who does not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "identity/authority.h"
#include "identity/door.h"
#include "identity/secret_file.h"
#include "io/file.h"
#include "rpc/channel.h"
#include "rpc/client.h"
#include "rpc/identity_calls.h"
#include "rpc/server.h"
#include "service/access_control.h"
#include "support/scratch_folder.h"
#include "trainyard/live.grpc.pb.h"

namespace trainyard::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

double UnixNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Answers questions about nodes, and counts what comes in.
class CountingInbox final : public Inbox {
 public:
  void Serve(RpcServer* server) { server_ = server; }
  void OnCall(std::uint64_t call, v1::ClientRequest request) override {
    EXPECT_TRUE(request.has_caller());
    caller = request.caller().user();
    ++calls;
    if (silent) {
      return;
    }
    v1::ClientReply reply;
    reply.mutable_nodes();
    server_->Reply(call, std::move(reply));
  }
  void OnCallGone(std::uint64_t /*call*/) override { ++gone; }
  void OnAgent(std::uint64_t /*connection*/, v1::AgentMessage /*message*/) override { ++agents; }
  void OnAgentGone(std::uint64_t /*connection*/) override {}

  std::atomic<int> calls = 0;
  std::atomic<int> gone = 0;
  std::atomic<int> agents = 0;
  std::atomic<bool> silent = false;  // leaves calls open
  std::string caller;

 private:
  RpcServer* server_ = nullptr;
};

// The stream of an agent that says it is that node, until the server ends it.
class OpenStream {
 public:
  OpenStream(const Route& route, const std::string& node)
      : stub_(v1::Agents::NewStub(NewChannel(route))) {
    Authorize(context_, route);
    stream_ = stub_->Attach(&context_);
    v1::AgentMessage hello;
    hello.mutable_hello()->set_node(node);
    stream_->Write(hello);
  }
  ~OpenStream() {
    if (stream_ != nullptr) {
      context_.TryCancel();
      End();
    }
  }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;

  void Beat() {
    v1::AgentMessage message;
    message.mutable_heartbeat()->set_number(1);
    EXPECT_TRUE(stream_->Write(message));
  }
  // Waits for it.
  grpc::Status End() {
    v1::ControllerMessage message;
    while (stream_->Read(&message)) {
    }
    return std::exchange(stream_, nullptr)->Finish();
  }

 private:
  std::unique_ptr<v1::Agents::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ControllerMessage>> stream_;
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() : authority_(Open(folder_.path() + "/identity")) {}

  static std::unique_ptr<identity::Authority> Open(const std::string& folder) {
    auto opened = identity::Authority::Open({.folder = folder, .all_users = true});
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }
  void Start(bool tls = true) {
    auto started = StartServer({.access = &Access(), .tls = tls}, inbox_);
    ASSERT_TRUE(started.ok()) << started.error().message;
    server_ = std::move(started).value();
    inbox_.Serve(server_.get());
  }
  service::AccessControl& Access() {
    return access_.emplace_back(authority_.get(), service::AccessLimits{.user_calls = rate_});
  }
  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(server_->port());
  }
  // With the token of that user, over TLS.
  [[nodiscard]] Route RouteOf(uid_t uid) const {
    return {.address = address(),
            .token = authority_->TokenFor(uid).value(),
            .authority = authority_->certificate()};
  }
  static grpc::StatusCode Ask(const Route& route) {
    const auto stub = v1::Cluster::NewStub(NewChannel(route));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(60));
    Authorize(context, route);
    v1::NodesReply reply;
    return stub->Nodes(&context, v1::NodesRequest(), &reply).error_code();
  }
  // How the stream of an agent that says it is that node ends, or OK once it has been heard.
  grpc::StatusCode Attach(const Route& route, const std::string& node) {
    const auto stub = v1::Agents::NewStub(NewChannel(route));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(60));
    Authorize(context, route);
    const int before = inbox_.agents;
    const auto stream = stub->Attach(&context);
    v1::AgentMessage hello;
    hello.mutable_hello()->set_node(node);
    stream->Write(hello);
    std::thread watch([&] {
      for (int i = 0; i < 600 && inbox_.agents == before && !ended_; ++i) {
        std::this_thread::sleep_for(milliseconds(10));
      }
      if (inbox_.agents > before) {
        context.TryCancel();
      }
    });
    v1::ControllerMessage message;
    static_cast<void>(stream->Read(&message));
    const grpc::Status status = stream->Finish();
    ended_ = true;
    watch.join();
    ended_ = false;
    return inbox_.agents > before ? grpc::StatusCode::OK : status.error_code();
  }
  // The route of a node that has joined.
  Route Joined(const std::string& node) {
    v1::ManageRequest request;
    request.mutable_node_token()->set_node(node);
    v1::Caller admin;
    admin.set_user("root");
    admin.set_role(v1::Caller::ADMIN);
    const std::string secret = authority_->Manage(admin, request).value().secret();
    const std::string folder = folder_.path() + "/" + node;
    const Status status = JoinCluster(address(), secret, node, folder);
    EXPECT_TRUE(status.ok()) << status.error().message;
    const Result<Route> route = FindRoute(address(), {.identity_folder = folder});
    EXPECT_TRUE(route.ok());
    return route.value();
  }
  // A certificate as the cluster's authority makes them, but of these terms.
  Route Certified(const identity::CertificateTerms& terms) {
    Route route{.address = address(), .token = {}, .authority = authority_->certificate()};
    route.key = identity::NewCertificateKey();
    const identity::CertifiedKey authority{
        .key = identity::ReadSecretFile(folder_.path() + "/identity/ca.pem").value(),
        .certificate = authority_->certificate()};
    route.certificate =
        identity::Certify(authority, identity::RequestFor(route.key).value(), terms).value();
    return route;
  }

  service::Rate rate_;
  ScratchFolder folder_;
  std::unique_ptr<identity::Authority> authority_;
  std::deque<service::AccessControl> access_;
  CountingInbox inbox_;
  std::unique_ptr<RpcServer> server_;
  std::atomic<bool> ended_ = false;
};

TEST_F(TlsTest, ATokenOpensAndSaysWhoCalls) {
  Start();
  EXPECT_EQ(Ask(RouteOf(0)), grpc::StatusCode::OK);
  EXPECT_EQ(inbox_.caller, "root");
}

TEST_F(TlsTest, WithoutATokenNothingIsAnswered) {
  Start();
  Route route = RouteOf(0);
  route.token.clear();
  EXPECT_EQ(Ask(route), grpc::StatusCode::UNAUTHENTICATED);
  route.token = "00.00";
  EXPECT_EQ(Ask(route), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(inbox_.calls, 0);
}

TEST_F(TlsTest, LoopbackWithoutTlsNeedsATokenToo) {
  Start(false);
  Route route{.address = address()};
  EXPECT_EQ(Ask(route), grpc::StatusCode::UNAUTHENTICATED);
  route.token = authority_->TokenFor(12345).value();
  EXPECT_EQ(Ask(route), grpc::StatusCode::OK);
}

TEST_F(TlsTest, WhoDoesNotUseTlsIsNotHeard) {
  Start();
  EXPECT_EQ(Ask({.address = address(), .token = authority_->TokenFor(0).value()}),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, AControllerOfAnotherAuthorityIsNotTrusted) {
  Start();
  Route route = RouteOf(0);
  route.authority = identity::NewAuthority("another", UnixNow()).certificate;
  EXPECT_EQ(Ask(route), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, ANodeIsNoControllerForAnybody) {
  Start();
  const Route node = Joined("n0");
  // A server that has the node's certificate in place of its own.
  ASSERT_TRUE(identity::WriteSecretFile(authority_->tls().key, node.key).ok());
  ASSERT_TRUE(identity::WritePublicFile(authority_->tls().certificate, node.certificate).ok());
  CountingInbox inbox;
  auto other = StartServer({.access = &Access(), .tls = true}, inbox);
  ASSERT_TRUE(other.ok());
  inbox.Serve(other.value().get());
  Route route = RouteOf(0);
  route.address = "127.0.0.1:" + std::to_string(other.value()->port());
  EXPECT_EQ(Ask(route), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, ANodeThatHasJoinedComesInUnderItsOwnNameOnly) {
  Start();
  const Route node = Joined("n0");
  EXPECT_EQ(Attach(node, "n0"), grpc::StatusCode::OK);
  EXPECT_EQ(Attach(node, "n1"), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(TlsTest, ANodesCertificateIsNoToken) {
  Start();
  EXPECT_EQ(Ask(Joined("n0")), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TlsTest, AgentsWithoutACertificateAreRefused) {
  Start();
  Route route = RouteOf(geteuid() + 12345);
  EXPECT_EQ(Attach(route, "n0"), grpc::StatusCode::UNAUTHENTICATED);
  route.token.clear();
  EXPECT_EQ(Attach(route, "n0"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(inbox_.agents, 0);
}

TEST_F(TlsTest, AnAgentOfTheControllersOwnUserNeedsNone) {
  Start();
  EXPECT_EQ(Attach(RouteOf(geteuid()), "n0"), grpc::StatusCode::OK);
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityIsNone) {
  Start();
  Route route = RouteOf(geteuid() + 12345);
  const identity::CertifiedKey other = identity::NewAuthority("c", UnixNow());
  route.key = identity::NewCertificateKey();
  route.certificate =
      identity::Certify(
          other, identity::RequestFor(route.key).value(),
          {.name = "node:n0", .as = identity::CertifiedAs::kNode, .now = UnixNow(), .life_s = 3600})
          .value();
  EXPECT_NE(Attach(route, "n0"), grpc::StatusCode::OK);
}

TEST_F(TlsTest, AnExpiredCertificateIsNone) {
  Start();
  EXPECT_NE(Attach(Certified({.name = "node:n0",
                              .as = identity::CertifiedAs::kNode,
                              .now = UnixNow() - 7200,
                              .life_s = 3600}),
                   "n0"),
            grpc::StatusCode::OK);
}

// Whoever has got hold of the authority's key does not pass unseen, either.
TEST_F(TlsTest, ACertificateThatTheBookDoesNotKnowIsNone) {
  Start();
  EXPECT_EQ(Attach(Certified({.name = "node:n0",
                              .as = identity::CertifiedAs::kNode,
                              .now = UnixNow(),
                              .life_s = 3600}),
                   "n0"),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TlsTest, AnAgentSaysThatTheAuthorityIsAnotherOne) {
  Start();
  Joined("n0");
  server_.reset();
  authority_ = Open(folder_.path() + "/another");
  Start();
  std::promise<std::string> why;
  std::atomic<bool> told = false;
  const auto stream = AttachAgent(address(),
                                  {.on_connected = [] {},
                                   .on_message = [](const v1::ControllerMessage& /*message*/) {},
                                   .on_disconnected = [] {},
                                   .on_refused =
                                       [&](const std::string& text) {
                                         if (!told.exchange(true)) {
                                           why.set_value(text);
                                         }
                                       }},
                                  {.identity_folder = folder_.path() + "/n0"});
  EXPECT_EQ(why.get_future().get().find("its certificate is of another authority"), 0U);
}

TEST_F(TlsTest, NothingIsSaidToAPortWithoutItsSocket) {
  auto started = StartServer({}, inbox_);  // takes whatever comes
  ASSERT_TRUE(started.ok()) << started.error().message;
  server_ = std::move(started).value();
  const Result<Route> route = FindRoute(address(), {});
  ASSERT_TRUE(route.ok()) << route.error().message;
  EXPECT_EQ(Ask(route.value()), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(inbox_.calls, 0);
}

// As users of the controller's machine do where it listens at an address that others reach.
TEST_F(TlsTest, AnAddressOfThisMachineIsServedByTheLocalSocket) {
  auto started = StartServer({.listen = "0.0.0.0:0", .access = &Access()}, inbox_);
  ASSERT_TRUE(started.ok()) << started.error().message;
  server_ = std::move(started).value();
  inbox_.Serve(server_.get());
  const std::string port = std::to_string(server_->port());
  const auto door = identity::Door::Open(identity::DoorName(server_->port()), [this](uid_t uid) {
    return authority_->LocalAnswer(uid, true);
  });
  ASSERT_TRUE(door.ok()) << door.error().message;
  const Result<Route> route = FindRoute("0.0.0.0:" + port, {});
  ASSERT_TRUE(route.ok()) << route.error().message;
  EXPECT_EQ(Ask(route.value()), grpc::StatusCode::OK);
  EXPECT_FALSE(FindRoute("203.0.113.7:" + port, {}).ok()) << "of another machine";
}

TEST_F(TlsTest, ANodeRenewsItsCertificateAndBothAreGoodUntilTheirEnd) {
  Start();
  const Route before = Joined("n0");
  const std::string folder = folder_.path() + "/n0";
  ASSERT_TRUE(RenewNode(address(), folder).ok());
  const Result<Route> after = FindRoute(address(), {.identity_folder = folder});
  ASSERT_TRUE(after.ok());
  EXPECT_NE(after.value().certificate, before.certificate);
  EXPECT_EQ(Attach(before, "n0"), grpc::StatusCode::OK);
  EXPECT_EQ(Attach(after.value(), "n0"), grpc::StatusCode::OK);
}

TEST_F(TlsTest, ARevokedNodeIsRefused) {
  Start();
  const Route node = Joined("n0");
  v1::ManageRequest request;
  request.mutable_revoke()->set_name("n0");
  ASSERT_TRUE(Manage(RouteOf(0), request).ok());
  EXPECT_EQ(Attach(node, "n0"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_FALSE(RenewNode(address(), folder_.path() + "/n0").ok());
}

TEST_F(TlsTest, RevokingANodeCutsItsOpenStreamAndNoOther) {
  Start();
  OpenStream revoked(Joined("n0"), "n0");
  OpenStream other(Joined("n1"), "n1");
  OpenStream local(RouteOf(geteuid()), "n2");
  while (inbox_.agents < 3) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  v1::ManageRequest request;
  request.mutable_revoke()->set_name("n0");
  ASSERT_TRUE(Manage(RouteOf(0), request).ok());
  const grpc::Status status = revoked.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_NE(status.error_message().find("is revoked"), std::string::npos) << status.error_message();
  other.Beat();
  local.Beat();
  while (inbox_.agents < 5) {
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST_F(TlsTest, RemovingAUserEndsTheTokensOfTheLoginAndItsOpenCalls) {
  Start();
  const auto manage = [this](const v1::ManageRequest& request) {
    return Manage(RouteOf(0), request).value().secret();
  };
  const auto login = [&](const std::string& user) {
    v1::ManageRequest request;
    request.mutable_add_user()->set_user(user);
    request.mutable_add_user()->set_uid(12345);
    Route route = RouteOf(0);
    const std::string secret = manage(request);
    v1::BuyRequest buy;
    buy.set_secret(secret.substr(0, secret.find('.')));
    route.token = BuyToken(route, buy).value();
    return route;
  };
  const Route ann = login("ann");
  const Route ben = login("ben");
  EXPECT_EQ(Ask(ann), grpc::StatusCode::OK);
  inbox_.silent = true;
  grpc::StatusCode ended = grpc::StatusCode::OK;
  std::thread waiting([&] { ended = Ask(ann); });
  while (inbox_.calls < 2) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  v1::ManageRequest remove;
  remove.mutable_remove_user()->set_name("ann");
  manage(remove);
  waiting.join();
  EXPECT_EQ(ended, grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(inbox_.gone, 1);
  inbox_.silent = false;
  EXPECT_EQ(Ask(ann), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(ben), grpc::StatusCode::OK);
  login("ann");  // another login of hers does not make the former good again
  EXPECT_EQ(Ask(ann), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TlsTest, AUserWhoCallsTooOftenWaitsAndOthersDoNot) {
  rate_ = {.per_s = 1e-3, .burst = 2};
  Start();
  EXPECT_EQ(Ask(RouteOf(12345)), grpc::StatusCode::OK);
  EXPECT_EQ(Ask(RouteOf(12345)), grpc::StatusCode::OK);
  EXPECT_EQ(Ask(RouteOf(12345)), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Ask(RouteOf(12346)), grpc::StatusCode::OK);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Ask(RouteOf(0)), grpc::StatusCode::OK);  // an admin
  }
}

TEST_F(TlsTest, AClientWaitsForItsTurn) {
  rate_ = {.per_s = 5, .burst = 1};
  Start();
  v1::ManageRequest add;
  add.mutable_add_user()->set_user("ann");
  add.mutable_add_user()->set_uid(12345);
  setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);
  ASSERT_TRUE(LogIn(address(), Manage(RouteOf(0), add).value().secret()).ok());
  const std::unique_ptr<ClusterClient> client = Connect(address());
  v1::ClientRequest request;
  request.mutable_nodes();
  for (int i = 0; i < 4; ++i) {
    const Result<v1::ClientReply> reply = client->Call(request, seconds(60));
    EXPECT_TRUE(reply.ok()) << reply.error().message;
  }
  unsetenv("XDG_CONFIG_HOME");
}

TEST_F(TlsTest, AServerTakesItsNewCertificateWithoutARestart) {
  const Route expired = [&] {
    Route made;
    made.key = identity::NewCertificateKey();
    const identity::CertifiedKey authority{
        .key = identity::ReadSecretFile(folder_.path() + "/identity/ca.pem").value(),
        .certificate = authority_->certificate()};
    made.certificate =
        identity::Certify(
            authority, identity::RequestFor(made.key).value(),
            {.name = identity::kControllerName, .now = UnixNow() - 7200, .life_s = 60})
            .value();
    return made;
  }();
  ASSERT_TRUE(identity::WriteSecretFile(authority_->tls().key, expired.key).ok());
  ASSERT_TRUE(identity::WritePublicFile(authority_->tls().certificate, expired.certificate).ok());
  Start();
  EXPECT_EQ(Ask(RouteOf(0)), grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(authority_->RenewOwn().ok());
  bool answered = false;
  for (int i = 0; i < 600 && !answered; ++i) {
    answered = Ask(RouteOf(0)) == grpc::StatusCode::OK;
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_TRUE(answered);
}

TEST_F(TlsTest, JoiningNeedsTheRightControllerAndTheRightToken) {
  Start();
  const std::string folder = folder_.path() + "/n0";
  const std::string good = identity::Fingerprint(authority_->certificate());
  EXPECT_FALSE(JoinCluster(address(), identity::NewSecret() + "." + good, "n0", folder).ok());
  EXPECT_FALSE(JoinCluster(address(), identity::NewSecret() + ".abc", "n0", folder).ok());
  EXPECT_FALSE(JoinCluster(address(), "nonsense", "n0", folder).ok());
  EXPECT_NE(access((folder + kNodeCertificate).c_str(), F_OK), 0);
}

TEST_F(TlsTest, AddressesOfOtherMachinesAreServedByTlsOnly) {
  auto started = StartServer({.listen = "0.0.0.0:0", .access = &Access()}, inbox_);
  ASSERT_TRUE(started.ok());
  server_ = std::move(started).value();
  inbox_.Serve(server_.get());
  EXPECT_EQ(Ask({.address = address(), .token = authority_->TokenFor(0).value()}),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Ask(RouteOf(0)), grpc::StatusCode::OK);
}

}  // namespace
}  // namespace trainyard::rpc
