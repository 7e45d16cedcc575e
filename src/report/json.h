// SPDX-License-Identifier: Apache-2.0
// Runs as JSON. The keys of a summary are those of docs/formats/run-output.md.
#pragma once

#include <span>
#include <string>

#include "report/run_result.h"

namespace trainyard {

// One object, indented by two, without a line end after it; as summary.json and `--json` show it.
[[nodiscard]] std::string SummaryJson(const RunResult& run);

// An array of such objects, each with the key "label" before the others.
[[nodiscard]] std::string CompareJson(std::span<const RunResult> runs);

// The same as CSV, a row for each run; a cell is empty where a value does not apply.
[[nodiscard]] std::string CompareCsv(std::span<const RunResult> runs);

}  // namespace trainyard
