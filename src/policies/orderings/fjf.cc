// SPDX-License-Identifier: Apache-2.0
// Fitting job first: in order of arrival without preemption, but a job that does not fit is passed
// over (FIFO with backfill).
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

class FittingJobFirst final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "fjf"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.walk = {.misfit = Misfit::kSkip, .preempt = false}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& /*job*/, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {};
  }
};

}  // namespace

ComponentEntry FjfEntry() {
  return {ComponentKind::kPolicy,
          "fjf",
          "fitting job first: FIFO with backfill",
          {},
          base::MakeOf<FittingJobFirst>};
}

}  // namespace trainyard::policies
