// SPDX-License-Identifier: Apache-2.0
// Alibaba's training and spot jobs of 2026: docs/formats/spot-gpu.md.
#include <array>
#include <utility>

#include "base/try.h"
#include "trace/log_format.h"

namespace trainyard {
namespace {

class SpotGpuRows final : public LogRows {
 public:
  explicit SpotGpuRows(const CsvHeader& table)
      : name_(table.Column({"job_name"})),
        organization_(table.Column({"organization"})),
        type_(table.Column({"gpu_model"})),
        gpus_(table.Column({"gpu_request"})),
        workers_(table.Column({"worker_num"})),
        submit_(table.Column({"submit_time"})),
        duration_(table.Column({"duration"})),
        kind_(table.Column({"job_type"})) {}

  Result<JobRow> Read(const CsvRow& row) override {
    JobRow read;
    const Result<double> gpus = RequireAmount(row, gpus_, "the GPUs of one worker");
    const Result<double> workers = RequireAmount(row, workers_, "the number of workers");
    for (const auto* amount : {&gpus, &workers}) {
      if (!amount->ok()) {
        return amount->error();
      }
    }
    RETURN_IF_ERROR(TakeGpus(row, gpus_, gpus.value() * workers.value(), read));
    if (!read.left_out.empty()) {
      return read;
    }
    RETURN_IF_ERROR(TakeName(row, name_, read.job));
    read.job.queue = row.Text(organization_);
    wishes_.Give(row.Text(type_), read.job);
    const std::string_view kind = row.Text(kind_);
    if (kind != "HP" && kind != "Spot") {
      return row.Bad(kind_, "HP or Spot");
    }
    read.job.best_effort = kind == "Spot";
    Status timed = ReadTimes(row, read);
    return timed.ok() ? Result<JobRow>(std::move(read)) : timed.error();
  }

 private:
  // There are no starts: the duration counts from the submit.
  Status ReadTimes(const CsvRow& row, JobRow& read) const {
    const Result<std::optional<TimePoint>> submit = ReadSeconds(row, submit_);
    const Result<std::optional<TimePoint>> duration = ReadSeconds(row, duration_);
    for (const auto* time : {&submit, &duration}) {
      if (!time->ok()) {
        return time->error();
      }
    }
    Recorded times{.submit = submit.value(), .start = submit.value()};
    if (submit.value() && duration.value()) {
      times.end = *submit.value() + duration.value()->time_since_epoch();
    }
    Status taken = TakeTimes(row, times, read);
    read.wait.reset();
    return taken;
  }

  int name_;
  int organization_;
  int type_;
  int gpus_;
  int workers_;
  int submit_;
  int duration_;
  int kind_;
  GpuTypeWishes wishes_;
};

}  // namespace

const LogFormat& SpotGpuFormat() {
  static constexpr std::array<std::string_view, 8> kColumns{
      "job_name",   "organization", "gpu_model", "gpu_request",
      "worker_num", "submit_time",  "duration",  "job_type"};
  static constexpr LogFormat kFormat{
      .shown = {.name = "spot-gpu", .help = "Alibaba 2026, high-priority and spot jobs"},
      .columns = kColumns,
      .open = OpenRows<SpotGpuRows>};
  return kFormat;
}

}  // namespace trainyard
