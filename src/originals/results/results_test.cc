// SPDX-License-Identifier: Apache-2.0
#include "originals/results/results.h"

#include <gtest/gtest.h>

#include "results/write/output.h"
#include "support/hand_made_run.h"
#include "support/scratch_folder.h"

namespace trainyard::originals {
namespace {

constexpr std::string_view kTiresias =
    "time,job_id,num_gpu,submit_time,start_time,end_time,executed_time,JCT,duration,pending_time,"
    "preempt,promote\n"
    "110,a,2,10,10,110,100,100,100,0,0,0\n";

class ResultsTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Path(const std::string& name) const {
    return scratch_.path() + "/" + name;
  }
  void WriteRunTo(const std::string& name, results::RunResult run = HandMadeRun()) const {
    ASSERT_TRUE(results::WriteRun(run, Path(name)).ok());
  }
  void WriteTable(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    (void)scratch_.Write(name, text);
  }
  [[nodiscard]] std::string ErrorOf(const std::string& name) const {
    return ErrorFrom(name, ReadResults({.paths = {Path(name)}}));
  }
  [[nodiscard]] static std::vector<std::string> Labels(const Result<Results>& results) {
    std::vector<std::string> labels;
    if (results.ok()) {
      for (const results::RunResult& run : results.value().runs) {
        labels.push_back(run.label);
      }
    } else {
      labels.push_back(results.error().message);
    }
    return labels;
  }
  ScratchFolder scratch_;
};

TEST_F(ResultsTest, AFolderStandsForAllRunsBelowIt) {
  results::RunResult fifo = HandMadeRun();
  fifo.policy = "fifo";
  WriteRunTo("out/a", fifo);
  WriteRunTo("out/b");
  EXPECT_EQ(Labels(ReadResults({.paths = {Path("out")}})),
            (std::vector<std::string>{"fifo", "srtf"}));
}

TEST_F(ResultsTest, RunsOfOnePolicyAreToldApartByTheirFolders) {
  WriteRunTo("x/one");
  WriteRunTo("x/two");
  EXPECT_EQ(Labels(ReadResults({.paths = {Path("x/two"), Path("x/one")}})),
            (std::vector<std::string>{"two/srtf", "one/srtf"}));
}

TEST_F(ResultsTest, ResultsOfPublishedProgramsAreFoundByName) {
  WriteTable("log/job.csv", kTiresias);
  WriteTable("log/sub/edf.jobs.csv", kTiresias);
  WriteTable("log/sub/cluster.csv", "time\n");
  const Result<Results> results = ReadResults({.paths = {Path("log")}});
  EXPECT_EQ(Labels(results), (std::vector<std::string>{"log", "edf"}));
  ASSERT_TRUE(results.value().originals[0]);
  EXPECT_EQ(results.value().originals[0]->program, Original::kTiresias);
}

TEST_F(ResultsTest, BothKindsGoTogetherOnOneTrace) {
  WriteRunTo("run");
  WriteTable("log/job.csv", kTiresias);
  EXPECT_EQ(Labels(ReadResults({.paths = {Path("log/job.csv"), Path("run")}})),
            (std::vector<std::string>{"srtf", "log"}));
}

TEST_F(ResultsTest, LabelsNameTheClusterWhereItDiffers) {
  results::RunResult large = HandMadeRun();
  large.cluster_name = "large";
  large.nodes = 4;
  large.gpus = 32;
  WriteRunTo("sweep/small");
  WriteRunTo("sweep/large", large);
  EXPECT_EQ(Labels(ReadResults({.paths = {Path("sweep")}})),
            (std::vector<std::string>{"srtf on large", "srtf on small"}));
  results::RunResult renamed = HandMadeRun();
  renamed.nodes = 1;
  renamed.gpus = 8;
  WriteRunTo("renamed", renamed);
  WriteTable("log/job.csv", kTiresias);  // says nothing of its cluster
  EXPECT_EQ(Labels(ReadResults({.paths = {Path("sweep/small"), Path("renamed"), Path("log")}})),
            (std::vector<std::string>{"srtf on small (16 GPUs)", "srtf on small (8 GPUs)", "log"}));
}

TEST_F(ResultsTest, RunsOfASweepOverManyAxesAreFound) {
  WriteRunTo("sweep/runs/trace/cluster/run/load/quantum/seed");
  EXPECT_EQ(Labels(ReadResults({.paths = {Path("sweep")}})), std::vector<std::string>{"srtf"});
}

TEST_F(ResultsTest, RunsOnOtherTracesAreRefused) {
  WriteRunTo("one");
  results::RunResult other = HandMadeRun();
  other.trace_sha256 = "ff";
  WriteRunTo("two", other);
  const Result<Results> results = ReadResults({.paths = {Path("one"), Path("two")}});
  ASSERT_FALSE(results.ok());
  EXPECT_NE(results.error().message.find("expected runs on one trace"), std::string::npos);
  WriteTable("log/job.csv",
             "time,job_id,num_gpu,submit_time,start_time,end_time,executed_time,JCT,"
             "duration,pending_time,preempt,promote\n9,a,2,11,11,19,8,8,8,0,0,0\n");
  const Result<Results> mixed = ReadResults({.paths = {Path("one"), Path("log")}});
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.error().message,
            "job 'a' is submitted at 10 s in 'srtf' and at 11 s in 'log'; expected runs on one "
            "trace, a report for each");
}

TEST_F(ResultsTest, WhatHoldsNoResultsIsRefused) {
  EXPECT_EQ(ErrorOf("nothing"), "nothing: is not there; expected a folder or file with results");
  std::filesystem::create_directories(Path("empty"));
  EXPECT_TRUE(ErrorOf("empty").starts_with("empty: holds no results; expected jobs.csv"));
}

TEST_F(ResultsTest, HalfARunIsRefused) {
  WriteRunTo("half");
  std::filesystem::remove(Path("half/summary.json"));
  EXPECT_TRUE(ErrorOf("half").starts_with("half/summary.json:")) << ErrorOf("half");
  std::filesystem::remove(Path("half/jobs.csv"));
  EXPECT_EQ(ErrorOf("half"),
            "half/jobs.csv: is not there, but timeline.csv is; expected all files "
            "of a run");
}

}  // namespace
}  // namespace trainyard::originals
