// SPDX-License-Identifier: Apache-2.0
// What a user asks for: one training job, as submitted. Never changes afterwards. All members stand
// in the table of src/model/job_fields.h, by which jobs are read and written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

// What one iteration does when the job has its GPUs for itself; seconds.
struct StageTimes {
  double iteration = 0;        // from one to the next; stages overlap, so not their sum
  std::vector<double> stages;  // in the order in which an iteration goes through them

  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

// What an end by a certain time is worth; one of several.
struct SoftDeadline {
  TimePoint at{};
  double value = 0;

  friend bool operator==(const SoftDeadline&, const SoftDeadline&) = default;
};

// What a job trains on. Jobs that name the same data set share what nodes keep of it.
struct DataSet {
  std::string name;
  std::int64_t mib = 0;  // 1 to 10^9; the same for all jobs that name it
  std::string home;      // the node that always has it; any other name, or none: a remote store

  friend bool operator==(const DataSet&, const DataSet&) = default;
};

// On how many GPUs the user wants a job to run; elsewhere its model has no rate. Both ends are
// optional and hold the number of GPUs asked for.
struct GpuRange {
  int least = 0;  // 0: not stated, from 1
  int most = 0;   // 0: not stated, as many as its profile gains by

  [[nodiscard]] bool Holds(int gpus) const { return gpus >= least && (most == 0 || gpus <= most); }
  friend bool operator==(const GpuRange&, const GpuRange&) = default;
};

struct JobTraits {
  std::optional<StageTimes> stages;
  std::vector<SoftDeadline> deadlines;  // by time; later ones are worth less
  Slices devices;                       // the GPUs that the user names
  int loader_workers = 0;               // data-loading processes for all its GPUs; 0: not stated
  std::optional<DataSet> data_set;
  std::vector<std::string> gpu_types;  // that it accepts, sorted, each once; empty: any
  GpuRange range;
  // Nodes that it may not lie on, ascending: where it could not be run. Only a live cluster knows.
  std::vector<NodeId> avoided;

  friend bool operator==(const JobTraits&, const JobTraits&) = default;
};

struct JobSpec {
  std::string name;                         // job_id of the trace
  std::string user;                         // may be empty
  std::string queue;                        // may be empty
  std::string model;                        // may be empty; names a throughput profile
  int gpus = 1;                             // requested
  std::int64_t batch_size = 0;              // global; 0: not stated
  TimePoint submit{};                       // JCT counts from here
  std::optional<TimePoint> handover;        // when the scheduler first sees it; none: at submit
  std::optional<Duration> duration;         // on the requested GPUs
  std::optional<double> iterations;         // total
  std::optional<TimePoint> deadline;        // absolute; none: no deadline
  bool best_effort = false;                 // its deadline, if any, was dropped
  int priority = 0;                         // of the trace; what it means is up to the policy
  std::shared_ptr<const JobTraits> traits;  // null: none
  std::int32_t profile_row = -1;            // row of the throughput profile; -1: not bound to one
  std::string launch;  // what its workers run; opaque to the engine, empty in a trace

  [[nodiscard]] TimePoint known_from() const { return handover.value_or(submit); }
};

}  // namespace trainyard
