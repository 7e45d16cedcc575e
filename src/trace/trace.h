// SPDX-License-Identifier: Apache-2.0
// A job trace: what was submitted when. Readers for every format give this one form.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard {

struct SkippedRow {
  std::int64_t line = 0;
  std::string why;  // "file:line: ..."
};

struct Trace {
  std::string path;
  std::string format;               // the name of the reader
  std::string sha256;               // of the file on disk
  std::vector<JobSpec> jobs;        // in file order; a job's index is its JobId
  std::vector<std::int64_t> lines;  // line of each job, for messages about it
  // Bad rows, with skip_bad_rows; and always those that are no jobs to schedule by the rules of
  // the format (failed jobs of raw ITP tables). Worth telling the user.
  std::vector<SkippedRow> skipped;
};

struct TraceOptions {
  std::string format;          // empty: recognised by the content
  bool skip_bad_rows = false;  // bad rows are counted and listed instead of refusing the file
};

// A format: its name, one-line help, and how it is read. The table is in trace.cc.
struct TraceFormat {
  std::string_view name;
  std::string_view help;
};
[[nodiscard]] std::span<const TraceFormat> TraceFormats();

// Errors: those of TextFile, CsvTable and JsonlTable; a missing column; a negative, fractional
// where whole, or missing number; no GPUs; a deadline before the submit; duplicate ids; an empty
// trace; an unrecognisable format. An unknown options.format is kInvalidArgument.
[[nodiscard]] Result<Trace> ReadTrace(const std::string& path, const TraceOptions& options = {});

// The native form (docs/formats/native-trace.md), as CSV and as JSON Lines; reading it back gives
// the same jobs.
[[nodiscard]] std::string WriteNativeTrace(std::span<const JobSpec> jobs);
[[nodiscard]] std::string WriteJsonlTrace(std::span<const JobSpec> jobs);

// The form of the ElasticFlow artifact (docs/formats/elasticflow.md); users and queues are lost.
// REQUIRES: each job has a duration and iterations.
[[nodiscard]] std::string WriteElasticflowTrace(std::span<const JobSpec> jobs);

// Complains about the first job that asks for more GPUs than the cluster has.
[[nodiscard]] Status CheckFits(const Trace& trace, const Cluster& cluster);

}  // namespace trainyard
