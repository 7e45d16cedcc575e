// SPDX-License-Identifier: Apache-2.0
// A job trace: what was submitted when. Readers for every format give this one form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::trace {

// Rows of a file of which the same is to be said.
struct RowGroup {
  std::int64_t line = 0;              // of the first
  std::string why;                    // of the first: "file:line: ..."
  std::int64_t rows = 1;              // how many
  std::vector<std::int64_t> further;  // lines of the next few
};

// A node of which a trace names GPUs: by name, or by position in the cluster.
struct DeviceNode {
  std::string name;   // empty: by position
  int position = -1;  // from 0

  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};

struct Trace {
  std::string path;
  std::string format;               // the name of the reader
  std::string sha256;               // of the file on disk
  std::vector<JobSpec> jobs;        // in file order; a job's index is its JobId
  std::vector<std::int64_t> lines;  // line of each job, for messages about it
  // Bad rows, with skip_bad_rows; and always those that are no jobs to schedule by the rules of
  // the format (failed jobs of raw ITP tables), in one group for each reason. Worth telling the
  // user.
  std::vector<RowGroup> skipped;
  std::int64_t skipped_rows = 0;  // of all groups
  // Rows that are jobs, but not quite as they are recorded (fractions of a GPU). Likewise.
  std::vector<RowGroup> remarks;
  // What time 0 is, where the log says so: "2020-04-01 00:00:05", with "+00:00" if that is UTC, or
  // without a date where its own times have none.
  std::string origin;
  // How long each job waited for its first start when the log was recorded; empty: no job says so.
  std::vector<std::optional<Duration>> waits;
  // How many jobs ended how, in the words of the log; empty: it does not say.
  std::map<std::string, std::int64_t> states;
  // Worth telling of the file as a whole: columns that were not read. "file:line: ..."
  std::vector<std::string> notes;
  // Columns and fields of the log of which nothing was taken, by their names there.
  std::vector<std::string> unread;
  // What the NodeIds of JobTraits::devices count until BindDevices; empty: no job names any.
  std::vector<DeviceNode> device_nodes;
};

// Takes jobs as they are read.
struct JobVisitor {
  // Ends the reading if it fails. May take the job away.
  std::function<Status(JobSpec& job, std::int64_t line)> on_job;
  std::function<void(const RowGroup& rows)> on_skipped;  // when all is read; may be empty
};

// When a log starts, of which times count from its first submit. A first reading finds it, a second
// one hands out the jobs.
struct LogStart {
  std::optional<TimePoint> first_submit;  // on the clock of the log; nothing: to be found
};

struct TraceOptions {
  std::string format;          // empty: recognised by the content
  bool skip_bad_rows = false;  // bad rows are counted and listed instead of refusing the file
  double unit = 0;  // seconds in a unit of time, where the format leaves it open; 0: its default
  const JobVisitor* visitor = nullptr;  // ForEachJob sets it: jobs go there and are not kept
  LogStart* log_start = nullptr;        // likewise, of files that can be read twice
  // Processors that stand for a GPU, in formats that know processors only (swf, batsim; 0: 1) and
  // for jobs without GPUs (sacct; 0: they are left out).
  int procs_per_gpu = 0;
  // Jobs without GPUs that state CPUs are taken as jobs on CPUs alone, in logs of clusters (sacct
  // and the formats of log_format.cc); false: they are left out.
  bool cpu_jobs = false;
  // On how many nodes jobs asked to be, and of which labels, is taken, too (sacct); false: it is
  // left, so that the jobs fit other clusters than their own, and policies that place by GPUs
  // alone.
  bool node_requests = false;
  // Columns with names of the file's own: "gpus=n_gpus,submit_time=arrival", the format's names
  // first. Columns without a meaning are then passed over, which is noted. Without a format:
  // native, if these are names of it.
  std::string columns{};
};

// A format: its name, one-line help, and how it is read. The table is in trace.cc.
struct TraceFormat {
  std::string_view name;
  std::string_view help;
  bool has_processors = false;     // TraceOptions::procs_per_gpu matters
  bool has_cpu_jobs = false;       // TraceOptions::cpu_jobs matters
  bool has_node_requests = false;  // TraceOptions::node_requests matters
};
[[nodiscard]] std::span<const TraceFormat> TraceFormats();

// Bad rows are told in one error, up to twenty of them, a line each.
// Errors: those of TextStream, CsvTable and JsonlStream; what the file is if no trace (JSON array,
// another separator); a missing column; a negative, fractional
// where whole, or missing number; no GPUs; a deadline before the submit; duplicate ids; an empty
// trace; an unrecognisable format. An unknown options.format is kInvalidArgument.
[[nodiscard]] Result<Trace> ReadTrace(const std::string& path, const TraceOptions& options = {});

// A trace without its jobs.
struct TraceFacts {
  std::string path;
  std::string format;
  std::string sha256;
  std::size_t jobs = 0;
  std::size_t skipped = 0;  // rows
  // As in Trace.
  std::vector<RowGroup> remarks;
  std::string origin;
  std::vector<std::optional<Duration>> waits;
  std::map<std::string, std::int64_t> states;
  std::vector<std::string> notes;
};

// As ReadTrace, but hands out one job after the other instead of keeping them, so that tables and
// JSON Lines of any size are read in little memory: 10 to 24 bytes for each job, by which ids that
// are there twice are found, and 16 where waits are recorded. Tables of logs are read twice: their
// times count from the first submit, which is known when all is read. Jobs of philly and pai, and
// of logs that come through a pipe, are in memory first. Ids are compared by 64-bit hashes: that
// two different ones are taken for the same has a probability of 2.5e-7 for 3 million jobs. Errors:
// also those of the visitor; jobs before an error have been handed out.
[[nodiscard]] Result<TraceFacts> ForEachJob(const std::string& path, const TraceOptions& options,
                                            const JobVisitor& visitor);

// Makes the NodeIds of JobTraits::devices those of the cluster. Errors: a node or GPU that it does
// not have; a node that a job names twice.
[[nodiscard]] Status BindDevices(Trace& trace, const Cluster& cluster);

// Complains about a job that asks for more GPUs than the cluster has; `where` is "path:line".
[[nodiscard]] Status CheckFits(const JobSpec& job, std::string_view where, const Cluster& cluster);
// Complains about the first such job.
[[nodiscard]] Status CheckFits(const Trace& trace, const Cluster& cluster);

}  // namespace trainyard::trace
