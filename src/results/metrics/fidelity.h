// SPDX-License-Identifier: Apache-2.0
// Two runs of the same jobs, job by job: a live run against its simulation, say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::results {

// One job in both runs. Times in seconds.
struct FidelityRow {
  std::string job;
  std::string outcome_a;
  std::string outcome_b;
  std::optional<double> jct_a;
  std::optional<double> jct_b;
  std::optional<double> queueing_delay_a;
  std::optional<double> queueing_delay_b;
};

struct Fidelity {
  std::vector<FidelityRow> rows;  // in the order of the first run
  std::int64_t same_outcome = 0;
  std::int64_t same_jct = 0;  // to the millisecond; both have one
  std::optional<double> jct_mean_a;
  std::optional<double> jct_mean_b;
  // |b - a| / a of the two means; none without a mean.
  std::optional<double> jct_difference;
};

// Reads jobs.csv of both folders. Errors: those of the tables; a job that only one of them has.
[[nodiscard]] Result<Fidelity> CompareRuns(const std::string& folder_a,
                                           const std::string& folder_b);

}  // namespace trainyard::results
