// SPDX-License-Identifier: Apache-2.0
// Messages to agents: what they are to start, to change, to stop and to forget.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "live/attempts/attempts.h"
#include "live/live_state.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

class AgentMessages {
 public:
  // Both must outlive it.
  AgentMessages(const LiveState& state, LiveOutput& output) : state_(state), output_(output) {}

  // Messages to an agent by its connection, whether it has joined or not.
  void Welcome(std::uint64_t connection);
  void AnswerTo(const v1::Heartbeat& heartbeat, std::uint64_t connection);
  // The connection is closed, too.
  void Refuse(std::uint64_t connection, const std::string& why);

  // Messages to the agent of a node; nothing happens where the node has none.
  void Send(NodeId node, v1::ControllerMessage message);
  void Fetch(JobId job, const LiveAttempt& attempt, NodeId node);
  void Start(JobId job, const LiveAttempt& attempt, std::size_t part);
  // A message to the agents of all parts that have been ordered to start.
  void Tune(JobId job, const LiveAttempt& attempt);
  void Stop(JobId job, const std::vector<Attempts::At>& parts);
  void StopStray(NodeId node, const v1::AttemptId& id);
  // Said by SendForgets, when the journal holds the end.
  void Forget(NodeId node, const v1::AttemptId& id) { to_forget_.emplace_back(node, id); }
  void Forget(JobId job, const std::vector<Attempts::At>& parts);
  void SendForgets();
  void DropForgets() { to_forget_.clear(); }

 private:
  [[nodiscard]] int MasterPort(JobId job, std::uint32_t attempt) const;
  [[nodiscard]] std::int64_t NextOrder();
  void AddSlurmVariables(JobId job, const LiveAttempt& attempt, std::size_t part,
                         v1::StartAttempt& start) const;
  void Say(std::uint64_t connection, v1::ControllerMessage message);

  const LiveState& state_;
  LiveOutput& output_;
  std::vector<std::pair<NodeId, v1::AttemptId>> to_forget_;
  std::int64_t tunes_ = 0;  // orders to change a share, so far
};

}  // namespace trainyard::live
