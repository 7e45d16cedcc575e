// SPDX-License-Identifier: Apache-2.0
// How fast the jobs of a run are: the execution model that preset, profiles and policy ask for, and
// whether the jobs of the trace state what it needs.
#pragma once

#include "scenario/assembly.h"
#include "scenario/inputs.h"
#include "trainyard/status.h"

namespace trainyard::scenario {

// Sets parts.rates, and parts.corrector where there is one. `inputs` must outlive the parts.
// Errors: components, preset and profiles that do not go together; jobs that the model or the GPU
// types of the cluster cannot do with, each with file and line.
[[nodiscard]] Status MakeRates(const Inputs& inputs, Assembly& parts);

}  // namespace trainyard::scenario
