// SPDX-License-Identifier: Apache-2.0
// Least slack first: the job that can wait least before its deadline is lost runs first and takes
// GPUs from jobs that can wait longer. Jobs without a deadline come last. A running job is worth a
// margin: without one, competing jobs come to have equal slack and take turns at every event.
#include <array>
#include <limits>
#include <memory>

#include "trainyard/plugin.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 1> kOptions{{
    {"margin", OptionSpec::Kind::kNumber, "600",
     "seconds of slack that a job must have less than a running one to take its GPUs"},
}};

class LeastSlack final : public Ordering {
 public:
  explicit LeastSlack(Duration margin) : margin_(margin) {}

  [[nodiscard]] std::string_view name() const override { return "slack"; }
  // The standing moves on while the job runs, and by the margin when the job starts or stops.
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = kWhileServed | kOnGrant, .needs = {.work_left = true}};
  }
  // The key is the latest time at which the job must run on, without a pause, to meet its deadline.
  // For all jobs the slack is that time less the present one, so that the order is the same.
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    if (!job.spec->deadline) {
      return {.key = {std::numeric_limits<double>::infinity()}};
    }
    const TimePoint latest = *job.spec->deadline - job.time_left.value_or(Duration(0));
    return {.key = {Micros(job.grant == nullptr ? latest : latest - margin_)}, .slope = 1};
  }

 private:
  const Duration margin_;
};

Result<Components> Make(const Options& options, const ComponentContext& /*context*/) {
  return Components{.ordering =
                        std::make_unique<LeastSlack>(FromSeconds(options.Number("margin")))};
}

ComponentEntry SlackEntry() {
  return {ComponentKind::kPolicy, "slack", "least slack first, preemptive, with the requested GPUs",
          kOptions, Make};
}

}  // namespace

TRAINYARD_PLUGIN(SlackEntry());

}  // namespace trainyard
