// SPDX-License-Identifier: Apache-2.0
// For tests: jobs made by hand, as a policy sees them, and policies by name.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/catalog_lookup.h"
#include "policy/policies.h"
#include "trainyard/snapshot.h"
#include "trainyard/state.h"

namespace trainyard {

class HandMadeJobs final : public JobTable {
 public:
  // The next job, holding `gpus_held` GPUs. Its view can be changed as long as the table lives.
  JobView& Add(JobSpec spec, int gpus_held = 0) {
    Job& job = jobs_.emplace_back();
    job.spec = std::move(spec);
    job.view.id = JobAt(ids_.size());
    job.view.spec = &job.spec;
    job.view.arrival = ids_.size();
    ids_.push_back(job.view.id);
    Hold(job.view, gpus_held);
    return job.view;
  }
  void Hold(JobView& view, int gpus, const Slices& slices = {}) {
    Job& job = jobs_[Index(view.id)];
    job.grant.gpus = gpus;
    job.grant.slices = slices;
    view.grant = gpus > 0 ? &job.grant : nullptr;
    view.started = view.started || gpus > 0;
  }

  [[nodiscard]] std::span<const JobId> live() const override { return ids_; }
  [[nodiscard]] JobView at(JobId job) const override { return jobs_[Index(job)].view; }

 private:
  struct Job {
    JobSpec spec;
    Grant grant;
    JobView view;
  };
  std::deque<Job> jobs_;  // views point into it
  std::vector<JobId> ids_;
};

// Another memory of the component with the same contents.
inline std::unique_ptr<Memory> CopyOf(Memory& memory, const Component& component) {
  StateStream written;
  memory.Serialize(written);
  std::unique_ptr<Memory> copy = component.NewMemory();
  StateStream read{written.bytes()};
  copy->Serialize(read);
  EXPECT_TRUE(read.complete());
  return copy;
}

// Throughput profiles made by hand.
class Profiles final : public ExecutionModel {
 public:
  // Iterations per second of a model by GPU count.
  void Set(const std::string& model, const std::map<int, double>& rates) {
    rates_[model] = rates;
    levels_[model].clear();
    for (const auto& [gpus, rate] : rates) {
      levels_[model].push_back(gpus);
    }
  }
  [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    const std::map<int, double>& rates = rates_.at(job.model);
    const auto rate = rates.find(gpus);
    return rate == rates.end() ? 0 : rate->second;
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return levels_.at(job.model);
  }

 private:
  std::map<std::string, std::map<int, double>, std::less<>> rates_;
  std::map<std::string, std::vector<int>, std::less<>> levels_;
};

// Hand-made jobs that can leave again.
class ChangingJobs : public JobTable {
 public:
  JobView& Add(JobSpec spec) {
    JobView& job = all_.Add(std::move(spec));
    live_.push_back(job.id);
    views_.push_back(&job);
    return job;
  }
  void Remove(JobId job) { std::erase(live_, job); }
  // All jobs hold what these say, the others nothing; who is named has started.
  void Hold(const std::vector<Demand>& demands) {
    for (JobView* view : views_) {
      all_.Hold(*view, 0);
    }
    for (const Demand& demand : demands) {
      all_.Hold(view(demand.job), demand.gpus, demand.slices);
      view(demand.job).started = true;
    }
  }
  [[nodiscard]] JobView& view(JobId job) { return *views_[Index(job)]; }

  [[nodiscard]] std::span<const JobId> live() const override { return live_; }
  [[nodiscard]] JobView at(JobId job) const override { return all_.at(job); }

 private:
  HandMadeJobs all_;
  std::vector<JobId> live_;
  std::vector<JobView*> views_;
};

[[nodiscard]] inline Result<Components> TryPolicy(const std::string& text,
                                                  const ComponentContext& context = {}) {
  return MakeFrom(Policies(), ComponentKind::kPolicy, ParseNamedOptions(text).value(), context);
}

[[nodiscard]] inline std::string PolicyError(const std::string& text,
                                             const ComponentContext& context = {}) {
  const Result<Components> policy = TryPolicy(text, context);
  return policy.ok() ? "no error" : policy.error().message;
}

[[nodiscard]] inline std::unique_ptr<Ordering> OrderingNamed(const std::string& text,
                                                             const ComponentContext& context = {}) {
  Result<Components> policy = TryPolicy(text, context);
  EXPECT_TRUE(policy.ok()) << policy.error().message;
  EXPECT_NE(policy.value().ordering, nullptr) << text;
  return std::move(policy.value().ordering);
}

}  // namespace trainyard
