// SPDX-License-Identifier: Apache-2.0
// Calls that the agent of a node answers: what a job has written, and sessions beside its workers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "live/attempts/agent_messages.h"
#include "live/calls/call.h"

namespace trainyard::live {

class AgentCalls {
 public:
  // Both must outlive it.
  AgentCalls(CallContext& context, AgentMessages& messages)
      : context_(context), state_(context.state()), messages_(messages) {}

  // Errors: as things stand there is nothing to read, or nobody to ask.
  [[nodiscard]] Result<Reply> ReadLogs(const Call& call, const v1::LogsRequest& request);
  // The opening of a session is in the journal, with its caller; session traffic is not journaled.
  [[nodiscard]] Result<Reply> Attach(const Call& call, v1::AttachRequest request);

  // What an agent answers; none: nobody waits for it.
  [[nodiscard]] std::optional<v1::ClientReply> TakeLogChunk(NodeId node, const v1::LogChunk& chunk);
  [[nodiscard]] std::optional<v1::ClientReply> TakeAttachAnswer(NodeId node,
                                                                const v1::AttachAnswer& answer);
  // The node's agent has gone: the calls that it will not answer.
  [[nodiscard]] std::vector<std::uint64_t> TakeCallsTo(NodeId node);
  // The client of the call waits no longer.
  void Drop(std::uint64_t call) { passed_on_.erase(call); }

 private:
  struct PassedOn {
    NodeId node{};
    JobId job{};
  };

  [[nodiscard]] Result<NodeId> NodeOfRank(JobId job, std::uint32_t attempt, int rank) const;
  [[nodiscard]] Result<int> FirstRankOn(JobId job, std::uint32_t attempt,
                                        const std::string& node) const;
  [[nodiscard]] std::optional<JobId> TakeAwaited(std::uint64_t call, NodeId node);

  CallContext& context_;
  LiveState& state_;
  AgentMessages& messages_;
  std::map<std::uint64_t, PassedOn> passed_on_;  // calls that agents are to answer
};

}  // namespace trainyard::live
