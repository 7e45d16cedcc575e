// SPDX-License-Identifier: Apache-2.0
// The smallest job first, where a job is as large as its remaining time times the shares of GPUs,
// CPUs and memory that it wants (Tetris, SIGCOMM'14, as in Synergy's simulator).
#include <array>

#include "policy/dominant_share.h"
#include "policy/keyed_jobs.h"
#include "policy/policies.h"
#include "policy/remaining_time.h"
#include "policy/starvation_guard.h"

namespace trainyard {
namespace {

constexpr std::array<OptionSpec, 3> kOptions{{kSpeedOption, kNamesOption, kGuardOption}};

class Tetris final : public Policy {
 public:
  explicit Tetris(const Options& options)
      : last_speed_(options.Text("speed") == "last"),
        names_all_(options.Text(kNamesOption.key) == "all"),
        guard_(FromSeconds(options.Number(kGuardOption.key))) {}

  [[nodiscard]] std::string_view name() const override { return "tetris"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<KeyedJobs>();
  }
  [[nodiscard]] Needs needs() const override { return {.work_left = true}; }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    const ClusterTotals totals(*snapshot.cluster);
    const auto volume = [&](const JobView& job) {
      return RemainingSeconds(job, last_speed_) * totals.SharesOf(*job.spec, *snapshot.rates).sum();
    };
    std::vector<Demand> demands =
        DemandsByKey(snapshot, volume, guard_, static_cast<KeyedJobs&>(*memory));
    return {.demands = names_all_ ? std::move(demands)
                                  : FittingByCount(std::move(demands), snapshot.gpus_up)};
  }

 private:
  const bool last_speed_;
  const bool names_all_;
  const Duration guard_;
};

Result<PolicyComponent> Make(const Options& options, const PolicyContext& /*context*/) {
  return PolicyComponent{.policy = std::make_unique<Tetris>(options)};
}

}  // namespace

PolicyEntry TetrisEntry() {
  return {"tetris", "least remaining time x wanted shares of all resources first", kOptions, Make};
}

}  // namespace trainyard
