// SPDX-License-Identifier: Apache-2.0
// Equal parts of the cluster (Gavel, OSDI'20, section 4.2): docs/policies/isolated.md.
#include <utility>

#include "base/try.h"
#include "policies/gavel/gavel_policy.h"
#include "policies/gavel/simple_allocations.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

Allocation SolveIsolated(const GavelSettings& /*settings*/, ProblemOf& of,
                         TimeSharingMemory& /*memory*/) {
  return Isolated(of.problem());
}

Result<Components> MakeIsolated(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(GavelSettings settings, GavelSettingsOf("isolated", options));
  return GavelComponents("isolated", SolveIsolated, std::move(settings));
}

}  // namespace

ComponentEntry IsolatedEntry() {
  return {ComponentKind::kPolicy,
          "isolated",
          "every job an equal part of each type of GPU (Gavel)",
          kGavelRoundOnly,
          MakeIsolated,
          {},
          "gandiva"};
}

}  // namespace trainyard::policies
