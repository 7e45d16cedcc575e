// SPDX-License-Identifier: Apache-2.0
// What a run leaves behind, whatever world it ran in: one row per job, one sample per decision, and
// the counts of the engine. Everything in this folder is computed from it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::results {

enum class Outcome : std::uint8_t { kCompleted, kRejected, kCancelled, kFailed, kUnfinished };
[[nodiscard]] std::string_view Name(Outcome outcome);
// None if there is no such outcome.
[[nodiscard]] std::optional<Outcome> OutcomeNamed(std::string_view name);

struct JobResult {
  const JobSpec* spec = nullptr;  // owned by RunResult::jobs_of_trace
  Outcome outcome = Outcome::kUnfinished;
  std::optional<TimePoint> start;   // first GPUs
  std::optional<TimePoint> end;     // exact finish; completed jobs only
  std::optional<TimePoint> logged;  // the end that the preset's original registers
  Duration waited{0};               // all time without GPUs before the end (or the stop)
  Duration productive{0};           // time with GPUs in which the job advanced
  Duration overhead{0};             // time with GPUs in which it did not: restarts, lost work
  double attained_service = 0;      // GPU-seconds held, restart time included
  double useful_service = 0;        // GPU-seconds in which the job advanced
  // From start to end on the GPUs that it asks for, alone in the cluster; none where it does not
  // run so.
  std::optional<Duration> alone;
  std::uint32_t preemptions = 0;
  std::uint32_t migrations = 0;
  std::uint32_t resizes = 0;
};

struct TimelineSample {
  TimePoint time{};
  std::int64_t gpus_used = 0;
  std::int64_t jobs_running = 0;
  std::int64_t jobs_pending = 0;
  std::int64_t gpus_up = 0;
  double gpus_fragmented = 0;  // only with RunResult::allocations; see docs/metrics.md
};

// GPUs of one node that a job held from `start` to `end`.
struct Holding {
  std::uint32_t job = 0;   // of RunResult::jobs
  std::uint32_t node = 0;  // of Allocations::nodes
  std::uint64_t gpus = 0;  // bit i is GPU i of the node
  TimePoint start{};
  TimePoint end{};
};

// Which job held which GPUs. Empty where a placement counts GPUs and names none.
struct Allocations {
  struct Node {
    std::string name;
    int gpus = 0;
  };
  std::vector<Node> nodes;
  std::vector<Holding> holdings;  // by start, then node, then job
  bool complete = true;           // false: there were too many, those after a time are left out
};

// The choice of a selector at one decision.
struct ChoiceSample {
  TimePoint time{};
  std::size_t candidate = 0;
  std::vector<double> scores;         // of all candidates; may be empty
  std::vector<std::string> errors{};  // why candidates failed, empty where not; empty: none did
};

struct RunResult {
  // What was run.
  std::string label;  // short and unique in a comparison
  std::string policy;
  std::string placement;
  std::string admission;
  std::string grouping;       // as it was asked for, with its options; empty: none
  std::string tuning;         // likewise
  std::string preset;         // empty: sound mode
  std::string preset_sha256;  // of the preset's file; empty: it is built in
  std::uint64_t seed = 0;
  std::string trace_path;
  std::string trace_sha256;
  std::string changes_path;  // the file of what changes while the run goes on; empty: nothing does
  std::string changes_sha256;
  std::string cluster_name;
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;
  // Results of another program: submits, starts, ends and outcomes, and of the counts what it
  // records; the times and GPU-seconds of jobs beyond these are not known.
  bool ends_only = false;
  // Which end feeds JCT, makespan and deadlines: the registered one (presets whose originals
  // round) or the exact one. jobs.csv has the column end_time_original only if it is true.
  bool uses_logged_end = false;
  // Deadlines are judged by the exact end even so.
  bool stops_early = false;  // by a rule, perhaps before all jobs have ended
  bool exact_deadlines = false;

  std::shared_ptr<const std::vector<JobSpec>> jobs_of_trace;
  std::vector<JobResult> jobs;             // in trace order, one per job of the trace
  std::vector<TimelineSample> timeline;    // one per decision, by time
  std::optional<Allocations> allocations;  // none: not recorded
  std::vector<std::string> candidates;     // of a selector: the bundles that it chose among
  std::vector<ChoiceSample> choices;       // likewise

  std::int64_t decisions = 0;
  std::int64_t bounded_decisions = 0;  // of those: a bound has ended the policy's search
  std::int64_t events = 0;
  std::string journal_digest;
  // Cost of the run: from reading the trace to the last event.
  double wall_seconds = 0;
  double cpu_seconds = 0;
  double peak_rss_mb = 0;
};

// A run without a stop rule must finish its jobs: names the first that did not.
[[nodiscard]] Status CheckFinished(const RunResult& run);

}  // namespace trainyard::results
