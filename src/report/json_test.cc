// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/hand_made_run.h"

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

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
                                                       "gpu_utilization",
                                                       "gpu_utilization_useful",
                                                       "preemptions",
                                                       "migrations",
                                                       "resizes",
                                                       "decisions",
                                                       "events",
                                                       "wall_seconds",
                                                       "cpu_seconds",
                                                       "peak_rss_mb",
                                                       "jobs_per_second",
                                                       "policy",
                                                       "placement",
                                                       "admission",
                                                       "preset",
                                                       "seed",
                                                       "cluster",
                                                       "trace_sha256",
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
  EXPECT_EQ(summary["makespan"], 230);
  EXPECT_EQ(summary["jobs_per_second"], 10);
  EXPECT_EQ(summary["policy"], "srtf");
  EXPECT_EQ(summary["seed"], 7);
  EXPECT_EQ(summary["cluster"], "small");
  EXPECT_EQ(summary["journal_digest"], "feed");
}

TEST(SummaryJsonTest, WhatDoesNotApplyIsNull) {
  const Json summary = Json::parse(SummaryJson(RunOf({{.name = "never"}})));
  for (const char* key : {"deadline_ratio", "jct_mean", "jct_p50", "makespan", "gpu_utilization",
                          "queueing_delay_mean", "jobs_per_second", "preset"}) {
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

TEST(ReportJsonTest, DescribesTraceAndCluster) {
  const RunResult run = HandMadeRun();
  const Json report = Json::parse(ReportJson({&run, 1}, "trainyard compare trace.csv"));
  EXPECT_EQ(report["format"], "trainyard-report/1");
  EXPECT_EQ(report["program"]["name"], "trainyard");
  EXPECT_EQ(report["command"], "trainyard compare trace.csv");
  EXPECT_EQ(report["trace"]["jobs"], 5);
  EXPECT_EQ(report["trace"]["first_submit"], 10);
  EXPECT_EQ(report["trace"]["last_submit"], 50);
  EXPECT_DOUBLE_EQ(report["trace"]["gpu_hours"].get<double>(),
                   (2 * 90 + 20.5 + 4 * 100 + 8 * 150 + 10) / 3600);
  EXPECT_EQ(report["cluster"], Json::parse(R"({"name": "small", "nodes": 2, "gpus": 16})"));
}

TEST(ReportJsonTest, HasCurvesOfEveryRun) {
  const RunResult run = HandMadeRun();
  const Json shown = Json::parse(ReportJson({&run, 1}, ""))["runs"][0];
  EXPECT_EQ(shown["label"], "srtf");
  EXPECT_EQ(shown["preset"], "");
  EXPECT_EQ(shown["summary"]["completed"], 3);
  EXPECT_EQ(shown["jct_cdf"]["seconds"], Json::parse("[50.5, 100.0, 200.0]"));
  EXPECT_EQ(shown["jct_cdf"]["fraction"], Json::parse("[0.333333, 0.666667, 1.0]"));
  EXPECT_EQ(shown["queueing_cdf"]["seconds"], Json::parse("[0.0, 20.0, 30.0]"));
  EXPECT_EQ(shown["jct_by_size"][3]["gpus"], "8");
  EXPECT_EQ(shown["timeline"]["time"], Json::parse("[0.0, 50.25]"));
  EXPECT_EQ(shown["timeline"]["gpus_used"], Json::parse("[2, 11]"));
}

TEST(ReportJsonTest, GpuHoursNeedAllDurations) {
  RunResult run = RunOf({{.duration = FromSeconds(1)}, {.iterations = 100}});
  EXPECT_TRUE(Json::parse(ReportJson({&run, 1}, ""))["trace"]["gpu_hours"].is_null());
}

}  // namespace
}  // namespace trainyard
