// SPDX-License-Identifier: Apache-2.0
// An agent as a running thing: the state machine with a clock, processes and a network.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "daemon/mailbox.h"
#include "supervisor/local_processes.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::daemon {

struct AgentOptions {
  std::string controller = "127.0.0.1:7077";
  std::string node;     // as in the controller's cluster file; empty: the host's name
  std::string address;  // where other nodes reach this one; empty: loopback
  int gpus = 0;
  std::string gpu_type;
  std::string state;  // folder, this agent's alone; made if need be
  // Where jobs keep their checkpoints: a folder that all nodes share. Empty: STATE/checkpoints.
  std::string checkpoints;
  std::string program;  // this executable
  std::uint64_t log_limit =
      supervisor::kDefaultLogLimit;  // bytes of the disk for the logs of one job; 0: any
  // Room for copies of data sets, in STATE/data, and the bandwidth of each fetch, bytes per second;
  // 0: none are kept; any.
  std::uint64_t data_cache = 0;
  std::uint64_t data_rate = 0;
  std::function<std::string(int gpu)> gpu_fault{};  // as LocalProcessesOptions::gpu_fault
  // trainyard-launcher, which starts each job as its own user. Empty: jobs run as this process'
  // user, and those of other users are refused.
  std::string launcher{};
  // The file with the one-time token by which the node joins (`trainyard node token`), if it has no
  // certificate yet. Empty: none.
  std::string join_token_file{};
  // At the end attempts are stopped, with so much grace. None: they run on and are found again.
  std::optional<Duration> grace_at_end;
  // Then: whether the user will not wait any longer, and what hears which jobs are awaited. Both
  // may be empty.
  const std::atomic<bool>* hurry = nullptr;
  std::function<void(const std::string& line)> tell{};
};

// Everything that can be wrong with the options but the state folder, without starting anything.
[[nodiscard]] Status CheckAgent(const AgentOptions& options);

// Runs until `mailbox` is closed; a controller that refuses the agent is asked again. Errors: a
// state folder that cannot be used or that another agent uses.
[[nodiscard]] Status RunAgent(const AgentOptions& options, Mailbox& mailbox);

// A line of an agent's log, with the time.
void SayAsAgent(const std::string& line);

}  // namespace trainyard::daemon
