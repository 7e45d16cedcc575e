// SPDX-License-Identifier: Apache-2.0
// EDF as ElasticFlow's simulator plans it, with and without admission (reference 5.1a, 5.2).
#pragma once

#include <memory>

#include "trainyard/component.h"

namespace trainyard {

// `slot`: a planned end frees its GPUs at the next multiple of this after the decision.
[[nodiscard]] std::unique_ptr<Policy> MakePublishedEdf(Duration slot);

}  // namespace trainyard
