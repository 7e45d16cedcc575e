// SPDX-License-Identifier: Apache-2.0
#include "trace/log_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/text.h"
#include "base/try.h"
#include "trace/trace_builder.h"

namespace trainyard::trace {
namespace {

constexpr std::string_view kNoGpus = "it asks for no GPUs; jobs on CPUs alone are left out";
constexpr std::string_view kNothing = "it asks for neither GPUs nor CPUs; such jobs are left out";
constexpr std::string_view kNoSubmit = "its submit is not recorded; such jobs are left out";
constexpr std::string_view kNeverStarted =
    "no start is recorded; jobs that never started are left out";
constexpr std::string_view kNoTime =
    "it ended when it started; jobs that took no time are left out";
constexpr std::string_view kRoundedUp =
    "it asks for a fraction of a GPU, which is rounded up: jobs here have whole GPUs";
constexpr std::string_view kEarlyStart =
    "it is recorded to start before its submit; its wait is not taken";

constexpr std::array<std::string_view, 8> kAcmeColumns{
    "job_id", "user", "gpu_num", "type", "state", "submit_time", "start_time", "end_time"};
constexpr std::array<std::string_view, 6> kDlrmColumns{
    "instance_sn", "app_name", "gpu_request", "creation_time", "scheduled_time", "deletion_time"};
constexpr std::array<std::string_view, 8> kHeliosColumns{
    "job_id", "user", "vc", "gpu_num", "state", "submit_time", "start_time", "end_time"};
constexpr std::array<std::string_view, 4> kOpenbColumns{"name", "cpu_milli", "num_gpu",
                                                        "gpu_milli"};
constexpr std::array<std::string_view, 8> kSpotGpuColumns{
    "job_name",   "organization", "gpu_model", "gpu_request",
    "worker_num", "submit_time",  "duration",  "job_type"};

// docs/formats/ has a page for each. Durations that a log with timestamps states are not read:
// those of Acme's Kalos count from the submit.
constexpr std::array kLogFormats{
    LogFormat{.shown = {.name = "acme",
                        .help = "Acme, Seren and Kalos (durations from the timestamps)",
                        .has_cpu_jobs = true},
              .columns = kAcmeColumns,
              .name = "job_id",
              .user = "user",
              .queue = "type",
              .state = "state",
              .gpus = "gpu_num",
              .cpus = "cpu_num",
              .submit = "submit_time",
              .start = "start_time",
              .end = "end_time",
              .has_timestamps = true,
              .state_may_be_running = true},
    LogFormat{.shown = {.name = "dlrm",
                        .help = "Alibaba 2025, recommendation services (GPU instances)",
                        .has_cpu_jobs = true},
              .columns = kDlrmColumns,
              .name = "instance_sn",
              .queue = "app_name",
              .gpus = "gpu_request",
              .cpus = "cpu_request",
              .submit = "creation_time",
              .start = "scheduled_time",
              .end = "deletion_time",
              .without_submit = "it was there before the log begins; such instances are left out"},
    LogFormat{.shown = {.name = "helios",
                        .help = "Helios cluster_log.csv (jobs without GPUs are left out)",
                        .has_cpu_jobs = true},
              .columns = kHeliosColumns,
              .name = "job_id",
              .user = "user",
              .queue = "vc",
              .state = "state",
              .gpus = "gpu_num",
              .cpus = "cpu_num",
              .submit = "submit_time",
              .start = "start_time",
              .end = "end_time",
              .has_timestamps = true,
              .state_may_be_running = true},
    LogFormat{.shown = {.name = "openb",
                        .help = "Alibaba 2023, openb pod lists (whole GPUs)",
                        .has_cpu_jobs = true},
              .columns = kOpenbColumns,
              .name = "name",
              .queue = "qos",
              .types = "gpu_spec",
              .state = "pod_phase",
              .gpus = "num_gpu",
              .milli_gpus = "gpu_milli",
              .cpus = "cpu_milli",
              .cpu_unit = 0.001,
              .memory_mib = "memory_mib",
              .submit = "creation_time",
              .start = "scheduled_time",
              .end = "deletion_time",
              .kind = "qos",
              .best_effort = "BE",
              .without_times =
                  "a list of pods without times (as openb_pod_list_multigpuNN.csv): it says what "
                  "pods ask "
                  "for, but not when, and is no trace; expected also the columns creation_time, "
                  "deletion_time, scheduled_time"},
    LogFormat{.shown = {.name = "spot-gpu",
                        .help = "Alibaba 2026, high-priority and spot jobs",
                        .has_cpu_jobs = true},
              .columns = kSpotGpuColumns,
              .name = "job_name",
              .queue = "organization",
              .types = "gpu_model",
              .gpus = "gpu_request",
              .workers = "worker_num",
              .cpus = "cpu_request",
              .submit = "submit_time",
              .duration = "duration",
              .kind = "job_type",
              .best_effort = "Spot",
              .guaranteed = "HP"},
};

// -1 also where the format has no such column.
int PositionOf(std::string_view column, const io::CsvHeader& table) {
  return column.empty() ? -1 : table.Column({column});
}

class LogReader {
 public:
  LogReader(const LogFormat& format, const io::CsvHeader& table, bool takes_cpu_jobs)
      : format_(format),
        takes_cpu_jobs_(takes_cpu_jobs),
        name_(PositionOf(format.name, table)),
        user_(PositionOf(format.user, table)),
        queue_(PositionOf(format.queue, table)),
        types_(PositionOf(format.types, table)),
        state_(PositionOf(format.state, table)),
        gpus_(PositionOf(format.gpus, table)),
        workers_(PositionOf(format.workers, table)),
        milli_gpus_(PositionOf(format.milli_gpus, table)),
        cpus_(PositionOf(format.cpus, table)),
        memory_(PositionOf(format.memory_mib, table)),
        kind_(PositionOf(format.kind, table)),
        duration_(PositionOf(format.duration, table)),
        times_{.submit = PositionOf(format.submit, table),
               .start = PositionOf(format.start, table),
               .end = PositionOf(format.end, table)} {}

  // Submits are on the clock of the log.
  Result<JobRow> Read(const io::CsvRow& row) {
    JobRow read;
    RETURN_IF_ERROR(ReadGpus(row, read));
    const bool on_cpus = takes_cpu_jobs_ && read.left_out == kNoGpus;
    if (on_cpus) {
      read.left_out.clear();
      read.job.gpus = 0;
    }
    read.state = row.Text(state_);
    if (read.left_out.empty() && format_.state_may_be_running && IsStillRunning(read.state)) {
      read.left_out = kStillRunning;
    }
    if (!read.left_out.empty()) {
      return read;
    }
    RETURN_IF_ERROR(TakeName(row, name_, read.job));
    read.job.user = row.Text(user_);
    read.job.queue = row.Text(queue_);
    wishes_.Give(row.Text(types_), read.job);
    RETURN_IF_ERROR(TakeAmounts(row, read.job));
    if (on_cpus && model::PartOf<NodeRequest>(read.job).cpus.milli == 0) {
      read.left_out = kNothing;
      return read;
    }
    const std::string_view kind = row.Text(kind_);
    read.job.best_effort = kind_ >= 0 && kind == format_.best_effort;
    if (!read.job.best_effort && !format_.guaranteed.empty() && kind != format_.guaranteed) {
      return row.Bad(kind_, fmt::format("{} or {}", format_.guaranteed, format_.best_effort));
    }
    ASSIGN_OR_RETURN(const Recorded times, ReadTimes(row));
    RETURN_IF_ERROR(TakeTimes(row, times, read));
    if (!times.submit && !format_.without_submit.empty()) {
      read.left_out = format_.without_submit;
    }
    if (duration_ >= 0) {
      read.wait.reset();  // starts are not recorded
    }
    return read;
  }

  // A time of the log, as the log would write it.
  [[nodiscard]] std::string Text(TimePoint at) const {
    return format_.has_timestamps ? stamps_.Text(at) : SecondsText(at);
  }

 private:
  Status ReadGpus(const io::CsvRow& row, JobRow& read) {
    ASSIGN_OR_RETURN(
        double gpus,
        RequireAmount(row, gpus_, workers_ < 0 ? "the number of GPUs" : "the GPUs of one worker"));
    if (workers_ >= 0) {
      ASSIGN_OR_RETURN(const double workers, RequireAmount(row, workers_, "the number of workers"));
      gpus *= workers;
    }
    if (milli_gpus_ < 0 || gpus != 1) {
      return TakeGpus(row, gpus_, gpus, read);
    }
    constexpr double kMilli = 1000;
    ASSIGN_OR_RETURN(const double milli, RequireAmount(row, milli_gpus_, "thousandths of a GPU"));
    return milli > 0 && milli <= kMilli
               ? TakeGpus(row, milli_gpus_, milli / kMilli, read)
               : row.Bad(milli_gpus_,
                         fmt::format("a number from 1 to 1000 where {} is 1", format_.gpus));
  }

  // CPUs and memory of all workers together.
  Status TakeAmounts(const io::CsvRow& row, JobSpec& job) {
    double workers = 1;
    if (workers_ >= 0) {
      ASSIGN_OR_RETURN(workers, RequireAmount(row, workers_, "the number of workers"));
    }
    const auto read = [&](int column) -> Result<double> {
      if (column < 0) {
        return 0.0;
      }
      ASSIGN_OR_RETURN(const std::optional<double> amount, ReadAmount(row, column));
      return amount.value_or(0) * workers;
    };
    ASSIGN_OR_RETURN(const double cpus, read(cpus_));
    ASSIGN_OR_RETURN(const double memory, read(memory_));
    amounts_.Give(cpus * format_.cpu_unit, memory, job);
    return {};
  }

  Result<Recorded> ReadTimes(const io::CsvRow& row) {
    if (duration_ < 0) {
      return ReadRecorded(row, times_, [this](const io::CsvRow& from, int column) {
        return format_.has_timestamps ? stamps_.Read(from, column) : ReadSeconds(from, column);
      });
    }
    ASSIGN_OR_RETURN(const std::optional<TimePoint> submit, ReadSeconds(row, times_.submit));
    ASSIGN_OR_RETURN(const std::optional<TimePoint> duration, ReadSeconds(row, duration_));
    Recorded times{.submit = submit, .start = submit};
    if (submit && duration) {
      times.end = *submit + duration->time_since_epoch();
    }
    return times;
  }

  const LogFormat& format_;
  bool takes_cpu_jobs_;
  int name_;
  int user_;
  int queue_;
  int types_;
  int state_;
  int gpus_;
  int workers_;
  int milli_gpus_;
  int cpus_;
  int memory_;
  int kind_;
  int duration_;
  TimeColumns times_;
  TimestampReader stamps_;
  GpuTypeWishes wishes_;
  AmountWishes amounts_;
};

}  // namespace

std::string SecondsText(TimePoint at) {
  std::string text;
  base::AppendSeconds(at.time_since_epoch(), text);
  return text + " s";
}

std::span<const LogFormat> LogFormats() { return kLogFormats; }

std::vector<std::string_view> NamesOf(const LogFormat& format) {
  return {format.name,   format.user,    format.queue,      format.types,    format.state,
          format.gpus,   format.workers, format.milli_gpus, format.cpus,     format.memory_mib,
          format.submit, format.start,   format.end,        format.duration, format.kind};
}

Result<Trace> ReadLog(io::CsvStream& table, const LogFormat& format, const TraceOptions& options) {
  for (const std::string_view name : {format.submit, format.start, format.end}) {
    if (!format.without_times.empty() && table.Column({name}) < 0) {
      return table.BadHeader(format.without_times);
    }
  }
  return ReadRows(table, LogReader(format, table, options.cpu_jobs), format.shown.name, options);
}

Status TakeTimes(const io::CsvRow& row, const Recorded& times, JobRow& read) {
  if (!times.submit || !times.start || !times.end) {
    read.left_out = !times.submit ? kNoSubmit : !times.start ? kNeverStarted : kStillRunning;
    return {};
  }
  if (*times.end < *times.start) {
    return row.BadRow(
        fmt::format("it ended {} s before it started; expected an end behind the "
                    "start",
                    Seconds(*times.start - *times.end)));
  }
  if (*times.end == *times.start) {
    read.left_out = kNoTime;
    return {};
  }
  read.job.submit = *times.submit;
  read.job.duration = *times.end - *times.start;
  if (*times.start < *times.submit) {
    read.remarks.emplace_back(kEarlyStart);
  } else {
    read.wait = *times.start - *times.submit;
  }
  return {};
}

Status TakeGpus(const io::CsvRow& row, int column, double gpus, JobRow& read) {
  constexpr double kNoise = 1e-6;  // of sums of percents
  if (gpus <= 0) {
    read.left_out = kNoGpus;
    return {};
  }
  const double whole = std::max(1.0, std::ceil(gpus - kNoise));
  if (whole > static_cast<double>(model::kMostGpus)) {
    return row.Bad(column, fmt::format("at most {} GPUs of one job", model::kMostGpus));
  }
  if (whole - gpus > kNoise) {
    read.remarks.emplace_back(kRoundedUp);
  }
  read.job.gpus = static_cast<int>(whole);
  return {};
}

bool IsStillRunning(std::string_view state) {
  static constexpr std::array<std::string_view, 6> kStates{"RUNNING", "Running", "running",
                                                           "PENDING", "Waiting", "Pending"};
  return std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

Result<std::optional<TimePoint>> ReadSeconds(const io::CsvRow& row, int column) {
  if (IsMissing(row.Text(column))) {
    return std::optional<TimePoint>();
  }
  const Result<double> seconds = row.Number(column, 0);
  if (!seconds.ok() || seconds.value() > model::kMostTraceSeconds) {
    return row.Bad(column,
                   fmt::format("seconds from 0 to {:.0f}, or nothing", model::kMostTraceSeconds));
  }
  return std::optional(AtSeconds(seconds.value()));
}

Result<std::optional<double>> ReadAmount(const io::CsvRow& row, int column) {
  if (IsMissing(row.Text(column))) {
    return std::optional<double>();
  }
  const Result<double> amount = row.Number(column, 0);
  return amount.ok() ? Result<std::optional<double>>(amount.value()) : amount.error();
}

Result<double> RequireAmount(const io::CsvRow& row, int column, std::string_view expected) {
  const Result<std::optional<double>> amount = ReadAmount(row, column);
  if (!amount.ok() || !amount.value()) {
    return row.Bad(column, expected);
  }
  return *amount.value();
}

Status TakeName(const io::CsvRow& row, int column, JobSpec& job) {
  job.name = row.Text(column);
  return job.name.empty() ? Status(row.Bad(column, "the id of the job")) : Status();
}

void AmountWishes::Give(double cpus, double memory_mib, JobSpec& job) {
  constexpr double kMilli = 1000;
  constexpr double kMost = 1e9;
  NodeRequest request;
  request.cpus.milli = std::llround(std::min(cpus, kMost) * kMilli);
  request.memory.mib = std::llround(std::ceil(std::min(memory_mib, kMost)));
  if (request == NodeRequest{}) {
    return;
  }
  std::shared_ptr<const JobTraits>& known =
      known_[{job.traits, request.cpus.milli, request.memory.mib}];
  if (known == nullptr) {
    auto traits = std::make_shared<JobTraits>(job.traits ? *job.traits : JobTraits());
    traits->request = std::move(request);
    known = std::move(traits);
  }
  job.traits = known;
}

void GpuTypeWishes::Give(std::string_view alternatives, JobSpec& job) {
  if (IsMissing(alternatives)) {
    return;
  }
  if (const auto known = known_.find(alternatives); known != known_.end()) {
    job.traits = known->second;
    return;
  }
  std::vector<std::string> types;
  for (const std::string_view type : base::Split(alternatives, "|")) {
    if (!type.empty()) {
      types.emplace_back(type);
    }
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  if (types.empty()) {
    return;
  }
  auto traits = std::make_shared<JobTraits>();
  traits->gpu_types = std::move(types);
  job.traits = std::move(traits);
  known_.emplace(alternatives, job.traits);
}

}  // namespace trainyard::trace
