// SPDX-License-Identifier: Apache-2.0
// Lexicographic max-min fairness (Gavel, OSDI'20, section 4.3): docs/policies/water-filling.md.

#include "policies/gavel/fair_allocations.h"
#include "policies/gavel/gavel_policy.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

Allocation SolveWaterFilling(const GavelSettings& /*settings*/, ProblemOf& of,
                             TimeSharingMemory& /*memory*/) {
  return WaterFilling(of.problem());
}

Result<Components> MakeWaterFilling(const Options& options, const ComponentContext& /*context*/) {
  return MakeGavel("water-filling", SolveWaterFilling, options);
}

}  // namespace

ComponentEntry WaterFillingEntry() {
  return {ComponentKind::kPolicy,
          "water-filling",
          "max-min-fairness, and after the least share the next one (Gavel)",
          kGavelOptions,
          MakeWaterFilling,
          {},
          "gandiva",
          false,
          {},
          GavelGoesBy};
}

}  // namespace trainyard::policies
