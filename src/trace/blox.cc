// SPDX-License-Identifier: Apache-2.0
// Job streams of the Blox simulators, in the order of handing over: docs/formats/blox.md.
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "base/check.h"
#include "base/decimal.h"
#include "io/csv_field.h"
#include "trace/csv_format.h"
#include "trace/writers.h"

namespace trainyard {
namespace {

constexpr std::array kBloxColumns{
    ColumnRule{.field = Native("job_id"), .name = "job_id", .required = true},
    ColumnRule{.field = Native("handover_time"), .name = "handover_s", .required = true},
    ColumnRule{.field = Native("submit_time"), .name = "submit_s", .required = true},
    ColumnRule{.field = Native("gpus"), .name = "num_gpus", .required = true},
    ColumnRule{.field = JobColumn::kIterationTime, .name = "iteration_time_s"},
    ColumnRule{.field = Native("iterations"), .name = "total_iterations", .required = true},
    ColumnRule{.field = JobColumn::kIgnored, .name = "model_class_id"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "kind"},
};

}  // namespace

const CsvFormat& BloxFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "blox", .help = "Blox simulators (work is iterations x iteration time)"},
      .columns = kBloxColumns,
      .iteration_time = 1,
  };
  return kFormat;
}

std::string WriteBlox(const TraceView& trace) {
  std::string text = "job_id,handover_s,submit_s,num_gpus,iteration_time_s,total_iterations\n";
  for (const JobSpec& job : trace.jobs) {
    CHECK(job.duration.has_value());
    AppendCsvField(job.name, text);
    text += ',';
    AppendSeconds(job.known_from().time_since_epoch(), text);
    text += ',';
    AppendSeconds(job.submit.time_since_epoch(), text);
    fmt::format_to(std::back_inserter(text), ",{},1,", job.gpus);
    AppendSeconds(*job.duration, text);
    text += '\n';
  }
  return text;
}

}  // namespace trainyard
