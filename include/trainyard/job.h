// SPDX-License-Identifier: Apache-2.0
// What a user asks for: one training job, as submitted. Never changes afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainyard/time.h"

namespace trainyard {

struct JobSpec {
  std::string name;                   // job_id of the trace
  std::string user;                   // may be empty
  std::string queue;                  // may be empty
  std::string model;                  // may be empty; names a throughput profile
  int gpus = 1;                       // requested
  std::int64_t batch_size = 0;        // global; 0: not stated
  TimePoint submit{};                 // JCT counts from here
  std::optional<Duration> duration;   // on the requested GPUs
  std::optional<double> iterations;   // total
  std::optional<TimePoint> deadline;  // absolute; none: no deadline
  bool best_effort = false;           // its deadline, if any, was dropped
  std::int32_t profile_row = -1;      // row of the throughput profile; -1: not bound to one
  std::string launch;  // what its workers run; opaque to the engine, empty in a trace
};

}  // namespace trainyard
