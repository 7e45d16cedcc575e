// SPDX-License-Identifier: Apache-2.0
// Shortest remaining service first: remaining time x GPUs, so that of two jobs with equal time left
// the smaller one runs first (Tiresias, NSDI'19, section 3.1).
#include "policy/policies.h"
#include "policy/remaining_time.h"

namespace trainyard {
namespace {

class ShortestRemainingService final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "srsf"; }
  [[nodiscard]] unsigned moves() const override { return kWhileServed; }
  [[nodiscard]] Key KeyOf(const JobView& job, const Memory* /*memory*/) const override {
    return {Micros(ComparedTimeLeft(job)) * job.spec->gpus};
  }
  [[nodiscard]] double Slope(const JobView& job) const override { return -job.spec->gpus; }
  [[nodiscard]] Needs needs() const override { return {.work_left = true}; }
};

Result<PolicyComponent> MakeSrsf(const Options& /*options*/, const PolicyContext& /*context*/) {
  return PolicyComponent{.ordering = std::make_unique<ShortestRemainingService>()};
}

}  // namespace

PolicyEntry SrsfEntry() {
  return {"srsf", "shortest remaining service (time x GPUs) first, preemptive", {}, MakeSrsf};
}

}  // namespace trainyard
