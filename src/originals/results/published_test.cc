// SPDX-License-Identifier: Apache-2.0
#include "originals/results/published.h"

#include <gtest/gtest.h>

#include <numeric>

#include "io/json.h"
#include "originals/results/published_json.h"

namespace trainyard::originals {
namespace {

// Jobs submitted at 10 that take 1 to `count` seconds.
OriginalResult Ascending(Original program, int count) {
  OriginalResult result{.program = program, .path = "job.csv"};
  for (int i = 1; i <= count; ++i) {
    result.rows.push_back({.name = std::to_string(i), .submit = 10, .start = 10, .end = 10 + i});
  }
  return result;
}

TEST(PublishedP99Test, EveryProgramHasItsRank) {
  std::vector<double> values(250);
  std::iota(values.begin(), values.end(), 1);
  // 0.99 x 250 = 247.5
  EXPECT_EQ(PublishedP99(Original::kTiresias, values), 248);
  EXPECT_EQ(PublishedP99(Original::kChronus, values), 248);
  EXPECT_EQ(PublishedP99(Original::kMuri, values), 248);
  EXPECT_EQ(PublishedP99(Original::kBlox, values), 248);
  EXPECT_DOUBLE_EQ(PublishedP99(Original::kElasticflow, values), 1 + 0.99 * 249);
  values.resize(200);
  EXPECT_EQ(PublishedP99(Original::kTiresias, values), 198);
  EXPECT_EQ(PublishedP99(Original::kMuri, values), 199);
  EXPECT_EQ(PublishedP99(Original::kMuri, {values.data(), 1}), 1);
}

TEST(MeasureAsPublishedTest, MakespansBeginAtZeroOrAtTheFirstSubmit) {
  EXPECT_EQ(MeasureAsPublished(Ascending(Original::kTiresias, 5)).makespan, 5);
  EXPECT_EQ(MeasureAsPublished(Ascending(Original::kMuri, 5)).makespan, 15);
  EXPECT_EQ(MeasureAsPublished(Ascending(Original::kBlox, 5)).makespan, 15);
}

TEST(MeasureAsPublishedTest, OnlyCountedJobsHaveAJct) {
  OriginalResult result = Ascending(Original::kSynergy, 4);
  result.rows[3].counted = false;
  const PublishedMetrics metrics = MeasureAsPublished(result);
  EXPECT_EQ(metrics.jobs, 3);
  EXPECT_EQ(metrics.jct_mean, 2);
  EXPECT_EQ(metrics.makespan, 14);  // of all
}

TEST(MeasureAsPublishedTest, DeadlinesAsElasticflowCountsThem) {
  OriginalResult result = Ascending(Original::kElasticflow, 4);
  result.rows[0].deadline = 11;    // met, just
  result.rows[1].deadline = 11.5;  // late
  result.rows[2].deadline = 5;
  result.rows[2].best_effort = true;
  result.rows[3] = {.name = "4", .completed = false};  // rejected, without a deadline
  const PublishedMetrics metrics = MeasureAsPublished(result);
  EXPECT_EQ(metrics.accepted, 1);
  EXPECT_EQ(metrics.declined, 2);
  EXPECT_FALSE(MeasureAsPublished(Ascending(Original::kMuri, 4)).accepted);
}

TEST(MeasureAsPublishedTest, ResponsivenessIsUpToTheFirstMetric) {
  EXPECT_EQ(MeasureAsPublished(Ascending(Original::kBlox, 2)).responsiveness_mean, 300);
  EXPECT_FALSE(MeasureAsPublished(Ascending(Original::kTiresias, 2)).responsiveness_mean);
}

TEST(PublishedTableTest, ShowsBothDefinitions) {
  const OriginalResult result = Ascending(Original::kMuri, 200);
  const std::string text = PublishedTable("srtf", result, results::Measure(RunOf(result)));
  EXPECT_TRUE(text.starts_with("srtf: job.csv\n")) << text;
  EXPECT_NE(text.find("JCT p99                         199.000          198.010  value at place "
                      "int(0.99 n), counted from 0 / linear interpolation\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("makespan                        210.000          200.000  last end, counted "
                      "from 0 / last end - first submit\n"),
            std::string::npos)
      << text;
}

TEST(ResultsJsonTest, PublishedRunsHaveBothKindsOfMetrics) {
  Results results;
  results.originals.emplace_back(Ascending(Original::kMuri, 200));
  results.runs.push_back(RunOf(*results.originals[0]));
  results.runs[0].label = "srtf";
  const auto json = nlohmann::json::parse(ResultsJson(results));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["label"], "srtf");
  EXPECT_EQ(json[0]["makespan"], 200);
  EXPECT_TRUE(json[0]["preemptions"].is_null());
  EXPECT_EQ(json[0]["published"]["program"], "muri");
  EXPECT_EQ(json[0]["published"]["makespan"], 210);
  EXPECT_EQ(json[0]["published"]["definitions"]["makespan"], "last end, counted from 0");
}

}  // namespace
}  // namespace trainyard::originals
