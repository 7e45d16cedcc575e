// SPDX-License-Identifier: Apache-2.0
// Pod lists of Alibaba's GPU cluster of 2023: docs/formats/openb.md.
#include <array>
#include <utility>

#include "base/try.h"
#include "trace/log_format.h"

namespace trainyard {
namespace {

constexpr double kMilli = 1000;

class OpenbRows final : public LogRows {
 public:
  explicit OpenbRows(const CsvHeader& table)
      : name_(table.Column({"name"})),
        gpus_(table.Column({"num_gpu"})),
        milli_(table.Column({"gpu_milli"})),
        types_(table.Column({"gpu_spec"})),
        qos_(table.Column({"qos"})),
        phase_(table.Column({"pod_phase"})),
        times_{.submit = table.Column({"creation_time"}),
               .start = table.Column({"scheduled_time"}),
               .end = table.Column({"deletion_time"})} {}

  Result<JobRow> Read(const CsvRow& row) override {
    JobRow read;
    RETURN_IF_ERROR(ReadGpus(row, read));
    if (!read.left_out.empty()) {
      return read;
    }
    RETURN_IF_ERROR(TakeName(row, name_, read.job));
    wishes_.Give(row.Text(types_), read.job);
    read.job.queue = row.Text(qos_);
    read.job.best_effort = read.job.queue == "BE";
    read.state = row.Text(phase_);
    ASSIGN_OR_RETURN(const Recorded times, ReadRecorded(row, times_, ReadSeconds));
    Status timed = TakeTimes(row, times, read);
    return timed.ok() ? Result<JobRow>(std::move(read)) : timed.error();
  }

 private:
  // Milli-GPUs mean something only where one GPU is asked for.
  Status ReadGpus(const CsvRow& row, JobRow& read) {
    const Result<double> gpus = RequireAmount(row, gpus_, "the number of GPUs");
    if (!gpus.ok() || gpus.value() != 1) {
      return gpus.ok() ? TakeGpus(row, gpus_, gpus.value(), read) : gpus.error();
    }
    ASSIGN_OR_RETURN(const double milli, RequireAmount(row, milli_, "thousandths of a GPU"));
    if (milli <= 0 || milli > kMilli) {
      return row.Bad(milli_, "a number from 1 to 1000 where num_gpu is 1");
    }
    return TakeGpus(row, milli_, milli / kMilli, read);
  }

  int name_;
  int gpus_;
  int milli_;
  int types_;
  int qos_;
  int phase_;
  TimeColumns times_;
  GpuTypeWishes wishes_;
};

Result<std::unique_ptr<LogRows>> Open(const CsvHeader& table) {
  for (const std::string_view name : {"creation_time", "deletion_time", "scheduled_time"}) {
    if (table.Column({name}) < 0) {
      return table.BadHeader(
          "a list of pods without times (as openb_pod_list_multigpuNN.csv): it says what pods ask "
          "for, but not when, and is no trace; expected also the columns creation_time, "
          "deletion_time, scheduled_time");
    }
  }
  return OpenRows<OpenbRows>(table);
}

}  // namespace

const LogFormat& OpenbFormat() {
  static constexpr std::array<std::string_view, 4> kColumns{"name", "cpu_milli", "num_gpu",
                                                            "gpu_milli"};
  static constexpr LogFormat kFormat{
      .shown = {.name = "openb", .help = "Alibaba 2023, openb pod lists (whole GPUs)"},
      .columns = kColumns,
      .open = Open};
  return kFormat;
}

}  // namespace trainyard
