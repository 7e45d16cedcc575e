// SPDX-License-Identifier: Apache-2.0
#include "results/write/table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

std::size_t WidthOf(const std::string& text) {
  std::size_t width = 0;
  std::size_t line = 0;
  for (const char c : text) {
    line = c == '\n' ? 0 : line + 1;
    width = std::max(width, line);
  }
  return width;
}

TEST(ComparisonTableTest, HasOneAlignedLinePerRun) {
  std::vector<RunResult> runs{HandMadeRun(), HandMadeRun()};
  runs[1].label = runs[1].policy = "elasticflow";
  EXPECT_EQ(ComparisonTable(runs),
            // Each line in two halves.
            "                  jobs             JCT              queue  make-    GPU    pre-"
            "  migra-   deadlines met      declined\n"
            "run          completed   mean    p50    p90    p99  delay   span    use  empted"
            "   tions  accepted  ratio  rejected  late\n"
            "srtf               3/5  1m57s  1m40s  3m00s  3m18s  16.7s  3m50s  40.8%       2"
            "       1       1/4  25.0%         1     2\n"
            "elasticflow        3/5  1m57s  1m40s  3m00s  3m18s  16.7s  3m50s  40.8%       2"
            "       1       1/4  25.0%         1     2");
}

TEST(ComparisonTableTest, NamesWhatDiffersFromSoundMode) {
  std::vector<RunResult> runs{HandMadeRun(), HandMadeRun()};
  EXPECT_EQ(ComparisonTable(runs).find("\n\n"), std::string::npos);
  runs[1].tuning = "loader";
  EXPECT_TRUE(ComparisonTable(runs).ends_with("\n\nsrtf: tuning loader"));
}

TEST(ComparisonTableTest, LeavesOutDeadlinesWhereThereAreNone) {
  const std::vector<RunResult> runs{RunOf({{.name = "never"}})};
  const std::string table = ComparisonTable(runs);
  EXPECT_EQ(table.find("deadlines"), std::string::npos);
  EXPECT_NE(table.find("jected"), std::string::npos);  // rejected jobs all the same
  EXPECT_NE(table.find("0/1"), std::string::npos);
  EXPECT_NE(table.find(" - "), std::string::npos);
}

TEST(ComparisonTableTest, FitsATerminal) {
  std::vector<RunResult> runs(20, HandMadeRun());
  for (RunResult& run : runs) {
    run.label = run.policy = "tiresias-discret";
    run.jobs[3].end = AtSeconds(359'000);
    run.jobs[3].preemptions = 123'456;
  }
  const std::string table = ComparisonTable(runs);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 21);
  EXPECT_LE(WidthOf(table), 120U);
}

TEST(ComparisonTableTest, MovesGroupsTogetherBeforeAllColumns) {
  std::vector<RunResult> runs{HandMadeRun()};
  runs[0].label = "elasticflow,1234";
  const std::string table = ComparisonTable(runs);
  EXPECT_LE(WidthOf(table), 120U);
  EXPECT_NE(table.find("\nrun               completed   mean   p50   p90   p99  delay"),
            std::string::npos)
      << table;
}

TEST(ComparisonTableTest, WithoutRunsIsOnlyTheHeadings) {
  EXPECT_TRUE(ComparisonTable({}).find("completed") != std::string::npos);
}

TEST(RunSummaryTextTest, NamesWhatWasRunAndWhatCameOut) {
  EXPECT_EQ(RunSummaryText(HandMadeRun()),
            "run:            srtf\n"
            "trace:          trace.csv (5 jobs, sha256 0123456789ab)\n"
            "cluster:        small (2 nodes, 16 GPUs)\n"
            "policy:         srtf\n"
            "placement:      consolidated\n"
            "admission:      all\n"
            "preset:         none\n"
            "seed:           7\n"
            "jobs:           3 of 5 completed, 1 rejected, 1 unfinished\n"
            "JCT:            mean 1m57s, p50 1m40s, p90 3m00s, p99 3m18s\n"
            "queueing delay: mean 16.7s\n"
            "waiting time:   mean 1m08s\n"
            "slowdown:       mean 1.57 (bounded)\n"
            "makespan:       3m50s\n"
            "GPU use:        40.8% held, 38.1% useful\n"
            "changes:        2 preemptions, 1 migrations, 3 resizes\n"
            "deadlines:      1 of 4 met (25.0%), 2 late, 1 rejected\n"
            "engine:         2 decisions, 9 events\n"
            "cost:           500ms wall, 250ms CPU, 12 MB, 10 jobs/s\n"
            "digest:         feed");
}

TEST(RunSummaryTextTest, NamesGroupingAndTuningOnlyWhereTheyAre) {
  RunResult run = HandMadeRun();
  run.candidates = {"las all consolidated", "fifo all consolidated"};
  run.grouping = "interleave";
  run.tuning = "loader";
  const std::string text = RunSummaryText(run);
  EXPECT_NE(text.find("\nchoosing among: las all consolidated | fifo all consolidated\n"),
            std::string::npos);
  EXPECT_NE(text.find("\ngrouping:       interleave\ntuning:         loader\npreset: "),
            std::string::npos)
      << text;
}

TEST(RunSummaryTextTest, SaysHowOftenASearchEndedAtItsBound) {
  RunResult run = HandMadeRun();
  run.bounded_decisions = 1;
  EXPECT_NE(
      RunSummaryText(run).find("2 decisions, 9 events; 1 by a search that ended at its bound\n"),
      std::string::npos);
}

TEST(RunSummaryTextTest, CountsCancelledAndFailedJobs) {
  RunResult run = HandMadeRun();
  run.jobs[0].outcome = Outcome::kCancelled;
  EXPECT_NE(RunSummaryText(run).find("1 unfinished, 1 cancelled or failed\n"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::results
