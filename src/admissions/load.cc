// SPDX-License-Identifier: Apache-2.0
// Admits arrivals while the admitted jobs ask for at most `threshold` times the GPUs of the
// cluster; the others wait unadmitted in the order of their arrival. The test is made before a job
// is admitted, so that the last one may exceed the threshold (as in the simulator of Blox,
// EuroSys'24).
#include <array>

#include "admissions/admissions.h"

namespace trainyard::admissions {
namespace {

constexpr std::array<OptionSpec, 1> kLoadOptions{{
    {"threshold", OptionSpec::Kind::kNumber, "1",
     "GPUs asked for by the jobs inside, as a multiple of those of the cluster"},
}};

class Load final : public Admission {
 public:
  explicit Load(const Options& options) : threshold_(options.Number("threshold")) {}
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
        break;  // in order of arrival
      }
      asked += snapshot.jobs->spec(job).gpus;
    }
    return verdicts;
  }

 private:
  const double threshold_;
};

}  // namespace

ComponentEntry LoadEntry() {
  return {ComponentKind::kAdmission, "load",
          "as long as those inside ask for no more than a share of the cluster", kLoadOptions,
          base::MakeOf<Load>};
}

}  // namespace trainyard::admissions
