// SPDX-License-Identifier: Apache-2.0
#include "results/explain/explain.h"

#include <gtest/gtest.h>

#include "io/json.h"

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

constexpr std::size_t kAll = 100;

// The hand-made run, in which job d was preempted and b waited longer; a is rejected here and c
// ran instead.
RunResult OtherRun() {
  RunResult run = HandMadeRun();
  run.label = "fifo";
  std::vector<JobResult>& jobs = run.jobs;
  jobs[0] = {.spec = jobs[0].spec, .outcome = Outcome::kRejected};
  jobs[1].start = AtSeconds(25);
  jobs[1].end = jobs[1].logged = AtSeconds(45.5);
  jobs[1].waited = FromSeconds(5);
  jobs[2] = {.spec = jobs[2].spec,
             .outcome = Outcome::kCompleted,
             .start = AtSeconds(30),
             .end = AtSeconds(130),
             .logged = AtSeconds(130),
             .productive = FromSeconds(100),
             .attained_service = 400,
             .useful_service = 400};
  jobs[3].start = AtSeconds(40);
  jobs[3].end = jobs[3].logged = AtSeconds(340);
  jobs[3].waited = FromSeconds(0);
  jobs[3].productive = FromSeconds(300);
  jobs[3].overhead = FromSeconds(0);
  jobs[3].useful_service = 1200;
  jobs[3].preemptions = jobs[3].migrations = jobs[3].resizes = 0;
  return run;
}

TEST(PartsOfTest, SumToTheJct) {
  const RunResult run = HandMadeRun();
  // d: submitted at 40, started at 60, waited 40 in all, ran 150 and stood still 10.
  const std::optional<JctParts> parts = PartsOf(run.jobs[3], run);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->queued, FromSeconds(20));
  EXPECT_EQ(parts->suspended, FromSeconds(20));
  EXPECT_EQ(parts->productive, FromSeconds(150));
  EXPECT_EQ(parts->overhead, FromSeconds(10));
  EXPECT_EQ(parts->registered, FromSeconds(0));
  EXPECT_EQ(parts->sum(), FromSeconds(200));
}

TEST(PartsOfTest, WhatIsRegisteredLaterIsAPartOfItsOwn) {
  RunResult run = HandMadeRun();
  run.uses_logged_end = true;
  const std::optional<JctParts> parts = PartsOf(run.jobs[1], run);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->registered, FromSeconds(1.5));
  EXPECT_EQ(parts->sum(), FromSeconds(52));
}

TEST(PartsOfTest, OnlyCompletedJobsHaveThem) {
  const RunResult run = HandMadeRun();
  EXPECT_FALSE(PartsOf(run.jobs[2], run));
  EXPECT_FALSE(PartsOf(run.jobs[4], run));
}

TEST(ExplainTest, PartsOfEveryDifferenceSumToIt) {
  const RunResult run = HandMadeRun();
  const RunResult other = OtherRun();
  const Result<Explanation> read = Explain(run, other, kAll);
  ASSERT_TRUE(read.ok());
  const Explanation& explanation = read.value();
  EXPECT_EQ(explanation.completed_in_both, 2);
  ASSERT_EQ(explanation.gained.size(), 1U);
  ASSERT_EQ(explanation.lost.size(), 1U);
  const ExplainedJob& d = explanation.gained[0];
  EXPECT_EQ(d.job->spec->name, "d");
  EXPECT_EQ(d.parts.sum(), FromSeconds(200 - 300));
  EXPECT_EQ(d.parts.queued, FromSeconds(20));
  EXPECT_EQ(d.parts.suspended, FromSeconds(20));
  EXPECT_EQ(d.parts.productive, FromSeconds(-150));
  EXPECT_EQ(d.parts.overhead, FromSeconds(10));
  const ExplainedJob& b = explanation.lost[0];
  EXPECT_EQ(b.job->spec->name, "b");
  EXPECT_EQ(b.parts.sum(), FromSeconds(25));
  EXPECT_EQ(b.parts.queued, FromSeconds(25));
  EXPECT_EQ(explanation.total.sum(), FromSeconds(-75));
}

TEST(ExplainTest, JobsThatCompletedOnceAreListedApart) {
  const RunResult run = HandMadeRun();
  const RunResult other = OtherRun();
  const Explanation explanation = Explain(run, other, kAll).value();
  ASSERT_EQ(explanation.changes.size(), 2U);
  EXPECT_EQ(SentenceOf(explanation.changes[0], explanation),
            "job a completed after 1m40s, in time under srtf, rejected under fifo");
  EXPECT_EQ(SentenceOf(explanation.changes[1], explanation),
            "job c,\"x\" rejected under srtf, completed after 1m40s, late under fifo");
  EXPECT_EQ(explanation.deadlines_won, 1);   // a
  EXPECT_EQ(explanation.deadlines_lost, 1);  // b
}

TEST(ExplainTest, SentencesNameTheCauses) {
  const RunResult run = HandMadeRun();
  const RunResult other = OtherRun();
  const Explanation explanation = Explain(run, other, kAll).value();
  EXPECT_EQ(SentenceOf(explanation.gained[0], explanation),
            "job d gained 1m40s: ran 2m30s shorter on 8 GPUs instead of 4, waited 20.0s longer "
            "for its first GPUs, waited 20.0s longer later on (preempted 2 times instead of "
            "never), 10.0s more restart overhead (preempted 2 times instead of never, migrated "
            "once instead of never, resized 3 times instead of never)");
  EXPECT_EQ(SentenceOf(explanation.lost[0], explanation),
            "job b lost 25.0s: waited 25.0s longer for its first GPUs; misses its deadline");
}

TEST(ExplainTest, TheTextHasMeansTablesAndSentences) {
  const RunResult run = HandMadeRun();
  const RunResult other = OtherRun();
  const std::string text = ExplanationText(Explain(run, other, kAll).value());
  EXPECT_TRUE(text.starts_with(
      "srtf against fifo: mean JCT 1m57s against 2m22s\n"
      "  2 jobs completed in both, on average -37.5s: first wait +22.5s, later waits +10.0s, "
      "running -1m15s, restarts +5.0s\n"
      "  deadlines: 1 met only by srtf, 1 only by fifo\n"
      "gained most\n"
      "  job    JCT  other JCT  difference  first wait  later waits  running  restarts  "
      "registered\n"
      "  d    3m20s      5m00s      -1m40s      +20.0s       +20.0s   -2m30s    +10.0s          "
      "0s\n"
      "  - job d gained"))
      << text;
  EXPECT_FALSE(text.ends_with("\n"));
}

TEST(ExplainTest, TheListsAreAsLongAsAskedFor) {
  const RunResult run = HandMadeRun();
  const RunResult other = OtherRun();
  const Explanation explanation = Explain(run, other, 0).value();
  EXPECT_TRUE(explanation.gained.empty());
  EXPECT_TRUE(explanation.lost.empty());
  EXPECT_EQ(explanation.total.sum(), FromSeconds(-75));
}

TEST(ExplainTest, TheJsonHasTheParts) {
  const RunResult run = HandMadeRun();
  const RunResult other = OtherRun();
  const auto json = nlohmann::json::parse(ExplanationJson(Explain(run, other, kAll).value(), 2));
  EXPECT_EQ(json["run"], "srtf");
  EXPECT_EQ(json["difference_total"]["jct"], -75);
  EXPECT_EQ(json["gained"][0]["difference"]["productive"], -150);
  EXPECT_EQ(json["gained"][0]["run"]["preemptions"], 2);
  EXPECT_EQ(json["completed_in_one_only"][0]["other"]["outcome"], "rejected");
  EXPECT_TRUE(json["completed_in_one_only"][0]["other"]["jct"].is_null());
}

TEST(ExplainTest, TheReportGetsTables) {
  const RunResult run = HandMadeRun();
  const RunResult other = OtherRun();
  const std::vector<ReportTable> tables = TablesOf(Explain(run, other, kAll).value());
  ASSERT_EQ(tables.size(), 3U);
  EXPECT_EQ(tables[0].title, "Gained most under srtf against fifo");
  ASSERT_EQ(tables[0].rows.size(), 1U);
  ASSERT_EQ(tables[0].rows[0].size(), tables[0].columns.size());
  EXPECT_EQ(std::get<double>(tables[0].rows[0][3]), -100);
  EXPECT_EQ(tables[2].rows.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(tables[2].rows[0][4]));
}

TEST(ExplainTest, RunsOfOtherJobsAreRefused) {
  const RunResult run = HandMadeRun();
  const RunResult strange = RunOf({{.name = "z"}});
  EXPECT_FALSE(Explain(run, strange, kAll).ok());
  RunResult published = HandMadeRun();
  published.ends_only = true;
  EXPECT_FALSE(Explain(run, published, kAll).ok());
}

TEST(RunsToExplainTest, BestAgainstWorst) {
  const std::vector<RunResult> runs{OtherRun(), HandMadeRun()};
  const auto pair = RunsToExplain(runs, "");
  ASSERT_TRUE(pair.ok() && pair.value());
  EXPECT_EQ(*pair.value(), (std::pair<std::size_t, std::size_t>{1, 0}));
  EXPECT_FALSE(RunsToExplain({runs.data(), 1}, "").value());
}

TEST(RunsToExplainTest, RunsOnDifferentClustersAreNotExplained) {
  std::vector<RunResult> runs{HandMadeRun(), HandMadeRun(), HandMadeRun()};
  runs[0].label = "fifo on small";
  runs[1].label = "las on large";
  runs[1].cluster_name = "large";
  runs[1].gpus = 32;
  runs[2].label = "las on small";
  EXPECT_FALSE(RunsToExplain(runs, "").value());
  const Result<Explanation> refused = Explain(runs[0], runs[1], 5);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "'fifo on small' is a run on cluster small (16 GPUs) and 'las on large' on large (32 "
            "GPUs): what jobs gained and lost would be due to the GPUs; expected two runs on one "
            "cluster");
  EXPECT_TRUE(Explain(runs[0], runs[2], 5).ok());
  // The only run of its policy needs no cluster, one of two does.
  EXPECT_EQ(RunsToExplain(runs, "las on small,fifo").value(),
            std::pair(std::size_t{2}, std::size_t{0}));
  EXPECT_FALSE(RunsToExplain(runs, "las,fifo").ok());
}

TEST(RunsToExplainTest, LabelsMayHaveCommas) {
  std::vector<RunResult> runs{OtherRun(), HandMadeRun()};
  runs[0].label = "las:a=1,b=2";
  const auto pair = RunsToExplain(runs, "las:a=1,b=2,srtf");
  ASSERT_TRUE(pair.ok() && pair.value());
  EXPECT_EQ(*pair.value(), (std::pair<std::size_t, std::size_t>{0, 1}));
  const auto wrong = RunsToExplain(runs, "srtf,fif");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message,
            "--explain is 'srtf,fif'; expected A,B: two of las:a=1,b=2, srtf");
}

}  // namespace
}  // namespace trainyard::results
