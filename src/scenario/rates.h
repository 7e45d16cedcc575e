// SPDX-License-Identifier: Apache-2.0
// The components of a run, and how fast its jobs are: the execution model that preset, profiles and
// policy ask for, and whether the jobs of the trace state what it needs.
#pragma once

#include "scenario/assembly.h"
#include "scenario/inputs.h"
#include "scenario/preset.h"
#include "trainyard/status.h"

namespace trainyard::scenario {

// With rates, and a corrector where there is one. `inputs` must outlive the result. Errors: names
// that cannot be resolved; components, preset and profiles that do not go together; jobs known
// before Inputs::until that the model or the GPU types of the cluster cannot do with, each with
// file and line.
[[nodiscard]] Result<Assembly> Assemble(const Inputs& inputs, const PresetRequest& names);

}  // namespace trainyard::scenario
