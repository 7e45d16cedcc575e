// SPDX-License-Identifier: Apache-2.0
// The units of work: seconds of the declared duration, and iterations at the pace of the profile or
// of the job's stages.
#pragma once

#include <memory>
#include <span>

#include "profile/interleave.h"
#include "profile/throughput_table.h"
#include "trainyard/snapshot.h"

namespace trainyard {

// Work is the declared duration, done at 1 second per second on the requested GPUs and not at all
// on any other number. REQUIRES: every job states its duration.
// `factor`: done so many times faster than declared.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeDurationModel(double factor = 1);

// Work is iterations, done at the rate of the job's profile row (JobSpec::profile_row), GPU count
// by GPU count, without interpolation. `table` must outlive the model. REQUIRES: every job states
// its iterations and is bound to a row.
[[nodiscard]] std::unique_ptr<ExecutionModel> MakeProfileModel(const ThroughputTable& table);

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

}  // namespace trainyard
