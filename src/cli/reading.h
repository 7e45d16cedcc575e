// SPDX-License-Identifier: Apache-2.0
// Reading traces: the options that all commands share, and what is said about what was read.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

#include "trace/trace.h"

namespace trainyard::cli {

// The options --skip-bad-rows, --map, --procs-per-gpu, --cpu-jobs and --node-requests. `reading`:
// trace::TraceOptions, or another with members of these names, which outlives the command.
void AddReadingOptions(CLI::App& command, bool& skip_bad_rows, int& procs_per_gpu, bool& cpu_jobs,
                       std::string& columns);
void AddNodeRequests(CLI::App& command, bool& node_requests);
template <typename Reading>
void AddReadingOptions(CLI::App& command, Reading& reading) {
  AddReadingOptions(command, reading.skip_bad_rows, reading.procs_per_gpu, reading.cpu_jobs,
                    reading.columns);
  AddNodeRequests(command, reading.node_requests);
}

// On stderr: the rows that were passed over and the jobs that are not quite as recorded. Nothing
// where there are none.
void ReportReading(const trace::Trace& trace);
// Likewise, of a trace whose jobs were handed out.
void ReportReading(const trace::TraceFacts& facts, const std::vector<trace::RowGroup>& skipped);

}  // namespace trainyard::cli
