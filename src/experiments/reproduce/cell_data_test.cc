// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/cell_data.h"

#include <gtest/gtest.h>

#include "support/hand_made_run.h"
#include "support/scratch_folder.h"

namespace trainyard::experiments {
namespace {

results::RunResult HandMadeRun() {
  results::RunResult run = RunOf(HandMadeSpecs());
  AddHandMadeResults(run);
  run.gpus = 8;
  run.timeline = {{.time = AtSeconds(10), .gpus_used = 2, .jobs_running = 1, .jobs_pending = 0},
                  {.time = AtSeconds(110), .gpus_used = 8, .jobs_running = 1, .jobs_pending = 4},
                  {.time = AtSeconds(210), .gpus_used = 0, .jobs_running = 0, .jobs_pending = 0}};
  return run;
}

TEST(CellDataTest, MeasuresAllJobs) {
  const CellData data = DataOf(HandMadeRun(), nullptr, nullptr);
  // JCTs 100, 50.5 and 200 s.
  EXPECT_DOUBLE_EQ(*data.Number("jct_mean"), 350.5 / 3);
  EXPECT_DOUBLE_EQ(*data.Number("jct_mean_hours"), 350.5 / 3 / 3600);
  EXPECT_DOUBLE_EQ(*data.Number("jct_p99_rank"), 200);
  EXPECT_DOUBLE_EQ(*data.Number("jct_p99_ceil"), 200);
  EXPECT_DOUBLE_EQ(*data.Number("jct_p99"), 198);
  EXPECT_DOUBLE_EQ(*data.Number("makespan"), 230);
  EXPECT_DOUBLE_EQ(*data.Number("makespan_hours"), 230.0 / 3600);
  EXPECT_DOUBLE_EQ(*data.Number("last_end"), 240);
  EXPECT_DOUBLE_EQ(*data.Number("best_effort_jct_mean"), 200);
  // One met, one late, one rejected, one unfinished; a best-effort job has no deadline.
  EXPECT_DOUBLE_EQ(*data.Number("deadlines_met"), 1);
  EXPECT_DOUBLE_EQ(*data.Number("deadline_ratio"), 0.25);
  EXPECT_DOUBLE_EQ(*data.Number("queueing_delay_mean"), (0 + 30 + 20) / 3.0);
  EXPECT_DOUBLE_EQ(*data.Number("preemptions"), 2);
  EXPECT_DOUBLE_EQ(*data.Number("gpu_hours_mean"), (200 + 20.5 + 1280) / 3600 / 5);
  EXPECT_DOUBLE_EQ(*data.Number("gpus_used"), 5);
  EXPECT_DOUBLE_EQ(*data.Number("jobs_pending"), 2);
  EXPECT_FALSE(data.Number("throughput"));
}

TEST(CellDataTest, MeasuresTrackedJobsOnly) {
  const world::TrackedJobs tracked{JobAt(1), JobAt(2)};
  const CellData data = DataOf(HandMadeRun(), &tracked, nullptr);
  EXPECT_DOUBLE_EQ(*data.Number("jct_mean"), 50.5);
  EXPECT_DOUBLE_EQ(*data.Number("makespan"), 50.5);
  EXPECT_DOUBLE_EQ(*data.Number("deadline_ratio"), 0);
  EXPECT_FALSE(data.Number("best_effort_jct_mean"));
}

TEST(CellDataTest, CurvesBeginWithTheFirstSubmit) {
  const CellData data = DataOf(HandMadeRun(), nullptr, nullptr);
  EXPECT_EQ(data.curves.at("jct").x, (std::vector<double>{50.5, 100, 200}));
  EXPECT_EQ(data.curves.at("gpus_used").x.front(), 0);
  EXPECT_EQ(data.curves.at("gpus_used").y, (std::vector<double>{2, 8, 0}));
  EXPECT_EQ(data.curves.at("submitted").y, std::vector<double>{5});
  EXPECT_EQ(data.curves.at("deadlines_met").y, std::vector<double>{1});
}

TEST(CellDataTest, EfficiencyIsTheSumOfSpeedUpsByAllGpus) {
  const ScratchFolder folder;
  const auto profiles = profile::ThroughputTable::Read(folder.Write(
      "p.csv", "model,batch_size,gpus,iterations_per_second\nm,8,1,10\nm,8,2,15\nm,8,4,20\n"));
  ASSERT_TRUE(profiles.ok()) << profiles.error().message;
  std::vector<JobSpec> specs(2);
  for (JobSpec& spec : specs) {
    spec.model = "m";
    spec.batch_size = 8;
  }
  results::RunResult run = RunOf(std::move(specs));
  run.gpus = 10;
  // Job 0 has 2 GPUs, 1 on each node, for 3000 s, and then 4 for as long; job 1 has 1 in between.
  run.allocations = results::Allocations{
      .nodes = {{.name = "a", .gpus = 4}, {.name = "b", .gpus = 4}},
      .holdings = {
          {.job = 0, .node = 0, .gpus = 1, .start = AtSeconds(0), .end = AtSeconds(3000)},
          {.job = 0, .node = 1, .gpus = 8, .start = AtSeconds(0), .end = AtSeconds(3000)},
          {.job = 1, .node = 0, .gpus = 2, .start = AtSeconds(3000), .end = AtSeconds(6000)},
          {.job = 0, .node = 1, .gpus = 15, .start = AtSeconds(3000), .end = AtSeconds(6000)}}};
  const CellData data = DataOf(run, nullptr, &profiles.value());
  EXPECT_EQ(data.curves.at("cluster_efficiency").y.size(), 3U);
  EXPECT_DOUBLE_EQ(data.curves.at("cluster_efficiency").y[0], 0.15);
  EXPECT_DOUBLE_EQ(data.curves.at("cluster_efficiency").y[1], 0.3);
  EXPECT_DOUBLE_EQ(*data.Number("cluster_efficiency"), 0.225);
}

TEST(CellDataTest, IsReadBackAsItWas) {
  const CellData data = DataOf(HandMadeRun(), nullptr, nullptr);
  const Result<CellData> read = ReadData(WriteData(data));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().numbers, data.numbers);
  EXPECT_EQ(read.value().curves.at("jct").y, data.curves.at("jct").y);
  EXPECT_FALSE(ReadData("{\"numbers\": {}").ok());
}

}  // namespace
}  // namespace trainyard::experiments
