// SPDX-License-Identifier: Apache-2.0
// Alibaba's PAI clusters of 2020: a folder of tables without headers. docs/formats/pai.md.
#pragma once

#include <string>

#include "trace/trace.h"
#include "trainyard/status.h"

namespace trainyard {

inline constexpr TraceFormat kPaiFormat{
    .name = "pai", .help = "Alibaba PAI 2020, the folder of pai_job_table and pai_task_table"};

// Whether it is a folder with a table of jobs.
[[nodiscard]] bool LooksLikePai(const std::string& path);

// `path` is the folder or its table of jobs. Errors: no table of jobs or of tasks; those of
// CsvTable and TraceBuilder; bad rows of either table, unless these are skipped.
[[nodiscard]] Result<Trace> ReadPai(const std::string& path, const TraceOptions& options);

}  // namespace trainyard
