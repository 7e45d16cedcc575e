// SPDX-License-Identifier: Apache-2.0
// Finish-time fairness by shares (Gavel, OSDI'20, section 4.2):
// docs/policies/finish-time-fairness.md.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "policies/gavel/fair_allocations.h"
#include "policies/gavel/gavel_policy.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

// The isolated time is that of the allocations before: work done over the rate that was fair then.
Allocation SolveFinishTimeFairness(const GavelSettings& /*settings*/, ProblemOf& of,
                                   TimeSharingMemory& memory) {
  const std::vector<double> fair = IsolatedRates(of.problem());
  std::map<JobId, TimeSharingMemory::FairTime> now;
  for (std::size_t i = 0; i < fair.size(); ++i) {
    AllocationJob& job = of.problem().jobs[i];
    if (const auto before = memory.fair.find(job.id); before != memory.fair.end()) {
      const TimeSharingMemory::FairTime& last = before->second;
      job.isolated_time = last.time + std::max(0.0, last.work_left - job.work_left) / last.rate;
    }
    now[job.id] = {job.isolated_time, job.work_left, fair[i]};
  }
  memory.fair = std::move(now);
  return FairFinishTimes(of.problem(), fair);
}

Result<Components> MakeFinishTimeFairness(const Options& options,
                                          const ComponentContext& /*context*/) {
  return MakeGavel("finish-time-fairness", SolveFinishTimeFairness, options);
}

}  // namespace

ComponentEntry FinishTimeFairnessEntry() {
  return {ComponentKind::kPolicy,
          "finish-time-fairness",
          "the largest of finish times over fair ones as small as can be, by GPU type (Gavel)",
          kGavelOptions,
          MakeFinishTimeFairness,
          {},
          "gandiva",
          false,
          {},
          GavelGoesBy};
}

}  // namespace trainyard::policies
