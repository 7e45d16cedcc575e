// SPDX-License-Identifier: Apache-2.0
#include "profiler/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/pretended_runner.h"
#include "support/scratch_folder.h"

namespace trainyard::profiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Runs that take so long, one after the other; 0 is a failure.
PretendedRunner Taking(std::vector<double> seconds) {
  return PretendedRunner([seconds = std::move(seconds)](const Trial&, std::size_t run) {
    return seconds.at(run) == 0 ? TrialResult{.failure = "fails: exit status 3"}
                                : TrialResult{.iteration_s = seconds.at(run)};
  });
}

class MeasurementTest : public testing::Test {
 protected:
  Result<Measured> Measure(PretendedRunner& runner, Repetition repetition = {}) {
    Measurer measurer(runner, book_, repetition,
                      [this](const std::string& remark) { remarks_.push_back(remark); });
    return measurer.Measure({.name = "it", .command = {"train"}});
  }

  RunBook book_;
  std::vector<std::string> remarks_;
};

// Of 1, 2, 3: mean 2, standard error 1 / sqrt(3), t of two degrees of freedom 4.303.
TEST(EstimateTest, IsMeanAndConfidenceInterval) {
  const Estimate estimate = EstimateOf(std::vector<double>{1, 2, 3});
  EXPECT_DOUBLE_EQ(estimate.mean, 2);
  EXPECT_NEAR(estimate.half_width, 4.30265 * 0.57735, 1e-4);
  EXPECT_EQ(EstimateOf(std::vector<double>{5}).half_width, 0);
  EXPECT_EQ(EstimateOf({}).mean, 0);
}

TEST_F(MeasurementTest, RunsThatAgreeAreAveraged) {
  PretendedRunner runner = Taking({1, 1.02, 0.98});
  const Result<Measured> measured = Measure(runner);
  ASSERT_TRUE(measured.ok());
  EXPECT_DOUBLE_EQ(measured.value().iteration_s.mean, 1);
  EXPECT_EQ(runner.trials().size(), 3U);
  EXPECT_TRUE(remarks_.empty());
}

TEST_F(MeasurementTest, ARunThatFailsIsNamedAndRepeated) {
  PretendedRunner runner = Taking({1, 0, 1, 1});
  const Result<Measured> measured = Measure(runner);
  ASSERT_TRUE(measured.ok());
  EXPECT_DOUBLE_EQ(measured.value().iteration_s.mean, 1);
  EXPECT_THAT(remarks_, ElementsAre("it: run 2 fails: exit status 3"));
}

TEST_F(MeasurementTest, ARunThatIsFarOffIsNamedRepeatedAndNotAveragedIn) {
  PretendedRunner runner = Taking({1, 3, 1, 1});
  const Result<Measured> measured = Measure(runner);
  ASSERT_TRUE(measured.ok());
  EXPECT_DOUBLE_EQ(measured.value().iteration_s.mean, 1);
  ASSERT_EQ(remarks_.size(), 1U);
  EXPECT_THAT(remarks_.front(), HasSubstr("it: the runs differ by 200 %; expected at most 10 %"));
}

TEST_F(MeasurementTest, OfTwoRunsThatDifferAThirdOneDecides) {
  PretendedRunner runner = Taking({1, 2, 2});
  const Result<Measured> measured = Measure(runner, {.runs = 2});
  ASSERT_TRUE(measured.ok());
  EXPECT_DOUBLE_EQ(measured.value().iteration_s.mean, 2);
}

TEST_F(MeasurementTest, NoiseWithoutEndIsAnError) {
  PretendedRunner runner = Taking({1, 2, 4, 8, 16, 32});
  const Result<Measured> measured = Measure(runner, {.runs = 3, .noise = 0.1, .spare = 3});
  ASSERT_FALSE(measured.ok());
  EXPECT_EQ(measured.error().message, "it: too many runs did not count (6 were made)");
  EXPECT_THAT(remarks_.back(), HasSubstr("it: the runs differ by "));
}

TEST_F(MeasurementTest, TwoRunsThatFailInTheSameWayEndIt) {
  PretendedRunner runner = Taking({1, 0, 0, 1, 1});
  const Result<Measured> measured = Measure(runner);
  ASSERT_FALSE(measured.ok());
  EXPECT_EQ(measured.error().message,
            "it: run 3 failed in the same way; expected a command that does not, tried without "
            "`trainyard profile`");
  EXPECT_THAT(remarks_, ElementsAre("it: run 2 fails: exit status 3")) << "said once";
}

TEST_F(MeasurementTest, AHopelessRunEndsItAtOnce) {
  PretendedRunner runner([](const Trial&, std::size_t) {
    return TrialResult{.failure = "fails: there is no pyhton", .hopeless = true};
  });
  EXPECT_EQ(Measure(runner).error().message, "it: fails: there is no pyhton");
  EXPECT_EQ(runner.trials().size(), 1U);
  EXPECT_TRUE(remarks_.empty());
}

TEST_F(MeasurementTest, ANoteOfARunIsToldOnce) {
  PretendedRunner runner([](const Trial&, std::size_t) {
    return TrialResult{.note = "the script ran on", .iteration_s = 1};
  });
  ASSERT_TRUE(Measure(runner).ok());
  EXPECT_THAT(remarks_, ElementsAre("it: the script ran on"));
}

TEST_F(MeasurementTest, SmallDifferencesAreNotCalledNone) {
  PretendedRunner runner = Taking({1, 1.004, 1, 1});
  (void)Measure(runner, {.runs = 2, .noise = 0.001});
  ASSERT_FALSE(remarks_.empty());
  EXPECT_THAT(remarks_.front(), HasSubstr("the runs differ by 0.4 %; expected at most 0.1 %"));
}

// Two of the three are there, and one of another command.
TEST_F(MeasurementTest, APlanSaysWhatIsThereAndRunsNothing) {
  const Trial trial{.name = "it", .command = {"train"}};
  for (const double seconds : {1.0, 1.1}) {
    ASSERT_TRUE(book_.Add(trial, {.iteration_s = seconds}).ok());
  }
  ASSERT_TRUE(book_.Add(trial, {.failure = "fails"}).ok());
  ASSERT_TRUE(book_.Add({.name = "other", .command = {"other"}}, {.iteration_s = 1}).ok());
  Measurer planned(book_, {});
  EXPECT_DOUBLE_EQ(planned.Measure(trial).value().iteration_s.mean, 1.05);
  EXPECT_DOUBLE_EQ(planned.Measure({.name = "new", .command = {"new"}}).value().iteration_s.mean,
                   1);
  EXPECT_EQ(planned.plan().runs, 6U);
  EXPECT_EQ(planned.plan().there, 2U);
  EXPECT_EQ(planned.plan().used, 2U);
}

TEST_F(MeasurementTest, AnInterruptedRunEndsItAndIsNotKept) {
  PretendedRunner runner([](const Trial&, std::size_t run) {
    return TrialResult{.interrupted = run == 1, .iteration_s = 1};
  });
  const Result<Measured> measured = Measure(runner);
  ASSERT_FALSE(measured.ok());
  EXPECT_EQ(measured.error().message,
            "interrupted; the same command goes on with the runs that are there");
  EXPECT_EQ(book_.size(), 1U);
  EXPECT_TRUE(remarks_.empty());
}

TEST_F(MeasurementTest, RunsOfTheBookAreNotMadeAgain) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/runs.jsonl";
  book_ = RunBook::Open(path).value();
  PretendedRunner first = Taking({1, 0, 1});
  ASSERT_FALSE(Measure(first, {.runs = 3, .noise = 0.1, .spare = 0}).ok());
  std::ofstream(path, std::ios::app) << R"({"trial": {"na)";  // killed while it wrote
  book_ = RunBook::Open(path).value();
  EXPECT_EQ(book_.size(), 3U);
  PretendedRunner second = Taking({1.01});
  ASSERT_TRUE(Measure(second).ok());
  EXPECT_EQ(second.trials().size(), 1U);
  EXPECT_EQ(RunBook::Open(path).value().size(), 4U);
}

TEST(RunBookTest, AnotherFileIsRefusedWithItsLine) {
  const ScratchFolder folder;
  const std::string path = folder.Write("runs.jsonl", "{}\n");
  EXPECT_EQ(ErrorFrom("runs.jsonl", RunBook::Open(path)),
            "runs.jsonl:1: no run of a profile; expected what `trainyard profile` has written, or "
            "another --out");
}

}  // namespace
}  // namespace trainyard::profiler
