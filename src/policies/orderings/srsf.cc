// SPDX-License-Identifier: Apache-2.0
// Shortest remaining service first: remaining time x GPUs, so that of two jobs with equal time left
// the smaller one runs first (Tiresias, NSDI'19, section 3.1).
#include "policies/orderings/remaining_time.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

class ShortestRemainingService final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "srsf"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = kWhileServed, .needs = {.work_left = true}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {Micros(ComparedTimeLeft(job)) * job.spec->gpus},
            .slope = -static_cast<double>(job.spec->gpus)};
  }
};

}  // namespace

ComponentEntry SrsfEntry() {
  return {ComponentKind::kPolicy,
          "srsf",
          "shortest remaining service (time x GPUs) first, preemptive",
          {},
          base::MakeOf<ShortestRemainingService>};
}

}  // namespace trainyard::policies
