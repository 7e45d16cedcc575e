// SPDX-License-Identifier: Apache-2.0
// A trace format with one row for each job: which column means what. A format is data; reading and
// checking the rows is the same for all of them, and for JSON Lines, whose fields are columns too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/csv_reader.h"
#include "model/job_fields.h"
#include "trace/device_list.h"
#include "trace/timestamp.h"
#include "trace/trace.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// The published simulators write the largest 64-bit number where there is no deadline.
inline constexpr std::string_view kNoDeadline = "9223372036854775807";

// How many columns the native format has: those of the table of a job's fields.
inline constexpr std::size_t kNativeColumns = [] {
  std::size_t count = 0;
  model::ForEachJobField<model::IsInTraces>(
      [&count](const auto& field) { count += field.columns(); });
  return count;
}();

// What a column can mean: what a column of the native format does, by its position there (Native),
// or what only other formats have.
enum class JobColumn : std::uint8_t {
  kIterationTime = kNativeColumns,  // seconds per iteration
  kStatus,                          // how the job ended; failed ones are not jobs to schedule
  kBatchPerGpu,
  kTargetKind,  // best, strict or soft; follows from the others
  // In native traces, too, where what they come to is kept in place of them: amounts and numbers of
  // nodes (model/request/tasks.h).
  kTasks,
  kTasksPerNode,
  kIgnored,
};
inline constexpr std::size_t kColumnMeanings = static_cast<std::size_t>(JobColumn::kIgnored) + 1;

// The column of a part of the field. REQUIRES: traces state it.
[[nodiscard]] constexpr JobColumn ColumnOf(const model::JobFieldInfo& info, std::size_t part = 0) {
  return static_cast<JobColumn>(static_cast<std::size_t>(info.column) + part);
}

// The column of that name in the native format.
[[nodiscard]] consteval JobColumn Native(std::string_view name) {
  JobColumn found = JobColumn::kIgnored;
  model::ForEachJobField<model::IsInTraces>([&](const auto& field) {
    for (std::size_t part = 0; part < field.columns(); ++part) {
      found = field.info.columns.at(part) == name ? ColumnOf(field.info, part) : found;
    }
  });
  return found != JobColumn::kIgnored ? found : throw "not a column of the native format";
}

struct ColumnRule {
  JobColumn field{};
  std::string_view name;
  std::string_view other_name{};  // a second spelling
  bool required = false;
  bool milliseconds = false;       // a time in milliseconds
  bool written_if_stated = false;  // in a file that we write only if some job states it
};

struct CsvFormat {
  TraceFormat shown;
  std::span<const ColumnRule> columns;
  bool ignores_others = false;  // false: a column without a rule is an error
  // Where the work is iterations x iteration time: the time if no column says another; 0: it is not
  double iteration_time = 0;
  // Times are in units of so many seconds, unless TraceOptions say otherwise; 0: always in seconds.
  double unit = 0;
  bool leaves_out_gpuless = false;  // rows with 0 GPUs are no jobs to schedule
  bool states_no_work = false;      // neither duration nor iterations
  bool takes_cpu_jobs = false;      // rows with 0 GPUs are jobs on CPUs alone
};

extern const CsvFormat kNativeFormat;
extern const CsvFormat kBloxFormat;
extern const CsvFormat kChronusFormat;
extern const CsvFormat kElasticflowFormat;
extern const CsvFormat kItpFormat;
extern const CsvFormat kMuriFormat;
extern const CsvFormat kSiaFormat;
extern const CsvFormat kSynergyFormat;
extern const CsvFormat kShortSynergyFormat;  // as it is written
extern const CsvFormat kTiresiasFormat;

// All that are read, in the order in which they are listed.
[[nodiscard]] std::span<const CsvFormat> CsvFormats();

// The positions of the fields in one table.
class JobColumns {
 public:
  // Errors: a required column is missing, a column is unknown, neither duration nor iterations.
  [[nodiscard]] static Result<JobColumns> Find(const CsvFormat& format, const io::CsvHeader& table);

  // Of rows with all columns of the format in the order of its rules.
  [[nodiscard]] static JobColumns InOrder(const CsvFormat& format);

  // Where the format leaves the unit of time open: seconds in one; 0: its default.
  void UseUnit(double unit);
  // What a number in a column of times is multiplied by to be seconds.
  [[nodiscard]] double unit(JobColumn column) const {
    return milliseconds(column) ? 1e-3 : unit_ > 0 ? unit_ : 1;
  }

  // Where times are seconds: those on a clock are dates, as the submit of the first row is, not
  // seconds. `first_submit`: that field.
  void UseStampsLike(std::string_view first_submit);
  [[nodiscard]] bool has_stamps() const { return has_stamps_; }
  // Whether times in the column are seconds, which may also be written as 02:00:00 or 10m.
  [[nodiscard]] bool in_seconds(JobColumn column) const {
    return !milliseconds(column) && unit_ == 0;
  }

  // Of formats whose work is iterations x iteration time: the time if no column says another.
  [[nodiscard]] double iteration_time() const { return iteration_time_; }
  // -1: there is no such column.
  [[nodiscard]] int at(JobColumn column) const { return at_[static_cast<std::size_t>(column)]; }
  // Every row must have a value there.
  [[nodiscard]] bool required(JobColumn column) const {
    return required_[static_cast<std::size_t>(column)];
  }
  [[nodiscard]] bool leaves_out_gpuless() const { return leaves_out_gpuless_; }
  // Each row must state a duration or iterations.
  [[nodiscard]] bool needs_work() const { return needs_work_; }
  [[nodiscard]] bool takes_cpu_jobs() const { return takes_cpu_jobs_; }
  [[nodiscard]] bool milliseconds(JobColumn column) const {
    return milliseconds_[static_cast<std::size_t>(column)];
  }

 private:
  explicit JobColumns(const CsvFormat& format);

  std::array<int, kColumnMeanings> at_{};
  std::array<bool, kColumnMeanings> required_{};
  std::array<bool, kColumnMeanings> milliseconds_{};
  double iteration_time_ = 0;
  double unit_ = 0;
  bool leaves_out_gpuless_ = false;
  bool needs_work_ = true;
  bool takes_cpu_jobs_ = false;
  bool has_stamps_ = false;
};

// "job_id, submit_time or submission_time, ..."
[[nodiscard]] std::string RequiredColumns(const CsvFormat& format);

// "unknown column 'x'; ...", short: what the user may have meant, or where all columns are listed.
[[nodiscard]] std::string UnknownColumn(const CsvFormat& format, std::string_view noun,
                                        std::string_view name);

// Seconds from 0 to the most that a trace can hold.
[[nodiscard]] Result<double> TraceSeconds(const io::CsvRow& row, int column);

// What one row comes to. `left_out` and `remarks` are told once for all rows of which they are
// true, so they do not name the row.
struct JobRow {
  JobSpec job;
  std::string left_out;              // why the row is no job to schedule; empty: it is one
  std::vector<std::string> remarks;  // what is not as it was recorded
  std::optional<Duration> wait;      // until the first start, as recorded
  std::string state;                 // how it ended, as recorded; empty: not stated
};
// What goes from one row of a file to the next.
struct RowsSoFar {
  DeviceLists devices;  // the nodes of which jobs name GPUs
  TimestampReader stamps;
};
[[nodiscard]] Result<JobRow> ReadJobRow(const JobColumns& columns, const io::CsvRow& row,
                                        RowsSoFar& so_far);

}  // namespace trainyard::trace
