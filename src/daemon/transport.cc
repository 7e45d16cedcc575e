// SPDX-License-Identifier: Apache-2.0
#include "daemon/transport.h"

#include <memory>
#include <utility>

#include "live/view/statuses.h"
#include "service/call_error.h"
#include "service/calls.h"

namespace trainyard::daemon {
namespace {

bool IsDenied(int number) { return service::CodeOf(number) == ErrorCode::kPermissionDenied; }

}  // namespace

void Transport::Open(live::LiveWorld& world) {
  world_ = &world;
  waiting_.emplace(
      [this](const v1::ClientRequest& request) { return AnswerNow(request); },
      [this](std::uint64_t call, v1::ClientReply reply) { Reply(call, std::move(reply)); });
}

void Transport::Stop() {
  server_ = nullptr;
  waiting_->Stop();
}

v1::ClientReply Transport::AnswerNow(const v1::ClientRequest& request) const {
  const std::shared_ptr<const live::ClusterView> view = world_->view();
  return live::Statuses(*view, clock_.Now()).AnswerTo(request);
}

void Transport::OnCall(std::uint64_t call, v1::ClientRequest request) {
  if (service::FamilyOf(request.kind_case()) == service::CallFamily::kReading &&
      server_ != nullptr) {
    return WaitingReads::Waits(request) ? waiting_->Add(call, std::move(request))
                                        : Reply(call, AnswerNow(request));
  }
  mailbox_.Put([this, call, request = std::move(request)]() mutable {
    world_->OnCall(call, std::move(request));
  });
}

void Transport::OnCallGone(std::uint64_t call) {
  waiting_->Drop(call);
  mailbox_.Put([this, call] { world_->OnCallGone(call); });
}

void Transport::OnAgent(std::uint64_t connection, v1::AgentMessage message) {
  mailbox_.Put([this, connection, message = std::move(message)]() mutable {
    world_->OnAgent(connection, std::move(message));
  });
}

void Transport::OnAgentGone(std::uint64_t connection) {
  mailbox_.Put([this, connection] { world_->OnAgentGone(connection); });
}

void Transport::Reply(std::uint64_t call, v1::ClientReply reply) {
  if (log_ && IsDenied(reply.error().code())) {
    log_("refused: " + reply.error().message());
  }
  if (const v1::Changed* const changed = live::ChangedOf(reply); log_ && changed != nullptr) {
    for (const v1::LeftOut& left : changed->left_out()) {
      if (IsDenied(left.code())) {
        log_("refused: " + left.why());
      }
    }
  }
  if (rpc::RpcServer* const server = server_; server != nullptr) {
    server->Reply(call, std::move(reply));
  }
}

void Transport::Send(std::uint64_t connection, v1::ControllerMessage message) {
  if (rpc::RpcServer* const server = server_; server != nullptr) {
    server->Send(connection, std::move(message));
  }
}

void Transport::Close(std::uint64_t connection) {
  if (rpc::RpcServer* const server = server_; server != nullptr) {
    server->Close(connection);
  }
}

}  // namespace trainyard::daemon
