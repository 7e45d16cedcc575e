// SPDX-License-Identifier: Apache-2.0
// Shortest remaining time first: the job that would finish soonest on its requested GPUs runs
// first and takes GPUs from jobs with more left.
#include "policy/policies.h"

namespace trainyard {
namespace {

class ShortestRemainingTime final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "srtf"; }
  [[nodiscard]] unsigned moves() const override { return kWhileServed; }
  [[nodiscard]] Key KeyOf(const JobView& job, const Memory* /*memory*/) const override {
    return {Micros(job.time_left.value_or(Duration::max()))};
  }
  [[nodiscard]] double Slope(const JobView& /*job*/) const override { return -1; }
  [[nodiscard]] Needs needs() const override { return {.work_left = true}; }
};

Result<PolicyComponent> Make(const Options& /*options*/, const PolicyContext& /*context*/) {
  return PolicyComponent{.ordering = std::make_unique<ShortestRemainingTime>()};
}

}  // namespace

PolicyEntry SrtfEntry() { return {"srtf", "shortest remaining time first, preemptive", {}, Make}; }

}  // namespace trainyard
