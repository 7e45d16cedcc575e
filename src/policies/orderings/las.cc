// SPDX-License-Identifier: Apache-2.0
// Least attained service: the job that has used the least GPU-time runs first. Service is counted
// in quanta, so that jobs of equal standing do not take turns at every event: within a quantum
// running jobs stay. A quantum of 0 compares the service itself.
#include <algorithm>
#include <array>
#include <cmath>

#include "policies/orderings/starvation_guard.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 5> kLasOptions{{
    {"quantum", OptionSpec::Kind::kNumber, "3600",
     "GPU-seconds of service that count as one step; 0: continuous"},
    {"service", OptionSpec::Kind::kChoice, "gpu-time",
     "what is attained: GPU-seconds, or seconds with any number of GPUs", "gpu-time|time"},
    kGuardOption,
    kGuardAgainOption,
    kGuardLateOption,
}};

class LeastAttainedService final : public Ordering {
 public:
  explicit LeastAttainedService(const Options& options)
      : quantum_(options.Number("quantum")), by_time_(options.Text("service") == "time") {}
  [[nodiscard]] std::string_view name() const override { return "las"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = quantum_ > 0 ? kAtKnownTimes | kOnGrant : kWhileServed};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint now,
                                    const Memory* /*memory*/) const override {
    const int gpus = by_time_ ? 1 : job.spec->gpus;
    Standing standing{.stay = CeilFromSeconds(quantum_ / gpus)};  // a quantum of service
    if (quantum_ > 0) {
      standing.key = {Quanta(job), job.grant != nullptr ? 0.0 : 1.0};
      standing.moves_at = NextQuantum(job, now);
    } else {
      standing.key = {by_time_ ? Micros(job.run_time) : std::round(job.gpu_seconds * 1e6)};
      standing.slope = gpus;
    }
    return standing;
  }

 private:
  [[nodiscard]] std::optional<TimePoint> NextQuantum(const JobView& job, TimePoint now) const {
    if (job.grant == nullptr) {
      return std::nullopt;
    }
    const double left = (Quanta(job) + 1) * quantum_ - Service(job);
    return now + std::max(Duration{1}, CeilFromSeconds(left / (by_time_ ? 1 : job.grant->gpus)));
  }
  [[nodiscard]] double Quanta(const JobView& job) const {
    return std::floor(Service(job) / quantum_);
  }
  [[nodiscard]] double Service(const JobView& job) const {
    return by_time_ ? Seconds(job.run_time) : job.gpu_seconds;
  }

  const double quantum_;
  const bool by_time_;
};

}  // namespace

ComponentEntry LasEntry() {
  return {ComponentKind::kPolicy, "las", "least attained service (GPU-seconds) first, preemptive",
          kLasOptions, MakeGuarded<LeastAttainedService>};
}

}  // namespace trainyard::policies
