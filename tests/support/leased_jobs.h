// SPDX-License-Identifier: Apache-2.0
// For tests of policies that plan leases: jobs made by hand that run and end as they are decided.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/equal_costs.h"
#include "support/hand_made_jobs.h"

namespace trainyard {

using Ids = std::vector<std::size_t>;

class ChronusTest : public testing::Test {
 protected:
  void SetUp() override { Use(""); }

  void Use(const std::string& options) {
    Result<Components> made = TryPolicy("chronus:lease=100,margin=1" + options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
  }

  // A job without deadlines is a best-effort job. Deadlines are worth 10, 9, ... A second is left
  // of the duration, as of each lease a bit is kept in reserve.
  JobId Add(int gpus, double duration, const std::vector<double>& deadlines = {}) {
    duration -= reserve_;
    JobSpec spec{.name = "job", .gpus = gpus, .submit = AtSeconds(now_)};
    spec.duration = FromSeconds(duration);
    if (!deadlines.empty()) {
      const auto traits = std::make_shared<JobTraits>();
      for (const double deadline : deadlines) {
        const double value = 10.0 - static_cast<double>(traits->deadlines.size());
        traits->deadlines.push_back({AtSeconds(deadline), value});
      }
      spec.deadline = AtSeconds(deadlines.front());
      spec.traits = traits;
    }
    JobView& job = jobs_.Add(std::move(spec));
    job.time_left = FromSeconds(duration);
    left_.push_back(duration);
    return job.id;
  }

  // Runs the jobs that hold GPUs until then, and decides; jobs that are done leave before.
  Ids At(double now) {
    for (const JobId id : Ids2Jobs(running_)) {
      double& left = left_[Index(id)];
      left -= now - now_;
      jobs_.view(id).time_left = FromSeconds(std::max(0.0, left));
      if (left <= 0) {
        jobs_.Remove(id);
        ended_.push_back(Index(id));
      }
    }
    now_ = now;
    proposal_ = policy_->Decide(
        {.now = AtSeconds(now), .gpus_up = gpus_up_, .jobs = &jobs_, .costs = &costs_},
        memory_.get());
    jobs_.Hold(proposal_.demands);
    running_.clear();
    int used = 0;
    for (const Demand& demand : proposal_.demands) {
      running_.push_back(Index(demand.job));
      used += demand.gpus;
    }
    EXPECT_LE(used, gpus_up_);
    return running_;
  }

  static std::vector<JobId> Ids2Jobs(const Ids& ids) {
    std::vector<JobId> jobs;
    for (const std::size_t id : ids) {
      jobs.push_back(JobAt(id));
    }
    return jobs;
  }

  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  ChangingJobs jobs_;
  EqualCosts costs_;
  std::vector<double> left_;
  Ids running_;
  Ids ended_;
  Proposal proposal_;
  double now_ = 0;
  int gpus_up_ = 4;
  double reserve_ = 1;
};

}  // namespace trainyard
