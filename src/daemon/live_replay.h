// SPDX-License-Identifier: Apache-2.0
// A trace played to a running cluster, in real time or faster, with trainers that are only played,
// or with a command.
#pragma once

#include <string>
#include <vector>

#include "results/metrics/run_result.h"
#include "scenario/scenario.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::daemon {

struct ReplayOptions {
  std::string controller;  // ADDRESS:PORT
  double time_scale = 1;   // the controller's: scheduler's seconds per real second
  // How long a controller that does not answer may be away, as one that is started anew.
  Duration patience = std::chrono::seconds(10);
  // What the workers of every job run, one for each GPU; empty: trainers that are only played.
  std::vector<std::string> command;
};

// Submits each job when its time has come and waits until all have ended. Times of the result are
// the trace's: a job's start and end are put where they lay after its submission. Of the request,
// only label and progress apply. Errors: the cluster cannot be reached, has another time scale or
// other nodes, refuses a job, or knows it no more.
[[nodiscard]] Result<results::RunResult> ReplayOnCluster(const scenario::Inputs& inputs,
                                                         const scenario::RunRequest& request,
                                                         const ReplayOptions& options);

}  // namespace trainyard::daemon
