// SPDX-License-Identifier: Apache-2.0
// Shortest remaining time first: the job that would finish soonest on its requested GPUs runs
// first and takes GPUs from jobs with more left.
#include <array>

#include "policies/orderings/remaining_time.h"
#include "policies/orderings/starvation_guard.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 5> kSrtfOptions{{
    {"by", OptionSpec::Kind::kChoice, "work",
     "what is left: of its work, or of its declared duration less the time it has run",
     "work|service"},
    kSpeedOption,
    kGuardOption,
    kGuardAgainOption,
    kGuardLateOption,
}};

class ShortestRemainingTime final : public Ordering {
 public:
  explicit ShortestRemainingTime(const Options& options)
      : by_service_(options.Text("by") == "service"),
        last_speed_(options.Text("speed") == "last") {}
  [[nodiscard]] std::string_view name() const override { return "srtf"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = last_speed_ ? kAlways : kWhileServed, .needs = {.work_left = true}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = KeyOf(job), .slope = -1};
  }

 private:
  [[nodiscard]] Key KeyOf(const JobView& job) const {
    if (last_speed_) {
      return {RemainingSeconds(job, true)};
    }
    if (by_service_ && job.spec->duration) {
      const Duration left = *job.spec->duration - job.run_time;
      return {Micros(left + (job.grant != nullptr ? -job.start_cost : job.start_cost))};
    }
    return {Micros(ComparedTimeLeft(job))};
  }

  const bool by_service_;
  const bool last_speed_;
};

}  // namespace

ComponentEntry SrtfEntry() {
  return {ComponentKind::kPolicy, "srtf", "shortest remaining time first, preemptive", kSrtfOptions,
          MakeGuarded<ShortestRemainingTime>};
}

}  // namespace trainyard::policies
