// SPDX-License-Identifier: Apache-2.0
// Trace formats that are more than a table with one meaning for each column. Each reads its files
// itself, in a file of its own.
#pragma once

#include <string>
#include <string_view>

#include "io/text_stream.h"
#include "trace/trace.h"
#include "trainyard/status.h"

namespace trainyard::trace {

struct OwnFormat {
  TraceFormat shown;
  // Whether a text that begins like this can only be of this format.
  bool (*looks_like)(std::string_view head) = nullptr;
  // Takes a stream that is at its first block.
  Result<Trace> (*read)(io::TextStream text, const TraceOptions& options) = nullptr;
  bool takes_column_names = false;  // TraceOptions::columns matter
};

extern const OwnFormat kBatsimFormat;
extern const OwnFormat kGavelFormat;
extern const OwnFormat kJsonlFormat;
extern const OwnFormat kPhillyFormat;
extern const OwnFormat kSacctFormat;
extern const OwnFormat kSiaPhillyFormat;
extern const OwnFormat kSwfFormat;
extern const OwnFormat kTorchloaderFormat;

// Alibaba's PAI clusters of 2020 (docs/formats/pai.md): a folder of tables without headers.
inline constexpr TraceFormat kPaiFormat{
    .name = "pai", .help = "Alibaba PAI 2020, the folder of pai_job_table and pai_task_table"};

// Whether it is a folder with a table of jobs.
[[nodiscard]] bool LooksLikePai(const std::string& path);

// `path` is the folder or its table of jobs. Errors: no table of jobs or of tasks; those of
// CsvTable and TraceBuilder; bad rows of either table, unless these are skipped.
[[nodiscard]] Result<Trace> ReadPai(const std::string& path, const TraceOptions& options);

}  // namespace trainyard::trace
