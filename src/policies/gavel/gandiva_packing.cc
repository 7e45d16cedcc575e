// SPDX-License-Identifier: Apache-2.0
// Gandiva's packing (OSDI'18) as Gavel has it: docs/policies/gandiva-packing.md.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/try.h"
#include "policies/gavel/gavel_policy.h"
#include "policies/gavel/pair_book.h"
#include "policies/gavel/simple_allocations.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

// Both together on the type where they do most, against each alone there.
double BestWorth(const AllocationProblem& problem, const PairBook& pairs, std::size_t first,
                 std::size_t second) {
  double best = 0;
  for (std::size_t j = 0; j < problem.types(); ++j) {
    best = std::max(best, PairedWorth(problem, pairs, first, second, j));
  }
  return best;
}

// The one behind it, without a partner, with which both do most; itself: nobody gains.
std::size_t BestPartner(const AllocationProblem& problem, const PairBook& pairs,
                        const TimeSharingMemory& memory, std::size_t of) {
  double most = 1;
  std::size_t best = of;
  for (std::size_t k = of + 1; k < problem.jobs.size(); ++k) {
    if (problem.jobs[k].gpus != problem.jobs[of].gpus ||
        memory.partners.contains(problem.jobs[k].id)) {
      continue;
    }
    if (const double worth = BestWorth(problem, pairs, of, k); worth > most) {
      most = worth;
      best = k;
    }
  }
  return best;
}

// Where jobs ask for more GPUs than there are, those that gain by it are paired, in order of
// arrival each with the one with which both do most. Pairs stay as long as they gain.
Allocation SolveGandivaPacking(const GavelSettings& /*settings*/, ProblemOf& of,
                               TimeSharingMemory& memory) {
  const AllocationProblem& problem = of.problem();
  const PairBook pairs(problem);
  std::map<JobId, std::size_t> at;
  double asked = 0;
  double gpus = 0;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    at[problem.jobs[i].id] = i;
    asked += problem.jobs[i].gpus;
  }
  for (const double of_type : problem.gpus) {
    gpus += of_type;
  }
  std::erase_if(memory.partners, [&](const auto& pair) {
    return asked <= gpus || !at.contains(pair.first) || !at.contains(pair.second) ||
           BestWorth(problem, pairs, at[pair.first], at[pair.second]) <= 1;
  });
  for (std::size_t i = 0; asked > gpus && i < problem.jobs.size(); ++i) {
    const JobId id = problem.jobs[i].id;
    if (memory.partners.contains(id)) {
      continue;
    }
    if (const std::size_t best = BestPartner(problem, pairs, memory, i); best != i) {
      memory.partners[id] = problem.jobs[best].id;
      memory.partners[problem.jobs[best].id] = id;
    }
  }
  std::vector<std::size_t> partners;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    const auto partner = memory.partners.find(problem.jobs[i].id);
    partners.push_back(partner == memory.partners.end() ? i : at[partner->second]);
  }
  return EqualUnits(problem, partners);
}

Result<Components> MakeGandivaPacking(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(GavelSettings settings, GavelSettingsOf("gandiva-packing", options));
  settings.packed = true;
  return GavelComponents("gandiva-packing", SolveGandivaPacking, std::move(settings));
}

}  // namespace

ComponentEntry GandivaPackingEntry() {
  return {ComponentKind::kPolicy,
          "gandiva-packing",
          "pairs of jobs on the same GPUs where they gain, equal time for all (Gavel)",
          kGavelRoundOnly,
          MakeGandivaPacking,
          {},
          "gandiva",
          false,
          {.pairs = true}};
}

}  // namespace trainyard::policies
