// SPDX-License-Identifier: Apache-2.0
// Loader workers beside any policy: the cores of each node are divided among the jobs that run
// there, as processes that load their data (torchloader, IEEE CLOUD 2022).
#include <array>

#include "loader/division.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 2> kOptions{loader::kAllocationOption, loader::kLeastGainOption};

int WorkersOf(const Slices& slices) {
  int workers = 0;
  for (const Slice& slice : slices) {
    workers += slice.loader_workers;
  }
  return workers;
}

class LoaderTuning final : public Tuning {
 public:
  LoaderTuning(const loader::LoaderProfiles& profiles, const loader::DivisionOptions& options)
      : division_(profiles, options) {}
  [[nodiscard]] std::string_view name() const override { return "loader"; }

  void Tune(const Snapshot& snapshot, std::span<Tuned> jobs) const override {
    std::vector<loader::LoaderJob> asked;
    std::vector<Slices*> slices;
    for (const Tuned& job : jobs) {
      asked.push_back({.spec = job.spec,
                       .slices = job.slices,
                       .workers = WorkersOf(*job.slices),
                       .settled = job.settled});
      slices.push_back(job.slices);
    }
    const std::vector<int> workers = division_.Divide(*snapshot.cluster, asked, snapshot.rates);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      *slices[i] = loader::WithWorkers(std::move(*slices[i]), workers[i]);
    }
    loader::ShareCores(*snapshot.cluster, slices);
  }

 private:
  const loader::WorkerDivision division_;
};

Result<Components> Make(const Options& options, const ComponentContext& context) {
  if (context.loader == nullptr) {
    return InvalidArgument(
        "tuning 'loader' needs a model catalogue; expected --profiles FILE with the columns model, "
        "params and flops");
  }
  return Components{.tuning = std::make_unique<LoaderTuning>(*context.loader,
                                                             loader::DivisionOptionsOf(options))};
}

}  // namespace

ComponentEntry LoaderTuningEntry() {
  return {ComponentKind::kTuning, "loader", "divides each node's cores as processes that load data",
          kOptions, Make};
}

}  // namespace trainyard::policies
