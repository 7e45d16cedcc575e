// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/gantt.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "model/slices.h"
#include "results/metrics/metrics.h"

namespace trainyard::results {
namespace {

// Finer than any screen, and short in print.
constexpr double kUnitsMax = 1e6;

double UnitFor(double seconds) {
  double unit = 0.001;
  while (seconds / unit > kUnitsMax) {
    unit *= 10;
  }
  return unit;
}

std::int64_t Area(const GanttBar& bar) { return bar.length * bar.gpus; }

// One bar for each run of neighbouring GPUs.
void AddBars(const Holding& holding, GanttBar bar, std::vector<GanttBar>& bars) {
  model::ForEachRun(holding.gpus, [&](int first, int count) {
    bar.first_gpu = first;
    bar.gpus = count;
    bars.push_back(bar);
  });
}

using CellSums = std::map<std::pair<std::uint32_t, std::int64_t>, double>;

void AddToCells(const GanttBar& bar, std::int64_t column_units, CellSums& cells) {
  const std::int64_t end = bar.start + bar.length;
  for (std::int64_t at = bar.start; at < end;) {
    const std::int64_t column = at / column_units;
    const std::int64_t until = std::min(end, (column + 1) * column_units);
    cells[{bar.node, column}] +=
        static_cast<double>((until - at) * bar.gpus) / static_cast<double>(column_units);
    at = until;
  }
}

// Leaves the `bars_max` with the greatest area; the others become cells.
void Thin(std::size_t bars_max, std::int64_t columns, std::int64_t end, Gantt& gantt) {
  const auto kept_end = gantt.bars.begin() + static_cast<std::ptrdiff_t>(bars_max);
  std::stable_sort(gantt.bars.begin(), gantt.bars.end(),
                   [](const GanttBar& a, const GanttBar& b) { return Area(a) > Area(b); });
  gantt.column_units = std::max<std::int64_t>(1, (end + columns - 1) / columns);
  CellSums sums;
  for (auto bar = kept_end; bar != gantt.bars.end(); ++bar) {
    AddToCells(*bar, gantt.column_units, sums);
  }
  gantt.bars_left_out = gantt.bars.end() - kept_end;
  gantt.bars.erase(kept_end, gantt.bars.end());
  for (const auto& [place, gpus] : sums) {
    gantt.cells.push_back({.node = place.first, .column = place.second, .gpus = gpus});
  }
}

}  // namespace

Gantt MakeGantt(const RunResult& run, std::size_t bars_max, std::size_t cells_max) {
  CHECK(run.allocations.has_value());
  const std::vector<Holding>& holdings = run.allocations->holdings;
  const TimePoint zero = FirstSubmit(run).value_or(TimePoint{});
  TimePoint last = zero;
  for (const Holding& holding : holdings) {
    last = std::max(last, holding.end);
  }
  Gantt gantt{.unit = UnitFor(Seconds(last - zero))};
  const auto units = [&](TimePoint time) {
    return std::max<std::int64_t>(0, std::llround(Seconds(time - zero) / gantt.unit));
  };
  for (const Holding& holding : holdings) {
    const std::int64_t start = units(holding.start);
    AddBars(holding,
            {.job = holding.job,
             .node = holding.node,
             .start = start,
             .length = std::max<std::int64_t>(1, units(holding.end) - start)},
            gantt.bars);
  }
  if (gantt.bars.size() > bars_max) {
    const auto nodes = std::max<std::size_t>(1, run.allocations->nodes.size());
    const auto columns = static_cast<std::int64_t>(std::max<std::size_t>(1, cells_max / nodes));
    Thin(bars_max, columns, units(last) + 1, gantt);
  }
  std::sort(gantt.bars.begin(), gantt.bars.end(), [](const GanttBar& a, const GanttBar& b) {
    return std::tie(a.start, a.node, a.first_gpu, a.job) <
           std::tie(b.start, b.node, b.first_gpu, b.job);
  });
  return gantt;
}

}  // namespace trainyard::results
