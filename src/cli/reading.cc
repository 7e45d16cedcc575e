// SPDX-License-Identifier: Apache-2.0
#include "cli/reading.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "cli/numbers.h"

namespace trainyard::cli {
namespace {

// One line for each group, with how many rows there are and where the next few stand.
void List(const std::vector<trace::RowGroup>& groups) {
  for (const trace::RowGroup& group : groups) {
    fmt::print(stderr, "  {}", group.why);
    if (group.rows > 1) {
      const auto listed = static_cast<std::int64_t>(group.further.size()) + 1;
      fmt::print(stderr, " ({} rows", group.rows);
      if (listed > 1) {
        fmt::print(stderr, ", the next in line {}{}", fmt::join(group.further, ", "),
                   group.rows > listed ? ", ..." : "");
      }
      fmt::print(stderr, ")");
    }
    fmt::print(stderr, "\n");
  }
}

void TellReading(const trace::TraceFacts& facts, const std::vector<trace::RowGroup>& skipped,
                 const std::vector<trace::RowGroup>& remarks) {
  for (const std::string& note : facts.notes) {
    fmt::print(stderr, "{}\n", note);
  }
  if (!skipped.empty()) {
    fmt::print(stderr, "{}: skipped {} rows of {}:\n", facts.path, facts.skipped,
               facts.skipped + facts.jobs);
    List(skipped);
  }
  if (!remarks.empty()) {
    fmt::print(stderr, "{}: not all jobs are as recorded:\n", facts.path);
    List(remarks);
  }
}

}  // namespace

void ReportReading(const trace::Trace& trace) {
  TellReading({.path = trace.path,
               .jobs = trace.jobs.size(),
               .skipped = static_cast<std::size_t>(trace.skipped_rows),
               .notes = trace.notes},
              trace.skipped, trace.remarks);
}

void ReportReading(const trace::TraceFacts& facts, const std::vector<trace::RowGroup>& skipped) {
  TellReading(facts, skipped, facts.remarks);
}

void AddReadingOptions(CLI::App& command, bool& skip_bad_rows, int& procs_per_gpu, bool& cpu_jobs,
                       std::string& columns) {
  constexpr int kMostProcs = 1'000'000;
  command.add_flag("--skip-bad-rows", skip_bad_rows,
                   "count and list bad rows instead of refusing the file");
  command.add_option("--map", columns,
                     "NAME=COLUMN,...: columns with names of the file's own, the format's names "
                     "first (gpus=n_gpus,submit_time=arrival); further columns are not read");
  command
      .add_option(
          "--procs-per-gpu", procs_per_gpu,
          "processors that stand for a GPU, in traces without GPUs (swf, batsim; default: 1) "
          "and for jobs without GPUs (sacct; default: they are left out)")
      ->transform(WholeNumber())
      ->check(CLI::Range(1, kMostProcs));
  command
      .add_flag("--cpu-jobs", cpu_jobs,
                "take jobs without GPUs, too, as jobs on CPUs alone, from logs of clusters (sacct, "
                "helios, acme, ...); the cluster has to state CPUs")
      ->excludes("--procs-per-gpu");
}

void AddNodeRequests(CLI::App& command, bool& node_requests) {
  command.add_flag("--node-requests", node_requests,
                   "take numbers and labels of nodes that jobs asked for, too, from logs (sacct); "
                   "the cluster has to have such nodes");
}

}  // namespace trainyard::cli
