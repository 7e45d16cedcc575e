// SPDX-License-Identifier: Apache-2.0
// Which tasks of a step run on which nodes of its job, with which of their GPUs.
#pragma once

#include <string>
#include <vector>

#include "supervisor/steps/step_claims.h"
#include "supervisor/steps/step_options.h"
#include "trainyard/status.h"

namespace trainyard::supervisor {

// A node of the job, by its place there.
struct JobNode {
  std::string name;
  int cpus = 0;  // 0: any number
  int gpus = 0;
};

struct NodePart {
  int node = 0;            // its place in the job
  std::vector<int> ranks;  // ascending
  std::vector<int>
      gpus{};  // places among those of the job there; none: the step has asked for none
};

struct StepLayout {
  std::vector<NodePart> parts;  // by node
};

// The nodes, tasks and GPUs of a step that nobody else disturbs, claimed in `claims` unless the
// step overlaps. Errors: kInvalidArgument: not even with all of the job's; kUnavailable: other
// steps have what it needs.
[[nodiscard]] Result<StepLayout> PlaceStep(const StepOptions& step, const std::vector<JobNode>& job,
                                           StepClaims& claims);

// Counts of nodes as SLURM_TASKS_PER_NODE has them: "2(x3),1" is 2, 2, 2, 1.
[[nodiscard]] std::vector<int> NumbersOf(const std::string& runs);
[[nodiscard]] std::string RunsOf(const std::vector<int>& numbers);

}  // namespace trainyard::supervisor
