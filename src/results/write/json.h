// SPDX-License-Identifier: Apache-2.0
// Runs as JSON. The keys of a summary are those of docs/formats/run-output.md.
#pragma once

#include <span>
#include <string>

#include "results/metrics/run_result.h"

namespace trainyard::results {

// One object, indented by two, without a line end after it; as summary.json and `--json` show it.
[[nodiscard]] std::string SummaryJson(const RunResult& run);

// An array of such objects, each with the key "label" before the others.
[[nodiscard]] std::string CompareJson(std::span<const RunResult> runs);

// The same as CSV, a row for each run; a cell is empty where a value does not apply.
[[nodiscard]] std::string CompareCsv(std::span<const RunResult> runs);

// What summary.json records of a run beside its metrics, for writers and readers: calls
// `take(key, member)` for each, with `true` behind for a member that is null where it is empty or
// zero, and that older summaries lack.
template <typename Run, typename Take>
void ForEachCost(Run& run, Take take) {
  take("decisions", run.decisions);
  take("bounded_decisions", run.bounded_decisions, true);
  take("events", run.events);
  take("wall_seconds", run.wall_seconds);
  take("cpu_seconds", run.cpu_seconds);
  take("peak_rss_mb", run.peak_rss_mb);
}
template <typename Run, typename Take>
void ForEachSetting(Run& run, Take take) {
  take("policy", run.policy);
  take("placement", run.placement);
  take("admission", run.admission);
  take("grouping", run.grouping, true);
  take("tuning", run.tuning, true);
  take("preset", run.preset, true);
  take("preset_sha256", run.preset_sha256, true);
  take("seed", run.seed);
  take("cluster", run.cluster_name);
  take("nodes", run.nodes);
  take("gpus", run.gpus);
  take("trace", run.trace_path);
  take("trace_sha256", run.trace_sha256);
  take("changes", run.changes_path, true);
  take("changes_sha256", run.changes_sha256, true);
}

}  // namespace trainyard::results
