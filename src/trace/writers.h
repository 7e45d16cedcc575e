// SPDX-License-Identifier: Apache-2.0
// Writing traces: the table of formats that can be written, and what each needs and loses.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/csv_format.h"
#include "trace/trace.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::trace {

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

// REQUIRES: each job states what the format needs (WriteTrace checks that).
[[nodiscard]] std::string WriteCsvTrace(const CsvFormat& format, const TraceView& trace);

struct TraceWriter {
  std::string_view name;   // of the format; there is a reader of that name
  std::string_view loses;  // what a job may state and the format cannot say, for users
  // What the job would have to state and does not; nothing: it can be written.
  std::optional<std::string_view> (*why_not)(const JobSpec& job);
  std::string (*write)(const TraceView& trace);
};
[[nodiscard]] std::span<const TraceWriter> TraceWriters();

// The text of the trace in that format. Errors: an unknown format, or one that is only read
// (kInvalidArgument); a job that the format cannot express, named with file and line.
[[nodiscard]] Result<std::string> WriteTrace(const Trace& trace, std::string_view format);

// How many jobs state what: the columns of the native format, in their order, that any job states.
[[nodiscard]] std::vector<std::pair<std::string, std::size_t>> StatedIn(const Trace& trace);

// What jobs of `before` state and the jobs of `after`, the same ones as read back, do not state or
// state otherwise: the columns of the native format. Errors: it has another number of jobs.
[[nodiscard]] Result<std::vector<std::string>> LostBetween(const Trace& before, const Trace& after);

// For jobs that are known to fit. The native forms keep everything that a trace can state; the
// others lose what TraceWriter::loses says.
[[nodiscard]] std::string WriteNativeTrace(std::span<const JobSpec> jobs);
[[nodiscard]] std::string WriteJsonlTrace(std::span<const JobSpec> jobs);
// REQUIRES: each job has a duration and iterations.
[[nodiscard]] std::string WriteElasticflowTrace(std::span<const JobSpec> jobs);
// REQUIRES: each job has a duration.
[[nodiscard]] std::string WriteBloxTrace(std::span<const JobSpec> jobs);
// REQUIRES: each job has iterations.
[[nodiscard]] std::string WriteSynergyTrace(std::span<const JobSpec> jobs);

// Each beside the reader of its format.
[[nodiscard]] std::string WriteBatsim(const TraceView& trace);
[[nodiscard]] std::string WriteJsonl(const TraceView& trace);
[[nodiscard]] std::string WriteSwf(const TraceView& trace);
[[nodiscard]] std::string WriteTorchloader(const TraceView& trace);
[[nodiscard]] std::optional<std::string_view> MissingForTorchloader(const JobSpec& job);

}  // namespace trainyard::trace
