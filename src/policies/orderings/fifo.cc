// SPDX-License-Identifier: Apache-2.0
// First in, first out: strictly in order of arrival, without preemption. A job that does not fit
// holds up everything behind it on the nodes that it may have.
#include <array>

#include "policies/orderings/starvation_guard.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 4> kFifoOptions{{
    {"by", OptionSpec::Kind::kChoice, "arrival",
     "when the scheduler first saw the job, or the submit time it states", "arrival|submit"},
    kGuardOption,
    kGuardAgainOption,
    kGuardLateOption,
}};

class Fifo final : public Ordering {
 public:
  explicit Fifo(const Options& options) : by_submit_(options.Text("by") == "submit") {}
  [[nodiscard]] std::string_view name() const override { return "fifo"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.walk = {.misfit = Misfit::kStop, .preempt = false}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {by_submit_ ? Micros(job.spec->submit) : 0}};  // 0: the earlier arrival decides
  }

 private:
  const bool by_submit_;
};

}  // namespace

ComponentEntry FifoEntry() {
  return {ComponentKind::kPolicy, "fifo",
          "first in, first out; a job that does not fit holds up the rest", kFifoOptions,
          MakeGuarded<Fifo>};
}

}  // namespace trainyard::policies
