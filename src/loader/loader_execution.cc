// SPDX-License-Identifier: Apache-2.0
#include "loader/loader_execution.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "model/slices.h"

namespace trainyard::loader {
namespace {

double WorkersOf(const Slices& slices) {
  std::int64_t milli_cpus = 0;
  for (const Slice& slice : slices) {
    milli_cpus += slice.soft.milli_cpus;
  }
  return static_cast<double>(milli_cpus) / 1000;
}

// Who is collocated names his GPUs.
int SharingUnder(const Grant& grant, const CoRunners& co_runners) {
  std::vector<const Slices*> jobs{&grant.slices};
  for (const JobSpec* other : co_runners.collocated) {
    jobs.push_back(&DevicesOf(*other));
  }
  return std::max(1, SharingOf(jobs).front());
}

class LoaderModel final : public ExecutionModel {
 public:
  LoaderModel(const LoaderProfiles& profiles, WorkersFrom from)
      : profiles_(profiles), model_(profiles.model()), from_(from) {}

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    CHECK(job.iterations.has_value());
    return *job.iterations;
  }
  // Alone, and with data enough.
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return gpus == job.gpus
               ? 1 / model_.IterationSeconds(profiles_.SizeOf(job), LoaderProfiles::ShapeOf(job))
               : 0;
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override {
    return Throughput::OfRate(LoadedRateUnder({.loader = model_.loader, .from = from_},
                                              Rate(job, grant.gpus), job, grant, co_runners));
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }

 private:
  const LoaderProfiles& profiles_;
  const ThroughputModel model_;
  const WorkersFrom from_;
};

}  // namespace

std::unique_ptr<ExecutionModel> MakeLoaderModel(const LoaderProfiles& profiles, WorkersFrom from) {
  return std::make_unique<LoaderModel>(profiles, from);
}

double LoadedRate(const LoaderCoefficients& loader, double gpu_rate, double workers, int devices) {
  if (workers <= 0) {
    return 1 / (1 / gpu_rate + 1 / loader.Rate(devices));
  }
  return std::min(gpu_rate, loader.Rate(workers));
}

double LoadedRateUnder(const LoaderSide& side, double alone, const JobSpec& job, const Grant& grant,
                       const CoRunners& co_runners) {
  const double batch = static_cast<double>(job.batch_size);
  const double gpu_rate = alone * batch / SharingUnder(grant, co_runners);
  if (gpu_rate <= 0) {
    return 0;
  }
  const int asked = job.traits ? job.traits->loader_workers : 0;
  if (side.from == WorkersFrom::kRequest && asked == 0) {
    return gpu_rate / batch;
  }
  const double workers = side.from == WorkersFrom::kRequest ? asked : WorkersOf(grant.slices);
  return LoadedRate(side.loader, gpu_rate, workers, job.gpus) / batch;
}

std::vector<int> SharingOf(std::span<const Slices* const> jobs) {
  std::map<std::pair<NodeId, int>, int> holders;
  for (const Slices* slices : jobs) {
    model::ForEachGpu(*slices, [&](NodeId node, int gpu) { ++holders[{node, gpu}]; });
  }
  std::vector<int> sharing;
  for (const Slices* slices : jobs) {
    int most = 0;
    model::ForEachGpu(*slices, [&](NodeId node, int gpu) {
      most = std::max(most, holders.at({node, gpu}));
    });
    sharing.push_back(most);
  }
  return sharing;
}

const Slices& DevicesOf(const JobSpec& job) {
  static const Slices kNone;
  return job.traits ? job.traits->devices : kNone;
}

}  // namespace trainyard::loader
