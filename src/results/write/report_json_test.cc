// SPDX-License-Identifier: Apache-2.0
#include "results/write/report_json.h"

#include <gtest/gtest.h>

#include "results/write/json_value.h"

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

// a on GPUs 0 and 1 of n0 from 10 to 110, b on GPU 3 of n1 from 50 to 70.5, d on all of n0 from
// 120.
RunResult RunWithAllocations() {
  RunResult run = HandMadeRun();
  run.allocations = Allocations{
      .nodes = {{.name = "n0", .gpus = 8}, {.name = "n1", .gpus = 8}},
      .holdings = {
          {.job = 0, .node = 0, .gpus = 0b11, .start = AtSeconds(10), .end = AtSeconds(110)},
          {.job = 1, .node = 1, .gpus = 0b1000, .start = AtSeconds(50), .end = AtSeconds(70.5)},
          {.job = 3, .node = 0, .gpus = 0xFF, .start = AtSeconds(120), .end = AtSeconds(240)}}};
  run.timeline[0].gpus_fragmented = 1.2345;
  return run;
}

TEST(ReportJsonTest, DescribesTraceAndCluster) {
  const RunResult run = HandMadeRun();
  const Json report = Json::parse(ReportJson({&run, 1}, "trainyard compare trace.csv"));
  EXPECT_EQ(report["format"], "trainyard-report/2");
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

TEST(ReportJsonTest, NamesWhatDiffersFromSoundMode) {
  std::vector<RunResult> runs{HandMadeRun(), HandMadeRun()};
  runs[1].grouping = "interleave";
  runs[1].candidates = {"las all", "fifo all"};
  runs[1].tuning = "loader";
  runs[1].preset = "muri";
  const Json shown = Json::parse(ReportJson(runs, ""))["runs"];
  EXPECT_EQ(shown[0]["settings"], Json::array());
  EXPECT_EQ(shown[0]["grouping"], "");
  EXPECT_EQ(shown[1]["candidates"], Json::parse(R"(["las all", "fifo all"])"));
  EXPECT_EQ(shown[1]["settings"],
            Json::parse(R"([{"name": "choosing among", "value": "las all | fifo all"},
                                                  {"name": "grouping", "value": "interleave"},
                                                  {"name": "tuning", "value": "loader"},
                                                  {"name": "preset", "value": "muri"}])"));
}

TEST(ReportJsonTest, TellsResultsOfPublishedProgramsApart) {
  RunResult run = HandMadeRun();
  EXPECT_EQ(Json::parse(ReportJson({&run, 1}, ""))["runs"][0]["ends_only"], false);
  run.ends_only = true;
  run.nodes = run.gpus = 0;
  const Json report = Json::parse(ReportJson({&run, 1}, ""));
  EXPECT_EQ(report["runs"][0]["ends_only"], true);
  EXPECT_TRUE(report["cluster"]["nodes"].is_null());
  EXPECT_TRUE(report["cluster"]["gpus"].is_null());
}

TEST(ReportJsonTest, GpuHoursNeedAllDurations) {
  RunResult run = RunOf({{.duration = FromSeconds(1)}, {.iterations = 100}});
  EXPECT_TRUE(Json::parse(ReportJson({&run, 1}, ""))["trace"]["gpu_hours"].is_null());
}

TEST(ReportJsonTest, SaysWhereTheGpuTimeWent) {
  const RunResult run = HandMadeRun();
  const Json shown = Json::parse(ReportJson({&run, 1}, ""))["runs"][0];
  EXPECT_EQ(shown["gpu_time"],
            Json::parse(R"({"useful": 1400.5, "overhead": 100.0, "idle": 2179.5})"));
  EXPECT_EQ(shown["users"][1], Json::parse(R"({"name": "ann", "jobs": 1, "gpu_seconds": 200.0,
                                               "jct_mean": 100.0})"));
  EXPECT_EQ(shown["fairness_cdf"]["ratio"], Json::parse("[0.8, 1.25, 2.525]"));
}

TEST(ReportJsonTest, WithoutAllocationsThereIsNoGantt) {
  const RunResult run = HandMadeRun();
  const Json report = Json::parse(ReportJson({&run, 1}, ""));
  EXPECT_FALSE(report.contains("jobs"));
  EXPECT_FALSE(report["runs"][0].contains("gantt"));
  EXPECT_TRUE(report["runs"][0]["timeline"]["gpus_fragmented"].is_null());
}

TEST(ReportJsonTest, BarsOfTheGanttAreInColumns) {
  const RunResult run = RunWithAllocations();
  const Json report = Json::parse(ReportJson({&run, 1}, ""));
  EXPECT_EQ(report["cluster"]["node"], Json::parse(R"({"name": ["n0", "n1"], "gpus": [8, 8]})"));
  EXPECT_EQ(report["jobs"]["name"], Json::parse(R"(["a", "b", "d"])"));
  EXPECT_EQ(report["jobs"]["submit"], Json::parse("[0.0, 10.0, 30.0]"));
  EXPECT_EQ(report["jobs"]["user"], Json::parse(R"({"names": ["ann", ""], "of": [0, 1, 1]})"));
  const Json& gantt = report["runs"][0]["gantt"];
  EXPECT_EQ(gantt["unit"], 0.001);
  EXPECT_EQ(gantt["job"], Json::parse("[0, 1, 2]"));
  EXPECT_EQ(gantt["node"], Json::parse("[0, 1, 0]"));
  EXPECT_EQ(gantt["first_gpu"], Json::parse("[0, 3, 0]"));
  EXPECT_EQ(gantt["gpus"], Json::parse("[2, 1, 8]"));
  EXPECT_EQ(gantt["after"], Json::parse("[0, 40000, 70000]"));
  EXPECT_EQ(gantt["length"], Json::parse("[100000, 20500, 120000]"));
  EXPECT_EQ(gantt["bars_left_out"], 0);
  EXPECT_TRUE(gantt["cells"]["node"].empty());
  EXPECT_EQ(report["runs"][0]["timeline"]["gpus_fragmented"], Json::parse("[1.235, 0.0]"));
}

TEST(ReportJsonTest, NodesAreThoseOfAllRuns) {
  std::vector<RunResult> runs{RunWithAllocations(), RunWithAllocations()};
  runs[0].allocations->nodes = {{.name = "n1", .gpus = 4}};
  runs[0].allocations->holdings.resize(1);
  const Json report = Json::parse(ReportJson(runs, ""));
  EXPECT_EQ(report["cluster"]["node"], Json::parse(R"({"name": ["n0", "n1"], "gpus": [8, 8]})"));
  EXPECT_EQ(report["runs"][0]["gantt"]["node"], Json::parse("[1]"));
  EXPECT_EQ(report["runs"][1]["gantt"]["node"], Json::parse("[0, 1, 0]"));
}

TEST(ReportJsonTest, ExplanationsAreTables) {
  const RunResult run = HandMadeRun();
  const std::vector<ReportTable> tables{
      {.title = "Gained most",
       .caption = "Ten jobs.",
       .columns = {{.name = "Job"}, {.name = "JCT", .unit = ReportTable::Unit::kSeconds}},
       .rows = {{std::string("a"), 12.5}, {std::string("b"), {}}}}};
  EXPECT_EQ(Json::parse(ReportJson({&run, 1}, "", tables))["explanations"],
            Json::parse(R"([{"title": "Gained most", "caption": "Ten jobs.",
                             "columns": [{"name": "Job", "unit": ""}, {"name": "JCT", "unit": "s"}],
                             "rows": [["a", 12.5], ["b", null]]}])"));
}

}  // namespace
}  // namespace trainyard::results
