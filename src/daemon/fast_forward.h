// SPDX-License-Identifier: Apache-2.0
// A trace played to the production controller and agents with pretended trainers, in a time that
// jumps from event to event: what a live cluster would do if machines and messages took no time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/stepping_processes.h"
#include "results/metrics/run_result.h"
#include "scenario/scenario.h"
#include "trainyard/status.h"

namespace trainyard::daemon {

// The same names, inputs and errors as RunScenario; of the request, seed, stop rule, journal and
// walk do not apply. Under a preset jobs end when its rules say so, as the engine foresees it;
// otherwise when their trainers have done their work. Placements that only count are an error.
//
// With a command, each worker runs it for real, and time jumps only when all attempts have done
// their steps: what ElasticFlow calls fast-forward. Work and ends are counted by the engine then.
struct SteppedCommand {
  std::vector<std::string> command;  // of every job's workers, one for each GPU
  std::string program;               // this executable
  std::string folder;                // for logs and checkpoints; made if need be
  Steps steps{};
};

[[nodiscard]] Result<results::RunResult> RunFastForward(
    const scenario::Inputs& inputs, const scenario::RunRequest& request,
    const std::optional<SteppedCommand>& command = std::nullopt);

}  // namespace trainyard::daemon
