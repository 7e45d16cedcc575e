// SPDX-License-Identifier: Apache-2.0
#include "cli/run_pages.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/try.h"
#include "cli/numbers.h"

// NOLINTBEGIN(readability-identifier-naming): symbols of the embedded page
extern "C" {
extern const char report_template_begin;
extern const char report_template_end;
}
// NOLINTEND(readability-identifier-naming)

namespace trainyard::cli {

void AddExplainOptions(CLI::App& command, ExplainOptions& options) {
  command.add_option("--explain", options.runs,
                     "A,B: explain what jobs gained and lost in A against B (default: the run with "
                     "the least mean JCT against that with the greatest)");
  command
      .add_option("--explain-jobs", options.jobs,
                  "how many jobs that gained and lost most to explain; 0: no explanation")
      ->transform(Unsigned())
      ->capture_default_str();
}

Result<std::optional<results::Explanation>> ExplainRuns(const ExplainOptions& options,
                                                        std::span<const results::RunResult> runs) {
  ASSIGN_OR_RETURN(const auto pair, results::RunsToExplain(runs, options.runs));
  if (options.jobs == 0 || !pair) {
    return std::optional<results::Explanation>();
  }
  ASSIGN_OR_RETURN(results::Explanation explanation,
                   results::Explain(runs[pair->first], runs[pair->second], options.jobs));
  return std::optional(std::move(explanation));
}

std::vector<results::ReportTable> PageTables(
    const std::optional<results::Explanation>& explanation) {
  return explanation ? results::TablesOf(*explanation) : std::vector<results::ReportTable>();
}

void PrintRuns(const std::string& table, const std::string& runs_json, bool json,
               const ExplainOptions& options,
               const std::optional<results::Explanation>& explanation) {
  if (!json) {
    fmt::print("{}\n", table);
    if (explanation) {
      fmt::print("\n{}\n", results::ExplanationText(*explanation));
    }
  } else if (options.runs.empty() || !explanation) {
    fmt::print("{}\n", runs_json);
  } else {
    fmt::print("{{\n\"runs\": {},\n\"explanation\": {}\n}}\n", runs_json,
               results::ExplanationJson(*explanation, 2));
  }
  std::fflush(stdout);
}

std::string_view ReportPage() {
  return {&report_template_begin,
          static_cast<std::size_t>(&report_template_end - &report_template_begin)};
}

}  // namespace trainyard::cli
