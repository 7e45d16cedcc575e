// SPDX-License-Identifier: Apache-2.0
// Muri-L (SIGCOMM'22): muri-s for jobs whose work is not known; the least attained service comes
// first.
#include "policy/muri.h"
#include "policy/policies.h"

namespace trainyard {
namespace {

Result<PolicyComponent> MakeMuriL(const Options& options, const PolicyContext& /*context*/) {
  return MakeMuri("muri-l", MuriRank::kAttained, options);
}

}  // namespace

PolicyEntry MuriLEntry() {
  return {"muri-l", "interleaved groups, the least attained service first", kMuriOptions,
          MakeMuriL};
}

}  // namespace trainyard
