// SPDX-License-Identifier: Apache-2.0
// What users say about when a job may start and how long it may run: times to begin, dependencies,
// arrays with a limit, time limits. Whole runs in a simulated world.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/journal.h"
#include "engine_tests/harness.h"

namespace trainyard {
namespace {

using model::JobPhase;

JobSpec With(JobSpec job, JobTraits traits) {
  job.traits = std::make_shared<const JobTraits>(std::move(traits));
  return job;
}

JobSpec After(JobSpec job, const std::string& dependency) {
  JobTraits traits;
  traits.dependency = dependency;
  return With(std::move(job), std::move(traits));
}

// The rows of an array, as a trace that has been read has them.
std::vector<JobSpec> Tasks(const JobSpec& job, const std::string& array, int count) {
  JobTraits traits;
  traits.array = array;
  return std::vector<JobSpec>(static_cast<std::size_t>(count), With(job, std::move(traits)));
}

JobPhase PhaseOf(const TestResult& result, std::size_t job) {
  return result.records[job].phase.get();
}

// Both jobs fit beside each other.
TestResult RunTerms(std::vector<JobSpec> jobs, int gpus = 8, const std::string& policy = "fifo") {
  TestResult result =
      RunTest({.jobs = std::move(jobs), .cluster = MakeCluster(1, gpus), .policy = policy});
  EXPECT_TRUE(result.status.ok()) << result.status.error().message;
  return result;
}

TEST(ConditionsTest, AJobMayWaitForTheStartOfAnotherAndForMinutesSinceThen) {
  const std::vector<JobSpec> jobs{
      MakeJob(0, 4, 100),                       // 1: starts at once
      MakeJob(1, 5, 50),                        // 2: at 100
      After(MakeJob(2, 1, 10), "after:1"),      // has started already
      After(MakeJob(2, 1, 10), "after:1+1"),    // 60 s after its start
      After(MakeJob(2, 1, 10), "after:2"),      // together with it
      After(MakeJob(2, 1, 10), "after:2+2:1"),  // that of 1 is long past
      After(MakeJob(2, 1, 10), "after:1+1,after:2"),
      After(MakeJob(2, 1, 10), "afterok:4")};  // which has ended at 70
  const TestRun run{.jobs = jobs, .cluster = MakeCluster(1, 8), .policy = "fjf"};
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(1), 100);
  EXPECT_EQ(result.start(2), 2);
  EXPECT_EQ(result.start(3), 60);
  EXPECT_EQ(result.start(4), 100);
  EXPECT_EQ(result.start(5), 220);
  EXPECT_EQ(result.start(6), 100);
  EXPECT_EQ(result.start(7), 70);
  EXPECT_EQ(RunTest(run, &result.journal).digest, result.digest);
}

TEST(ConditionsTest, AJobThatEndsWithoutAStartIsWaitedForNoLonger) {
  const TestResult result = RunTerms({MakeJob(0, 1, 100), After(MakeJob(1, 1, 10), "afternotok:1"),
                                      After(MakeJob(2, 1, 10), "after:2")});
  EXPECT_EQ(result.records[1].phase.get(), model::JobPhase::kRejected);
  EXPECT_EQ(result.start(2), 100) << "as soon as it is known that it will never start";
}

// At each step a fork that knows only what is saved decides the same.
TEST(ConditionsTest, AWaitForAStartIsSaved) {
  const TestRun run{
      .jobs = {MakeJob(0, 4, 100), MakeJob(1, 5, 50), After(MakeJob(2, 1, 10), "after:2+2:1+1")},
      .cluster = MakeCluster(1, 8)};
  EXPECT_EQ(Seconds(RunBesideForks(run)[2].first_start), 220);
}

TEST(ConditionsTest, AJobDoesNotBeginBeforeItsTime) {
  JobTraits traits;
  traits.begin = AtSeconds(50);
  const TestResult result = RunTerms({With(MakeJob(0, 1, 10), traits), MakeJob(0, 8, 100)});
  EXPECT_EQ(result.start(1), 0) << "nobody waits behind a job that may not begin";
  EXPECT_EQ(result.start(0), 100);
  JobTraits past;
  past.begin = AtSeconds(5);
  EXPECT_EQ(RunTerms({With(MakeJob(10, 1, 10), past)}).start(0), 10);
}

TEST(ConditionsTest, AfterOkWaitsForTheEnd) {
  const TestResult result = RunTerms({MakeJob(0, 1, 100), After(MakeJob(1, 1, 10), "afterok:1"),
                                      After(MakeJob(2, 1, 10), "afterok:1:2")});
  EXPECT_EQ(result.start(1), 100);
  EXPECT_EQ(result.start(2), 110);
}

TEST(ConditionsTest, AJobWhoseDependencyCannotBeMetEnds) {
  JobTraits limited;
  limited.time_limit = FromSeconds(30);
  const TestResult result =
      RunTerms({With(MakeJob(0, 1, 100), limited), After(MakeJob(1, 1, 10), "afterok:1"),
                After(MakeJob(1, 1, 10), "afterok:2"), After(MakeJob(1, 1, 10), "afternotok:1"),
                After(MakeJob(1, 1, 10), "afterany:1:3"), After(MakeJob(1, 1, 10), "afternotok:4"),
                After(MakeJob(1, 1, 10), "afterok:1?afterok:4")});
  EXPECT_EQ(PhaseOf(result, 0), JobPhase::kFailed);
  EXPECT_EQ(PhaseOf(result, 1), JobPhase::kRejected);
  EXPECT_EQ(PhaseOf(result, 2), JobPhase::kRejected) << "what waits for it can never start either";
  EXPECT_EQ(result.start(3), 30);
  EXPECT_EQ(result.start(4), 30);
  EXPECT_EQ(PhaseOf(result, 5), JobPhase::kRejected) << "the job has completed";
  EXPECT_EQ(result.start(6), 40) << "one of the two is enough";
}

// Tasks 0 to 3, one after another, each for 10 s.
std::vector<JobSpec> FourTasks() {
  JobTraits traits;
  traits.array = "0-3%1";
  return std::vector<JobSpec>(4, With(MakeJob(0, 1, 10), traits));
}

void AddTasks(std::vector<JobSpec>& jobs, JobTraits traits, int count) {
  jobs.insert(jobs.end(), static_cast<std::size_t>(count),
              With(MakeJob(1, 1, 10), std::move(traits)));
}

// As measured with Slurm 22.05.
TEST(ConditionsTest, ATaskWaitsForTheTaskOfItsIndex) {
  std::vector<JobSpec> jobs = FourTasks();
  JobTraits traits;
  traits.array = "2-5";
  traits.dependency = "aftercorr:1";
  AddTasks(jobs, traits, 4);
  jobs.push_back(After(MakeJob(1, 1, 10), "aftercorr:1"));
  traits.array = "0-1";
  traits.dependency = "aftercorr:1_3";
  AddTasks(jobs, traits, 2);
  traits.dependency = "aftercorr:9,afterok:1_0";  // 9 is a job of its own
  AddTasks(jobs, traits, 2);
  const TestRun run{.jobs = jobs, .cluster = MakeCluster(1, 8)};
  const TestResult result = RunTest(run);
  ASSERT_TRUE(result.status.ok()) << result.status.error().message;
  EXPECT_EQ(result.start(4), 30);
  EXPECT_EQ(result.start(5), 40);
  EXPECT_EQ(result.start(6), 40) << "there is no task 4: all of them";
  EXPECT_EQ(result.start(8), 40) << "a job that is in no array waits for all of them";
  EXPECT_EQ(result.start(9), 10) << "of the array whose task is named, the task of its own index";
  EXPECT_EQ(result.start(10), 20);
  EXPECT_EQ(result.start(12), 50) << "and for a job that is in no array as afterok";
  EXPECT_EQ(RunTest(run, &result.journal).digest, result.digest);
  EXPECT_EQ(Seconds(RunBesideForks(run)[4].first_start), 30) << "what is saved suffices";
}

TEST(ConditionsTest, WaitingTasksHeedTheLimitOfTheirArray) {
  std::vector<JobSpec> jobs = FourTasks();
  JobTraits traits;
  traits.array = "0-3%1";
  traits.dependency = "aftercorr:1";
  traits.begin = AtSeconds(35);
  AddTasks(jobs, traits, 4);
  const TestResult result = RunTerms(jobs);
  EXPECT_EQ(result.start(4), 35);
  EXPECT_EQ(result.start(5), 45);
  EXPECT_EQ(result.start(7), 65);
}

TEST(ConditionsTest, TasksWhoseJobHasFailedEndUnlessTheyAreKept) {
  JobTraits limited;
  limited.time_limit = FromSeconds(30);
  for (const bool keeps : {false, true}) {
    std::vector<JobSpec> jobs{With(MakeJob(0, 1, 100), limited)};
    JobTraits traits;
    traits.array = "0-1";
    traits.dependency = "aftercorr:1";
    traits.keep_on_invalid_dep = keeps;
    AddTasks(jobs, traits, 2);
    traits.array = "";
    traits.dependency = "afterok:1";
    jobs.push_back(With(MakeJob(1, 1, 10), traits));
    jobs.push_back(After(MakeJob(1, 1, 10), "afternotok:1"));
    const TestResult result = RunTerms(jobs);
    for (const std::size_t job : {1U, 2U, 3U}) {
      EXPECT_EQ(PhaseOf(result, job), keeps ? JobPhase::kArrived : JobPhase::kRejected) << job;
    }
    EXPECT_EQ(result.start(4), 30);
  }
}

TEST(ConditionsTest, ASingletonWaitsForItsNamesakes) {
  std::vector<JobSpec> jobs{MakeJob(0, 1, 100), MakeJob(0, 1, 50), MakeJob(0, 1, 10),
                            After(MakeJob(1, 1, 10), "singleton"),
                            After(MakeJob(2, 1, 10), "singleton")};
  for (const std::size_t job : {std::size_t{0}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    jobs[job].name = "nightly";
    jobs[job].user = "ann";
  }
  jobs[2].user = "bob";
  const TestResult result = RunTerms(jobs);
  EXPECT_EQ(result.start(3), 100);
  EXPECT_EQ(result.start(4), 110);
}

TEST(ConditionsTest, AJobIsEndedAtItsTimeLimit) {
  JobTraits limited;
  limited.time_limit = FromSeconds(60);
  const TestResult result =
      RunTerms({With(MakeJob(0, 8, 100), limited), With(MakeJob(0, 8, 50), limited),
                With(MakeJob(0, 8, 60), limited)});
  EXPECT_EQ(PhaseOf(result, 0), JobPhase::kFailed);
  EXPECT_EQ(result.end(0), 60);
  EXPECT_EQ(result.start(1), 60) << "its GPUs are free at once";
  EXPECT_EQ(PhaseOf(result, 1), JobPhase::kCompleted);
  EXPECT_EQ(PhaseOf(result, 2), JobPhase::kCompleted) << "it ends just in time";
}

TEST(ConditionsTest, TheLimitIsOfAllTimeWithGpus) {
  JobTraits limited;
  limited.time_limit = FromSeconds(60);
  const TestResult result =
      RunTerms({With(MakeJob(0, 8, 100), limited), MakeJob(40, 8, 30)}, 8, "srtf");
  EXPECT_EQ(result.start(1), 40);
  EXPECT_EQ(PhaseOf(result, 0), JobPhase::kFailed);
  EXPECT_EQ(result.end(0), 90) << "40 s, 30 s without GPUs, 20 s";
}

int MostAtOnce(const TestResult& result, std::size_t first, std::size_t count) {
  std::vector<std::pair<double, int>> changes;
  for (std::size_t i = first; i < first + count; ++i) {
    changes.emplace_back(result.start(i), 1);
    changes.emplace_back(result.end(i), -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0;
  int most = 0;
  for (const auto& [at, change] : changes) {
    now += change;
    most = std::max(most, now);
  }
  return most;
}

TEST(ConditionsTest, SoManyTasksOfAnArrayRunAtATime) {
  std::vector<JobSpec> jobs = Tasks(MakeJob(0, 1, 10), "0-9%3", 10);
  jobs.push_back(After(MakeJob(1, 1, 10), "afterok:1"));
  jobs.push_back(After(MakeJob(1, 1, 10), "afterok:1_4"));
  const TestResult result = RunTerms(jobs);
  EXPECT_EQ(MostAtOnce(result, 0, 10), 3);
  EXPECT_EQ(result.start(9), 30);
  EXPECT_EQ(result.start(10), 40) << "the whole array";
  EXPECT_EQ(result.start(11), 20) << "one task";
}

TEST(ConditionsTest, AnArrayWithoutALimitRunsAsFarAsItFits) {
  const TestResult result = RunTerms(Tasks(MakeJob(0, 1, 10), "0-9", 10));
  EXPECT_EQ(MostAtOnce(result, 0, 10), 8);
}

TEST(ConditionsTest, AFailedTaskKeepsNoPlaceOfTheLimit) {
  JobTraits traits;
  traits.array = "0-5%2";
  traits.time_limit = FromSeconds(20);
  const JobSpec task = With(MakeJob(0, 1, 100), traits);
  const TestResult result = RunTerms(std::vector<JobSpec>(6, task));
  EXPECT_EQ(result.start(5), 40);
  EXPECT_EQ(PhaseOf(result, 5), JobPhase::kFailed);
}

// Some of everything, from a seed.
std::vector<JobSpec> RandomTerms(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<JobSpec> jobs = RandomJobs(seed, 60, 4);
  std::sort(jobs.begin(), jobs.end(),
            [](const JobSpec& a, const JobSpec& b) { return a.submit < b.submit; });
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].name = "job" + std::to_string(random() % 10);
    JobTraits traits;
    const auto earlier = [&] { return std::to_string(random() % i + 1); };
    switch (random() % 7) {
      case 0:
        traits.begin = jobs[i].submit + FromSeconds(static_cast<double>(random() % 2000));
        break;
      case 1:
        traits.time_limit = FromSeconds(static_cast<double>(random() % 1000 + 1));
        break;
      case 2:
        traits.dependency = i == 0 ? "singleton" : "afterany:" + earlier();
        break;
      case 3:
        traits.dependency = i == 0 ? "singleton" : "afterok:" + earlier() + "?singleton";
        break;
      case 4:
        traits.dependency = i == 0 ? "singleton" : "afternotok:" + earlier() + ":" + earlier();
        break;
      case 5:
        traits.dependency = i == 0 ? "singleton" : "aftercorr:" + earlier();
        break;
      default:
        continue;
    }
    jobs[i] = With(jobs[i], traits);
  }
  JobTraits array;
  array.array = "0-29%4";
  const JobSpec task = With(MakeJob(100, 1, 77), array);
  jobs.insert(jobs.end(), 30, task);
  return jobs;
}

// An account of its own: each job against what its terms say, from the times of the run alone.
void ExpectTermsKept(const std::vector<JobSpec>& jobs, const TestResult& result, unsigned seed) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobTraits none;
    const JobTraits& traits = jobs[i].traits ? *jobs[i].traits : none;
    const model::JobRecord& record = result.records[i];
    EXPECT_GE(record.phase.get(), JobPhase::kCompleted) << "job " << i << ", seed " << seed;
    if (record.started && traits.begin) {
      EXPECT_GE(record.first_start, *traits.begin) << "job " << i << ", seed " << seed;
    }
    if (traits.time_limit) {
      EXPECT_LE(record.progress.run_time, *traits.time_limit) << "job " << i << ", seed " << seed;
    }
    if (traits.dependency.starts_with("afterany:") && record.started) {
      const std::size_t other = std::stoul(traits.dependency.substr(9)) - 1;
      EXPECT_TRUE(PhaseOf(result, other) == JobPhase::kRejected ||
                  record.first_start >= result.records[other].done)
          << "job " << i << ", seed " << seed;
    }
  }
  EXPECT_LE(MostAtOnce(result, jobs.size() - 30, 30), 4) << "seed " << seed;
}

TEST(ConditionsTest, AllJobsEndAndKeepTheirTerms) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    for (const char* const policy : {"fifo", "srtf", "las:quantum=60", "edf"}) {
      const std::vector<JobSpec> jobs = RandomTerms(seed);
      ExpectTermsKept(jobs, RunTerms(jobs, 8, policy), seed);
    }
  }
}

TEST(ConditionsTest, TheJournalReplaysThem) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const TestRun run{.jobs = RandomTerms(seed), .cluster = MakeCluster(2, 4), .policy = "srtf"};
    const TestResult first = RunTest(run);
    const TestResult again = RunTest(run, &first.journal);
    ASSERT_TRUE(again.status.ok()) << again.status.error().message;
    EXPECT_EQ(again.digest, first.digest) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trainyard
