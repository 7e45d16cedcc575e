// SPDX-License-Identifier: Apache-2.0
// Shortest job first: by the whole run time on the requested GPUs, without preemption. The Tiresias
// simulator means the job with the fewest GPUs by the same name (`by=gpus`).
#include <array>

#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 1> kSjfOptions{{
    {"by", OptionSpec::Kind::kChoice, "duration", "what makes a job short", "duration|gpus"},
}};

class ShortestJobFirst final : public Ordering {
 public:
  explicit ShortestJobFirst(const Options& options) : by_gpus_(options.Text("by") == "gpus") {}
  [[nodiscard]] std::string_view name() const override { return "sjf"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.needs = {.work_left = !by_gpus_}, .walk = {.misfit = Misfit::kSkip, .preempt = false}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {by_gpus_ ? job.spec->gpus : Micros(job.total_time.value_or(Duration::max()))}};
  }

 private:
  const bool by_gpus_;
};

}  // namespace

ComponentEntry SjfEntry() {
  return {ComponentKind::kPolicy, "sjf", "shortest job first, without preemption", kSjfOptions,
          base::MakeOf<ShortestJobFirst>};
}

}  // namespace trainyard::policies
