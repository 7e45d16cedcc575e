// SPDX-License-Identifier: Apache-2.0
#include "profile/requested_model.h"

#include <utility>

#include "model/request/could_have.h"

namespace trainyard::profile {
namespace {

class RequestedModel final : public ExecutionModel {
 public:
  RequestedModel(const Cluster& cluster, std::unique_ptr<ExecutionModel> plain)
      : cluster_(cluster), classes_(cluster), plain_(std::move(plain)) {}

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    return plain_->TotalWork(job);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return MayHave(job, gpus) ? plain_->Rate(job, gpus) : 0;
  }
  [[nodiscard]] double RateOn(const JobSpec& job, int gpus, const GpuType& type) const override {
    return MayHave(job, gpus) ? plain_->RateOn(job, gpus, type) : 0;
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override {
    return plain_->ThroughputUnder(job, grant, co_runners);
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
    return plain_->Preferred(job);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return plain_->Levels(job);
  }

 private:
  [[nodiscard]] bool MayHave(const JobSpec& job, int gpus) const {
    return gpus == job.gpus || model::CouldHave(cluster_, classes_, job, gpus);
  }

  const Cluster& cluster_;
  const model::NodeClasses classes_;
  const std::unique_ptr<ExecutionModel> plain_;
};

}  // namespace

std::unique_ptr<ExecutionModel> WithRequests(const Cluster& cluster,
                                             std::unique_ptr<ExecutionModel> plain) {
  return std::make_unique<RequestedModel>(cluster, std::move(plain));
}

}  // namespace trainyard::profile
