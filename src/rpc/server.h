// SPDX-License-Identifier: Apache-2.0
// The controller's end of the network: gRPC calls and agent streams, turned into messages and back.
// It knows nothing of scheduling; the threads are its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rpc/listener.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::service {
class AccessControl;
}  // namespace trainyard::service

namespace trainyard::rpc {

// Takes what comes in. Called from the server's threads, several at once; must come back quickly,
// but for calls that it answers in the thread in which they come (OnCall).
// Numbers of calls and connections begin at 1 and are never given out again by one server.
class Inbox {
 public:
  virtual ~Inbox() = default;
  // The answer goes to RpcServer::Reply with the same number, once; from within this call too.
  virtual void OnCall(std::uint64_t call, v1::ClientRequest request) = 0;
  // The client went away before its answer came; a later Reply to it does nothing. Not told when
  // the server stops.
  virtual void OnCallGone(std::uint64_t call) = 0;
  // Messages of one connection come in order, the first one is a Hello (others are refused here).
  virtual void OnAgent(std::uint64_t connection, v1::AgentMessage message) = 0;
  // Once for each connection that has said Hello, after its last message: also after Close and
  // when the server stops.
  virtual void OnAgentGone(std::uint64_t connection) = 0;
};

struct ServerOptions {
  std::string listen = "127.0.0.1:0";  // port 0: any free one
  int max_message_bytes = 1 << 20;
  ConnectionLimits connections{};
  // Decides about each call, whose caller is then in ClientRequest::caller, and each agent. Must
  // outlive the server; null: authentication is off, and limits have their defaults.
  service::AccessControl* access = nullptr;
  // By TLS with the authority's certificates; they are read again when their files change. An
  // address that is not of this machine alone is listened at in no other way, if there is an
  // authority.
  bool tls = false;
  // Told of each call and agent that is not let in, with the reason. May be empty.
  std::function<void(const std::string& line)> log{};
};

class RpcServer {
 public:
  virtual ~RpcServer() = default;  // stops it: calls in flight are answered UNAVAILABLE
  [[nodiscard]] virtual int port() const = 0;
  // Thread-safe; numbers that are gone are ignored. The reply is of the request's kind, or an
  // error. Send never blocks: a connection that lets more than 64 MiB pile up is cut. Close comes
  // after what has been sent.
  virtual void Reply(std::uint64_t call, v1::ClientReply reply) = 0;
  virtual void Send(std::uint64_t connection, v1::ControllerMessage message) = 0;
  virtual void Close(std::uint64_t connection) = 0;
  // Ends calls and agents whose credentials have been revoked since they came in.
  virtual void CutRevoked() = 0;
};

// `inbox` must outlive the server. Errors: the address is taken or is none of this machine.
[[nodiscard]] Result<std::unique_ptr<RpcServer>> StartServer(const ServerOptions& options,
                                                             Inbox& inbox);

}  // namespace trainyard::rpc
