// SPDX-License-Identifier: Apache-2.0
#include "policies/pollux/speedups.h"

#include <algorithm>
#include <array>
#include <span>

namespace trainyard::policies {
namespace {

// Divides by what the job would have on its share. REQUIRES: on_share > 0.
void CountFrom(double on_share, SearchJob& job) {
  for (std::vector<double>* const speedups : {&job.on_one_node, &job.on_several}) {
    for (double& speedup : *speedups) {
      speedup /= on_share;
    }
  }
}

}  // namespace

int MostGpusOf(const profile::GoodputReport& report) {
  const profile::BatchLimits& limits = report.model.limits;
  std::int64_t most = std::min({std::int64_t{2} * report.tried_gpus,
                                std::int64_t{kMostSearchedGpus}, limits.most / limits.least_part});
  if (report.most_gpus > 0) {
    most = std::min<std::int64_t>(most, report.most_gpus);
  }
  return static_cast<int>(std::max<std::int64_t>(most, 1));
}

SearchJob ByThroughput(const JobSpec& job, const ExecutionModel& rates, const FairShare& share) {
  const std::array<int, 1> requested{job.gpus};
  std::span<const int> levels = rates.Levels(job);
  if (levels.empty()) {
    levels = requested;
  }
  SearchJob made;
  double on_share = 0;
  double rate = 0;
  int usable = 0;
  for (const int level : levels) {
    const double on_level = level <= kMostSearchedGpus ? rates.Rate(job, level) : 0;
    if (on_level <= rate) {
      continue;  // no better than fewer
    }
    made.on_one_node.resize(static_cast<std::size_t>(level), rate);
    made.usable.resize(static_cast<std::size_t>(level), usable);
    made.on_one_node.back() = rate = on_level;
    made.usable.back() = usable = level;
    if (level <= share.gpus || on_share == 0) {
      on_share = rate;
    }
  }
  if (usable == 0) {
    return {.on_one_node = {0}, .on_several = {0}, .usable = {0}};
  }
  made.most_gpus = usable;
  made.on_several = made.on_one_node;
  CountFrom(on_share, made);
  return made;
}

SearchJob GoodputCache::ByGoodput(JobId job, const profile::GoodputReport& report,
                                  const GpuRange& range, const FairShare& share) {
  const auto [found, is_new] = entries_.try_emplace(job);
  Entry& entry = found->second;
  if (is_new || !(entry.model == report.model)) {
    entry = {.model = report.model};
  }
  const profile::BatchLimits& limits = report.model.limits;
  int most = std::max(MostGpusOf(report), std::min(range.least, kMostSearchedGpus));
  most = range.most > 0 ? std::min(most, range.most) : most;
  const auto of_share =
      static_cast<int>(std::clamp<std::int64_t>(limits.most / limits.least_part, 1, share.gpus));
  while (entry.on_one_node.size() < static_cast<std::size_t>(most)) {
    const int gpus = static_cast<int>(entry.on_one_node.size()) + 1;
    entry.on_one_node.push_back(report.model.Best(1, gpus).value);
    entry.on_several.push_back(gpus > 1 ? report.model.Best(2, gpus).value : 0);
  }
  SearchJob made{
      .most_gpus = most, .on_one_node = entry.on_one_node, .on_several = entry.on_several};
  if (range.least > 1) {
    for (int gpus = 1; gpus <= most; ++gpus) {
      made.usable.push_back(gpus < range.least ? 0 : gpus);
    }
  }
  if (const double on_share = report.model.Best(std::min(share.nodes, of_share), of_share).value;
      on_share > 0) {
    CountFrom(on_share, made);
  }
  return made;
}

}  // namespace trainyard::policies
