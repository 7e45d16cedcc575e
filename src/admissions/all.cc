// SPDX-License-Identifier: Apache-2.0
// Admits every job.
#include "admissions/admissions.h"

namespace trainyard::admissions {
namespace {

class All final : public Admission {
 public:
  [[nodiscard]] std::string_view name() const override { return "all"; }
  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& snapshot,
                                           Memory* /*memory*/) const override {
    std::vector<Verdict> verdicts;
    verdicts.reserve(snapshot.unjudged.size());
    for (const JobId job : snapshot.unjudged) {
      verdicts.push_back({.job = job, .judgement = Judgement::kAdmit});
    }
    return verdicts;
  }
};

}  // namespace

ComponentEntry AllEntry() {
  return {ComponentKind::kAdmission, "all", "admits every job", {}, base::MakeOf<All>};
}

}  // namespace trainyard::admissions
