// SPDX-License-Identifier: Apache-2.0
// Logs of real clusters: tables with one row for each job, as a scheduler or its users recorded it.
// A format is data: which column means what. What makes a row a job to schedule is the same for all
// logs, also for those that are no single table (pai, philly).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/csv_reader.h"
#include "trace/csv_format.h"
#include "trace/timestamp.h"
#include "trace/trace.h"
#include "trainyard/job.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::trace {

// "12.5 s"
[[nodiscard]] std::string SecondsText(TimePoint at);

struct LogFormat {
  TraceFormat shown;
  // By which it is recognised: no other format has all of them.
  std::span<const std::string_view> columns;
  // Which column says what; empty: none does.
  std::string_view name;
  std::string_view user{};
  std::string_view queue;
  std::string_view types{};  // the GPU types that the job accepts
  std::string_view state{};
  std::string_view gpus;  // of each worker, where there is a number of workers
  std::string_view workers{};
  std::string_view milli_gpus{};  // of the one GPU, where one is asked for
  // Of each worker, likewise; amounts of 0 are not stated.
  std::string_view cpus{};
  double cpu_unit = 1;  // cores
  std::string_view memory_mib{};
  std::string_view submit;
  std::string_view start{};
  std::string_view end{};
  std::string_view duration{};     // from the submit; instead of start and end
  std::string_view kind{};         // of the job
  std::string_view best_effort{};  // the kind that runs as best effort
  std::string_view guaranteed{};   // the one other kind; empty: all others
  bool has_timestamps = false;     // otherwise times are seconds
  bool state_may_be_running = false;
  std::string_view
      without_submit{};              // why jobs without a submit are left out, if there is a reason
  std::string_view without_times{};  // why a table without columns of times is refused
};

// In the order in which they are listed.
[[nodiscard]] std::span<const LogFormat> LogFormats();
// The columns that it reads.
[[nodiscard]] std::vector<std::string_view> NamesOf(const LogFormat& format);

// Errors: columns that make the table something else than a log of jobs; those of ReadRows.
[[nodiscard]] Result<Trace> ReadLog(io::CsvStream& table, const LogFormat& format,
                                    const TraceOptions& options);

// What a log says of one run.
struct Recorded {
  std::optional<TimePoint> submit;
  std::optional<TimePoint> start;
  std::optional<TimePoint> end;
};

// Sets submit, duration and wait; or says why it is no job to schedule: it has no submit, never
// started, had not ended, or took no time. Errors: it ended before it started.
[[nodiscard]] Status TakeTimes(const io::CsvRow& row, const Recorded& times, JobRow& read);

struct TimeColumns {
  int submit = -1;
  int start = -1;
  int end = -1;
};
// The three times of a row, each by `read(row, column)`. Errors: the first of theirs, in this
// order.
template <class Read>
[[nodiscard]] Result<Recorded> ReadRecorded(const io::CsvRow& row, const TimeColumns& columns,
                                            Read read) {
  Recorded times;
  for (const auto& [column, time] :
       {std::pair{columns.submit, &times.submit}, std::pair{columns.start, &times.start},
        std::pair{columns.end, &times.end}}) {
    ASSIGN_OR_RETURN(const std::optional<TimePoint> stamp, read(row, column));
    *time = stamp;
  }
  return times;
}

// Sets the GPUs; fractions are rounded up to whole ones, which is remarked. None: it is no job to
// schedule. `column` is for the error: more than a cluster can have.
[[nodiscard]] Status TakeGpus(const io::CsvRow& row, int column, double gpus, JobRow& read);

// A state in capitals or not that means: had not ended when the log was taken.
[[nodiscard]] bool IsStillRunning(std::string_view state);
inline constexpr std::string_view kStillRunning =
    "it had not ended when the log was taken; such jobs are left out";

// Seconds on the clock of the log; nothing where the field is missing.
[[nodiscard]] Result<std::optional<TimePoint>> ReadSeconds(const io::CsvRow& row, int column);

// "100" or "100.0"; nothing where the field is missing.
[[nodiscard]] Result<std::optional<double>> ReadAmount(const io::CsvRow& row, int column);

// The amount, of which there must be one. `expected` completes the error.
[[nodiscard]] Result<double> RequireAmount(const io::CsvRow& row, int column,
                                           std::string_view expected);

// Gives the job its name. Errors: it is empty.
[[nodiscard]] Status TakeName(const io::CsvRow& row, int column, JobSpec& job);

// Gives jobs requests of CPUs and memory, shared out with their GPUs. A log has few different ones,
// so jobs share what says so.
class AmountWishes {
 public:
  // Cores and MiB; zero: not stated.
  void Give(double cpus, double memory_mib, JobSpec& job);

 private:
  // What is said of a job beside, which is shared, too; thousandths of a core, MiB.
  using Amounts = std::tuple<std::shared_ptr<const JobTraits>, std::int64_t, std::int64_t>;
  std::map<Amounts, std::shared_ptr<const JobTraits>> known_;
};

// Gives jobs the GPU types that they accept. A log has few of them, so jobs share what says so.
class GpuTypeWishes {
 public:
  // "V100M16|V100M32", of which the job accepts each; missing: any.
  void Give(std::string_view alternatives, JobSpec& job);

 private:
  std::map<std::string, std::shared_ptr<const JobTraits>, std::less<>> known_;  // as written
};

}  // namespace trainyard::trace
