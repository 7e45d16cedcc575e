// SPDX-License-Identifier: Apache-2.0
// What jobs gain by GPUs: the goodput of those that report it (Pollux, OSDI'21, section 3), and the
// throughput of the others.
#pragma once

#include <map>
#include <vector>

#include "policies/pollux/allocation_search.h"
#include "profile/goodput/goodput_report.h"
#include "trainyard/ids.h"
#include "trainyard/job.h"
#include "trainyard/snapshot.h"

namespace trainyard::policies {

// The most GPUs that the search gives a job.
inline constexpr int kMostSearchedGpus = 64;

// What each job would have if all had as many: speedups count from it.
struct FairShare {
  int gpus = 1;
  int nodes = 1;  // on which it is taken to lie
};

// What a report allows now: at most twice the GPUs that the job has been tried on, so that it is
// not put on many on the strength of a guess.
[[nodiscard]] int MostGpusOf(const profile::GoodputReport& report);

// A job of which nothing is known but its throughput by the number of GPUs, wherever they are.
[[nodiscard]] SearchJob ByThroughput(const JobSpec& job, const ExecutionModel& rates,
                                     const FairShare& share);

// Jobs by the goodput that they report, worked out anew where the report has changed.
class GoodputCache {
 public:
  // `range`: what the job's user wants.
  [[nodiscard]] SearchJob ByGoodput(JobId job, const profile::GoodputReport& report,
                                    const GpuRange& range, const FairShare& share);
  // Forgets jobs that `lives` does not hold for.
  template <typename Lives>
  void Keep(const Lives& lives) {
    std::erase_if(entries_, [&](const auto& entry) { return !lives(entry.first); });
  }

 private:
  struct Entry {
    profile::GoodputModel model;
    std::vector<double> on_one_node;
    std::vector<double> on_several;
  };
  std::map<JobId, Entry> entries_;
};

}  // namespace trainyard::policies
