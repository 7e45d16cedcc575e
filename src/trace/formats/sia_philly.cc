// SPDX-License-Identifier: Apache-2.0
// Jobs of the Philly log as Pollux and Sia draw from them (philly.csv): docs/formats/sia.md.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/try.h"
#include "trace/csv_format.h"
#include "trace/own_format.h"
#include "trace/timestamp.h"
#include "trace/trace_builder.h"

namespace trainyard::trace {
namespace {

class PhillyRows {
 public:
  explicit PhillyRows(const io::CsvHeader& table)
      : stamp_(table.Column({"timestamp"})),
        duration_(table.Column({"duration"})),
        gpus_(table.Column({"num_gpus"})),
        cluster_(table.Column({"cluster"})) {}

  // A time of the log, as it writes it.
  [[nodiscard]] std::string Text(TimePoint at) const { return stamps_.Text(at); }

  [[nodiscard]] Result<JobRow> Read(const io::CsvRow& row) {
    JobRow read;
    read.job.name = fmt::format("line{}", row.line());  // jobs have no ids
    read.job.queue = row.Text(cluster_);
    ASSIGN_OR_RETURN(const std::optional<TimePoint> stamp, stamps_.Read(row, stamp_));
    ASSIGN_OR_RETURN(const std::int64_t gpus, row.Integer(gpus_, 0, model::kMostGpus));
    ASSIGN_OR_RETURN(const double seconds, TraceSeconds(row, duration_));
    if (!stamp) {
      read.left_out = "its submit is not recorded; such jobs are left out";
      return read;
    }
    read.left_out = gpus == 0 ? "it has no GPUs; jobs on CPUs alone are left out"
                    : FromSeconds(seconds) <= Duration{0}
                        ? "it took no time; such jobs are left out"
                        : "";
    read.job.submit = *stamp;
    read.job.gpus = static_cast<int>(gpus);
    read.job.duration = FromSeconds(seconds);
    return read;
  }

 private:
  int stamp_;
  int duration_;
  int gpus_;
  int cluster_;
  TimestampReader stamps_;
};

constexpr std::array<std::string_view, 5> kSiaPhillyColumns{"timestamp", "duration", "num_gpus",
                                                            "gpu_time", "cluster"};

bool LooksLikeSiaPhilly(std::string_view head) {
  const Result<io::CsvHeader> header = io::CsvHeader::Read("", head);
  return header.ok() &&
         std::all_of(kSiaPhillyColumns.begin(), kSiaPhillyColumns.end(),
                     [&](std::string_view name) { return header.value().Column({name}) >= 0; });
}

Result<Trace> ReadSiaPhilly(io::TextStream text, const TraceOptions& options) {
  ASSIGN_OR_RETURN(io::CsvStream table, io::CsvStream::Of(std::move(text)));
  for (const std::string_view name : kSiaPhillyColumns) {
    RETURN_IF_ERROR(table.Require({name}));
  }
  PhillyRows rows(table);
  return ReadRows(table, rows, kSiaPhillyFormat.shown.name, options);
}

}  // namespace

constexpr OwnFormat kSiaPhillyFormat{
    .shown = {.name = "sia-philly", .help = "philly.csv of Pollux and Sia (no ids, no models)"},
    .looks_like = LooksLikeSiaPhilly,
    .read = ReadSiaPhilly};

}  // namespace trainyard::trace
