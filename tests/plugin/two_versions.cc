// SPDX-License-Identifier: Apache-2.0
// Two versions of one plug-in: the second serves in another order than the first.
#include <memory>
#include <vector>

#include "trainyard/plugin.h"

namespace trainyard {
namespace {

constexpr double kDirection = COMPANY_VERSION == 1 ? 1 : -1;

class CompanyOrder final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "company-order"; }
  // A job that runs keeps its GPUs.
  [[nodiscard]] OrderingTraits traits() const override { return {.walk = {.preempt = false}}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {kDirection * Seconds(job.spec->submit)}};
  }
};

Result<Components> Make(const Options& /*options*/, const ComponentContext& /*context*/) {
  return Components{.ordering = std::make_unique<CompanyOrder>()};
}

ComponentEntry Entry() {
  return {
      ComponentKind::kPolicy, "company-order", "first come, or last come in version 2", {}, Make};
}

}  // namespace

TRAINYARD_PLUGIN(Entry());

}  // namespace trainyard
