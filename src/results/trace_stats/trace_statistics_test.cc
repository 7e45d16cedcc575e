// SPDX-License-Identifier: Apache-2.0
#include "results/trace_stats/trace_statistics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "results/write/json_value.h"
#include "support/scratch_folder.h"

namespace trainyard::results {
namespace {

struct Row {
  double submit = 0;
  int gpus = 1;
  double seconds = 0;  // 0: not stated
  std::string user;
};

JobSpec JobOf(const Row& row) {
  JobSpec job{.user = row.user, .gpus = row.gpus, .submit = AtSeconds(row.submit)};
  if (row.seconds > 0) {
    job.duration = FromSeconds(row.seconds);
  }
  return job;
}

TraceStatistics Of(const std::vector<Row>& rows) {
  TraceStatistics statistics;
  for (const Row& row : rows) {
    statistics.Add(JobOf(row));
  }
  return statistics;
}

const TraceSource kSource{.facts = {.path = "t.csv", .format = "native", .sha256 = "00"},
                          .cluster_gpus = 4};

Json JsonOf(const TraceStatistics& statistics) {
  return Json::parse(StatisticsJson(statistics, kSource));
}

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(TraceStatisticsTest, CountsJobsAndWorkBySizeAndUser) {
  const TraceStatistics statistics =
      Of({{0, 1, 3600, "ann"}, {10, 4, 1800, "bob"}, {20, 4, 0, "ann"}});
  EXPECT_EQ(statistics.all().jobs, 3U);
  EXPECT_DOUBLE_EQ(statistics.all().gpu_seconds, 3600 + 4 * 1800);
  EXPECT_EQ(statistics.without_duration(), 1U);
  EXPECT_EQ(statistics.by_gpus().at(4).jobs, 2U);
  EXPECT_DOUBLE_EQ(statistics.by_gpus().at(4).gpu_seconds, 7200);
  EXPECT_EQ(statistics.by_user().find("ann")->second.jobs, 2U);
  EXPECT_EQ(statistics.Durations(), (std::vector<double>{1800, 3600}));
}

TEST(TraceStatisticsTest, DurationsLieInBinsOfOneTwoAndFive) {
  const TraceStatistics statistics =
      Of({{0, 1, 0.3, ""}, {0, 1, 1, ""}, {0, 1, 19.9, ""}, {0, 1, 20, ""}, {0, 2, 49, ""}});
  const auto bins = statistics.DurationBins();
  EXPECT_NEAR(bins.front().from, 0.2, 1e-12);
  EXPECT_EQ(bins.back().to, 50);
  std::vector<std::size_t> jobs;
  for (const auto& bin : bins) {
    jobs.push_back(bin.jobs.jobs);
  }
  EXPECT_EQ(jobs, (std::vector<std::size_t>{1, 0, 1, 0, 0, 1, 2}));
}

TEST(TraceStatisticsTest, OfferedLoadAndDemandOverTime) {
  // Two GPUs for one and a half hours from half past zero on, one GPU in the third hour.
  const TraceStatistics statistics = Of({{1800, 2, 5400, ""}, {7200, 1, 3600, ""}});
  const auto bins = statistics.OverTime();
  ASSERT_EQ(bins.size(), 4U);
  EXPECT_EQ(bins[0].jobs, 1);
  EXPECT_DOUBLE_EQ(bins[0].offered, 10'800);
  EXPECT_DOUBLE_EQ(bins[0].demand, 3600);
  EXPECT_DOUBLE_EQ(bins[1].demand, 7200);
  EXPECT_DOUBLE_EQ(bins[2].demand, 3600);
  EXPECT_EQ(bins[3].demand, 0);
  EXPECT_DOUBLE_EQ(statistics.Load(4), (10'800 + 3600) / (4 * 5400.0));
}

TEST(TraceStatisticsTest, HoursAndDaysAreThoseOfTheClock) {
  const TraceStatistics statistics =
      Of({{3 * 3600, 1, 1, ""}, {86'400 + 3 * 3600 + 5, 1, 1, ""}, {6 * 86'400, 1, 1, ""}});
  EXPECT_EQ(statistics.by_hour()[3], 2U);
  EXPECT_EQ(statistics.by_hour()[0], 1U);
  EXPECT_EQ(statistics.by_day()[1], 1U);
  EXPECT_EQ(statistics.by_day()[6], 1U);
}

TEST(TraceStatisticsTest, HoursAndDaysCountFromTheOrigin) {
  TraceStatistics statistics = Of({{0, 1, 1, ""}, {3 * 3600, 1, 1, ""}, {2 * 86'400, 1, 1, ""}});
  statistics.SetOrigin("2024-03-01 22:30:00");  // a Friday
  EXPECT_EQ(statistics.by_hour()[22], 2U);
  EXPECT_EQ(statistics.by_hour()[1], 1U);
  EXPECT_EQ(statistics.by_hour()[0], 0U);
  EXPECT_EQ(statistics.by_day(), (std::array<std::size_t, 7>{0, 0, 0, 0, 1, 1, 1}));
  statistics.SetOrigin("100 s");  // no date
  EXPECT_EQ(statistics.by_hour()[22], 2U);
}

TEST(TraceStatisticsTest, RowsAreLeftOutForReasonsWithoutTheirValues) {
  TraceStatistics statistics = Of({{0, 1, 1, ""}});
  statistics.AddLeftOut("a b.csv:2: column 'status' is 'Failed'; failed jobs are left out");
  statistics.AddLeftOut("a b.csv:9: column 'status' is 'FAILED'; failed jobs are left out");
  statistics.AddLeftOut("a b.csv:10: 3 fields; expected 4 as in the header");
  EXPECT_EQ(statistics.left_out(), 3U);
  ASSERT_EQ(statistics.reasons().size(), 2U);
  EXPECT_EQ(statistics.reasons().find("column 'status': failed jobs are left out")->second, 2U);
  for (int i = 0; i < 1000; ++i) {
    statistics.AddLeftOut("other " + std::to_string(i));
  }
  EXPECT_LE(statistics.reasons().size(), 101U);
  EXPECT_EQ(statistics.left_out(), 1003U);
}

TEST(TraceStatisticsTest, DeadlinesAreMeasuredInDurations) {
  TraceStatistics statistics;
  JobSpec job = JobOf({100, 1, 50, ""});
  job.deadline = AtSeconds(200);
  statistics.Add(job);
  EXPECT_EQ(statistics.with_deadline(), 1U);
  EXPECT_EQ(statistics.DeadlineFactors(), std::vector<double>{2});
}

TEST(StatisticsJsonTest, HasEachNumber) {
  const Json json = JsonOf(Of({{0, 1, 3600, "ann"}, {3600, 2, 3600, "bob"}}));
  EXPECT_EQ(json["jobs"], 2);
  EXPECT_EQ(json["gpu_hours"], 3.0);
  EXPECT_EQ(json["load"], 0.75);
  EXPECT_EQ(json["peak_demand"], 0.5);
  EXPECT_EQ(json["duration_p50"], 3600);
  EXPECT_EQ(json["jobs_by_gpus"]["2"], 1);
  EXPECT_EQ(json["gpus"][1]["gpu_hours"], 2.0);
  EXPECT_EQ(json["users"].size(), 2U);
  EXPECT_EQ(json["jobs_by_hour_of_day"].size(), 24U);
  EXPECT_TRUE(json["deadline_factor_p50"].is_null());
}

TEST(StatisticsTextTest, NamesSharesAndLeavesOutWhatTheTraceDoesNotState) {
  const std::string text =
      StatisticsText(Of({{0, 1, 3600, "ann"}, {3600, 3, 3600, "ann"}}), kSource);
  EXPECT_NE(text.find("offered load    1.00 of the 4 GPUs"), std::string::npos) << text;
  EXPECT_NE(text.find("user (1 of 1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("queue ("), std::string::npos) << text;
  EXPECT_NE(text.find("50.00 %           3.0   75.00 %"), std::string::npos) << text;
}

TEST(WriteStatisticsCsvTest, WritesTidyTables) {
  const ScratchFolder folder;
  const TraceStatistics statistics = Of({{0, 1, 3600, "a,b"}, {3600, 2, 3600, "c"}});
  const Status written = WriteStatisticsCsv(statistics, kSource, folder.path() + "/out");
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(Read(folder.path() + "/out/users.csv"),
            "user,jobs,job_share,gpu_hours,gpu_hour_share\n"
            "\"a,b\",1,0.5,1,0.3333333333333333\nc,1,0.5,2,0.6666666666666666\n");
  EXPECT_EQ(Read(folder.path() + "/out/over_time.csv"),
            "time,jobs,gpu_hours,load,demand_gpus,demand\n"
            "0,1,1,0.25,1,0.25\n3600,1,2,0.5,2,0.5\n7200,0,0,0,0,0\n");
  EXPECT_EQ(Read(folder.path() + "/out/durations.csv"),
            "from,to,jobs,job_share,gpu_hours,gpu_hour_share\n2000,5000,2,1,3,1\n");
}

TEST(WriteStatisticsCsvTest, SaysWhichFileCannotBeWritten) {
  const ScratchFolder folder;
  const std::string file = folder.Write("file", "");
  const Status written = WriteStatisticsCsv(Of({{0, 1, 1, ""}}), kSource, file);
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find(file + "/over_time.csv"), std::string::npos)
      << written.error().message;
}

}  // namespace
}  // namespace trainyard::results
