// SPDX-License-Identifier: Apache-2.0
// Whole runs from small files.
#include "scenario/scenario.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "io/scratch_folder.h"

namespace trainyard {
namespace {

constexpr std::string_view kHeader =
    "job_id,submit_time,gpus,duration,iterations,model,batch_size,deadline\n";

// Files of one test: a trace of native rows, and what else it needs.
class ScenarioTest : public testing::Test {
 protected:
  void WriteTrace(const std::string& rows) {
    paths_.trace = folder_.Write("t.csv", std::string(kHeader) + rows);
  }
  // Model m with batch 64: 1 iteration / s on 1 GPU, 1.5 on 2, 2 on 4.
  void WriteProfiles() {
    std::filesystem::create_directory(folder_.path() + "/profiles");
    (void)folder_.Write("profiles/m.csv", "global_batch_size,1,2,4\n64,1,1.5,2\n");
    paths_.profiles = folder_.path() + "/profiles";
  }

  [[nodiscard]] Result<RunResult> Run(const RunRequest& request) const {
    const Result<Inputs> inputs = ReadInputs(paths_);
    return inputs.ok() ? RunScenario(inputs.value(), request) : inputs.error();
  }
  [[nodiscard]] Result<RunResult> RunNamed(const PresetRequest& names) const {
    return Run({.names = names});
  }
  [[nodiscard]] RunResult Done(const PresetRequest& names) const {
    Result<RunResult> run = RunNamed(names);
    EXPECT_TRUE(run.ok()) << run.error().message;
    return run.ok() ? std::move(run).value() : RunResult{};
  }
  // The message from the file name on.
  [[nodiscard]] std::string ErrorOf(const PresetRequest& names) const {
    const Result<RunResult> run = RunNamed(names);
    if (run.ok()) {
      return "no error";
    }
    const std::string& message = run.error().message;
    const std::size_t name = message.find("t.csv");
    return name == std::string::npos ? message : message.substr(name);
  }

  ScratchFolder folder_;
  InputPaths paths_{.cluster = "1x1"};
};

double StartOf(const RunResult& run, std::size_t job) { return Seconds(*run.jobs[job].start); }
double EndOf(const RunResult& run, std::size_t job) { return Seconds(*run.jobs[job].end); }

// ---------------------------------------------------------------------------------------- results

TEST_F(ScenarioTest, RunsATraceFromItsFilesToItsResult) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const RunResult run = Done({.preset = "tiresias", .policy = "fifo"});
  ASSERT_EQ(run.jobs.size(), 2U);
  EXPECT_EQ(run.jobs[0].outcome, Outcome::kCompleted);
  EXPECT_EQ(StartOf(run, 0), 0);
  EXPECT_EQ(EndOf(run, 0), 100);
  EXPECT_EQ(StartOf(run, 1), 100);
  EXPECT_EQ(EndOf(run, 1), 120);
  EXPECT_EQ(run.jobs[1].waited, FromSeconds(90));
  EXPECT_EQ(run.jobs[0].attained_service, 100);
}

TEST_F(ScenarioTest, SoundModeChargesTheStart) {
  WriteTrace("a,0,1,100,,,,\n");
  const RunResult run = Done({});
  EXPECT_EQ(StartOf(run, 0), 0);
  EXPECT_EQ(EndOf(run, 0), 102.271);
  EXPECT_EQ(run.jobs[0].attained_service, 102.271);
  EXPECT_EQ(run.jobs[0].useful_service, 100);
}

TEST_F(ScenarioTest, JobsAreInTheOrderOfTheTrace) {
  WriteTrace("late,50,1,5,,,,\nearly,0,1,5,,,,\n");
  const RunResult run = Done({.preset = "tiresias"});
  EXPECT_EQ(run.jobs[0].spec->name, "late");
  EXPECT_EQ(EndOf(run, 0), 55);
  EXPECT_EQ(EndOf(run, 1), 5);
}

TEST_F(ScenarioTest, PreemptionsAreCounted) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const RunResult run = Done({.preset = "tiresias", .policy = "shortest", .placement = "count"});
  EXPECT_EQ(EndOf(run, 1), 30);
  EXPECT_EQ(EndOf(run, 0), 120);
  EXPECT_EQ(run.jobs[0].preemptions, 1U);
}

TEST_F(ScenarioTest, SaysWhatWasRun) {
  WriteTrace("a,0,1,100,,,,\n");
  const RunResult run = Done({.preset = "tiresias", .policy = "shortest"});
  EXPECT_EQ(run.policy, "shortest");
  EXPECT_EQ(run.label, "shortest");
  EXPECT_EQ(run.placement, "first-fit");
  EXPECT_EQ(run.admission, "all");
  EXPECT_EQ(run.preset, "tiresias");
  EXPECT_EQ(run.cluster_name, "1x1");
  EXPECT_EQ(run.nodes, 1);
  EXPECT_EQ(run.gpus, 1);
  EXPECT_EQ(run.trace_path, paths_.trace);
  EXPECT_EQ(run.trace_sha256, Sha256OfFile(paths_.trace).value());
}

TEST_F(ScenarioTest, ALabelAndASeedAreKept) {
  WriteTrace("a,0,1,100,,,,\n");
  const Result<RunResult> run = Run({.seed = 7, .label = "mine"});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().label, "mine");
  EXPECT_EQ(run.value().seed, 7U);
}

TEST_F(ScenarioTest, TheTimelineHasASampleForEachDecision) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const RunResult run = Done({.preset = "tiresias"});
  ASSERT_FALSE(run.timeline.empty());
  EXPECT_EQ(static_cast<std::int64_t>(run.timeline.size()), run.decisions);
  EXPECT_EQ(run.timeline.front().gpus_used, 1);
  EXPECT_EQ(run.timeline.back().gpus_used, 0);
  EXPECT_EQ(run.timeline.back().time, AtSeconds(120));
}

TEST_F(ScenarioTest, TheTimelineCanBeLeftOut) {
  WriteTrace("a,0,1,100,,,,\n");
  const Result<RunResult> run = Run({.keep_timeline = false});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run.value().timeline.empty());
  EXPECT_GT(run.value().decisions, 0);
}

TEST_F(ScenarioTest, ARunCanStopBeforeAllJobsHaveEnded) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\nc,90,1,20,,,,\n");
  const Result<RunResult> run =
      Run({.names = {.preset = "tiresias"}, .stop = {.until = AtSeconds(50), .tracked = {}}});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().jobs[0].outcome, Outcome::kUnfinished);
  EXPECT_EQ(run.value().jobs[0].attained_service, 50);
  EXPECT_FALSE(run.value().jobs[0].end.has_value());
  EXPECT_FALSE(run.value().jobs[1].start.has_value());
  EXPECT_EQ(run.value().jobs[1].waited, FromSeconds(40));
  EXPECT_EQ(run.value().jobs[2].outcome, Outcome::kUnfinished);  // never submitted
}

TEST_F(ScenarioTest, ProgressIsReported) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  std::size_t last = 0;
  const Result<RunResult> run = Run({.on_progress = [&last](std::size_t ended, std::size_t jobs) {
    EXPECT_GE(ended, last);
    EXPECT_EQ(jobs, 2U);
    last = ended;
  }});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(last, 2U);
}

// --------------------------------------------------------------------------------------- profiles

TEST_F(ScenarioTest, WithProfilesIterationsAreCounted) {
  WriteTrace("a,0,2,,150,m,64,\n");
  WriteProfiles();
  paths_.cluster = "1x4";
  const RunResult run = Done({.preset = "", .policy = "fifo"});
  EXPECT_NEAR(EndOf(run, 0), 2.271 + 150 / 1.5, 1e-6);
}

TEST_F(ScenarioTest, IterationsFollowFromDurationAndProfile) {
  WriteTrace("a,0,2,80,,m,64,\n");
  WriteProfiles();
  paths_.cluster = "1x4";
  EXPECT_NEAR(EndOf(Done({}), 0), 2.271 + 80, 1e-6);
}

TEST_F(ScenarioTest, AnElasticPolicySetsTheGpuCount) {
  WriteTrace("a,0,1,,120,m,64,1000\n");
  WriteProfiles();
  paths_.cluster = "1x4";
  const RunResult run = Done({.policy = "elastic-edf", .placement = "buddy"});
  EXPECT_NEAR(EndOf(run, 0), 2.271 + 120 / 2.0, 1e-6);  // on 4 GPUs
}

TEST_F(ScenarioTest, AnElasticPolicyMayServeAJobThatAsksForMoreThanTheClusterHas) {
  WriteTrace("a,0,4,,120,m,64,1000\n");
  WriteProfiles();
  paths_.cluster = "1x2";
  const RunResult run = Done({.policy = "elastic-edf", .placement = "buddy"});
  EXPECT_EQ(run.jobs[0].outcome, Outcome::kCompleted);
}

TEST_F(ScenarioTest, APresetOfDurationsIgnoresProfiles) {
  WriteTrace("a,0,1,100,,unheard-of,,\n");
  WriteProfiles();
  EXPECT_EQ(EndOf(Done({.preset = "tiresias"}), 0), 100);
}

TEST_F(ScenarioTest, AFolderWithoutProfilesFailsOnlyRunsThatNeedThem) {
  WriteTrace("a,0,1,100,,,,\n");
  paths_.profiles = folder_.path();
  EXPECT_EQ(EndOf(Done({.preset = "tiresias"}), 0), 100);
  const Result<RunResult> run = RunNamed({});
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.error().message.find(folder_.path()), std::string::npos) << run.error().message;
}

TEST_F(ScenarioTest, SamplesOfAPriorLieBesideTheProfiles) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  (void)folder_.Write("prior.csv", "duration\n10\n20\n3000\n");
  paths_.profiles = folder_.path();
  const RunResult run =
      Done({.preset = "tiresias", .policy = "tiresias:ranking=gittins,prior=prior.csv"});
  EXPECT_EQ(run.jobs[0].outcome, Outcome::kCompleted);
  EXPECT_EQ(run.jobs[1].outcome, Outcome::kCompleted);
}

TEST_F(ScenarioTest, APriorWithoutSamplesIsRefused) {
  WriteTrace("a,0,1,100,,,,\n");
  const std::string prior = folder_.Write("prior.csv", "duration\n");
  EXPECT_EQ(ErrorOf({.preset = "tiresias", .policy = "tiresias:ranking=gittins,prior=" + prior}),
            prior + ": no samples; expected one per line after the header");
}

// ----------------------------------------------------------------------------------------- errors

TEST_F(ScenarioTest, AJobLargerThanTheClusterIsRefusedWithItsLine) {
  WriteTrace("a,0,4,100,,,,\nb,0,9,100,,,,\n");
  paths_.cluster = "2x4";
  const Result<RunResult> run = RunNamed({});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(ErrorOf({}),
            "t.csv:3: job 'b' asks for 9 GPUs; expected at most the 8 of cluster '2x4'");
}

TEST_F(ScenarioTest, AModelThatTheProfilesDoNotHaveIsRefusedWithItsLine) {
  WriteTrace("a,0,1,,100,m,64,\nb,0,1,,100,x,64,\n");
  WriteProfiles();
  EXPECT_EQ(ErrorOf({}), "t.csv:3: model 'x' is not in the profiles; expected one that " +
                             paths_.profiles + " has");
}

TEST_F(ScenarioTest, ABatchSizeThatTheProfilesDoNotHaveIsRefusedWithItsLine) {
  WriteTrace("a,0,1,,100,m,7,\n");
  WriteProfiles();
  EXPECT_EQ(ErrorOf({}),
            "t.csv:2: model 'm' with batch size 7 is not in the profiles; expected one that " +
                paths_.profiles + " has");
}

TEST_F(ScenarioTest, AGpuCountThatTheProfileDoesNotHaveIsRefusedWithItsLine) {
  WriteTrace("a,0,3,,100,m,64,\n");
  WriteProfiles();
  paths_.cluster = "1x4";
  EXPECT_EQ(ErrorOf({}),
            "t.csv:2: job a asks for 3 GPUs, but model 'm' has no throughput on that many; "
            "expected a GPU count of its profile");
}

TEST_F(ScenarioTest, AJobWithoutADurationIsRefusedWithItsLine) {
  WriteTrace("a,0,1,100,,,,\nb,0,1,,100,m,64,\n");
  EXPECT_EQ(ErrorOf({}), "t.csv:3: job b has no duration; expected one, or profiles (--profiles)");
}

TEST_F(ScenarioTest, AnElasticPolicyNeedsProfiles) {
  WriteTrace("a,0,1,100,,,,\n");
  const Result<RunResult> run = RunNamed({.policy = "elastic-edf"});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(run.error().message,
            "policy 'elastic-edf' needs throughput profiles; expected --profiles DIR");
}

TEST_F(ScenarioTest, AnElasticPolicyNeedsAPresetOfIterations) {
  WriteTrace("a,0,1,100,,m,64,\n");
  WriteProfiles();
  EXPECT_EQ(ErrorOf({.preset = "tiresias", .policy = "elastic-edf"}),
            "policy 'elastic-edf' sets GPU counts, but the preset counts durations");
}

TEST_F(ScenarioTest, CountingIsRefusedWithNodeFailures) {
  WriteTrace("a,0,1,100,,,,\n");
  paths_.cluster = folder_.Write("c.toml",
                                 "[[nodes]]\ncount = 2\ngpus = 1\n\n"
                                 "[[failures]]\nnode = \"n0\"\ndown = 10\nup = 20\n");
  const Result<RunResult> run = RunNamed({.placement = "count"});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(run.error().message,
            "placement 'count' names no GPUs, so it cannot be used with node failures; expected "
            "another placement or a cluster without failures");
}

TEST_F(ScenarioTest, NamesThatCannotBeResolvedAreRefused) {
  WriteTrace("a,0,1,100,,,,\n");
  EXPECT_TRUE(ErrorOf({.policy = "nonsense"}).starts_with("unknown policy 'nonsense'"));
  EXPECT_TRUE(ErrorOf({.policy = "las:quantum=x"}).starts_with("policy 'las': option 'quantum'"));
}

TEST_F(ScenarioTest, FilesThatCannotBeReadAreRefused) {
  paths_.trace = folder_.path() + "/nothing.csv";
  EXPECT_FALSE(ReadInputs(paths_).ok());
  WriteTrace("a,0,1,100,,,,\n");
  paths_.cluster = folder_.path() + "/nothing.toml";
  EXPECT_FALSE(ReadInputs(paths_).ok());
}

TEST_F(ScenarioTest, AJournalThatCannotBeWrittenIsRefused) {
  WriteTrace("a,0,1,100,,,,\n");
  const std::string path = folder_.path() + "/no-such-folder/journal";
  const Result<RunResult> run = Run({.journal_path = path});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::kFailed);
  EXPECT_EQ(run.error().message, path + ": cannot be written");
}

// ---------------------------------------------------------------------------------------- digests

TEST_F(ScenarioTest, TheSameRunTwiceHasTheSameDigest) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const std::string digest = Done({.policy = "srtf"}).journal_digest;
  EXPECT_EQ(digest.size(), 64U);
  EXPECT_EQ(Done({.policy = "srtf"}).journal_digest, digest);
  EXPECT_NE(Done({.policy = "fifo"}).journal_digest, digest);
}

TEST_F(ScenarioTest, InputsCanBeSharedByRuns) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const Result<Inputs> inputs = ReadInputs(paths_);
  ASSERT_TRUE(inputs.ok());
  const RunRequest request{.names = {.policy = "srtf"}};
  const Result<RunResult> first = RunScenario(inputs.value(), request);
  (void)RunScenario(inputs.value(), {.names = {.policy = "las"}});
  const Result<RunResult> again = RunScenario(inputs.value(), request);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first.value().journal_digest, again.value().journal_digest);
}

TEST_F(ScenarioTest, TheJournalFileHasTheDigestOfTheRun) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const std::string path = folder_.path() + "/journal";
  const Result<RunResult> run = Run({.journal_path = path});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(Sha256OfFile(path).value(), run.value().journal_digest);
}

TEST_F(ScenarioTest, AJournalFileDoesNotChangeTheDigest) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const Result<RunResult> with_file = Run({.journal_path = folder_.path() + "/journal"});
  ASSERT_TRUE(with_file.ok());
  EXPECT_EQ(Done({}).journal_digest, with_file.value().journal_digest);
}

}  // namespace
}  // namespace trainyard
