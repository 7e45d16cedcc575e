// SPDX-License-Identifier: Apache-2.0
#include "results/write/json.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "results/write/json_value.h"
#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  return keys;
}

TEST(SummaryJsonTest, HasTheDocumentedKeysInOrder) {
  const Json summary = Json::parse(SummaryJson(HandMadeRun()));
  EXPECT_EQ(KeysOf(summary), (std::vector<std::string>{"jobs",
                                                       "completed",
                                                       "rejected",
                                                       "unfinished",
                                                       "admitted",
                                                       "deadline_jobs",
                                                       "deadlines_met",
                                                       "deadlines_late",
                                                       "deadlines_rejected",
                                                       "deadline_ratio",
                                                       "accepted",
                                                       "declined",
                                                       "jct_mean",
                                                       "jct_p50",
                                                       "jct_p90",
                                                       "jct_p99",
                                                       "makespan",
                                                       "queueing_delay_mean",
                                                       "waiting_time_mean",
                                                       "bounded_slowdown_mean",
                                                       "fairness_mean",
                                                       "fairness_max",
                                                       "gpu_utilization",
                                                       "gpu_utilization_useful",
                                                       "preemptions",
                                                       "migrations",
                                                       "resizes",
                                                       "decisions",
                                                       "bounded_decisions",
                                                       "events",
                                                       "wall_seconds",
                                                       "cpu_seconds",
                                                       "peak_rss_mb",
                                                       "jobs_per_second",
                                                       "policy",
                                                       "placement",
                                                       "admission",
                                                       "grouping",
                                                       "tuning",
                                                       "preset",
                                                       "preset_sha256",
                                                       "seed",
                                                       "cluster",
                                                       "nodes",
                                                       "gpus",
                                                       "trace",
                                                       "trace_sha256",
                                                       "changes",
                                                       "changes_sha256",
                                                       "version",
                                                       "journal_digest"}));
}

TEST(SummaryJsonTest, HasTheValues) {
  const Json summary = Json::parse(SummaryJson(HandMadeRun()));
  EXPECT_EQ(summary["jobs"], 5);
  EXPECT_EQ(summary["deadline_ratio"], 0.25);
  EXPECT_EQ(summary["deadlines_late"], 2);
  EXPECT_EQ(summary["deadlines_rejected"], 1);
  EXPECT_EQ(summary["accepted"], 1);
  EXPECT_EQ(summary["declined"], 3);
  EXPECT_EQ(summary["jct_p90"], 180);
  EXPECT_DOUBLE_EQ(summary["fairness_mean"], (100.0 / 80 + 50.5 / 20 + 0.8) / 3);
  EXPECT_DOUBLE_EQ(summary["fairness_max"], 50.5 / 20);
  EXPECT_EQ(summary["makespan"], 230);
  EXPECT_EQ(summary["jobs_per_second"], 10);
  EXPECT_EQ(summary["policy"], "srtf");
  EXPECT_EQ(summary["seed"], 7);
  EXPECT_EQ(summary["cluster"], "small");
  EXPECT_EQ(summary["journal_digest"], "feed");
}

TEST(SummaryJsonTest, WhatDoesNotApplyIsNull) {
  const Json summary = Json::parse(SummaryJson(RunOf({{.name = "never"}})));
  for (const char* key :
       {"deadline_ratio", "jct_mean", "jct_p50", "makespan", "gpu_utilization",
        "queueing_delay_mean", "bounded_decisions", "jobs_per_second", "preset", "preset_sha256"}) {
    EXPECT_TRUE(summary[key].is_null()) << key;
  }
}

TEST(SummaryJsonTest, BytesThatAreNotUtf8AreReplaced) {
  RunResult run = HandMadeRun();
  run.cluster_name = "cl\xff";
  EXPECT_EQ(Json::parse(SummaryJson(run))["cluster"], "cl\xEF\xBF\xBD");
}

TEST(CompareJsonTest, IsAnArrayOfLabelledSummaries) {
  std::vector<RunResult> runs{HandMadeRun(), HandMadeRun()};
  runs[1].label = "fifo";
  const Json summaries = Json::parse(CompareJson(runs));
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(KeysOf(summaries[1]).front(), "label");
  EXPECT_EQ(summaries[1]["label"], "fifo");
  EXPECT_EQ(summaries[1]["completed"], 3);
}

TEST(CompareJsonTest, OneRunIsStillAnArray) {
  const RunResult run = HandMadeRun();
  const Json summaries = Json::parse(CompareJson({&run, 1}));
  ASSERT_TRUE(summaries.is_array());
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(summaries[0]["label"], "srtf");
}

TEST(CompareCsvTest, HasARowForEachRunAndEmptyCellsForNothing) {
  const std::vector<RunResult> runs{HandMadeRun(), RunOf({{.name = "never"}})};
  const std::string csv = CompareCsv(runs);
  EXPECT_TRUE(csv.starts_with("label,jobs,completed,rejected,"));
  EXPECT_NE(csv.find("\nsrtf,5,3,1,1,4,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\n,1,0,0,1,1,0,0,0,0,,"), std::string::npos) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

}  // namespace
}  // namespace trainyard::results
