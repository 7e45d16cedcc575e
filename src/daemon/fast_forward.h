// SPDX-License-Identifier: Apache-2.0
// A trace played to the production controller and agents with pretended trainers, in a time that
// jumps from event to event: what a live cluster would do if machines and messages took no time.
#pragma once

#include "report/run_result.h"
#include "scenario/scenario.h"
#include "trainyard/status.h"

namespace trainyard {

// The same names, inputs and errors as RunScenario; of the request, seed, stop rule, journal and
// walk do not apply. Policies that must see ends before they come (presets that plan ends, or find
// them late) cannot be played: an error says so.
[[nodiscard]] Result<RunResult> RunFastForward(const Inputs& inputs, const RunRequest& request);

}  // namespace trainyard
