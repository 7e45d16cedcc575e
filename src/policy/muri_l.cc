// SPDX-License-Identifier: Apache-2.0
// Muri-L (SIGCOMM'22): muri-s for jobs whose work is not known; the least attained service comes
// first.
#include "policy/muri.h"
#include "policy/policies.h"

namespace trainyard {
namespace {

Result<Components> MakeMuriL(const Options& options, const ComponentContext& /*context*/) {
  return MakeMuri("muri-l", MuriRank::kAttained, options);
}

}  // namespace

ComponentEntry MuriLEntry() {
  return {ComponentKind::kPolicy, "muri-l", "interleaved groups, the least attained service first",
          kMuriOptions, MakeMuriL};
}

}  // namespace trainyard
