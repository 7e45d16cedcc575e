// SPDX-License-Identifier: Apache-2.0
// The outcome of a cell, as it is handed from process to process and written to results.csv.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/sweep/experiment.h"
#include "results/metrics/run_result.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

enum class CellStatus : unsigned char {
  kOk,
  kFailed,
  kNotRun,  // an input is not there, and the experiment says where to get it; or it was not reached
};
[[nodiscard]] std::string_view Name(CellStatus status);

// A key of summary.json.
struct CellMetric {
  std::string name;
  std::string text;  // as in a CSV file; empty: it does not apply
  bool is_text = false;

  friend bool operator==(const CellMetric&, const CellMetric&) = default;
};

// The outcome of a run, whichever cell it was for.
struct CellOutcome {
  CellStatus status = CellStatus::kNotRun;
  std::string reason;               // of any status but ok
  std::vector<CellMetric> metrics;  // in the order of summary.json; empty unless ok
  std::string extra;                // ExtraOf; UTF-8
};

// What a caller keeps of a run beside its metrics, such as points of a curve. It is called in a
// process of its own: what it changes elsewhere is lost.
using ExtraOf = std::function<std::string(const Cell& cell, const results::RunResult& run)>;

struct CellResult : CellOutcome {
  std::string id;
  std::vector<std::string> values;  // one for each axis
  std::string digest;               // empty: it is not run

  // None if there is no such metric or it is no number or does not apply.
  [[nodiscard]] std::optional<double> Number(std::string_view metric) const;
};

// The keys of summary.json.
[[nodiscard]] std::vector<CellMetric> MetricsOf(const results::RunResult& run);

// One JSON object with the metrics; and back.
[[nodiscard]] std::string MetricsJson(const std::vector<CellMetric>& metrics);
[[nodiscard]] Result<std::vector<CellMetric>> ParseMetrics(std::string_view json);

// One JSON object with everything and the digest; and back. Errors: it is cut short or damaged, or
// of another digest.
[[nodiscard]] std::string OutcomeJson(const CellOutcome& outcome, const std::string& digest);
[[nodiscard]] Result<CellOutcome> ParseOutcome(std::string_view json, const std::string& digest);

// Which axes have nothing but numbers as values; `values`: of each cell, one for each axis.
[[nodiscard]] std::vector<bool> NumericAxes(std::size_t axes,
                                            std::span<const std::vector<std::string>> values);

// A JSON object of axis values; those of numeric axes are numbers.
[[nodiscard]] std::string AxesJson(const std::vector<std::string>& axes,
                                   const std::vector<std::string>& values,
                                   const std::vector<bool>& numeric);

// The names of the metrics that results.csv has: those of summary.json without what the run cost
// (times differ from run to run) and without those that an axis is named after. Behind them what
// else the results have.
[[nodiscard]] std::vector<std::string> ResultColumns(const std::vector<std::string>& axes,
                                                     const std::vector<CellResult>& results);

// One row for each cell: axes, status, reason, metrics. The same results give the same bytes.
[[nodiscard]] std::string ResultsCsv(const std::vector<std::string>& axes,
                                     const std::vector<CellResult>& results);

// An array of objects with all metrics, indented by two.
[[nodiscard]] std::string ResultsJson(const std::vector<std::string>& axes,
                                      const std::vector<CellResult>& results);

}  // namespace trainyard::experiments
