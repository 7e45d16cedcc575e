// SPDX-License-Identifier: Apache-2.0
// Results of the published programs: one row for each job, from their own files or from tables made
// of them. docs/formats/original-results.md lists the files and the columns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/csv_reader.h"
#include "results/metrics/run_result.h"
#include "trainyard/status.h"

namespace trainyard::originals {

enum class Original : std::uint8_t { kBlox, kChronus, kElasticflow, kMuri, kSynergy, kTiresias };
[[nodiscard]] std::string_view Name(Original program);
[[nodiscard]] Result<Original> ParseOriginal(std::string_view name);

// One job as its program wrote it down. Times in seconds; none where they are not recorded.
struct ResultRow {
  std::string name;
  bool completed = true;
  std::optional<double> submit;
  std::optional<double> start;
  std::optional<double> end;
  std::optional<double> deadline;
  bool best_effort = false;
  bool counted = true;  // false: ran along, but is not among those that the program measures
  int gpus = 0;         // 0: not recorded
  std::optional<std::int64_t> preemptions;
};

// Which column holds what; an empty name: none does. The name of a time may carry an offset in
// seconds ("first_metric_s-300").
struct ResultColumns {
  std::string id;
  std::string submit;
  std::string start;
  std::string end;
  std::string outcome;  // "completed" or anything else; no column: all completed
  std::string gpus;
  std::string deadline;
  std::string best_effort;
  std::string preemptions;
  std::string counted;
};

// `unit`: seconds in a unit of the table's times. The number 2^63 - 1 stands for no time. Errors:
// those of the table; a column is missing; a number is none; a completed job without an end.
[[nodiscard]] Result<std::vector<ResultRow>> ReadResultRows(const io::CsvTable& table,
                                                            const ResultColumns& columns,
                                                            double unit);

// What one run of a published program left.
struct OriginalResult {
  Original program = Original::kTiresias;
  std::string path;  // of the file with the jobs
  std::vector<ResultRow> rows;
  std::optional<std::int64_t> preemptions;  // of the whole run, where it is recorded
};

// Whether a table with this header is one of a published program, and of which.
[[nodiscard]] std::optional<Original> RecogniseTable(const io::CsvTable& table);

// A table of results. `program`: the one it must be of; none: the columns say which. Errors besides
// those of ReadResultRows: the columns are not those of (such) a table; no job; a job twice.
[[nodiscard]] Result<OriginalResult> ReadOriginalTable(const std::string& path,
                                                       std::optional<Original> program,
                                                       double unit);

// The set of JSON files of a run of Blox, by that of the jobs (`..._job_stats.json`). The others
// beside it (`responsivness`, `run_time_stats`, `custom_metrics`) may be missing. Errors: a file is
// not JSON of that form.
[[nodiscard]] Result<OriginalResult> ReadBloxResult(const std::string& path);

inline constexpr std::string_view kBloxJobs = "_job_stats.json";

// The result as a run, as far as it is known (RunResult::ends_only). A job without a submission
// time was rejected by its program; it gets that of the first job.
[[nodiscard]] results::RunResult RunOf(const OriginalResult& result);

}  // namespace trainyard::originals
