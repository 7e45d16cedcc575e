// SPDX-License-Identifier: Apache-2.0
// Runs as text for a terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "results/metrics/run_result.h"

namespace trainyard::results {

// Lines whose columns are as wide as they must be, two spaces between them: the first `to_the_left`
// columns are flush left, the others right. No line ends with spaces.
[[nodiscard]] std::vector<std::string> AlignedLines(
    const std::vector<std::vector<std::string>>& rows, std::size_t to_the_left);

// One line per run under two lines of headings, below them what differs from sound mode
// (SettingsText), without a line end after the last. The table is at most 120
// columns wide with labels of up to 16 letters; the columns on deadlines, which then hold the
// rejected jobs too, only where a run has deadline jobs; "-" where a value does not apply.
[[nodiscard]] std::string ComparisonTable(std::span<const RunResult> runs);

// One run, as lines "key: value", without a line end after the last.
[[nodiscard]] std::string RunSummaryText(const RunResult& run);

}  // namespace trainyard::results
