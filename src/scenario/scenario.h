// SPDX-License-Identifier: Apache-2.0
// One run from names and inputs to its result: assembles engine and world, runs, collects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/metrics/run_result.h"
#include "scenario/assembly.h"
#include "scenario/inputs.h"
#include "scenario/preset.h"
#include "trainyard/status.h"
#include "world/simulated_world.h"

namespace trainyard::scenario {

// "FIRST-LAST", rows of a trace of so many jobs; `what` names the text in messages.
[[nodiscard]] Result<world::TrackedJobs> ParseTracked(std::string_view text, std::string_view what,
                                                      std::size_t jobs);

struct RunRequest {
  PresetRequest names;
  std::uint64_t seed = 0;
  world::StopRule stop{};
  std::string journal_path;  // empty: only the digest is kept
  std::string label;         // empty: the policy as asked for
  bool keep_timeline = true;
  bool keep_allocations = false;  // RunResult::allocations and the fragmentation; with a timeline
  std::function<void(std::size_t ended, std::size_t jobs)> on_progress;  // may be null
  bool plain_walk = false;  // tests: the oracle instead of the incremental walk
};

// Errors: names that cannot be resolved; jobs that the run cannot execute (no duration, model or
// batch size not in the profiles, more GPUs than the cluster has), each with file and line; a
// violation found while running.
[[nodiscard]] Result<results::RunResult> RunScenario(const Inputs& inputs,
                                                     const RunRequest& request);

// How a run is carried out once its engine can be made: calls `collect` with the engine in its last
// state and the engine's id of each row of the trace (empty: the row's number), and gives the
// digest of the journal.
using CollectFrom = std::function<void(const engine::Engine& engine, std::span<const JobId> ids)>;
using Drive = std::function<Result<std::string>(const Assembly& parts, engine::EngineSetup setup,
                                                const CollectFrom& collect)>;
// The same run, carried out in another way than in a simulated world.
[[nodiscard]] Result<results::RunResult> RunScenario(const Inputs& inputs,
                                                     const RunRequest& request, const Drive& drive);

}  // namespace trainyard::scenario
