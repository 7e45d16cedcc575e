// SPDX-License-Identifier: Apache-2.0
// Between the wire and the world: what comes in goes into the controller's mailbox, or is answered
// from the last view; what the world says goes out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "daemon/clock.h"
#include "daemon/mailbox.h"
#include "daemon/waiting_reads.h"
#include "live/live_options.h"
#include "live/live_world.h"
#include "rpc/server.h"
#include "trainyard/live.pb.h"

namespace trainyard::daemon {

class Transport final : public rpc::Inbox, public live::LiveOutput {
 public:
  // `log` hears which calls somebody was not allowed to make. Both references must outlive it.
  Transport(Mailbox& mailbox, const LiveClock& clock, std::function<void(const std::string&)> log)
      : mailbox_(mailbox), clock_(clock), log_(std::move(log)) {}
  // `world` must outlive the server, and Stop.
  void Open(live::LiveWorld& world);
  void Serve(rpc::RpcServer& server) { server_ = &server; }
  // Nothing goes out any more.
  void Stop();
  // A step of the world is over. REQUIRES: Open has been called.
  void NoteStep() { waiting_->NoteStep(); }

  // What only reads is answered from the view of the last step: the next decision may take its
  // time.
  void OnCall(std::uint64_t call, v1::ClientRequest request) override;
  void OnCallGone(std::uint64_t call) override;
  void OnAgent(std::uint64_t connection, v1::AgentMessage message) override;
  void OnAgentGone(std::uint64_t connection) override;

  void Reply(std::uint64_t call, v1::ClientReply reply) override;
  void Send(std::uint64_t connection, v1::ControllerMessage message) override;
  void Close(std::uint64_t connection) override;

 private:
  [[nodiscard]] v1::ClientReply AnswerNow(const v1::ClientRequest& request) const;

  Mailbox& mailbox_;
  const LiveClock& clock_;
  const std::function<void(const std::string&)> log_;
  live::LiveWorld* world_ = nullptr;
  std::atomic<rpc::RpcServer*> server_ = nullptr;
  std::optional<WaitingReads> waiting_;  // from Open on; its thread uses all of the above
};

}  // namespace trainyard::daemon
