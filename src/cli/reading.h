// SPDX-License-Identifier: Apache-2.0
// Reading traces: the options that all commands share, and what is said about what was read.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

#include "trace/trace.h"

namespace trainyard::cli {

void AddReadingOptions(CLI::App& command, bool& skip_bad_rows, int& procs_per_gpu, bool& cpu_jobs,
                       std::string& columns);

// On stderr: the rows that were passed over and the jobs that are not quite as recorded. Nothing
// where there are none.
void ReportReading(const trace::Trace& trace);
// Likewise, of a trace whose jobs were handed out.
void ReportReading(const trace::TraceFacts& facts, const std::vector<trace::RowGroup>& skipped);

}  // namespace trainyard::cli
