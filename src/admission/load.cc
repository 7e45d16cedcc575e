// SPDX-License-Identifier: Apache-2.0
// Lets jobs in while those inside ask for at most `threshold` times the GPUs of the cluster; the
// others wait outside in the order of their arrival. The test is made before a job is let in, so
// that the last one may exceed the threshold (Blox, EuroSys'24; reference 7).
#include <array>

#include "admission/admissions.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 1> kLoadOptions{{
    {"threshold", OptionSpec::Kind::kNumber, "1",
     "GPUs asked for by the jobs inside, as a multiple of those of the cluster"},
}};

class Load final : public Admission {
 public:
  explicit Load(double threshold) : threshold_(threshold) {}
  [[nodiscard]] std::string_view name() const override { return "load"; }

  [[nodiscard]] std::vector<Verdict> Admit(const Snapshot& snapshot,
                                           Memory* /*memory*/) const override {
    const double most = threshold_ * snapshot.gpus_up;
    auto asked = static_cast<double>(snapshot.gpus_asked);
    std::vector<Verdict> verdicts;
    verdicts.reserve(snapshot.unjudged.size());
    for (const JobId job : snapshot.unjudged) {
      const bool fits = asked <= most;
      verdicts.push_back({.job = job, .judgement = fits ? Judgement::kAdmit : Judgement::kLater});
      if (!fits) {
        break;  // in order: nobody overtakes
      }
      asked += snapshot.jobs->spec(job).gpus;
    }
    return verdicts;
  }

 private:
  const double threshold_;
};

Result<Components> MakeLoad(const Options& options, const ComponentContext& /*context*/) {
  return Components{.admission = std::make_unique<Load>(options.Number("threshold"))};
}

}  // namespace

ComponentEntry LoadEntry() {
  return {ComponentKind::kAdmission, "load",
          "as long as those inside ask for no more than a share of the cluster", kLoadOptions,
          MakeLoad};
}

}  // namespace trainyard
