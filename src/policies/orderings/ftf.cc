// SPDX-License-Identifier: Apache-2.0
// Finish-time fairness as an order: rho is the time from submission to the end, if the job ran from
// now on, over its time on its GPUs with a proportional share of everything else. The job that
// is treated worst runs first (Themis, NSDI'20); Synergy's simulator runs the best treated first.
#include <array>

#include "policies/orderings/remaining_time.h"
#include "policies/orderings/starvation_guard.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 5> kFtfOptions{{
    {"serve", OptionSpec::Kind::kChoice, "worst",
     "the largest rho first, or the smallest as in the published simulator (best)", "worst|best"},
    kSpeedOption,
    kGuardOption,
    kGuardAgainOption,
    kGuardLateOption,
}};

class FinishTimeFairness final : public Ordering {
 public:
  explicit FinishTimeFairness(const Options& options)
      : best_first_(options.Text("serve") == "best"),
        last_speed_(options.Text("speed") == "last") {}

  [[nodiscard]] std::string_view name() const override { return "ftf"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = kAlways, .needs = {.work_left = true}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    const double rho = Rho(job);
    // It stays for the lease of Themis.
    return {.key = {best_first_ ? rho : -rho}, .stay = FromSeconds(600)};
  }

 private:
  [[nodiscard]] double Rho(const JobView& job) const {
    const double age = Seconds(job.waited + job.run_time);
    const double ideal =
        Seconds(job.spec->duration.value_or(job.total_time.value_or(Duration::max())));
    return (age + RemainingSeconds(job, last_speed_)) / ideal;
  }

  const bool best_first_;
  const bool last_speed_;
};

}  // namespace

ComponentEntry FtfEntry() {
  return {ComponentKind::kPolicy, "ftf",
          "finish-time fairness: the worst treated job first, preemptive", kFtfOptions,
          MakeGuarded<FinishTimeFairness>};
}

}  // namespace trainyard::policies
