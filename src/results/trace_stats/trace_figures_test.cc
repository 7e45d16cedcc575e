// SPDX-License-Identifier: Apache-2.0
#include "results/trace_stats/trace_statistics.h"

#include <gtest/gtest.h>

namespace trainyard::results {
namespace {

TraceStatistics Jobs() {
  TraceStatistics statistics;
  for (int i = 0; i < 30; ++i) {
    statistics.Add(
        {.gpus = 1 + i % 2, .submit = AtSeconds(3600.0 * i), .duration = FromSeconds(60)});
  }
  return statistics;
}

Figure Find(const TraceStatistics& statistics, const std::string& name) {
  for (const auto& [file, figure] : StatisticsFigures(statistics, {.cluster_gpus = 4})) {
    if (file == name) {
      return figure;
    }
  }
  ADD_FAILURE() << "no figure " << name;
  return {};
}

TEST(StatisticsFiguresTest, SharesAreThoseOfTheJobs) {
  const Figure gpus = Find(Jobs(), "sizes");
  EXPECT_EQ(gpus.categories, (std::vector<std::string>{"1", "2"}));
  EXPECT_DOUBLE_EQ(*gpus.series[0].bars[1], 50);
  EXPECT_NEAR(*gpus.series[1].bars[1], 100 * 2 / 3.0, 1e-9);
}

TEST(StatisticsFiguresTest, OneBarForEachHour) {
  const Figure hours = Find(Jobs(), "hour_of_day");
  ASSERT_EQ(hours.series[0].bars.size(), 24U);
  EXPECT_NEAR(*hours.series[0].bars[0], 100 * 2 / 30.0, 1e-9);
  EXPECT_NEAR(*hours.series[0].bars[23], 100 * 1 / 30.0, 1e-9);
}

TEST(StatisticsFiguresTest, DemandStandsBesideTheCluster) {
  const Figure demand = Find(Jobs(), "demand");
  ASSERT_EQ(demand.series.size(), 2U);
  EXPECT_NEAR(demand.series[0].points[1].second, 2 * 60 / 3600.0, 1e-9);
  EXPECT_EQ(demand.series[1].points[0].second, 4);
}

TEST(StatisticsFiguresTest, SubmitsEndWithTheLastOne) {
  TraceStatistics statistics = Jobs();
  statistics.Add({.submit = AtSeconds(7200), .duration = FromSeconds(86'400 * 100)});
  EXPECT_NEAR(Find(statistics, "submits").series[0].points.back().first, 30 / 24.0, 1e-9);
}

TEST(StatisticsFiguresTest, LongTimesHaveFewSteps) {
  TraceStatistics statistics = Jobs();
  statistics.Add({.submit = AtSeconds(86'400.0 * 365), .duration = FromSeconds(60)});
  EXPECT_LE(Find(statistics, "submits").series[0].points.size(), 1002U);
}

TEST(StatisticsFiguresTest, DurationsEndAtAllJobs) {
  const Figure durations = Find(Jobs(), "duration_cdf");
  EXPECT_DOUBLE_EQ(durations.series[0].points.back().second, 100);
  EXPECT_DOUBLE_EQ(durations.series[1].points.back().second, 100);
}

}  // namespace
}  // namespace trainyard::results
