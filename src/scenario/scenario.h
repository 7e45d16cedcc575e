// SPDX-License-Identifier: Apache-2.0
// One simulated run from names and files to its result: reads the inputs, resolves the preset,
// assembles engine and world, runs, collects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profile/measured_book.h"
#include "results/metrics/run_result.h"
#include "scenario/assembly.h"
#include "scenario/known_models.h"
#include "scenario/preset.h"
#include "trace/trace.h"
#include "trainyard/cluster.h"
#include "trainyard/status.h"
#include "world/simulated_world.h"

namespace trainyard::scenario {

struct InputPaths {
  std::string trace;
  std::string format;  // empty: recognised
  std::string cluster;
  std::string profiles;  // folder or file; empty: none
  std::string measured;  // what `profiles export` wrote; empty: none
  bool skip_bad_rows = false;
  bool at_once = false;   // all jobs are submitted at time 0
  double time_unit = 0;   // TraceOptions::unit
  int procs_per_gpu = 0;  // TraceOptions::procs_per_gpu
  std::string columns{};  // TraceOptions::columns
};

// Read once, shared by all runs of a comparison.
struct Inputs {
  InputPaths paths;
  std::shared_ptr<trace::Trace> trace;
  std::shared_ptr<const std::vector<JobSpec>> jobs;  // those of the trace
  Cluster cluster;
  KnownModels models;
  std::optional<profile::MeasuredBook> measured{};  // goes before the models
  // Why there are none although a path was given; fails only runs that need them, since a folder
  // may hold nothing but what a preset reads (prior samples).
  std::optional<Error> profiles_error;
};

// Jobs are bound to their profile rows where there are any; whether all must be depends on the run.
[[nodiscard]] Result<Inputs> ReadInputs(const InputPaths& paths);

// What the policy of such a run goes by and the jobs do not state, a sentence each: deadlines,
// stage times. The run can be made all the same. Errors: names that cannot be resolved.
[[nodiscard]] Result<std::vector<std::string>> UnstatedInputs(const PresetRequest& names,
                                                              std::span<const JobSpec> jobs);

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
