// SPDX-License-Identifier: Apache-2.0
#include "profile/typed_model.h"

#include <algorithm>
#include <utility>

#include "model/gpu_types.h"

namespace trainyard {
namespace {

class TypedModel final : public ExecutionModel {
 public:
  TypedModel(GpuTypes types, std::unique_ptr<ExecutionModel> plain)
      : types_(std::move(types)), plain_(std::move(plain)) {}

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    return plain_->TotalWork(job);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return Slowest(job, gpus, types_.Accepted(job));
  }
  [[nodiscard]] double RateOn(const JobSpec& job, int gpus, const GpuType& type) const override {
    return plain_->RateOn(job, gpus, type);
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override {
    const double plain = plain_->Rate(job, grant.gpus);
    const Throughput under = plain_->ThroughputUnder(job, grant, co_runners);
    const double slowest = SlowestUnder(job, grant);
    return {.rate = under.rate == plain ? slowest : under.rate * (slowest / plain),
            .seconds_per_unit = under.seconds_per_unit * (plain / slowest)};
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
    return plain_->Preferred(job);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return plain_->Levels(job);
  }

 private:
  // Of those on which it runs; 0: on none.
  [[nodiscard]] double Slowest(const JobSpec& job, int gpus, GpuTypeSet among) const {
    double slowest = 0;
    ForEachType(among, [&](std::size_t type) {
      const double rate = plain_->RateOn(job, gpus, types_.types()[type]);
      slowest = rate > 0 && (slowest == 0 || rate < slowest) ? rate : slowest;
    });
    return slowest;
  }

  [[nodiscard]] double SlowestUnder(const JobSpec& job, const Grant& grant) const {
    GpuTypeSet held = 0;
    for (const Slice& slice : grant.slices) {
      held |= GpuTypeSet{1} << types_.of(slice.node);
    }
    return Slowest(job, grant.gpus, held == 0 ? types_.Accepted(job) : held);
  }

  const GpuTypes types_;
  const std::unique_ptr<ExecutionModel> plain_;
};

}  // namespace

std::unique_ptr<ExecutionModel> OnTypesOf(const Cluster& cluster,
                                          std::unique_ptr<ExecutionModel> plain) {
  GpuTypes types(cluster);
  if (!types.several() && types.types().front().speed == 1) {
    return plain;
  }
  return std::make_unique<TypedModel>(std::move(types), std::move(plain));
}

}  // namespace trainyard
