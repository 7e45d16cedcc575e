// SPDX-License-Identifier: Apache-2.0
// For tests: AntMan on hand-made jobs.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "support/staged_jobs.h"

namespace trainyard {

// Jobs with grants as they were given last.
class HeldJobs final : public JobTable {
 public:
  explicit HeldJobs(ChangingJobs& jobs) : jobs_(jobs) {}
  void Hold(const std::vector<Demand>& demands) {
    grants_.clear();
    for (const Demand& demand : demands) {
      grants_[demand.job] = {.gpus = demand.gpus,
                             .slices = demand.slices,
                             .sharing = demand.sharing,
                             .running = demand.running};
    }
  }
  [[nodiscard]] std::span<const JobId> live() const override { return jobs_.live(); }
  [[nodiscard]] JobView at(JobId job) const override { return jobs_.at(job); }
  [[nodiscard]] Brief brief(JobId job) const override {
    const auto found = grants_.find(job);
    const JobView view = at(job);
    return {view.spec, found == grants_.end() ? nullptr : &found->second, view.started};
  }

 private:
  ChangingJobs& jobs_;
  std::map<JobId, Grant> grants_;
};

inline constexpr int kGuaranteed = 0;
inline constexpr int kOpportunistic = 1;

// Two nodes of two GPUs.
class AntManTest : public testing::Test {
 protected:
  void Use(Result<Components> made) {
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
  }
  void SetUp() override { Use(TryPolicy("antman")); }

  JobId Add(int gpus, int priority) { return jobs_.Add(gpus, kLoads, 10, priority).id; }
  void Leave(JobId job) { jobs_.jobs().Remove(job); }
  void Decide() {
    Snapshot snapshot = jobs_.At(0);
    snapshot.jobs = &held_;
    held_.Hold(policy_->Decide(snapshot, memory_.get()).demands);
  }
  // Masks of its GPUs by node.
  std::vector<std::uint64_t> GpusOf(JobId job) {
    std::vector<std::uint64_t> gpus(2, 0);
    for (const Slice& slice : held_.grant(job).slices) {
      gpus[Index(slice.node)] = slice.gpus;
    }
    return gpus;
  }
  bool Runs(JobId job) { return held_.grant(job).gpus > 0 && held_.grant(job).running; }

  StagedJobs jobs_{{2, 2}};
  HeldJobs held_{jobs_.jobs()};
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
};

using Masks = std::vector<std::uint64_t>;

}  // namespace trainyard
