// SPDX-License-Identifier: Apache-2.0
// Admits every job.
#include "admission/admissions.h"

namespace trainyard {
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

std::unique_ptr<Admission> MakeAll(const Options& /*options*/) { return std::make_unique<All>(); }

}  // namespace

AdmissionEntry AllEntry() { return {"all", "admits every job", {}, MakeAll}; }

}  // namespace trainyard
