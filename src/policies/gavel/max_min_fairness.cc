// SPDX-License-Identifier: Apache-2.0
// Max-min fairness of work (Gavel, OSDI'20, section 4.1): docs/policies/max-min-fairness.md.

#include "policies/gavel/fair_allocations.h"
#include "policies/gavel/gavel_policy.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

Allocation SolveMaxMinFairness(const GavelSettings& /*settings*/, ProblemOf& of,
                               TimeSharingMemory& /*memory*/) {
  return MaxMinFairness(of.problem());
}

Result<Components> MakeMaxMinFairness(const Options& options, const ComponentContext& /*context*/) {
  return MakeGavel("max-min-fairness", SolveMaxMinFairness, options);
}

}  // namespace

ComponentEntry MaxMinFairnessEntry() {
  return {ComponentKind::kPolicy,
          "max-min-fairness",
          "the least share of the cluster as large as can be, by GPU type (Gavel)",
          kGavelOptions,
          MakeMaxMinFairness,
          {},
          "gandiva",
          false,
          {},
          GavelGoesBy};
}

}  // namespace trainyard::policies
