// SPDX-License-Identifier: Apache-2.0
// The command traces by which ElasticFlow measures overheads (ASPLOS'23, figure 12b; reference
// elasticflow 10.2): which sizes a job goes through.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::profiler {

// From so many GPUs to so many, 0 at first; each pair once, in the order of the trace. Lines: the
// number of workers, then commands: R (run: `R worker model batch job nproc nnodes node_rank ip
// port bitmap iterations from_scratch rank...`), K (kill), and G, F, T, W, S, RE, U, which change
// no size. Errors: those of io::ReadFile; another command, an R without ranks, no R at all.
[[nodiscard]] Result<std::vector<std::pair<int, int>>> ReadCommandTrace(const std::string& path);

}  // namespace trainyard::profiler
