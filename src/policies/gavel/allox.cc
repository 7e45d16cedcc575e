// SPDX-License-Identifier: Apache-2.0
// AlloX (EuroSys'20) as Gavel has it: docs/policies/allox.md.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/try.h"
#include "policies/gavel/allox_matching.h"
#include "policies/gavel/gavel_policy.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

// Jobs that run keep their GPUs. Of those that wait the first hundred are matched, or as many as
// there are GPUs. Jobs of several GPUs get what the others leave.
Allocation SolveAllox(const GavelSettings& /*settings*/, ProblemOf& of, TimeSharingMemory& memory) {
  constexpr std::size_t kMostMatched = 100;
  const AllocationProblem& problem = of.problem();
  AllocationProblem matched{.gpus = problem.gpus};
  std::vector<PlacedJob> placed;
  std::vector<std::size_t> of_problem;
  const double gpus = std::accumulate(problem.gpus.begin(), problem.gpus.end(), 0.0);
  const auto most = std::max(kMostMatched, static_cast<std::size_t>(gpus));
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    const AllocationJob& job = problem.jobs[i];
    const auto place = memory.places.find({job.id, job.id});
    const bool is_placed = place != memory.places.end();
    if (job.gpus > 1) {
      matched.gpus[is_placed ? place->second.type : 0] -= is_placed ? job.gpus : 0;
    } else if (is_placed || waiting < most) {
      if (is_placed) {
        placed.push_back({matched.jobs.size(), place->second.type});
      } else {
        ++waiting;
      }
      matched.jobs.push_back(job);
      of_problem.push_back(i);
    }
  }
  Allocation found = Allox(matched, placed);
  Allocation allocation = NoShares(problem);
  for (std::size_t k = 0; k < of_problem.size(); ++k) {
    allocation.units[of_problem[k]].shares = std::move(found.units[k].shares);
  }
  allocation.objective = found.objective;
  return allocation;
}

Result<Components> MakeAllox(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(GavelSettings settings, GavelSettingsOf("allox", options));
  return GavelComponents("allox", SolveAllox, std::move(settings));
}

}  // namespace

ComponentEntry AlloxEntry() {
  return {ComponentKind::kPolicy,
          "allox",
          "jobs of one GPU matched with GPU types for the least mean JCT (AlloX)",
          kGavelRoundOnly,
          MakeAllox,
          {},
          "gandiva",
          false,
          {.gpu_types = true}};
}

}  // namespace trainyard::policies
