// SPDX-License-Identifier: Apache-2.0
#include "profile/paired_model.h"

#include <algorithm>
#include <utility>

#include "model/node_classes.h"
#include "profile/execution_model.h"

namespace trainyard::profile {
namespace {

class PairedModel final : public ExecutionModel {
 public:
  PairedModel(const ThroughputTable& table, const Cluster& cluster,
              std::unique_ptr<ExecutionModel> others)
      : table_(table), types_(cluster), others_(std::move(others)) {}

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    return others_->TotalWork(job);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return others_->Rate(job, gpus);
  }
  [[nodiscard]] double RateOn(const JobSpec& job, int gpus, const GpuType& type) const override {
    return others_->RateOn(job, gpus, type);
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override {
    if (co_runners.collocated.empty() || job.profile_row < 0 || StatesStages(job)) {
      return others_->ThroughputUnder(job, grant, co_runners);
    }
    const JobSpec& other = *co_runners.collocated.front();
    if (co_runners.collocated.size() > 1 || other.profile_row < 0) {
      return Throughput::OfRate(0);
    }
    double slowest = 0;
    for (const Slice& slice : grant.slices) {
      const std::string& type = types_.types()[types_.of(slice.node)].name;
      const double rate = table_.RateBeside(job.profile_row, other.profile_row, grant.gpus, type);
      slowest = &slice == &grant.slices.front() ? rate : std::min(slowest, rate);
    }
    return Throughput::OfRate(slowest);
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
    return others_->Preferred(job);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return others_->Levels(job);
  }

 private:
  const ThroughputTable& table_;
  const model::GpuTypes types_;
  const std::unique_ptr<ExecutionModel> others_;
};

}  // namespace

std::unique_ptr<ExecutionModel> WithPairs(const ThroughputTable& table, const Cluster& cluster,
                                          std::unique_ptr<ExecutionModel> others) {
  return std::make_unique<PairedModel>(table, cluster, std::move(others));
}

}  // namespace trainyard::profile
