// SPDX-License-Identifier: Apache-2.0
// Least attained service: the job that has used the least GPU-time runs first. Service is counted
// in quanta, so that jobs of equal standing do not take turns at every event: within a quantum
// running jobs stay. A quantum of 0 compares the service itself.
#include <algorithm>
#include <array>
#include <cmath>

#include "policy/policies.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 1> kOptions{{
    {"quantum", OptionSpec::Kind::kNumber, "3600",
     "GPU-seconds of service that count as one step; 0: continuous"},
}};

class LeastAttainedService final : public Ordering {
 public:
  explicit LeastAttainedService(double quantum) : quantum_(quantum) {}
  [[nodiscard]] std::string_view name() const override { return "las"; }
  [[nodiscard]] unsigned moves() const override {
    return quantum_ > 0 ? kAtKnownTimes | kOnGrant : kWhileServed;
  }
  [[nodiscard]] Key KeyOf(const JobView& job, const Memory* /*memory*/) const override {
    if (quantum_ > 0) {
      return {Quanta(job), job.grant != nullptr ? 0.0 : 1.0};
    }
    return {job.gpu_seconds * 1e6};
  }
  [[nodiscard]] double Slope(const JobView& job) const override { return job.spec->gpus; }
  [[nodiscard]] std::optional<TimePoint> NextMove(const JobView& job, TimePoint now,
                                                  const Memory* /*memory*/) const override {
    if (job.grant == nullptr) {
      return std::nullopt;
    }
    const double left = (Quanta(job) + 1) * quantum_ - job.gpu_seconds;
    return now + std::max(Duration{1}, CeilFromSeconds(left / job.grant->gpus));
  }

 private:
  [[nodiscard]] double Quanta(const JobView& job) const {
    return std::floor(job.gpu_seconds / quantum_);
  }

  const double quantum_;
};

Result<PolicyComponent> Make(const Options& options, const PolicyContext& /*context*/) {
  return PolicyComponent{.ordering =
                             std::make_unique<LeastAttainedService>(options.Number("quantum"))};
}

}  // namespace

PolicyEntry LasEntry() {
  return {"las", "least attained service (GPU-seconds) first, preemptive", kOptions, Make};
}

}  // namespace trainyard
