// SPDX-License-Identifier: Apache-2.0
// The rules of the published Pollux that are unlike the paper's, for policy and tests
// (docs/originals.md).
#pragma once

#include "policies/pollux/allocation_search.h"

namespace trainyard::originals {

// On each node every job from the second distributed one on loses its GPUs, also one that lies on
// this node alone. Which jobs are distributed is judged before.
void SeparateAsPublished(policies::AllocationMatrix& matrix);

}  // namespace trainyard::originals
