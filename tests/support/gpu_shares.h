// SPDX-License-Identifier: Apache-2.0
// For tests: no GPU-second is given twice, however jobs share GPUs.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/job_record.h"
#include "model/slices.h"
#include "profile/execution_model.h"

namespace trainyard {

// The rate of the job if nobody shared its GPUs.
[[nodiscard]] inline double RateAlone(const model::JobRecord& job, const ExecutionModel& rates) {
  Grant alone = job.grant;
  alone.group.clear();
  alone.sharing = Sharing::kExclusive;
  return rates.RateUnder(*job.spec, alone, {});
}

// Which part of each second the jobs on one GPU use of a stage's resource, by their present rates.
// Muri's groups may load two at a time, so that only the GPU and the network count there. A job
// that does not state its stages uses its GPU by its rate, as a part of that alone.
[[nodiscard]] inline double SharesOf(const std::vector<const model::JobRecord*>& jobs,
                                     const ExecutionModel& rates) {
  double most = 0;
  for (std::size_t stage = 0; stage < 3; ++stage) {
    double sum = 0;
    for (const model::JobRecord* job : jobs) {
      const double of_alone = job->progress.rate / RateAlone(*job, rates);
      if (!profile::StatesStages(*job->spec)) {
        sum += of_alone;
        continue;
      }
      // Stages are stated for GPUs of speed 1.
      const double stated_rate = of_alone * rates.RateOn(*job->spec, job->grant.gpus, GpuType{});
      const std::vector<double>& stages = job->spec->traits->stages->stages;
      const bool counts = stages.size() != 3 || stage > 0 || job->grant.group.empty();
      sum += counts && stage < stages.size() ? stated_rate * stages[stage] : 0;
    }
    most = std::max(most, sum);
  }
  return most;
}

// Names a GPU that jobs use by more than the whole of it; empty: there is none. `rates`: by which
// the run goes, with types of GPUs and what has been measured. A job alone on a GPU may be as fast
// as they say.
[[nodiscard]] inline std::string GivenTwice(std::span<const model::JobRecord> records,
                                            const ExecutionModel& rates) {
  std::map<std::pair<std::size_t, int>, std::vector<const model::JobRecord*>> on;
  for (const model::JobRecord& job : records) {
    if (job.grant.gpus > 0 && job.grant.running && job.progress.rate > 0) {
      model::ForEachGpu(job.grant.slices, [&](NodeId node, int gpu) {
        on[{Index(node), gpu}].push_back(&job);
      });
    }
  }
  constexpr double kRounding = 1e-3;  // relative: that of group times
  for (const auto& [gpu, jobs] : on) {
    if (const double share = jobs.size() > 1 ? SharesOf(jobs, rates) : 0; share > 1 + kRounding) {
      return "GPU " + std::to_string(gpu.second) + " of node " + std::to_string(gpu.first) +
             " is used by " + std::to_string(100 * share) + " %";
    }
  }
  return {};
}

}  // namespace trainyard
