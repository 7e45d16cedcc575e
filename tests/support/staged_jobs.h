// SPDX-License-Identifier: Apache-2.0
// For tests: hand-made jobs that state their stages, and a snapshot of them.
#pragma once

#include <memory>
#include <vector>

#include "profile/execution_model.h"
#include "support/hand_made_jobs.h"

namespace trainyard {

// Three kinds that fit together: one mostly loads, one mostly computes, one mostly communicates.
inline const StageTimes kLoads{.iteration = 0.5, .stages = {0.5, 0.01, 0.01}};
inline const StageTimes kComputes{.iteration = 0.4, .stages = {0.01, 0.4, 0.01}};
inline const StageTimes kTalks{.iteration = 0.4, .stages = {0.01, 0.01, 0.4}};

class StagedJobs {
 public:
  explicit StagedJobs(std::vector<int> nodes) : model_(profile::MakeMixedModel(nullptr)) {
    for (const int gpus : nodes) {
      cluster_.nodes.push_back({.gpus = gpus});
    }
    up_.assign(nodes.size(), true);
  }

  // `left`: seconds alone.
  JobView& Add(int gpus, const StageTimes& stages, double left, int priority = 0) {
    return AddWith(gpus, {.stages = stages}, left, priority);
  }
  // REQUIRES: they state stages.
  JobView& AddWith(int gpus, const JobTraits& traits, double left, int priority = 0) {
    return AddAny({.gpus = gpus,
                   .duration = FromSeconds(left),
                   .iterations = left / traits.stages->iteration,
                   .priority = priority,
                   .traits = std::make_shared<const JobTraits>(traits)});
  }
  // Without stages.
  JobView& AddPlain(int gpus, double left, int priority = 0) {
    return AddAny({.gpus = gpus, .duration = FromSeconds(left), .priority = priority});
  }

  [[nodiscard]] Snapshot At(double now) const {
    return {.now = AtSeconds(now),
            .cluster = &cluster_,
            .gpus_up = cluster_.total_gpus(),
            .nodes_up = &up_,
            .jobs = &jobs_,
            .rates = model_.get()};
  }
  // All of them, in order of their numbers.
  [[nodiscard]] std::vector<RankedJob> Ranked() const {
    std::vector<RankedJob> ranked;
    for (const JobId id : jobs_.live()) {
      const JobView view = jobs_.at(id);
      ranked.push_back({.id = id,
                        .spec = view.spec,
                        .grant = view.grant,
                        .rank = static_cast<double>(Index(id))});
    }
    return ranked;
  }
  [[nodiscard]] ChangingJobs& jobs() { return jobs_; }

 private:
  JobView& AddAny(JobSpec spec) {
    const Duration left = *spec.duration;
    JobView& view = jobs_.Add(std::move(spec));
    view.time_left = left;
    return view;
  }

  Cluster cluster_;
  std::vector<bool> up_;
  ChangingJobs jobs_;
  std::unique_ptr<ExecutionModel> model_;
};

}  // namespace trainyard
