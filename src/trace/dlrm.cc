// SPDX-License-Identifier: Apache-2.0
// Alibaba's recommendation services of 2025: docs/formats/dlrm.md.
#include <array>
#include <utility>

#include "base/try.h"
#include "trace/log_format.h"

namespace trainyard {
namespace {

class DlrmRows final : public LogRows {
 public:
  explicit DlrmRows(const CsvHeader& table)
      : name_(table.Column({"instance_sn"})),
        service_(table.Column({"app_name"})),
        gpus_(table.Column({"gpu_request"})),
        times_{.submit = table.Column({"creation_time"}),
               .start = table.Column({"scheduled_time"}),
               .end = table.Column({"deletion_time"})} {}

  Result<JobRow> Read(const CsvRow& row) override {
    JobRow read;
    RETURN_IF_ERROR(TakeGpus(row, gpus_, read));
    if (!read.left_out.empty()) {
      return read;
    }
    RETURN_IF_ERROR(TakeName(row, name_, read.job));
    read.job.queue = row.Text(service_);
    Status timed = ReadTimes(row, read);
    return timed.ok() ? Result<JobRow>(std::move(read)) : timed.error();
  }

 private:
  Status ReadTimes(const CsvRow& row, JobRow& read) const {
    ASSIGN_OR_RETURN(const Recorded times, ReadRecorded(row, times_, ReadSeconds));
    if (!times.submit) {
      read.left_out = "it was there before the log begins; such instances are left out";
      return {};
    }
    return TakeTimes(row, times, read);
  }

  int name_;
  int service_;
  int gpus_;
  TimeColumns times_;
};

}  // namespace

const LogFormat& DlrmFormat() {
  static constexpr std::array<std::string_view, 6> kColumns{
      "instance_sn", "app_name", "gpu_request", "creation_time", "scheduled_time", "deletion_time"};
  static constexpr LogFormat kFormat{
      .shown = {.name = "dlrm", .help = "Alibaba 2025, recommendation services (GPU instances)"},
      .columns = kColumns,
      .open = OpenRows<DlrmRows>};
  return kFormat;
}

}  // namespace trainyard
