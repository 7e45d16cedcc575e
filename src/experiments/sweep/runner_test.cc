// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/try.h"
#include "io/file.h"
#include "support/small_experiment.h"

namespace trainyard::experiments {
namespace {

constexpr const char* kRuns =
    "[[run]]\nlabel = \"fifo\"\npolicy = \"fifo\"\n[[run]]\nlabel = \"bad\"\n"
    "policy = \"las:quantm=1\"\n[[run]]\nlabel = \"las\"\npolicy = \"las\"\n"
    "[[run]]\nlabel = \"las too\"\npolicy = \"las\"\n";

// Plan, book and runner together.
struct ExperimentOptions {
  PlanOptions plan;
  BookOptions book;
  RunnerOptions runner;
};

// All results in the order of the matrix.
Result<std::vector<CellResult>> RunExperiment(const Experiment& experiment,
                                              ExperimentOptions options) {
  options.book.needs_extra = options.book.needs_extra || options.runner.extra != nullptr;
  ASSIGN_OR_RETURN(
      ResultBook book,
      ResultBook::Open(experiment, PlanCells(experiment.cells, experiment.reference, options.plan),
                       options.book));
  RETURN_IF_ERROR(RunOpenCells(book, options.runner));
  RETURN_IF_ERROR(book.WriteCsv());
  return book.Results();
}

class RunnerTest : public testing::Test {
 protected:
  std::vector<CellResult> Run(const Experiment& experiment) {
    Result<std::vector<CellResult>> results = RunExperiment(experiment, options_);
    EXPECT_TRUE(results.ok()) << (results.ok() ? "" : results.error().message);
    return results.ok() ? std::move(results).value() : std::vector<CellResult>();
  }

  [[nodiscard]] std::string Csv(const std::string& folder) const {
    return io::ReadFile(small_.path(folder + "/results.csv")).value();
  }

  SmallExperiment small_;
  ExperimentOptions options_;
};

TEST_F(RunnerTest, AFailedCellIsRecordedAndTheOthersGoOn) {
  const std::vector<CellResult> results = Run(small_.With(kRuns));
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0].status, CellStatus::kOk) << results[0].reason;
  EXPECT_EQ(results[0].Number("completed"), 40);
  EXPECT_EQ(results[1].status, CellStatus::kFailed);
  EXPECT_NE(results[1].reason.find("unknown option 'quantm'"), std::string::npos)
      << results[1].reason;
  EXPECT_NE(results[0].Number("jct_mean"), results[2].Number("jct_mean"));
  EXPECT_EQ(results[2].metrics, results[3].metrics) << "the same run";
}

TEST_F(RunnerTest, TheNumberOfCoresChangesNothing) {
  const Experiment experiment = small_.With(kRuns);
  options_.book.folder = small_.path("one");
  Run(experiment);
  options_.book.folder = small_.path("three");
  options_.runner.parallel = 3;
  Run(experiment);
  EXPECT_EQ(Csv("one"), Csv("three"));
}

TEST_F(RunnerTest, WhatIsInTheFolderIsNotRunAgain) {
  const Experiment experiment = small_.With(kRuns);
  options_.book.folder = small_.path("out");
  options_.book.program = "first build";
  Run(experiment);
  const std::string before = Csv("out");
  const auto open = [&] {
    return ResultBook::Open(experiment, PlanCells(experiment.cells, experiment.reference, {}),
                            options_.book);
  };
  {
    const Result<ResultBook> again = open();
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again.value().open(), std::vector<std::size_t>{1}) << "the failed one";
    EXPECT_EQ(again.value().counts().reused, 3U);
    EXPECT_EQ(again.value().counts().other_build, 0U);
    EXPECT_FALSE(open().ok()) << "another has the folder";
  }
  options_.book.program = "second build";
  EXPECT_EQ(open().value().counts().other_build, 3U);
  Run(experiment);
  EXPECT_EQ(Csv("out"), before);
  options_.book.fresh = true;
  EXPECT_EQ(open().value().open(), (std::vector<std::size_t>{0, 1, 2})) << "3 is as 2";
  options_.book.fresh = false;
  small_.WriteTrace(2);
  EXPECT_EQ(open().value().counts().reused, 0U);
}

TEST_F(RunnerTest, ACellWhoseProcessDiesFailsAlone) {
  options_.runner.extra = [](const Cell& cell, const results::RunResult& /*run*/) -> std::string {
    if (cell.id == "t/c/las") {
      raise(SIGKILL);
    }
    return "[" + cell.id + "]";
  };
  const std::vector<CellResult> results = Run(small_.With(kRuns));
  EXPECT_EQ(results[0].extra, "[t/c/fifo]");
  EXPECT_EQ(results[2].status, CellStatus::kFailed);
  EXPECT_EQ(results[2].reason, "its process was ended by signal 9 (Killed)");
}

// Short cells share a process; one that dies takes those behind it along, and they are run again.
TEST_F(RunnerTest, NoCellIsLostOrRunTwiceWhereProcessesDieInTheMiddle) {
  options_.runner.extra = [this](const Cell& cell,
                                 const results::RunResult& /*run*/) -> std::string {
    const std::size_t seed = cell.seed;
    if (seed % 50 == 33) {
      raise(SIGKILL);
    }
    std::ofstream(small_.path("ran"), std::ios::app) << seed << "\n";
    return std::to_string(seed);
  };
  for (const int parallel : {1, 3}) {
    std::filesystem::remove(small_.path("ran"));
    options_.runner.parallel = parallel;
    std::string seeds;
    for (int seed = 0; seed < 200; ++seed) {
      seeds += (seed == 0 ? "" : ",") + std::to_string(seed);
    }
    const std::vector<CellResult> results = Run(
        small_.With("[[run]]\nlabel = \"r\"\nseed = \"{seed}\"\n[axes]\nseed = [" + seeds + "]\n"));
    ASSERT_EQ(results.size(), 200U);
    for (std::size_t seed = 0; seed < results.size(); ++seed) {
      const bool dies = seed % 50 == 33;
      EXPECT_EQ(results[seed].status, dies ? CellStatus::kFailed : CellStatus::kOk);
      EXPECT_EQ(results[seed].extra, dies ? "" : std::to_string(seed));
    }
    const std::string ran = io::ReadFile(small_.path("ran")).value();
    EXPECT_EQ(std::count(ran.begin(), ran.end(), '\n'), 196) << parallel;
  }
}

TEST_F(RunnerTest, FilesOfRunsAreKeptOnRequest) {
  const Experiment experiment = small_.With(kRuns);
  options_.book.folder = small_.path("out");
  Run(experiment);
  options_.book.runs_folder = small_.path("out/runs");
  Run(experiment);
  for (const char* run : {"fifo", "las", "las-too"}) {
    for (const char* file : {"jobs.csv", "timeline.csv", "summary.json"}) {
      EXPECT_TRUE(
          std::filesystem::exists(small_.path("out/runs/t/c/" + std::string(run) + "/" + file)))
          << run << " " << file;
    }
  }
}

TEST_F(RunnerTest, AStoppedSweepGoesOnWhereItWas) {
  const Experiment experiment = small_.With(kRuns);
  options_.book.folder = small_.path("whole");
  Run(experiment);
  options_.book.folder = small_.path("out");
  std::size_t done = 0;
  options_.runner.on_done = [&](const BookCounts& counts) { done = counts.done(); };
  options_.runner.stop = [&] { return done > 0; };
  const std::vector<CellResult> results = Run(experiment);
  EXPECT_EQ(results[0].status, CellStatus::kOk);
  EXPECT_EQ(results[2].status, CellStatus::kNotRun);
  options_.runner.stop = nullptr;
  Run(experiment);
  EXPECT_EQ(Csv("out"), Csv("whole"));
}

}  // namespace
}  // namespace trainyard::experiments
