// SPDX-License-Identifier: Apache-2.0
// How the published simulator of Sia (SOSP'23) places jobs on the nodes of one type, from scratch
// in each round.
#pragma once

#include <span>
#include <vector>

namespace trainyard::originals {

// The node of each GPU, ascending; jobs that find no place have fewer. `requests`: GPUs by job. The
// largest jobs first; a pointer walks the nodes in turn: whole nodes are taken where they are free,
// the rest of a job from the next nodes with free GPUs.
[[nodiscard]] std::vector<std::vector<int>> PlaceAsPublished(int nodes, int node_gpus,
                                                             std::span<const int> requests);

}  // namespace trainyard::originals
