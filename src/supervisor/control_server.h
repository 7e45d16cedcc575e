// SPDX-License-Identifier: Apache-2.0
// The supervisor's side of its connection with the agent. The agent connects to control.sock and
// gets the attempt's v1::AttemptReport at once and whenever it changes, and its v1::StageTurns and
// v1::AttachAnswers as they come; it may send v1::SupervisorOrder. Each message stands after its
// length. EXITED is never sent: the report lies in the attempt's folder before the connection
// closes. Agents may come and go.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "supervisor/unix_socket.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

class ControlServer {
 public:
  explicit ControlServer(io::Descriptor socket) : agents_(std::move(socket), kMaxConnections) {}

  void Tell(const v1::AttemptReport& report);
  // To the agents that are there.
  void Tell(const v1::StageTurn& turn);
  void Tell(const v1::AttachAnswer& answer);
  [[nodiscard]] bool has_agent() const { return !agents_.empty(); }
  void AddAwaited(std::vector<pollfd>& polls) const { agents_.AddAwaited(polls); }
  // What agents have asked for since the last call; never waits.
  [[nodiscard]] std::vector<v1::SupervisorOrder> Serve();

 private:
  static constexpr std::size_t kMaxConnections = 8;
  Connections agents_;
  std::string report_;  // the last, framed
};

}  // namespace trainyard::supervisor
