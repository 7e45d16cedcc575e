// SPDX-License-Identifier: Apache-2.0
// What is measured becomes files that the readers of profiles and presets take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "io/file.h"
#include "loader/loader_profiles.h"
#include "profile/sensitivity_table.h"
#include "profile/throughput_table.h"
#include "profiler/command_trace.h"
#include "profiler/loader_runs.h"
#include "profiler/overhead.h"
#include "profiler/pace.h"
#include "profiler/process_runner.h"
#include "profiler/sensitivity.h"
#include "profiler/stages.h"
#include "profiler/throughput.h"
#include "support/pretended_runner.h"
#include "support/scratch_folder.h"

namespace trainyard::profiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Subject Net() {
  return {.model = "net",
          .command = {"train", "{batch}", "{gpus}", "{workers}", "{iterations}"},
          .folder = "/",
          .batch = 64};
}

class ProfilesTest : public testing::Test {
 protected:
  Measurer MeasurerOf(PretendedRunner& runner) {
    return Measurer(runner, book_, {.runs = 1},
                    [](const std::string& remark) { ADD_FAILURE() << remark; });
  }

  const ScratchFolder folder_;
  RunBook book_;
};

TEST(SubjectTest, PlaceholdersAreFilled) {
  const Result<Trial> trial =
      TrialOf(Net(), {.batch = 32, .gpus = 2, .loader_workers = 6, .cores = 3});
  ASSERT_TRUE(trial.ok());
  EXPECT_THAT(trial.value().command, ElementsAre("train", "32", "2", "6", "61")) << "17 bursts";
  EXPECT_EQ(trial.value().name, "batch 32, 2 GPUs, 6 loader workers, 3 cores");
  EXPECT_EQ(trial.value().loader_workers, 3) << "of each process";
}

TEST(SubjectTest, MoreLoaderWorkersNeedALongerWarmUp) {
  const Trial trial = TrialOf(Net(), {.gpus = 2, .loader_workers = 24}).value();
  EXPECT_EQ(trial.warmup, 36) << "each of a process has begun three batches";
  EXPECT_EQ(trial.iterations, 60);
  EXPECT_EQ(trial.command.back(), "96");
}

TEST(SubjectTest, AScriptWithoutPlaceholdersGetsTheOptionsOfSynergysProfiler) {
  Subject subject = Net();
  subject.command = {"train.py", "--arch", "vgg"};
  EXPECT_THAT(TrialOf(subject, {.gpus = 2, .loader_workers = 6}).value().command,
              ElementsAre("train.py", "--arch", "vgg", "--workers", "3", "--batch-size", "64",
                          "--max-iterations", "61", "--job-name", kTrialJobName));
  subject.command = {"train.py", "{bach}"};
  EXPECT_THAT(TrialOf(subject, {}).error().message, HasSubstr("did you mean 'batch'"));
}

TEST(SubjectTest, RunsThatWouldAllBeTheSameAreRefused) {
  Subject subject = Net();
  EXPECT_TRUE(NeedsPlaceholder(subject, "workers").ok());
  subject.command = {"train.py", "--workers={workers_per_gpu}"};
  EXPECT_TRUE(NeedsPlaceholder(subject, "workers").ok());
  EXPECT_EQ(NeedsPlaceholder(subject, "batch").error().message,
            "the command has placeholders but not {batch}, so all runs would be the same; expected "
            "{batch} or {batch_per_gpu} in it");
  PretendedRunner runner([](const Trial&, std::size_t) { return TrialResult{.iteration_s = 1}; });
  RunBook book;
  Measurer measurer(runner, book, {.runs = 1}, [](const std::string&) {});
  EXPECT_FALSE(MeasureThroughput(subject, {.batches = {32, 64}, .gpus = {1}}, measurer).ok());
  EXPECT_FALSE(MeasureLoader(subject, {.batches = {1, 2}, .workers = {1}}, {}, measurer).ok());
  subject.command = {"train.py", "{batch}"};
  EXPECT_FALSE(MeasureLoader(subject, {.batches = {1}, .workers = {1, 2}}, {}, measurer).ok());
  EXPECT_FALSE(MeasureCpus(subject, {.most_cpus = 4}, measurer).ok());
  EXPECT_TRUE(runner.trials().empty());
  EXPECT_TRUE(MeasureThroughput(subject, {.batches = {32, 64}, .gpus = {1}}, measurer).ok());
  subject.command = {"train.py"};
  EXPECT_TRUE(NeedsPlaceholder(subject, "batch").ok()) << "it gets the options behind it";
}

TEST(SubjectTest, ABatchThatDoesNotDivideIsRefused) {
  Subject subject = Net();
  subject.command = {"train.py", "{batch_per_gpu}"};
  EXPECT_EQ(TrialOf(subject, {.batch = 33, .gpus = 2}).error().message,
            "batch 33 cannot be divided among 2 GPUs, as {batch_per_gpu} asks; expected a multiple "
            "of 2");
  EXPECT_TRUE(TrialOf(subject, {.batch = 32, .gpus = 2}).ok());
}

// Four workers load for 400 ms each, and deliver together: after 10 ms the next batch of the four
// is trained on.
TEST(PaceTest, BurstsAreCountedWhole) {
  Pace pace(4);
  EXPECT_EQ(pace.seconds(), 0);
  for (int done = 5; done <= 17; ++done) {  // from within a burst to within another
    pace.Note(done, 0.4 * (done / 4) + 0.01 * (done % 4));
  }
  EXPECT_DOUBLE_EQ(pace.seconds(), 0.1);
}

TEST(PaceTest, WithoutAWholeBurstAllCounts) {
  Pace pace(8);
  pace.Note(3, 1);
  EXPECT_EQ(pace.seconds(), 0);
  pace.Note(3, 1);
  pace.Note(7, 2);
  EXPECT_DOUBLE_EQ(pace.seconds(), 0.25);
}

TEST_F(ProfilesTest, ThroughputIsReadAsAProfileAndLaterRunsReplaceEarlierOnes) {
  double scale = 1;
  PretendedRunner runner([&scale](const Trial& trial, std::size_t) {
    return TrialResult{.iteration_s = scale * (trial.gpus == 4 ? 0.5 : 1.0 / trial.gpus)};
  });
  for (const double of : {2.0, 1.0}) {
    scale = of;
    book_ = {};
    Measurer measurer = MeasurerOf(runner);
    const auto cells = MeasureThroughput(Net(), {.batches = {32, 64}, .gpus = {1, 2, 4}}, measurer);
    ASSERT_TRUE(cells.ok());
    EXPECT_EQ(UsefulMaximum(cells.value(), 64), 2) << "4 are as fast";
    ASSERT_TRUE(WriteThroughput(folder_.path(), "net", "", cells.value()).ok());
  }
  const auto table = profile::ThroughputTable::Read(folder_.path());
  ASSERT_TRUE(table.ok()) << table.error().message;
  ASSERT_EQ(table.value().rows().size(), 2U);
  EXPECT_DOUBLE_EQ(table.value().rows()[1].Rate(1), 1);
  EXPECT_DOUBLE_EQ(table.value().rows()[1].Rate(2), 2);
}

// An iteration computes for 100 ms, and loads for 800 ms of one worker, at the same time.
TEST_F(ProfilesTest, FewPointsTellTheWholeCurveOfCpus) {
  const auto seconds = [](int workers) { return std::max(0.1, 0.8 / workers); };
  PretendedRunner runner([&](const Trial& trial, std::size_t) {
    return TrialResult{.iteration_s = seconds(trial.loader_workers)};
  });
  Measurer measurer = MeasurerOf(runner);
  const auto curve = MeasureCpus(Net(), {.most_cpus = 24}, measurer);
  ASSERT_TRUE(curve.ok());
  ASSERT_EQ(curve.value().seconds.size(), 24U);
  for (const auto& [cpus, interpolated] : curve.value().seconds) {
    EXPECT_NEAR(interpolated / seconds(cpus), 1, 0.1) << cpus;
  }
  EXPECT_LE(runner.trials().size(), 9U) << "of 24";
}

// An earlier call has made one run, another did not count: profiling took all of them.
TEST_F(ProfilesTest, WhatProfilingTookIsKeptOverCalls) {
  const Trial trial = TrialOf(Net(), {}).value();
  ASSERT_TRUE(book_.Add(trial, {.iteration_s = 1, .wall_s = 20}).ok());
  ASSERT_TRUE(book_.Add(trial, {.failure = "fails", .wall_s = 5}).ok());
  ASSERT_TRUE(book_.Add(TrialOf(Net(), {.gpus = 2}).value(), {.iteration_s = 1, .wall_s = 9}).ok());
  PretendedRunner runner([](const Trial&, std::size_t) { return TrialResult{}; });
  Measurer measurer = MeasurerOf(runner);
  ASSERT_TRUE(measurer.Measure(trial).ok());
  EXPECT_EQ(measurer.seconds_of_all(), 25);
  for (const double seconds : {1.0, measurer.seconds_of_all()}) {
    ASSERT_TRUE(WriteProfilingTime(folder_.path(), "net", seconds).ok());
  }
  EXPECT_EQ(io::ReadFile(folder_.path() + "/profiling.csv").value(), "model,seconds\nnet,25\n");
}

TEST_F(ProfilesTest, WhereCpusDoNotMatterTwoPointsAreEnough) {
  PretendedRunner runner([](const Trial&, std::size_t) { return TrialResult{.iteration_s = 0.2}; });
  Measurer measurer = MeasurerOf(runner);
  ASSERT_TRUE(MeasureCpus(Net(), {.gpus = 2, .most_cpus = 16}, measurer).ok());
  EXPECT_EQ(runner.trials().size(), 2U);
}

// 100 GB in 1,000,000 samples; an epoch of 10,000 iterations of 0.1 s takes 1,000 s, the disk
// reads 100 GB in 1,024 s.
TEST(MemoryTest, WhatIsNotCachedIsReadFromTheDisk) {
  const MemoryModel model{.data_gb = 100, .samples = 1e6, .disk_mbps = 100, .cache_gbps = 10};
  EXPECT_NEAR(IterationWith(model, 0.1, 0, 100).seconds, 0.1024, 1e-12);
  EXPECT_EQ(IterationWith(model, 0.1, 0, 100).disk_mbps, 100);
  EXPECT_EQ(IterationWith(model, 0.1, 100, 100).seconds, 0.1);
  EXPECT_EQ(IterationWith(model, 0.1, 100, 100).disk_mbps, 0);
  // Half: 5 s from the cache, 512 s from the disk.
  EXPECT_EQ(IterationWith(model, 0.1, 50, 100).seconds, 0.1);
  EXPECT_NEAR(IterationWith(model, 0.1, 50, 100).disk_mbps, 51200 / 995.0, 1e-9);
}

TEST_F(ProfilesTest, SensitivityIsReadAsAProfile) {
  CpuCurve curve;
  for (int cpus = 1; cpus <= 12; ++cpus) {
    curve.seconds[cpus] = std::max(0.1, 0.6 / cpus);
  }
  const MemoryModel memory{.data_gb = 125, .samples = 1e6, .disk_mbps = 100};
  ASSERT_TRUE(WriteSensitivity(folder_.path(), Net(), {}, curve, memory).ok());
  ASSERT_TRUE(WriteSensitivity(folder_.path(), Net(), {}, curve, memory).ok()) << "again";
  const auto table = profile::SensitivityTable::Read(folder_.path());
  ASSERT_TRUE(table.ok()) << table.error().message;
  const profile::SensitivityProfile* net = table.value().Find("net", 3);
  ASSERT_NE(net, nullptr);
  EXPECT_EQ(net->best_cpus, 6);
  EXPECT_EQ(net->best_memory_gb, 125);
  EXPECT_NEAR(net->iteration_seconds, 0.2, 1e-9);
  EXPECT_NEAR(net->speedup, 2, 1e-9);
  EXPECT_NEAR(net->grid.At(3, 62.5), 1, 1e-9);
  EXPECT_NEAR(net->grid.At(6, 125), 2, 1e-5);
  EXPECT_NEAR(net->grid.At(1, 125), 1.0 / 3, 1e-5);
}

TEST_F(ProfilesTest, SensitivityWithoutADataSetIsReadAsAProfile) {
  CpuCurve curve;
  curve.seconds = {{1, 0.2}, {2, 0.1}};
  ASSERT_TRUE(WriteSensitivity(folder_.path(), Net(), {}, curve, {}).ok());
  const auto table = profile::SensitivityTable::Read(folder_.path());
  ASSERT_TRUE(table.ok()) << table.error().message;
  const profile::SensitivityProfile* net = table.value().Find("net", 3);
  ASSERT_NE(net, nullptr);
  EXPECT_EQ(net->best_memory_gb, 62.5) << "the proportional share";
  EXPECT_EQ(net->best_storage_mbps, 0);
}

TEST_F(ProfilesTest, OverheadIsAPresetOfStartRestartAndResize) {
  std::set<std::string> names;
  PretendedRunner runner([&names](const Trial& trial, std::size_t) {
    EXPECT_TRUE(trial.until_notice);
    names.insert(trial.name);
    EXPECT_EQ(trial.command.back(), "1000000000") << "it does not end by itself";
    EXPECT_EQ(trial.command.at(2), std::to_string(trial.gpus));
    const bool moves = !trial.before.empty() && trial.before.front().gpus != trial.gpus;
    const double more = trial.before.empty() || moves ? 1 : 0;
    return TrialResult{.iteration_s = 0.5, .start_s = 3.5, .stop_s = 1, .change_s = 4.5 + more};
  });
  Measurer measurer = MeasurerOf(runner);
  const auto changes = MeasureOverhead(Net(), ChangesAmong({1, 2}), measurer);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(names.size(), 6U);
  ASSERT_TRUE(WriteOverhead(folder_.path(), "net", changes.value()).ok());
  const std::string preset = io::ReadFile(folder_.path() + "/overhead.toml").value();
  EXPECT_THAT(preset, HasSubstr("[overhead.models.\"net\"]\nstart = 3\nrestart = 4\nresize = 5\n"
                                "migrate = 4\n"));
  EXPECT_THAT(preset, HasSubstr("base = \"sound\""));
}

TEST_F(ProfilesTest, ChangesComeFromAPublishedCommandTrace) {
  const std::string run = "R 0 bert 64 0 8 1 0 127.0.0.1 22225 255 333 1 ";
  const std::string path = folder_.Write(
      "commands.txt", "2\nW 25\nG 1 0 0 1\n" + run + "0 1\n" + run + "0 1\nF\nT\nK 0 0\nK 1 0\n" +
                          run + "0\nF\nK 0 0\n" + run + "0 1\nK 0 0\n" + run + "0\nK 0 0\nS\n");
  EXPECT_THAT(ReadCommandTrace(path).value(),
              ElementsAre(std::pair(0, 2), std::pair(2, 1), std::pair(1, 2)));
  EXPECT_EQ(ErrorFrom("bad.txt", ReadCommandTrace(folder_.Write("bad.txt", "1\nR 0 bert\n"))),
            "bad.txt:2: 'R' is no command of a debug trace; expected R with its ranks, K, G, F, T, "
            "W, S, RE or U");
}

TEST_F(ProfilesTest, StagesAreWrittenAndTheirLackIsAnError) {
  PretendedRunner runner([](const Trial& trial, std::size_t) {
    return TrialResult{.iteration_s = 0.4,
                       .stages_s = {trial.gpus == 1 ? 0.1 : 0, trial.gpus == 1 ? 0.2 : 0, 0}};
  });
  Measurer measurer = MeasurerOf(runner);
  const auto rows = MeasureStages(Net(), {1}, measurer);
  ASSERT_TRUE(rows.ok());
  ASSERT_TRUE(WriteStages(folder_.path(), Net(), rows.value()).ok());
  EXPECT_EQ(io::ReadFile(folder_.path() + "/stages.csv").value(),
            "model,batch_size,gpus,iteration_time,stage_0,stage_1,stage_2\n"
            "net,64,1,0.4,0.1,0.2,0\n");
  EXPECT_THAT(MeasureStages(Net(), {2}, measurer).error().message,
              HasSubstr("the script tells of no stages"));
}

TEST_F(ProfilesTest, LoaderRunsAreFittedAndReadAsAProfile) {
  PretendedRunner runner([](const Trial& trial, std::size_t) {
    const double loading = 64 * 0.01 / trial.loader_workers;
    return TrialResult{.iteration_s = std::max(0.1, loading),
                       .loading_share = loading > 0.1 ? 0.5 : 0.0};
  });
  Measurer measurer = MeasurerOf(runner);
  const auto runs = MeasureLoader(Net(), {.batches = {64}, .workers = {1, 2, 4, 8}},
                                  {.name = "net", .params = 1e6, .flops = 1e9}, measurer);
  ASSERT_TRUE(runs.ok());
  const auto fit = WriteLoader(folder_.path(), runs.value(), loader::FitOptions());
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_NEAR(fit.value().model.LoaderRate(4), 400, 1);
  const auto profiles = loader::LoaderProfiles::Read(folder_.path());
  ASSERT_TRUE(profiles.ok()) << profiles.error().message;
  EXPECT_TRUE(profiles.value().catalog().Find("net").ok());
}

}  // namespace
}  // namespace trainyard::profiler
