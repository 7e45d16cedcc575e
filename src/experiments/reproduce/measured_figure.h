// SPDX-License-Identifier: Apache-2.0
// The figure that is measured and not simulated: what profiling a model takes, and what changes of
// a job cost (ElasticFlow, ASPLOS'23, figure 12), as `trainyard profile` has measured them on the
// machine at hand, beside the published values.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "experiments/reproduce/comparison.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

inline constexpr std::string_view kMeasuredFigure = "elasticflow/fig12";

// `folders`: those of `profile throughput` (profiling.csv) and `profile overhead` (changes.csv);
// models and changes that were not published stand behind those that were. Without folders there is
// only what was published, and `missing` says so. Errors: a folder has neither file; a file cannot
// be read.
[[nodiscard]] Result<FigureOutcome> MeasuredFigure(std::span<const std::string> folders);

}  // namespace trainyard::experiments
