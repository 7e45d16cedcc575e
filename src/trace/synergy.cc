// SPDX-License-Identifier: Apache-2.0
// Traces of the Synergy simulator, with 5 columns or with 12: docs/formats/synergy.md.
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

// What the longer form adds follows from the profiles and the cluster of the run, and is derived
// anew.
constexpr std::array kSynergyColumns{
    ColumnRule{.field = Native("job_id"), .name = "job_id", .required = true},
    ColumnRule{.field = Native("model"), .name = "model", .required = true},
    ColumnRule{.field = Native("submit_time"), .name = "arrival_s", .required = true},
    ColumnRule{.field = Native("iterations"), .name = "total_iterations", .required = true},
    ColumnRule{.field = Native("gpus"), .name = "gpus", .required = true},
    ColumnRule{.field = Native("duration"), .name = "fair_duration_s"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "task"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "iter_time_s"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "cpu_demand"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "mem_demand_gb"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "sspeed_demand"},
    ColumnRule{.field = JobColumn::kIgnored, .name = "speedup"},
};

}  // namespace

const CsvFormat& SynergyFormat() {
  static constexpr CsvFormat kFormat{
      .shown = {.name = "synergy", .help = "Synergy simulator (work is whole iterations)"},
      .columns = kSynergyColumns,
  };
  return kFormat;
}

std::string WriteSynergy(const TraceView& trace) {
  std::string text = "job_id,model,arrival_s,total_iterations,gpus\n";
  for (const JobSpec& job : trace.jobs) {
    CHECK(job.iterations.has_value());
    AppendCsvField(job.name, text);
    text += ',';
    AppendCsvField(job.model, text);
    text += ',';
    AppendSeconds(job.submit.time_since_epoch(), text);
    fmt::format_to(std::back_inserter(text), ",{},{}\n", *job.iterations, job.gpus);
  }
  return text;
}

}  // namespace trainyard
