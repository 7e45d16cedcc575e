// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/fidelity.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string_view>

#include "base/try.h"
#include "results/metrics/metrics.h"
#include "results/read/read_run.h"

namespace trainyard::results {
namespace {

std::optional<double> SecondsOf(std::optional<Duration> time) {
  return time ? std::optional(Seconds(*time)) : std::nullopt;
}

std::optional<double> Mean(const std::vector<FidelityRow>& rows,
                           std::optional<double> FidelityRow::*value) {
  double sum = 0;
  std::int64_t count = 0;
  for (const FidelityRow& row : rows) {
    sum += (row.*value).value_or(0);
    count += (row.*value) ? 1 : 0;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

}  // namespace

Result<Fidelity> CompareRuns(const std::string& folder_a, const std::string& folder_b) {
  ASSIGN_OR_RETURN(const RunResult a, ReadJobsOfRun(folder_a));
  ASSIGN_OR_RETURN(const RunResult b, ReadJobsOfRun(folder_b));
  std::map<std::string_view, const JobResult*> of_b;
  for (const JobResult& job : b.jobs) {
    of_b[job.spec->name] = &job;
  }
  Fidelity fidelity;
  for (const JobResult& job : a.jobs) {
    const auto other = of_b.find(job.spec->name);
    if (other == of_b.end()) {
      return BadInput(fmt::format("{}/jobs.csv: has no job '{}'; expected the jobs of {}", folder_b,
                                  job.spec->name, folder_a));
    }
    const JobResult& same = *other->second;
    const FidelityRow& row =
        fidelity.rows.emplace_back(FidelityRow{.job = job.spec->name,
                                               .outcome_a = std::string(Name(job.outcome)),
                                               .outcome_b = std::string(Name(same.outcome)),
                                               .jct_a = SecondsOf(Jct(job, a)),
                                               .jct_b = SecondsOf(Jct(same, b)),
                                               .queueing_delay_a = SecondsOf(QueueingDelay(job)),
                                               .queueing_delay_b = SecondsOf(QueueingDelay(same))});
    fidelity.same_outcome += job.outcome == same.outcome ? 1 : 0;
    constexpr double kMillisecond = 1e-3;
    fidelity.same_jct +=
        row.jct_a && row.jct_b && std::abs(*row.jct_a - *row.jct_b) < kMillisecond ? 1 : 0;
  }
  if (of_b.size() != fidelity.rows.size()) {
    return BadInput(folder_b + "/jobs.csv: has " + std::to_string(of_b.size()) +
                    " jobs; expected the " + std::to_string(fidelity.rows.size()) + " of " +
                    folder_a);
  }
  fidelity.jct_mean_a = Mean(fidelity.rows, &FidelityRow::jct_a);
  fidelity.jct_mean_b = Mean(fidelity.rows, &FidelityRow::jct_b);
  if (fidelity.jct_mean_a && fidelity.jct_mean_b && *fidelity.jct_mean_a > 0) {
    fidelity.jct_difference =
        std::abs(*fidelity.jct_mean_b - *fidelity.jct_mean_a) / *fidelity.jct_mean_a;
  }
  return fidelity;
}

}  // namespace trainyard::results
