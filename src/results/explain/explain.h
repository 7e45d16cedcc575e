// SPDX-License-Identifier: Apache-2.0
// Why jobs took longer, or less long, in one run than in another run on the same trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "results/metrics/run_result.h"
#include "results/write/report_json.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::results {

// What a JCT, or the difference of two, is made of. The parts sum to it exactly.
struct JctParts {
  Duration queued{0};      // from the submission to the first GPUs
  Duration suspended{0};   // without GPUs after that
  Duration productive{0};  // with GPUs, advancing: longer on fewer, worse placed or shared ones
  Duration overhead{0};    // with GPUs, not advancing: restarts, and work that was lost
  Duration registered{0};  // the end that the run's rules register, less the exact one

  [[nodiscard]] Duration sum() const {
    return queued + suspended + productive + overhead + registered;
  }
  JctParts& operator+=(const JctParts& other);
  JctParts& operator-=(const JctParts& other);
};

// Each part as tables and JSON name it.
struct JctPartName {
  const char* heading;
  const char* key;
  Duration JctParts::*part;
};
inline constexpr std::array<JctPartName, 5> kJctParts{
    {{"first wait", "queued", &JctParts::queued},
     {"later waits", "suspended", &JctParts::suspended},
     {"running", "productive", &JctParts::productive},
     {"restarts", "overhead", &JctParts::overhead},
     {"registered", "registered", &JctParts::registered}}};

// Of the job's JCT; none unless it completed. A trace that hands a job over before or after its
// submission shifts time between `suspended` and `registered`, equally in all runs.
[[nodiscard]] std::optional<JctParts> PartsOf(const JobResult& job, const RunResult& run);

// A job that completed in both runs. The pointers are into the runs.
struct ExplainedJob {
  const JobResult* job = nullptr;
  const JobResult* other = nullptr;
  JctParts parts;  // of the job's JCT less the other's
};

// A job that completed in one of the runs only.
struct OutcomeChange {
  const JobResult* job = nullptr;
  const JobResult* other = nullptr;
};

// `run` compared with `other`; both must outlive it. Differences are the run's value less the
// other's: below 0, the run was faster.
struct Explanation {
  const RunResult* run = nullptr;
  const RunResult* other = nullptr;
  std::optional<double> jct_mean;  // seconds, of all jobs that completed in the run
  std::optional<double> other_jct_mean;
  std::int64_t completed_in_both = 0;
  JctParts total;                      // over these, exact
  std::vector<ExplainedJob> gained;    // the greatest gain first; equal ones in trace order
  std::vector<ExplainedJob> lost;      // the greatest loss first
  std::vector<OutcomeChange> changes;  // in trace order
  std::int64_t deadlines_lost = 0;     // met in the other run only
  std::int64_t deadlines_won = 0;      // met in this run only
};

// As far as the results tell.
[[nodiscard]] bool OnSameCluster(const RunResult& run, const RunResult& other);

// Lists at most `jobs_max` jobs that gained and as many that lost. Errors: the runs have no job in
// common or are on different clusters, or one does not record what its jobs did
// (RunResult::ends_only). O(jobs log jobs).
[[nodiscard]] Result<Explanation> Explain(const RunResult& run, const RunResult& other,
                                          std::size_t jobs_max);

// The runs to compare, as positions: those named "A,B" by `labels`, or with an empty text the one
// with the least and the one with the greatest mean JCT (of equal ones, the first). None if
// `labels` is empty and fewer than two runs have a mean JCT, or these are on different clusters.
// A label may lack its " on CLUSTER" where it is the only one of its kind. Errors: not the labels
// of two runs.
[[nodiscard]] Result<std::optional<std::pair<std::size_t, std::size_t>>> RunsToExplain(
    std::span<const RunResult> runs, const std::string& labels);

// One sentence, without a full stop: "job 17 lost 3h12m: waited 2h54m longer after preemptions
// (preempted 4 times instead of 0)".
[[nodiscard]] std::string SentenceOf(const ExplainedJob& job, const Explanation& explanation);
[[nodiscard]] std::string SentenceOf(const OutcomeChange& change, const Explanation& explanation);

// For the HTML report: the jobs that gained and that lost, with parts and sentences, and the jobs
// that completed in one run only.
[[nodiscard]] std::vector<ReportTable> TablesOf(const Explanation& explanation);

// Means, tables of jobs and sentences for a terminal, without a line end after the last.
[[nodiscard]] std::string ExplanationText(const Explanation& explanation);

// The same as one JSON object, indented by `indent`; -1: on one line. All times in seconds.
[[nodiscard]] std::string ExplanationJson(const Explanation& explanation, int indent);

}  // namespace trainyard::results
