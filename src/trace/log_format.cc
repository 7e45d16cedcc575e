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

namespace trainyard {
namespace {

constexpr std::string_view kNoGpus = "it asks for no GPUs; jobs on CPUs alone are left out";
constexpr std::string_view kNoSubmit = "its submit is not recorded; such jobs are left out";
constexpr std::string_view kNeverStarted =
    "no start is recorded; jobs that never started are left out";
constexpr std::string_view kNoTime =
    "it ended when it started; jobs that took no time are left out";
constexpr std::string_view kRoundedUp =
    "it asks for a fraction of a GPU, which is rounded up: jobs here have whole GPUs";
constexpr std::string_view kEarlyStart =
    "it is recorded to start before its submit; its wait is not taken";

// Of Helios and Acme.
class StampedRows final : public LogRows {
 public:
  StampedRows(const CsvHeader& table, const StampedColumns& columns)
      : id_(table.Column({"job_id"})),
        user_(table.Column({"user"})),
        queue_(table.Column({columns.queue})),
        gpus_(table.Column({"gpu_num"})),
        state_(table.Column({"state"})),
        times_{.submit = table.Column({"submit_time"}),
               .start = table.Column({"start_time"}),
               .end = table.Column({"end_time"})} {}

  Result<JobRow> Read(const CsvRow& row) override {
    JobRow read;
    RETURN_IF_ERROR(TakeGpus(row, gpus_, read));
    if (!read.left_out.empty()) {
      return read;
    }
    read.state = row.Text(state_);
    if (IsStillRunning(read.state)) {
      read.left_out = kStillRunning;
      return read;
    }
    read.job.user = row.Text(user_);
    read.job.queue = row.Text(queue_);
    RETURN_IF_ERROR(TakeName(row, id_, read.job));
    Status timed = ReadTimes(row, read);
    return timed.ok() ? Result<JobRow>(std::move(read)) : timed.error();
  }

  [[nodiscard]] std::string Text(TimePoint at) const override { return stamps_.Text(at); }

 private:
  // Durations are not read: those of Kalos count from the submit.
  Status ReadTimes(const CsvRow& row, JobRow& read) {
    const Result<Recorded> times = ReadRecorded(
        row, times_, [this](const CsvRow& from, int column) { return stamps_.Read(from, column); });
    return times.ok() ? TakeTimes(row, times.value(), read) : times.error();
  }

  int id_;
  int user_;
  int queue_;
  int gpus_;
  int state_;
  TimeColumns times_;
  TimestampReader stamps_;
};

}  // namespace

std::string SecondsText(TimePoint at) {
  std::string text;
  AppendSeconds(at.time_since_epoch(), text);
  return text + " s";
}

std::string LogRows::Text(TimePoint at) const { return SecondsText(at); }

std::span<const LogFormat> LogFormats() {
  static const std::array kFormats{AcmeFormat(), DlrmFormat(), HeliosFormat(), OpenbFormat(),
                                   SpotGpuFormat()};
  return kFormats;
}

Status TakeTimes(const CsvRow& row, const Recorded& times, JobRow& read) {
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

Status TakeGpus(const CsvRow& row, int column, double gpus, JobRow& read) {
  constexpr double kNoise = 1e-6;  // of sums of percents
  if (gpus <= 0) {
    read.left_out = kNoGpus;
    return {};
  }
  const double whole = std::max(1.0, std::ceil(gpus - kNoise));
  if (whole > static_cast<double>(kMostGpus)) {
    return row.Bad(column, fmt::format("at most {} GPUs of one job", kMostGpus));
  }
  if (whole - gpus > kNoise) {
    read.remarks.emplace_back(kRoundedUp);
  }
  read.job.gpus = static_cast<int>(whole);
  return {};
}

Status TakeGpus(const CsvRow& row, int column, JobRow& read) {
  const Result<double> gpus = RequireAmount(row, column, "the number of GPUs");
  return gpus.ok() ? TakeGpus(row, column, gpus.value(), read) : gpus.error();
}

bool IsStillRunning(std::string_view state) {
  static constexpr std::array<std::string_view, 6> kStates{"RUNNING", "Running", "running",
                                                           "PENDING", "Waiting", "Pending"};
  return std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

Result<std::optional<TimePoint>> ReadSeconds(const CsvRow& row, int column) {
  if (IsMissing(row.Text(column))) {
    return std::optional<TimePoint>();
  }
  const Result<double> seconds = row.Number(column, 0);
  if (!seconds.ok() || seconds.value() > kMostTraceSeconds) {
    return row.Bad(column, fmt::format("seconds from 0 to {:.0f}, or nothing", kMostTraceSeconds));
  }
  return std::optional(AtSeconds(seconds.value()));
}

Result<std::optional<double>> ReadAmount(const CsvRow& row, int column) {
  if (IsMissing(row.Text(column))) {
    return std::optional<double>();
  }
  const Result<double> amount = row.Number(column, 0);
  return amount.ok() ? Result<std::optional<double>>(amount.value()) : amount.error();
}

Result<double> RequireAmount(const CsvRow& row, int column, std::string_view expected) {
  const Result<std::optional<double>> amount = ReadAmount(row, column);
  if (!amount.ok() || !amount.value()) {
    return row.Bad(column, expected);
  }
  return *amount.value();
}

Status TakeName(const CsvRow& row, int column, JobSpec& job) {
  job.name = row.Text(column);
  return job.name.empty() ? Status(row.Bad(column, "the id of the job")) : Status();
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
  for (const std::string_view type : Split(alternatives, "|")) {
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

std::unique_ptr<LogRows> ReadStamped(const CsvHeader& table, const StampedColumns& columns) {
  return std::make_unique<StampedRows>(table, columns);
}

}  // namespace trainyard
