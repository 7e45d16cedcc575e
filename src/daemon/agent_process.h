// SPDX-License-Identifier: Apache-2.0
// An agent as a running thing: the state machine with a clock, processes and a network.
#pragma once

#include <string>

#include "daemon/mailbox.h"
#include "trainyard/status.h"

namespace trainyard {

struct AgentOptions {
  std::string controller = "127.0.0.1:7077";
  std::string node;     // as in the controller's cluster file; empty: the host's name
  std::string address;  // where other nodes reach this one; empty: loopback
  int gpus = 0;
  std::string gpu_type;
  std::string state;                  // folder; made if need be
  std::string program;                // this executable
  bool stop_attempts_at_end = false;  // else they run on and are found again
};

// Runs until `mailbox` is closed, or the controller refuses the agent.
[[nodiscard]] Status RunAgent(const AgentOptions& options, Mailbox& mailbox);

}  // namespace trainyard
