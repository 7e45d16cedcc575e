// SPDX-License-Identifier: Apache-2.0
// The Gantt chart of the jobs on the GPUs, of bounded size whatever the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "results/metrics/run_result.h"

namespace trainyard::results {

// GPUs next to each other on one node, held by one job. Times count in Gantt::unit from the first
// submission.
struct GanttBar {
  std::uint32_t job = 0;   // of RunResult::jobs
  std::uint32_t node = 0;  // of Allocations::nodes
  int first_gpu = 0;
  int gpus = 0;
  std::int64_t start = 0;
  std::int64_t length = 0;  // at least 1
};

// A part of the time in which one node's GPUs were held by jobs whose bars are left out.
struct GanttCell {
  std::uint32_t node = 0;
  std::int64_t column = 0;  // from column * Gantt::column_units
  double gpus = 0;          // held by them, in the mean over the column
};

struct Gantt {
  double unit = 1;             // seconds; a power of ten
  std::vector<GanttBar> bars;  // by start, node, first GPU
  // The shortest bars (by GPU time) of those beyond the limit, as a density.
  std::int64_t column_units = 1;
  std::vector<GanttCell> cells;  // by node, then column
  std::int64_t bars_left_out = 0;
};

// At most `bars_max` bars and `cells_max` cells (but one for each node).
// REQUIRES: run.allocations.
[[nodiscard]] Gantt MakeGantt(const RunResult& run, std::size_t bars_max, std::size_t cells_max);

}  // namespace trainyard::results
