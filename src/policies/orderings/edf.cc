// SPDX-License-Identifier: Apache-2.0
// Earliest deadline first with the requested GPUs; jobs without a deadline come last.
#include <limits>

#include "policies/policies.h"

namespace trainyard::policies {
namespace {

class EarliestDeadline final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "edf"; }
  [[nodiscard]] OrderingTraits traits() const override { return {}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {job.spec->deadline ? Micros(*job.spec->deadline)
                                       : std::numeric_limits<double>::infinity()}};
  }
};

}  // namespace

ComponentEntry EdfEntry() {
  return {ComponentKind::kPolicy,
          "edf",
          "earliest deadline first, preemptive, with the requested GPUs",
          {},
          base::MakeOf<EarliestDeadline>,
          {},
          {},
          false,
          {.deadlines = true}};
}

}  // namespace trainyard::policies
