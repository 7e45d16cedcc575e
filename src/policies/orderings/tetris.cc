// SPDX-License-Identifier: Apache-2.0
// The smallest job first, where a job is as large as its remaining time times the shares of GPUs,
// CPUs and memory that it wants (Tetris, SIGCOMM'14, as in Synergy's simulator).
#include <array>

#include "policies/orderings/remaining_time.h"
#include "policies/orderings/starvation_guard.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 4> kTetrisOptions{
    {kSpeedOption, kGuardOption, kGuardAgainOption, kGuardLateOption}};

class Tetris final : public Ordering {
 public:
  explicit Tetris(const Options& options) : last_speed_(options.Text("speed") == "last") {}

  [[nodiscard]] std::string_view name() const override { return "tetris"; }
  // Sums of shares are no whole numbers: followed by a slope, equal keys would not stay equal.
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = kAlways, .needs = {.work_left = true}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* /*memory*/) const override {
    return {.key = {RemainingSeconds(job, last_speed_) * job.shares.sum()}};
  }

 private:
  const bool last_speed_;
};

}  // namespace

ComponentEntry TetrisEntry() {
  return {ComponentKind::kPolicy, "tetris",
          "least remaining time x wanted shares of all resources first", kTetrisOptions,
          MakeGuarded<Tetris>};
}

}  // namespace trainyard::policies
