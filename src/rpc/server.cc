// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/try.h"
#include "rpc/address.h"
#include "rpc/identity_service.h"
#include "rpc/listener.h"
#include "rpc/route.h"
#include "rpc/wire.h"
#include "service/access_control.h"
#include "service/calls.h"
#include "trainyard/live.grpc.pb.h"

namespace trainyard::rpc {
namespace {

// How long peers have to take the server's farewell.
constexpr std::chrono::milliseconds kFarewell{500};
constexpr int kHandshakeMs = 10'000;  // from a connection's beginning until it has said who it is
constexpr int kMostIdleMs = 300'000;  // without a call or a stream

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const ServerOptions& options) {
  constexpr unsigned kSeconds = 1;  // between two looks at the files
  if (!options.tls) {
    return grpc::InsecureServerCredentials();
  }
  namespace tls = grpc::experimental;
  const identity::TlsFiles files = options.access->authority()->tls();
  tls::TlsServerCredentialsOptions made(std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.authority, kSeconds));
  made.watch_root_certs();
  made.watch_identity_key_cert_pairs();
  // Nodes have one, clients have tokens.
  made.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(made);
}

service::Credential CredentialOf(const grpc::CallbackServerContext& context) {
  return {.token = TokenOf(context), .certificate = PeerCertificate(context)};
}

// The caller has not proved who it is.
grpc::Status Unknown(const Error& error) {
  return {grpc::StatusCode::UNAUTHENTICATED, error.message};
}

// A limit is reached.
grpc::Status TooMany(const Error& error) {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, error.message};
}

grpc::Status Stopping() { return {grpc::StatusCode::UNAVAILABLE, "the controller stops"}; }

class Server;

// One unary call, from its arrival until gRPC has done with it. The event that takes the call out
// of the server's list of open calls ends it: the reply, the client's departure or the server's
// end.
class OpenCall final : public grpc::ServerUnaryReactor {
 public:
  // Puts the reply where gRPC sends it from.
  using Fill = std::function<void(v1::ClientReply&)>;

  OpenCall(Server& server, grpc::CallbackServerContext* context, Fill fill)
      : server_(server), context_(context), fill_(std::move(fill)) {}

  void set_number(std::uint64_t number) { number_ = number; }
  [[nodiscard]] service::Credential credential() const { return CredentialOf(*context_); }

  void Log(const std::string& why) const;

  // The caller is to come again, but not at once.
  void Refuse(const grpc::Status& status, double wait_s) {
    constexpr double kMs = 1000;
    context_->AddTrailingMetadata(kRetryAfterMs, fmt::format("{:.0f}", std::ceil(wait_s * kMs)));
    Finish(status);
  }

  void Answer(v1::ClientReply reply) {
    if (reply.kind_case() == v1::ClientReply::kError) {
      context_->AddTrailingMetadata(kOwnWords, "1");
      Finish({static_cast<grpc::StatusCode>(reply.error().code()), reply.error().message()});
      return;
    }
    fill_(reply);
    Finish(grpc::Status::OK);
  }

  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  Server& server_;
  grpc::CallbackServerContext* context_;
  Fill fill_;
  std::uint64_t number_ = 0;
};

using AgentReactor = grpc::ServerBidiReactor<v1::AgentMessage, v1::ControllerMessage>;

// One agent's stream. Reads follow one another; so do writes, out of a queue. Finish may come only
// when no write is on its way.
class AgentConnection final : public AgentReactor {
 public:
  // `node`: the only one that it may speak for; empty: any.
  AgentConnection(Server& server, grpc::CallbackServerContext* context, std::uint64_t number,
                  std::string node)
      : server_(server), context_(context), number_(number), node_(std::move(node)) {
    context_->AddInitialMetadata(kOwnWords, "1");
    StartSendInitialMetadata();
    StartRead(&incoming_);
  }

  void Send(v1::ControllerMessage message) {
    const std::lock_guard lock(mutex_);
    if (ending_) {
      return;
    }
    queued_bytes_ += message.ByteSizeLong();
    queue_.push_back(std::move(message));
    if (queued_bytes_ > kMostQueuedBytes) {
      Cut({grpc::StatusCode::RESOURCE_EXHAUSTED, "the agent does not read"});
    } else if (!writing_) {
      WriteFirst();
    }
  }

  // After what is queued.
  void Close() {
    const std::lock_guard lock(mutex_);
    End({grpc::StatusCode::ABORTED, "closed by the controller"});
  }

  // Without what is queued.
  void Stop() {
    const std::lock_guard lock(mutex_);
    DropUnsent();
    End(Stopping());
  }

  // At once, whether the peer reads or not.
  void Revoke(const Error& why) {
    const std::lock_guard lock(mutex_);
    Cut(Unknown(why));
  }

  [[nodiscard]] service::Credential credential() const { return CredentialOf(*context_); }

  void OnReadDone(bool ok) override;

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    queued_bytes_ -= queue_.front().ByteSizeLong();
    queue_.pop_front();
    if (!ok) {
      DropUnsent();  // OnReadDone comes and ends the stream
    }
    if (!queue_.empty()) {
      WriteFirst();
    } else {
      FinishIfDue();
    }
  }

  void OnDone() override;

 private:
  // All below: with mutex_ held.
  void WriteFirst() {
    writing_ = true;
    StartWrite(&queue_.front());
  }

  void DropUnsent() {
    while (queue_.size() > (writing_ ? 1U : 0U)) {
      queued_bytes_ -= queue_.back().ByteSizeLong();
      queue_.pop_back();
    }
  }

  // The status of the first end counts.
  void End(grpc::Status status) {
    if (!ending_) {
      ending_ = true;
      status_ = std::move(status);
    }
    FinishIfDue();
  }

  // The peer may never take what is being written.
  void Cut(grpc::Status status) {
    DropUnsent();
    if (writing_) {
      context_->TryCancel();
    }
    End(std::move(status));
  }

  void FinishIfDue() {
    if (ending_ && !writing_ && queue_.empty() && !finished_) {
      finished_ = true;
      Finish(status_);
    }
  }

  Server& server_;
  grpc::CallbackServerContext* context_;
  const std::uint64_t number_;
  const std::string node_;
  v1::AgentMessage incoming_;  // gRPC's while a read is on its way

  std::mutex mutex_;
  std::deque<v1::ControllerMessage> queue_;  // the first is on its way if writing_
  std::size_t queued_bytes_ = 0;
  bool writing_ = false;
  bool greeted_ = false;   // the Hello has come
  bool ending_ = false;    // takes no more messages
  bool finished_ = false;  // Finish has been called
  grpc::Status status_;
};

// For streams that are not taken.
class RefusedAgent final : public AgentReactor {
 public:
  explicit RefusedAgent(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

class ClusterService final : public v1::Cluster::CallbackService {
 public:
  explicit ClusterService(Server& server) : server_(server) {}

  using Reactor = grpc::ServerUnaryReactor;
  using Context = grpc::CallbackServerContext;

#define TRAINYARD_CALL(Name, field, family)                                                 \
  Reactor* Name(Context* context, const v1::Name##Request* request, v1::Name##Reply* reply) \
      override {                                                                            \
    return Begin(context, *request, &v1::ClientRequest::mutable_##field, *reply,            \
                 &v1::ClientReply::mutable_##field);                                        \
  }
  TRAINYARD_CLUSTER_CALLS(TRAINYARD_CALL)
#undef TRAINYARD_CALL

 private:
  template <typename Request, typename Reply>
  Reactor* Begin(Context* context, const Request& request, Request* (v1::ClientRequest::*put)(),
                 Reply& reply, Reply* (v1::ClientReply::*take)());

  Server& server_;
};

class AgentsService final : public v1::Agents::CallbackService {
 public:
  explicit AgentsService(Server& server) : server_(server) {}
  AgentReactor* Attach(grpc::CallbackServerContext* context) override;

 private:
  Server& server_;
};

class Server final : public RpcServer {
 public:
  Server(const ServerOptions& options, Inbox& inbox)
      : options_(options),
        access_(options.access == nullptr ? everybody_ : *options.access),
        inbox_(inbox),
        cluster_(*this),
        agents_(*this),
        identity_(access_.authority() == nullptr
                      ? nullptr
                      : MakeIdentityService(*access_.authority(), options.log,
                                            [this] { CutRevoked(); })) {}
  ~Server() override { Stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] Status Start() {
    ASSIGN_OR_RETURN(listener_,
                     Listener::Open(options_.listen, options_.connections, options_.log));
    grpc::ServerBuilder builder;
    const auto acceptor = std::shared_ptr(builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        ServerCredentialsOf(options_)));
    if (identity_ != nullptr) {
      builder.RegisterService(identity_.get());
    }
    builder.RegisterService(&cluster_);
    builder.RegisterService(&agents_);
    builder.SetMaxReceiveMessageSize(options_.max_message_bytes);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMostIdleMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               kLeastPingGapMs);
    grpc_ = builder.BuildAndStart();
    if (grpc_ == nullptr) {
      return Failed("gRPC refuses it");
    }
    listener_->Serve([acceptor](int fd) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
      connection.fd = fd;
      acceptor->HandleNewConnection(&connection);
    });
    return {};
  }

  [[nodiscard]] int port() const override { return listener_->port(); }

  void Reply(std::uint64_t call, v1::ClientReply reply) override {
    if (OpenCall* const open = TakeCall(call); open != nullptr) {
      open->Answer(std::move(reply));
    }
  }

  void Send(std::uint64_t connection, v1::ControllerMessage message) override {
    if (const auto agent = Find(connection)) {
      agent->Send(std::move(message));
    }
  }

  void Close(std::uint64_t connection) override {
    if (const auto agent = Find(connection)) {
      agent->Close();
    }
  }

  [[nodiscard]] Inbox& inbox() { return inbox_; }

  // Who makes the call; none: authentication is off.
  [[nodiscard]] Result<std::optional<v1::Caller>> CallerOf(
      const grpc::CallbackServerContext& context) const {
    Result<std::optional<v1::Caller>> caller = access_.CallerOf(CredentialOf(context));
    if (!caller.ok()) {
      Log(context, caller.error().message);
    }
    return caller;
  }

  void Log(const grpc::CallbackServerContext& context, const std::string& why) const {
    if (options_.log) {
      options_.log(fmt::format("refused {}: {}", context.peer(), why));
    }
  }

  void Open(OpenCall* call, v1::ClientRequest request) {
    if (const auto soon = access_.CountCall(request.caller(), service::MonotonicSeconds())) {
      if (soon->first) {
        call->Log(soon->error.message);
      }
      return call->Refuse(TooMany(soon->error), soon->wait_s);
    }
    grpc::Status refusal;
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      refusal = RefusalOf(access_.CheckOpenCalls(calls_.size()));
      if (refusal.ok()) {
        number = ++last_number_;
        call->set_number(number);
        calls_.emplace(number, call);
      }
    }
    if (refusal.ok()) {
      inbox_.OnCall(number, std::move(request));
    } else {
      call->Finish(refusal);
    }
  }

  // Null: another thread has taken the call and ends it.
  [[nodiscard]] OpenCall* TakeCall(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(number);
    if (found == calls_.end()) {
      return nullptr;
    }
    OpenCall* const call = found->second;
    calls_.erase(found);
    return call;
  }

  [[nodiscard]] AgentReactor* Open(grpc::CallbackServerContext* context) {
    const std::lock_guard lock(mutex_);  // from before it is known to be good until it can be cut
    Result<std::string> node = access_.NodeOf(CredentialOf(*context));
    if (!node.ok()) {
      Log(*context, node.error().message);
      return new RefusedAgent(Unknown(node.error()));
    }
    if (const grpc::Status refusal = RefusalOf(access_.CheckOpenAgents(connections_.size()));
        !refusal.ok()) {
      return new RefusedAgent(refusal);
    }
    const std::uint64_t number = ++last_number_;
    const auto agent =
        std::make_shared<AgentConnection>(*this, context, number, std::move(node).value());
    connections_.emplace(number, agent);
    return agent.get();
  }

  void CutRevoked() override {
    std::map<OpenCall*, Error> calls;
    std::map<std::shared_ptr<AgentConnection>, Error> agents;
    std::vector<std::uint64_t> gone;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [number, call] : calls_) {
        if (const Status served = access_.CheckCall(call->credential()); !served.ok()) {
          calls.emplace(call, served.error());
          gone.push_back(number);
        }
      }
      for (const std::uint64_t number : gone) {
        calls_.erase(number);
      }
      for (const auto& [number, agent] : connections_) {
        if (const Status served = access_.CheckAgent(agent->credential()); !served.ok()) {
          agents.emplace(agent, served.error());
        }
      }
    }
    for (const auto& [call, why] : calls) {
      call->Finish(Unknown(why));
    }
    for (const auto& [agent, why] : agents) {
      agent->Revoke(why);
    }
    for (const std::uint64_t number : gone) {
      inbox_.OnCallGone(number);
    }
  }

  [[nodiscard]] std::shared_ptr<AgentConnection> Remove(std::uint64_t connection) {
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(connection);
    CHECK(found != connections_.end());
    auto agent = std::move(found->second);
    connections_.erase(found);
    return agent;
  }

 private:
  // REQUIRES: mutex_ held
  [[nodiscard]] grpc::Status RefusalOf(const Status& room) const {
    return stopping_ ? Stopping() : room.ok() ? grpc::Status::OK : TooMany(room.error());
  }

  [[nodiscard]] std::shared_ptr<AgentConnection> Find(std::uint64_t connection) {
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(connection);
    return found == connections_.end() ? nullptr : found->second;
  }

  void Stop() {
    if (grpc_ == nullptr) {
      return;
    }
    std::map<std::uint64_t, OpenCall*> calls;
    std::map<std::uint64_t, std::shared_ptr<AgentConnection>> connections;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      calls.swap(calls_);
      connections = connections_;
    }
    for (const auto& [number, call] : calls) {
      call->Finish(Stopping());
    }
    for (const auto& [number, agent] : connections) {
      agent->Stop();
    }
    listener_->End();
    // Cuts what is left at the deadline, and waits until all reactors have heard OnDone.
    grpc_->Shutdown(std::chrono::system_clock::now() + kFarewell);
  }

  const ServerOptions options_;
  service::AccessControl everybody_{nullptr, {}};  // in charge if the options name no other one
  service::AccessControl& access_;
  Inbox& inbox_;
  ClusterService cluster_;
  AgentsService agents_;
  const std::unique_ptr<grpc::Service> identity_;  // null: nobody is asked
  std::unique_ptr<Listener> listener_;

  // Never held while the inbox is called; taken before a connection's own.
  std::mutex mutex_;
  std::uint64_t last_number_ = 0;
  bool stopping_ = false;
  std::map<std::uint64_t, OpenCall*> calls_;  // not yet answered
  std::map<std::uint64_t, std::shared_ptr<AgentConnection>> connections_;

  std::unique_ptr<grpc::Server> grpc_;  // last: it stops before the services go
};

void OpenCall::Log(const std::string& why) const { server_.Log(*context_, why); }

void OpenCall::OnCancel() {
  if (server_.TakeCall(number_) != nullptr) {
    server_.inbox().OnCallGone(number_);
    Finish(grpc::Status::CANCELLED);
  }
}

void AgentConnection::OnReadDone(bool ok) {
  bool deliver = false;
  {
    const std::lock_guard lock(mutex_);
    if (!ok) {
      Cut(grpc::Status::OK);
      return;
    }
    if (!greeted_ && incoming_.kind_case() != v1::AgentMessage::kHello) {
      End({grpc::StatusCode::INVALID_ARGUMENT, "the first message is no Hello"});
      return;
    }
    const Status named = incoming_.has_hello()
                             ? service::AccessControl::CheckHello(node_, incoming_.hello())
                             : Status();
    if (!named.ok()) {
      server_.Log(*context_, named.error().message);
      End({grpc::StatusCode::PERMISSION_DENIED, named.error().message});
      return;
    }
    deliver = !ending_;
    greeted_ = greeted_ || deliver;
  }
  if (deliver) {
    server_.inbox().OnAgent(number_, std::move(incoming_));
    incoming_.Clear();
  }
  const std::lock_guard lock(mutex_);
  if (!finished_) {
    StartRead(&incoming_);
  }
}

void AgentConnection::OnDone() {
  const std::shared_ptr<AgentConnection> self = server_.Remove(number_);
  bool greeted = false;
  {
    const std::lock_guard lock(mutex_);
    greeted = greeted_;
  }
  if (greeted) {
    server_.inbox().OnAgentGone(number_);
  }
}

template <typename Request, typename Reply>
grpc::ServerUnaryReactor* ClusterService::Begin(Context* context, const Request& request,
                                                Request* (v1::ClientRequest::*put)(), Reply& reply,
                                                Reply* (v1::ClientReply::*take)()) {
  auto* const call = new OpenCall(server_, context, [&reply, take](v1::ClientReply& from) {
    const auto kind = from.kind_case();
    reply.Swap((from.*take)());
    CHECK(from.kind_case() == kind);  // it was of the request's kind
  });
  const Result<std::optional<v1::Caller>> caller = server_.CallerOf(*context);
  if (!caller.ok()) {
    call->Finish(Unknown(caller.error()));
    return call;
  }
  v1::ClientRequest wrapped;
  *(wrapped.*put)() = request;
  if (caller.value()) {
    *wrapped.mutable_caller() = *caller.value();
  }
  server_.Open(call, std::move(wrapped));
  return call;
}

AgentReactor* AgentsService::Attach(grpc::CallbackServerContext* context) {
  return server_.Open(context);
}

}  // namespace

Result<std::unique_ptr<RpcServer>> StartServer(const ServerOptions& options, Inbox& inbox) {
  // gRPC would take another port, such as that of https.
  RETURN_IF_ERROR(CheckListenAddress("--listen", options.listen));
  QuietGrpc();
  ServerOptions taken = options;
  const bool authenticates = options.access != nullptr && options.access->authority() != nullptr;
  taken.tls = authenticates && (options.tls || !IsLoopback(options.listen));
  auto server = std::make_unique<Server>(taken, inbox);
  if (const Status started = server->Start(); !started.ok()) {
    return Failed(
        fmt::format("cannot listen at '{}': {}", options.listen, started.error().message));
  }
  return std::unique_ptr<RpcServer>(std::move(server));
}

}  // namespace trainyard::rpc
