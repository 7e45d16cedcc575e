// SPDX-License-Identifier: Apache-2.0
// What a run goes by and its inputs do not state. The run can be made all the same: its user is
// warned.
#pragma once

#include <string>
#include <vector>

#include "scenario/inputs.h"
#include "scenario/preset.h"
#include "trainyard/status.h"

namespace trainyard::scenario {

// What the policy of such a run goes by and jobs, profiles or cluster do not state, a sentence
// each: deadlines, stage times, rates by GPU type, rates of pairs; and GPU types that its options
// name and the cluster lacks. Errors: names that cannot be resolved.
[[nodiscard]] Result<std::vector<std::string>> UnstatedInputs(const PresetRequest& names,
                                                              const Inputs& inputs);

// GPU types of the cluster on which some jobs or all cannot run because their profiles lack them, a
// sentence each, whatever the policy is. O(jobs x types).
[[nodiscard]] std::vector<std::string> TypesWithoutProfiles(const Inputs& inputs);

}  // namespace trainyard::scenario
