// SPDX-License-Identifier: Apache-2.0
#include "report/gpu_time.h"

#include <algorithm>
#include <map>
#include <utility>

#include "report/metrics.h"

namespace trainyard {
namespace {

struct Sums {
  std::int64_t jobs = 0;
  double gpu_seconds = 0;
  MeanDuration jct;
};

}  // namespace

std::optional<GpuTime> GpuTimeOf(const RunResult& run) {
  const std::optional<double> makespan = Measure(run).makespan;
  if (!makespan || run.ends_only) {
    return std::nullopt;
  }
  double held = 0;
  GpuTime time;
  for (const JobResult& job : run.jobs) {
    held += job.attained_service;
    time.useful += job.useful_service;
  }
  time.overhead = std::max(held - time.useful, 0.0);
  time.idle = std::max(static_cast<double>(run.gpus) * *makespan - held, 0.0);
  return time;
}

std::vector<Share> SharesBy(std::string JobSpec::*name, const RunResult& run) {
  std::map<std::string, Sums> sums;
  for (const JobResult& job : run.jobs) {
    Sums& own = sums[job.spec->*name];
    ++own.jobs;
    own.gpu_seconds += job.attained_service;
    if (const std::optional<Duration> jct = Jct(job, run)) {
      own.jct.Add(*jct);
    }
  }
  if (sums.size() == 1 && sums.begin()->first.empty()) {
    return {};
  }
  std::vector<Share> shares;
  shares.reserve(sums.size());
  for (const auto& [owner, own] : sums) {
    shares.push_back({.name = owner,
                      .jobs = own.jobs,
                      .gpu_seconds = own.gpu_seconds,
                      .jct_mean = own.jct.seconds()});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.gpu_seconds > b.gpu_seconds; });
  return shares;
}

}  // namespace trainyard
