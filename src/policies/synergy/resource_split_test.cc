// SPDX-License-Identifier: Apache-2.0
#include "policies/synergy/resource_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "model/slices.h"
#include "support/sensitive_jobs.h"

namespace trainyard::policies {
namespace {

const HungryModels kRates;

JobSpec Wanting(const char* cpus, int gpus = 1) {
  return {.model = cpus, .gpus = gpus, .iterations = 100};
}

// 2 CPUs and 10 GiB come with each GPU.
ResourceSplit Divide(const std::vector<JobSpec>& jobs, std::int64_t cpus,
                     bool weigh_by_gpus = true) {
  std::vector<const JobSpec*> list;
  for (const JobSpec& job : jobs) {
    list.push_back(&job);
  }
  return SplitResources(
      {.cpus = {1, 2, 3, 4, 6, 8}, .memory_gb = {10}, .weigh_by_gpus = weigh_by_gpus}, list, kRates,
      {.milli_cpus = cpus * 1000, .memory_mib = 1024 * 1024},
      {.milli_cpus = 2000, .memory_mib = 10 * 1024});
}

std::vector<std::int64_t> CpusOf(const ResourceSplit& split) {
  std::vector<std::int64_t> cpus;
  for (const Resources& amounts : split.amounts) {
    cpus.push_back(amounts.milli_cpus / 1000);
  }
  return cpus;
}

using Cpus = std::vector<std::int64_t>;

TEST(ResourceSplitTest, WhoGainsNothingGivesToWhoGains) {
  const ResourceSplit split = Divide({Wanting("1"), Wanting("3")}, 4);
  EXPECT_EQ(CpusOf(split), (Cpus{1, 3}));
  EXPECT_DOUBLE_EQ(split.objective, 1 + 1.5);
}

TEST(ResourceSplitTest, NobodyFallsBelowHisShare) {
  EXPECT_EQ(CpusOf(Divide({Wanting("2"), Wanting("8")}, 4)), (Cpus{2, 2}));
}

TEST(ResourceSplitTest, OfJobsThatAreAlikeTheEarlierIsServedBetter) {
  const ResourceSplit split = Divide({Wanting("6"), Wanting("6"), Wanting("6")}, 10);
  const Cpus cpus = CpusOf(split);
  EXPECT_TRUE(std::is_sorted(cpus.rbegin(), cpus.rend()));
  EXPECT_EQ(std::accumulate(cpus.begin(), cpus.end(), 0L), 10);
  EXPECT_GT(cpus.front(), cpus.back());
}

// 4 CPUs to spare: as a gang of 2 they make one job 1.5 times as fast or the single one 3 times.
TEST(ResourceSplitTest, AGangCountsOnceForEachGpuOrOnce) {
  const std::vector<JobSpec> jobs{Wanting("4", 2), Wanting("6")};
  EXPECT_DOUBLE_EQ(Divide(jobs, 10, false).objective, 1 + 3);
  EXPECT_DOUBLE_EQ(Divide(jobs, 10, true).objective, 2 * 2 + 1);
}

TEST(ResourceSplitTest, NoJobsNeedNothing) { EXPECT_TRUE(Divide({}, 4).amounts.empty()); }

}  // namespace
}  // namespace trainyard::policies
