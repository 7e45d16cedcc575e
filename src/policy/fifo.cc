// SPDX-License-Identifier: Apache-2.0
// First in, first out: strictly in order of arrival, without preemption. A job that does not fit
// holds up everything behind it.
#include "policy/policies.h"

namespace trainyard {
namespace {

class Fifo final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "fifo"; }
  [[nodiscard]] unsigned moves() const override { return kNeverMoves; }
  [[nodiscard]] Key KeyOf(const JobView& /*job*/, const Memory* /*memory*/) const override {
    return {};  // all alike: the earlier arrival decides
  }
  [[nodiscard]] Walk walk() const override { return {.misfit = Misfit::kStop, .preempt = false}; }
};

Result<PolicyComponent> Make(const Options& /*options*/, const PolicyContext& /*context*/) {
  return PolicyComponent{.ordering = std::make_unique<Fifo>()};
}

}  // namespace

PolicyEntry FifoEntry() {
  return {"fifo", "first in, first out; a job that does not fit holds up the rest", {}, Make};
}

}  // namespace trainyard
