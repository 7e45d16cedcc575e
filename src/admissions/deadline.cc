// SPDX-License-Identifier: Apache-2.0
// Leaves the verdict to a policy that plans: a job with a deadline is admitted if and only if it
// and all jobs admitted before can be finished in time (ElasticFlow, ASPLOS'23, section 4.1).
#include "admissions/admissions.h"

namespace trainyard::admissions {
namespace {

class Deadline final : public Admission {
 public:
  [[nodiscard]] std::string_view name() const override { return "deadline"; }
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& /*snapshot*/,
                                           Memory* /*memory*/) const override {
    return {};
  }
};

}  // namespace

ComponentEntry DeadlineEntry() {
  return {ComponentKind::kAdmission,
          "deadline",
          "the policy judges: who cannot be finished in time is declined",
          {},
          base::MakeOf<Deadline>,
          {},
          {},
          true};
}

}  // namespace trainyard::admissions
