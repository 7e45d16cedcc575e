// SPDX-License-Identifier: Apache-2.0
// Muri-S (SIGCOMM'22): the jobs with the least service left first, interleaved in groups whose
// stages use different resources at the same time.
#include "policy/muri.h"
#include "policy/policies.h"

namespace trainyard {
namespace {

Result<Components> MakeMuriS(const Options& options, const ComponentContext& /*context*/) {
  return MakeMuri("muri-s", MuriRank::kRemaining, options);
}

}  // namespace

ComponentEntry MuriSEntry() {
  return {ComponentKind::kPolicy, "muri-s", "interleaved groups, the least remaining service first",
          kMuriOptions, MakeMuriS};
}

}  // namespace trainyard
