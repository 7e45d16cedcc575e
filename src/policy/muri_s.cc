// SPDX-License-Identifier: Apache-2.0
// Muri-S (SIGCOMM'22): the jobs with the least service left first, interleaved in groups whose
// stages use different resources at the same time.
#include "policy/muri.h"
#include "policy/policies.h"

namespace trainyard {
namespace {

Result<PolicyComponent> MakeMuriS(const Options& options, const PolicyContext& /*context*/) {
  return MakeMuri("muri-s", MuriRank::kRemaining, options);
}

}  // namespace

PolicyEntry MuriSEntry() {
  return {"muri-s", "interleaved groups, the least remaining service first", kMuriOptions,
          MakeMuriS};
}

}  // namespace trainyard
