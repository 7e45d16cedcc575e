// SPDX-License-Identifier: Apache-2.0
// What compare and report show of several runs: what jobs gained and lost, and the page.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/explain/explain.h"
#include "results/metrics/run_result.h"
#include "trainyard/status.h"

namespace trainyard::cli {

struct ExplainOptions {
  std::string runs;      // "A,B"; empty: the best against the worst
  std::size_t jobs = 5;  // of each kind; 0: no explanation
};

void AddExplainOptions(CLI::App& command, ExplainOptions& options);

// None where nothing is to be explained. The explanation points into `runs`.
[[nodiscard]] Result<std::optional<results::Explanation>> ExplainRuns(
    const ExplainOptions& options, std::span<const results::RunResult> runs);

// For the page; none without an explanation.
[[nodiscard]] std::vector<results::ReportTable> PageTables(
    const std::optional<results::Explanation>& explanation);

// What goes to stdout: the table and the explanation below it, or as JSON the array of
// `runs_json`; with --explain, an object with the keys "runs" and "explanation".
void PrintRuns(const std::string& table, const std::string& runs_json, bool json,
               const ExplainOptions& options,
               const std::optional<results::Explanation>& explanation);

// The page of the HTML report without its data, which is embedded in the program.
[[nodiscard]] std::string_view ReportPage();

}  // namespace trainyard::cli
