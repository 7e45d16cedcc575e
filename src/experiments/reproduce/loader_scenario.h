// SPDX-License-Identifier: Apache-2.0
// How many loader workers each job gets, by the published rules and by the optimum: not a run, but
// one division of the cores and the throughput that the model predicts of it ("A Data-Loader
// Tunable Knob to Shorten GPU Idleness for Distributed Deep Learning", IEEE CLOUD 2022;
// docs/policies/torchloader.md).
#pragma once

#include <optional>
#include <string_view>

#include "experiments/reproduce/cell_data.h"
#include "experiments/sweep/cell_result.h"
#include "experiments/sweep/experiment.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

// The format of such a "trace": {cpu_cores, apps: [{arch, depth, batch, devices: {node: [gpu]}}]}.
inline constexpr std::string_view kLoaderScenario = "loader-scenario";

// `throughput`, images per second of all jobs together as the published model predicts, for the
// rule that the cell's policy names: even, v2, multi_node, cp or optimum; exact: the optimum by
// the model without the published defects. Profiles: a model catalogue. Errors: a bad file or name.
[[nodiscard]] Result<CellData> RunLoaderScenario(const Cell& cell);

[[nodiscard]] inline bool IsLoaderScenario(const Cell& cell) {
  return cell.trace.format == kLoaderScenario;
}

// For RunnerOptions::instead: its numbers as metrics, and as data of a cell in `extra`.
[[nodiscard]] std::optional<CellOutcome> OutcomeOfScenario(const Cell& cell);

}  // namespace trainyard::experiments
