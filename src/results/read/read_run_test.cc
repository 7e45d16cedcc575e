// SPDX-License-Identifier: Apache-2.0
#include "results/read/read_run.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "results/write/json.h"
#include "results/write/output.h"
#include "support/hand_made_run.h"
#include "support/scratch_folder.h"

namespace trainyard::results {
namespace {

class ReadRunTest : public testing::Test {
 protected:
  // Writes the run and returns its folder.
  [[nodiscard]] std::string Written(const RunResult& run) const {
    EXPECT_TRUE(WriteRun(run, Folder()).ok());
    return Folder();
  }
  [[nodiscard]] std::string Folder() const { return scratch_.path() + "/run"; }
  [[nodiscard]] std::string TextOf(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Folder() + "/" + name).rdbuf();
    return text.str();
  }
  void Replace(const std::string& name, std::string_view what, std::string_view by) const {
    const std::string text = base::ReplaceAll(TextOf(name), what, by);
    std::ofstream(Folder() + "/" + name) << text;
  }
  // The error of reading the hand-made run with a change in a file.
  [[nodiscard]] std::string ErrorWith(const std::string& name, std::string_view what,
                                      std::string_view by) const {
    const std::string folder = Written(HandMadeRun());
    Replace(name, what, by);
    return ErrorFrom(name, ReadRun(folder));
  }

  ScratchFolder scratch_;
};

TEST_F(ReadRunTest, WhatIsReadIsWhatWasWritten) {
  const RunResult run = HandMadeRun();
  const Result<RunResult> read = ReadRun(Written(run));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(SummaryJson(read.value()), SummaryJson(run));
  EXPECT_EQ(read.value().label, "srtf");
  ASSERT_EQ(read.value().timeline.size(), 2U);
  EXPECT_EQ(read.value().timeline[1].time, AtSeconds(60.25));
  // Written again, all files are the same.
  const std::string jobs = TextOf("jobs.csv");
  const std::string timeline = TextOf("timeline.csv");
  EXPECT_EQ(read.value().jobs[2].spec->name, "c,\"x\"");
  (void)Written(read.value());
  EXPECT_EQ(TextOf("jobs.csv"), jobs);
  EXPECT_EQ(TextOf("timeline.csv"), timeline);
}

TEST_F(ReadRunTest, GroupingAndTuningComeBackAndMayBeMissing) {
  RunResult run = HandMadeRun();
  run.grouping = "interleave:max=2";
  run.tuning = "loader";
  const Result<RunResult> read = ReadRun(Written(run));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().grouping, "interleave:max=2");
  EXPECT_EQ(read.value().tuning, "loader");
  Replace("summary.json", "\"grouping\": \"interleave:max=2\",", "");
  Replace("summary.json", "\"loader\"", "null");
  const Result<RunResult> without = ReadRun(Folder());
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_EQ(without.value().grouping + without.value().tuning, "");
}

TEST_F(ReadRunTest, WhatASelectorChoseAmongIsRead) {
  RunResult run = HandMadeRun();
  run.candidates = {"las all consolidated", "fifo all consolidated"};
  run.choices = {{.time = AtSeconds(10), .candidate = 1, .scores = {2, 1}},
                 {.time = AtSeconds(60), .candidate = 0, .scores = {1, 2}}};
  const Result<RunResult> read = ReadRun(Written(run));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().candidates, run.candidates);
  Replace("choices.csv", "candidate", "kandidat");
  EXPECT_EQ(ErrorFrom("choices.csv", ReadRun(Folder())).substr(0, 14), "choices.csv:1:");
}

TEST_F(ReadRunTest, RegisteredEndsCountWhereTheFileHasThem) {
  RunResult run = HandMadeRun();
  run.uses_logged_end = true;
  const Result<RunResult> read = ReadRun(Written(run));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read.value().uses_logged_end);
  EXPECT_FALSE(read.value().exact_deadlines);
  EXPECT_EQ(SummaryJson(read.value()), SummaryJson(run));
  run.exact_deadlines = true;  // a ends in time by its exact end only
  const Result<RunResult> exact = ReadRun(Written(run));
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  EXPECT_TRUE(exact.value().exact_deadlines);
}

TEST_F(ReadRunTest, WhoHeldWhichGpusIsReadWhereItWasRecorded) {
  RunResult run = HandMadeRun();
  run.timeline[1].gpus_fragmented = 2.5;
  run.allocations = Allocations{
      .nodes = {{.name = "n2", .gpus = 8}, {.name = "n10", .gpus = 8}},
      .holdings = {
          {.job = 0, .node = 1, .gpus = 0b1110, .start = AtSeconds(10), .end = AtSeconds(11)},
          {.job = 3,
           .node = 0,
           .gpus = 0b1001'0001,
           .start = AtSeconds(10.5),
           .end = AtSeconds(12)}}};
  const Result<RunResult> read = ReadRun(Written(run));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(read.value().allocations);
  const std::string text = TextOf("allocations.csv");
  EXPECT_EQ(read.value().allocations->nodes[1].name, "n10");
  EXPECT_EQ(read.value().allocations->nodes[1].gpus, 8);
  EXPECT_EQ(read.value().timeline[1].gpus_fragmented, 2.5);
  (void)Written(read.value());
  EXPECT_EQ(TextOf("allocations.csv"), text);
  Replace("allocations.csv", "1-3", "1-64");
  EXPECT_EQ(ErrorFrom("allocations.csv", ReadRun(Folder())),
            "allocations.csv:2: column 'gpus' is '1-64'; expected numbers from 0 to 63 and ranges "
            "of them, as in '0-3 6'");
}

TEST_F(ReadRunTest, HalfAFolderIsRefused) {
  EXPECT_NE(ErrorFrom("jobs.csv", ReadRun(scratch_.path() + "/nothing")), "no error");
  const std::string folder = Written(HandMadeRun());
  std::filesystem::remove(folder + "/timeline.csv");
  EXPECT_EQ(ErrorFrom("timeline.csv", ReadRun(folder)).substr(0, 13), "timeline.csv:");
  std::filesystem::remove(folder + "/summary.json");
  EXPECT_EQ(ErrorFrom("summary.json", ReadRun(folder)).substr(0, 13), "summary.json:");
}

TEST_F(ReadRunTest, ACutTableIsRefused) {
  const std::string folder = Written(HandMadeRun());
  Replace("jobs.csv", "e,,,,1,50,,,,,0,0,0,0,900,0,unfinished,200,0,0,0,\n", "");
  EXPECT_EQ(ErrorFrom("summary.json", ReadRun(folder)),
            "summary.json: counts 5 jobs, but jobs.csv beside it has 4 rows; expected files of one "
            "run");
  EXPECT_EQ(ErrorWith("jobs.csv", "e,,,,1,50,,,,,0,0,0,0,900,0,unfinished,200,0,0,0,\n", "e,,,,1"),
            "jobs.csv:6: 5 fields; expected 22 as in the header");
}

TEST_F(ReadRunTest, BrokenCellsAreNamed) {
  EXPECT_EQ(ErrorWith("jobs.csv", ",completed,30,", ",done,30,"),
            "jobs.csv:3: column 'outcome' is 'done'; expected completed, rejected, cancelled, "
            "failed or unfinished");
  EXPECT_EQ(ErrorWith("jobs.csv", ",70.5,50.5,", ",70.5,x,").substr(0, 29),
            "jobs.csv:3: column 'jct' is '");
  EXPECT_EQ(ErrorWith("jobs.csv", ",70.5,50.5,", ",70.5,50,"),
            "jobs.csv:3: jct is 50; expected 50.5 by the times of job 'b'");
  EXPECT_EQ(ErrorWith("jobs.csv", ",60,0,completed", ",60,1,completed"),
            "jobs.csv:3: deadline_met is '1'; expected '0' by the times of job 'b'");
  EXPECT_EQ(ErrorWith("jobs.csv", "\nb,", "\na,"),
            "jobs.csv:3: job 'a' is there twice; expected it once");
  EXPECT_EQ(ErrorWith("timeline.csv", "60.25", "9"),
            "timeline.csv:3: column 'time' is '9'; expected seconds, not before those of the row "
            "above");
}

TEST_F(ReadRunTest, ABrokenSummaryIsNamed) {
  EXPECT_EQ(ErrorWith("summary.json", "\"completed\": 3,", "\"completed\" 3,"),
            "summary.json:3: the text ends or goes wrong here; expected JSON");
  EXPECT_EQ(ErrorWith("summary.json", "\"gpus\": 16", "\"gpus\": \"x\""),
            "summary.json: key 'gpus' is \"x\"; expected an integer");
  EXPECT_EQ(ErrorWith("summary.json", "\"policy\"", "\"police\""),
            "summary.json: key 'policy' is missing; expected a text");
}

}  // namespace
}  // namespace trainyard::results
