// SPDX-License-Identifier: Apache-2.0
// Who gets how many loader workers, by the published rules and by the optimum: not a run, but one
// division of the cores and what the throughput model says of it (reference torchloader 6.3).
#pragma once

#include <string>

#include "experiment/experiment.h"
#include "reproduce/cell_data.h"
#include "trainyard/status.h"

namespace trainyard {

// The format of such a "trace": {cpu_cores, apps: [{arch, depth, batch, devices: {node: [gpu]}}]}.
inline constexpr std::string_view kLoaderScenario = "loader-scenario";

// `throughput`, images per second of all jobs together as the published model predicts, for the
// rule that the cell's policy names: even, v2, multi_node, cp or optimum; exact: the optimum by
// the model without the published defects. Profiles: a model catalogue. Errors: a bad file or name.
[[nodiscard]] Result<CellData> RunLoaderScenario(const Cell& cell);

}  // namespace trainyard
