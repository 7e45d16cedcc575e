// SPDX-License-Identifier: Apache-2.0
// Writes traces whose format is a table with one meaning for each column (trace/csv_format.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/csv_format.h"
#include "trace/trace.h"
#include "trainyard/job.h"

namespace trainyard {

// What is written: jobs, and the nodes of the GPUs that they name.
struct TraceView {
  std::span<const JobSpec> jobs;
  std::span<const DeviceNode> nodes{};
};

// The columns that a file of these jobs has.
[[nodiscard]] std::vector<ColumnRule> WrittenColumns(const CsvFormat& format,
                                                     const TraceView& trace);

// What the column says of the job, without quotes; nothing where it has nothing to say.
void AppendValue(const CsvFormat& format, const ColumnRule& column, const JobSpec& job,
                 std::span<const DeviceNode> nodes, std::string& text);

// REQUIRES: each job states what the format needs (trace/writers.h checks that).
[[nodiscard]] std::string WriteCsvTrace(const CsvFormat& format, const TraceView& trace);

}  // namespace trainyard
