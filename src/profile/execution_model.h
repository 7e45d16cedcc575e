// SPDX-License-Identifier: Apache-2.0
// How fast jobs run, by the units of work: seconds of the declared duration, and iterations at the
// pace of the profile or of the job's stages (alone, interleaved as Muri does and collocated as
// AntMan does); and on GPUs of several types.
#pragma once

#include <memory>
#include <span>

#include "profile/interleave.h"
#include "profile/throughput_table.h"
#include "trainyard/cluster.h"
#include "trainyard/snapshot.h"

namespace trainyard::profile {

// Work is the declared duration, done at 1 second per second on the requested GPUs and not at all
// on any other number. REQUIRES: every job states its duration.
// `factor`: done so many times faster than declared.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeDurationModel(double factor = 1);

// Work is iterations, done at the rate of the job's profile row (JobSpec::profile_row), GPU count
// by GPU count, without interpolation. `table` must outlive the model. REQUIRES: every job states
// its iterations and is bound to a row.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeProfileModel(const ThroughputTable& table);

[[nodiscard]] inline bool StatesStages(const JobSpec& job) {
  return job.traits != nullptr && job.traits->stages.has_value();
}

// Seconds of an iteration of a job that yields to `other` wherever both want the same resource,
// while `other` does an iteration in `other_seconds` as if it were alone (AntMan, OSDI'20, as
// Muri's simulator has it); infinite where `other` leaves no gap. A network stage that ends while
// the other one loads takes no further iteration, so that LeastSecondsBeside may be more. REQUIRES:
// both have three stages.
[[nodiscard]] double SecondsYielding(const StageTimes& job, const StageTimes& other,
                                     double other_seconds);

// What an iteration of `job` takes at least if every resource is used by one job at a time, and
// `other` does an iteration in `other_seconds`; infinite where `other` leaves none of a resource
// that the job needs. REQUIRES: as many stages.
[[nodiscard]] double LeastSecondsBeside(const StageTimes& job, const StageTimes& other,
                                        double other_seconds);

// Work is iterations. A job alone does one in its iteration time; a group in its group time; of
// collocated jobs those of priority 0 run as if alone and the others yield to them. Jobs that share
// GPUs on equal terms take twice as long. REQUIRES: every job states its stages.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeStageModel(const GroupTimes::Rules& rules);

// Jobs without GPUs by their declared duration, the others by the model. The outermost one.
[[nodiscard]] std::unique_ptr<ExecutionModel> WithCpuJobs(std::unique_ptr<ExecutionModel> others);

// Asks for each job another model.
class ModelByJob : public ExecutionModel {
 public:
  [[nodiscard]] double TotalWork(const JobSpec& job) const final { return Of(job).TotalWork(job); }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const final {
    return Of(job).Rate(job, gpus);
  }
  [[nodiscard]] double RateOn(const JobSpec& job, int gpus, const GpuType& type) const final {
    return Of(job).RateOn(job, gpus, type);
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const final {
    return Of(job).ThroughputUnder(job, grant, co_runners);
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const final {
    return Of(job).Preferred(job);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const final {
    return Of(job).Levels(job);
  }

 private:
  [[nodiscard]] virtual const ExecutionModel& Of(const JobSpec& job) const = 0;
};

// Job by job: iterations where it states its stages or is bound to a profile row, its declared
// duration otherwise. `table` may be null and must outlive the model. REQUIRES: every job states
// one of these. `stages`: what groups of jobs that state their stages cost.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeMixedModel(const ThroughputTable* table,
                                                             const GroupTimes::Rules& stages = {});

// `plain` itself where the cluster has one type of speed 1. Otherwise as fast as it says with
// RateOn: a gang on GPUs of several types as on the slowest of them, for its workers wait for one
// another. Where the GPUs are not known yet, that is the slowest type that the job accepts and runs
// on, wherever it is, so that a plan by Rate is kept.
[[nodiscard]] std::unique_ptr<ExecutionModel> OnTypesOf(const Cluster& cluster,
                                                        std::unique_ptr<ExecutionModel> plain);

}  // namespace trainyard::profile
