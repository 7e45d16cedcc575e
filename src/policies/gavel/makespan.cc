// SPDX-License-Identifier: Apache-2.0
// The least makespan (Gavel, OSDI'20, section 4.2): docs/policies/makespan.md.

#include "policies/gavel/gavel_policy.h"
#include "policies/gavel/throughput_allocations.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

Allocation SolveMakespan(const GavelSettings& /*settings*/, ProblemOf& of,
                         TimeSharingMemory& /*memory*/) {
  return LeastMakespan(of.problem());
}

Result<Components> MakeMakespan(const Options& options, const ComponentContext& /*context*/) {
  return MakeGavel("makespan", SolveMakespan, options);
}

}  // namespace

ComponentEntry MakespanEntry() {
  return {ComponentKind::kPolicy,
          "makespan",
          "all jobs done as early as can be, by GPU type (Gavel)",
          kGavelOptions,
          MakeMakespan,
          {},
          "gandiva",
          false,
          {},
          GavelGoesBy};
}

}  // namespace trainyard::policies
