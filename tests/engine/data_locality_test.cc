// SPDX-License-Identifier: Apache-2.0
// Jobs with data sets: who fetches, what it costs, and what minding it brings.
#include <gtest/gtest.h>

#include <random>

#include "engine_tests/harness.h"

namespace trainyard {
namespace {

constexpr std::int64_t kKbps = 1'048'576;  // a MiB takes a millisecond

JobSpec WithData(JobSpec job, const std::string& name, std::int64_t mib,
                 const std::string& home = {}) {
  JobTraits traits;
  traits.data_set = DataSet{.name = name, .mib = mib, .home = home};
  job.traits = std::make_shared<const JobTraits>(std::move(traits));
  return job;
}

Cluster CachingCluster(int nodes, int gpus, std::int64_t cache_mib) {
  Cluster cluster = MakeCluster(nodes, gpus);
  for (NodeSpec& node : cluster.nodes) {
    node.cache_mib = cache_mib;
    node.remote_kbps = kKbps;
  }
  return cluster;
}

// Fetches are charged, changes cost nothing besides.
model::Rules ChargingRules() { return {}; }

TEST(DataLocalityTest, AStartPaysTheFetch) {
  const TestResult result =
      RunTest({.jobs = {WithData(MakeJob(0, 2, 100), "a", 30'000), MakeJob(0, 1, 100)},
               .cluster = CachingCluster(1, 4, 100'000),
               .rules = ChargingRules()});
  EXPECT_EQ(result.end(0), 130);
  EXPECT_EQ(result.end(1), 100);
}

TEST(DataLocalityTest, AJobThatReturnsToItsNodePaysNothing) {
  // Job 1 takes the only GPU from 50 to 60 s; job 0 has 80 s of work left then.
  TestRun run{.jobs = {WithData(MakeJob(0, 1, 100), "a", 30'000), MakeJob(50, 1, 10)},
              .cluster = CachingCluster(1, 1, 100'000),
              .rules = ChargingRules(),
              .policy = "srtf"};
  const TestResult kept = RunTest(run);
  EXPECT_EQ(kept.records[0].preemptions, 1U);
  EXPECT_EQ(kept.end(0), 140);
  for (NodeSpec& node : run.cluster.nodes) {
    node.cache_mib = 29'999;  // too small
  }
  EXPECT_EQ(RunTest(run).end(0), 170);
}

TEST(DataLocalityTest, WhatAPreemptedJobHasNotFetchedItDoesNotOwe) {
  // Preempted 10 s into a fetch of 30 s, which goes on; it is back at 20 s, and at 50 s.
  for (const auto& [length, end] : {std::pair{10.0, 130.0}, std::pair{40.0, 150.0}}) {
    const TestResult result =
        RunTest({.jobs = {WithData(MakeJob(0, 1, 100), "a", 30'000), MakeJob(10, 1, length)},
                 .cluster = CachingCluster(1, 1, 100'000),
                 .rules = ChargingRules(),
                 .policy = "srtf"});
    EXPECT_EQ(result.end(0), end);
  }
}

TEST(DataLocalityTest, AMoveToANodeWithoutTheDataPays) {
  TestRun run{.jobs = {WithData(MakeJob(0, 2, 300), "a", 30'000)},
              .cluster = CachingCluster(2, 2, 100'000),
              .rules = ChargingRules()};
  run.cluster.changes = {{AtSeconds(230), NodeAt(0), false}};
  run.cluster.checkpoint_interval = FromSeconds(100);
  EXPECT_EQ(RunTest(run).end(0), 360);  // 200 s done by 230; 30 s of fetching again
  run.jobs = {WithData(MakeJob(0, 2, 300), "a", 30'000, "n1")};  // now it moves to its data
  EXPECT_EQ(RunTest(run).end(0), 330);
}

TEST(DataLocalityTest, AFailedNodeFetchesAgain) {
  TestRun run{.jobs = {WithData(MakeJob(0, 1, 10), "a", 30'000),
                       WithData(MakeJob(100, 1, 10), "a", 30'000)},
              .cluster = CachingCluster(1, 1, 100'000),
              .rules = ChargingRules()};
  EXPECT_EQ(RunTest(run).end(1), 110);
  run.cluster.changes = {{AtSeconds(50), NodeAt(0), false}, {AtSeconds(60), NodeAt(0), true}};
  EXPECT_EQ(RunTest(run).end(1), 140);
}

TEST(DataLocalityTest, APlacementThatMindsItGoesWhereTheDataAre) {
  // Two jobs of each data set; by best fit alone the second ones lie on the other's node.
  TestRun run{
      .jobs = {WithData(MakeJob(0, 2, 100), "a", 30'000), WithData(MakeJob(0, 2, 100), "b", 30'000),
               WithData(MakeJob(200, 2, 100), "b", 30'000),
               WithData(MakeJob(200, 2, 100), "a", 30'000)},
      .cluster = CachingCluster(2, 2, 100'000),
      .rules = ChargingRules()};
  EXPECT_EQ(RunTest(run).end(2), 330);
  EXPECT_EQ(RunTest(run).end(3), 330);
  run.placement = "consolidated:locality=1";
  EXPECT_EQ(RunTest(run).end(2), 300);
  EXPECT_EQ(RunTest(run).end(3), 300);
}

// --------------------------------------------------------------------------------- random traces

// `sets` data sets of 5 to 60 s; none for every fifth job, or with sets = 0.
TestRun RandomRun(unsigned seed, int sets) {
  std::mt19937 random(seed);
  TestRun run{.jobs = RandomJobs(seed, 150),
              .cluster = CachingCluster(5, 4, 100'000),
              .rules = ChargingRules(),
              .policy = seed % 2 == 0 ? "las:quantum=600" : "srtf"};
  run.overheads = profile::OverheadModel(profile::OverheadTable{
      .fallback = {.start = FromSeconds(2), .restart = FromSeconds(4)}, .models = {}});
  for (JobSpec& job : run.jobs) {
    const auto draw = static_cast<unsigned>(random());
    if (sets > 0 && draw % 5 != 0) {
      const auto set = draw / 5 % static_cast<unsigned>(sets);
      job = WithData(job, "data" + std::to_string(set), 5'000 + set * 7'919 % 55'000);
    }
  }
  return run;
}

TestRun WithoutCaches(TestRun run) {
  run.cluster = MakeCluster(5, 4);
  return run;
}

TestRun Minding(TestRun run) {
  run.placement = "consolidated:locality=1";
  return run;
}

double MeanJct(const TestResult& result) {
  double sum = 0;
  for (const model::JobRecord& job : result.records) {
    EXPECT_EQ(job.phase.get(), model::JobPhase::kCompleted);
    sum += Seconds(job.done - job.spec->submit);
  }
  return sum / static_cast<double>(result.records.size());
}

TEST(DataLocalityTest, WithoutDataSetsNothingChanges) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const TestRun run = RandomRun(seed, 0);
    const std::string plain = RunTest(WithoutCaches(run)).digest;
    EXPECT_EQ(RunTest(run).digest, plain);
    EXPECT_EQ(RunTest(Minding(run)).digest, plain);
  }
}

TEST(DataLocalityTest, WithoutBandwidthsNothingChanges) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const TestResult with = RunTest(WithoutCaches(Minding(RandomRun(seed, 8))));
    const TestResult without = RunTest(WithoutCaches(RandomRun(seed, 0)));
    for (std::size_t i = 0; i < with.records.size(); ++i) {
      ASSERT_EQ(with.start(i), without.start(i));
      ASSERT_EQ(with.end(i), without.end(i));
    }
  }
}

TEST(DataLocalityTest, WithoutCachesThereIsNothingToMind) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    TestRun run = RandomRun(seed, 8);
    for (NodeSpec& node : run.cluster.nodes) {
      node.cache_mib = 0;
    }
    EXPECT_EQ(RunTest(Minding(run)).digest, RunTest(run).digest);
  }
}

TEST(DataLocalityTest, ARunWithDataSetsIsReplayed) {
  const TestRun run = Minding(RandomRun(3, 8));
  const TestResult original = RunTest(run);
  const TestResult replay = RunTest(run, &original.journal);
  ASSERT_TRUE(replay.status.ok()) << replay.status.error().message;
  EXPECT_EQ(original.digest, replay.digest);
  EXPECT_NE(original.digest, RunTest(RandomRun(3, 8)).digest);
}

TEST(DataLocalityTest, SurvivesNodeFailures) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    TestRun run = Minding(RandomRun(seed, 8));
    for (int i = 0; i < 40; ++i) {
      const NodeId node = NodeAt(static_cast<std::size_t>(i % 5));
      run.cluster.changes.push_back({AtSeconds(50.0 + 70 * i), node, false});
      run.cluster.changes.push_back({AtSeconds(115.0 + 70 * i), node, true});
    }
    const TestResult result = RunTest(run);
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    EXPECT_GT(MeanJct(result), 0);
  }
}

// Where jobs are moved often. By the sound rule they are not, and the two means are within 1 %.
TEST(DataLocalityTest, MindingItShortensTheMeanOfJobsThatMove) {
  double plain = 0;
  double minding = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    TestRun run = RandomRun(seed, 8);
    run.rules.preemption.rule = model::Preemption::Rule::kPublished;
    plain += MeanJct(RunTest(run));
    minding += MeanJct(RunTest(Minding(run)));
  }
  EXPECT_LT(minding, plain * 0.99);
}

}  // namespace
}  // namespace trainyard
