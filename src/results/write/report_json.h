// SPDX-License-Identifier: Apache-2.0
// What the HTML report shows, as JSON in the form of web/src/data.ts ("trainyard-report/2").
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "results/metrics/run_result.h"

namespace trainyard::results {

// A table for the reader, such as the jobs that gained most from one policy over another, and why.
// The page shows it below its charts and sorts it by any column.
struct ReportTable {
  enum class Unit : unsigned char {
    kNone,     // text, or plain numbers
    kSeconds,  // shown as durations
    kShare,    // 0 to 1, shown in percent
  };
  struct Column {
    std::string name;
    Unit unit = Unit::kNone;
  };
  using Cell = std::variant<std::monostate, double, std::string>;  // none: does not apply

  std::string title;
  std::string caption;  // one or two sentences on how to read it; may be empty
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as `columns`
};

// One object, without spaces. `command` is the command line that the page shows.
// REQUIRES: at least one run; all of the same trace.
[[nodiscard]] std::string ReportJson(std::span<const RunResult> runs, const std::string& command,
                                     std::span<const ReportTable> explanations = {});

}  // namespace trainyard::results
