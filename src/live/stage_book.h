// SPDX-License-Identifier: Apache-2.0
// Owns the stage times that have been measured: what agents report of the stages of running jobs
// takes the place of what later jobs of the same model, on as many GPUs, state (Muri, SIGCOMM'22,
// section 5: a model is profiled once). It follows from facts alone.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profile/interleave.h"
#include "trainyard/job.h"
#include "trainyard/live.pb.h"
#include "trainyard/metric.h"
#include "trainyard/state.h"

namespace trainyard::live {

// What a report says of stages, as metrics, so that it reaches the journal: in two digits, since
// each change is a fact.
[[nodiscard]] google::protobuf::RepeatedPtrField<v1::Metric> StageMetrics(
    const v1::AttemptReport& report);

// How the jobs interleave that hold the same GPUs, in the order of their group. None: there is one
// job only, or some do not state their stages.
[[nodiscard]] std::optional<profile::Interleaving> InterleavingOf(
    std::span<const JobSpec* const> group);

class StageBook {
 public:
  // What a job says of itself.
  void Note(const JobSpec& job, const std::vector<Metric>& metrics);
  // The stages that have been measured take the place of those stated; the time of an iteration
  // alone changes in proportion.
  void Correct(const JobSpec& job, StageTimes& stated) const;

  void Serialize(StateStream& state) { state(seconds_); }

 private:
  using ModelAndGpus = std::pair<std::string, int>;
  std::map<ModelAndGpus, std::vector<double>> seconds_;  // loading, GPU, network; 0: not measured
};

}  // namespace trainyard::live
