// SPDX-License-Identifier: Apache-2.0
// What a run is made from: trace, cluster and profiles, read once and shared by all runs of a
// comparison.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profile/measured_book.h"
#include "scenario/changes.h"
#include "scenario/known_models.h"
#include "scenario/preset.h"
#include "trace/trace.h"
#include "trainyard/cluster.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::scenario {

struct InputPaths {
  std::string trace;
  std::string format;  // empty: recognised
  std::string cluster;
  std::string profiles;  // folder or file; empty: none
  std::string measured;  // what `profiles export` wrote; empty: none
  bool skip_bad_rows = false;
  bool at_once = false;        // all jobs are submitted at time 0
  double time_unit = 0;        // TraceOptions::unit
  int procs_per_gpu = 0;       // TraceOptions::procs_per_gpu
  bool cpu_jobs = false;       // TraceOptions::cpu_jobs
  bool node_requests = false;  // TraceOptions::node_requests
  std::string columns{};       // TraceOptions::columns
  std::string changes{};       // ParseChanges; empty: none
};

// Read once, shared by all runs of a comparison.
struct Inputs {
  InputPaths paths;
  std::shared_ptr<trace::Trace> trace;
  std::shared_ptr<const std::vector<JobSpec>> jobs;  // those of the trace
  Cluster cluster;                                   // with the nodes of the changes
  std::vector<ConfigurationChange> changes{};
  std::string changes_sha256{};  // of their file; empty: there is none
  // A run checks the jobs that are known before `until`: others come under another configuration.
  // Those known before `partitions_since` have come under other partitions; the last partitions
  // that there are come at `last_partitions`.
  TimePoint partitions_since{};
  TimePoint last_partitions{};
  TimePoint until = kEndOfTime;
  KnownModels models;
  std::optional<profile::MeasuredBook> measured{};  // goes before the models
  // Why there are none although a path was given; fails only runs that need them, since a folder
  // may hold nothing but what a preset reads (prior samples).
  std::optional<Error> profiles_error;
};

// Jobs are bound to their profile rows where there are any; whether all must be depends on the run.
[[nodiscard]] Result<Inputs> ReadInputs(const InputPaths& paths);

// What is wrong with one job; nothing: it is as expected.
using WhatIsWrong = std::optional<std::string>;

// The first job of the trace of which `check` finds something wrong, with file and line.
[[nodiscard]] Status CheckJobs(const trace::Trace& trace,
                               const std::function<WhatIsWrong(const JobSpec& job)>& check);

}  // namespace trainyard::scenario
