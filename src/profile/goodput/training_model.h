// SPDX-License-Identifier: Apache-2.0
// How fast trainings that adapt their batches are on the whole, as components see it before these
// have measured themselves.
#pragma once

#include <memory>

#include "profile/goodput/application.h"
#include "trainyard/snapshot.h"

namespace trainyard::profile {

// Work is statistical progress: iterations with the initial batch, over all epochs. The rate is the
// mean of a whole training on the fewest nodes of four GPUs, with the best batch at each time; a
// job's true progress goes by its epoch and placement and is told by its training. Where types of
// GPU were measured, that of the first one, and on others as much more as one GPU of them does in
// samples (Sia, SOSP'23, section 3.2).
// REQUIRES: each job is bound to an application by its profile_row. Both must outlive the model.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeTrainingModel(const Applications& applications,
                                                                const TrainingRules& rules);

}  // namespace trainyard::profile
