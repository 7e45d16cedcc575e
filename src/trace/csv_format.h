// SPDX-License-Identifier: Apache-2.0
// A trace format with one row for each job: which column means what. A format is data; reading and
// checking the rows is the same for all of them, and for JSON Lines, whose fields are columns too.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/csv_reader.h"
#include "trace/trace.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard {

// Traces are in seconds: what is beyond 285 years is in another unit.
inline constexpr double kMostTraceSeconds = 9e9;
// The published simulators write the largest 64-bit number where there is no deadline.
inline constexpr std::string_view kNoDeadline = "9223372036854775807";

// What a column can mean.
enum class JobField : std::uint8_t {
  kJobId,
  kSubmit,  // seconds
  kGpus,
  kDuration,  // seconds
  kIterations,
  kUser,
  kQueue,
  kModel,
  kBatchSize,
  kDeadline,    // seconds, absolute
  kBestEffort,  // 1 or 0
  kStatus,      // how the job ended; failed ones are not jobs to schedule
  kIgnored,
};
inline constexpr std::size_t kJobFields = static_cast<std::size_t>(JobField::kIgnored) + 1;

struct ColumnRule {
  JobField field{};
  std::string_view name;
  std::string_view other_name{};  // a second spelling
  bool required = false;
};

struct CsvFormat {
  TraceFormat shown;
  std::span<const ColumnRule> columns;
  bool ignores_others = false;  // false: a column without a rule is an error
};

// Each in a file of its own.
[[nodiscard]] const CsvFormat& NativeFormat();
[[nodiscard]] const CsvFormat& ElasticflowFormat();
[[nodiscard]] const CsvFormat& ItpFormat();
[[nodiscard]] const CsvFormat& TiresiasFormat();

// The positions of the fields in one table.
class JobColumns {
 public:
  // Errors: a required column is missing, a column is unknown, neither duration nor iterations.
  [[nodiscard]] static Result<JobColumns> Find(const CsvFormat& format, const CsvTable& table);

  // Of rows with all columns of the format in the order of its rules.
  [[nodiscard]] static JobColumns InOrder(const CsvFormat& format);

  // -1: there is no such column.
  [[nodiscard]] int at(JobField field) const { return at_[static_cast<std::size_t>(field)]; }
  // Every row must have a value there.
  [[nodiscard]] bool required(JobField field) const {
    return required_[static_cast<std::size_t>(field)];
  }

 private:
  std::array<int, kJobFields> at_{};
  std::array<bool, kJobFields> required_{};
};

// "job_id,submit_time,...\n": the header line of a file with all columns of the format.
[[nodiscard]] std::string HeaderLine(const CsvFormat& format);

// "job_id, submit_time or submission_time, ..."
[[nodiscard]] std::string RequiredColumns(const CsvFormat& format);

struct JobRow {
  JobSpec job;
  std::string left_out;  // why the row is no job to schedule; empty: it is one
};
[[nodiscard]] Result<JobRow> ReadJobRow(const JobColumns& columns, const CsvRow& row);

}  // namespace trainyard
