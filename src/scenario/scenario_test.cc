// SPDX-License-Identifier: Apache-2.0
// Whole runs from small files.
#include "scenario/scenario.h"

#include <gtest/gtest.h>

#include <bit>

#include "io/file.h"
#include "support/scratch_folder.h"

namespace trainyard::scenario {
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

  [[nodiscard]] Result<results::RunResult> Run(const RunRequest& request) const {
    const Result<Inputs> inputs = ReadInputs(paths_);
    return inputs.ok() ? RunScenario(inputs.value(), request) : inputs.error();
  }
  [[nodiscard]] Result<results::RunResult> RunNamed(const PresetRequest& names) const {
    return Run({.names = names});
  }
  [[nodiscard]] results::RunResult Done(const PresetRequest& names) const {
    Result<results::RunResult> run = RunNamed(names);
    EXPECT_TRUE(run.ok()) << run.error().message;
    return run.ok() ? std::move(run).value() : results::RunResult{};
  }
  // The message from the file name on.
  [[nodiscard]] std::string ErrorOf(const PresetRequest& names) const {
    const Result<results::RunResult> run = RunNamed(names);
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

double StartOf(const results::RunResult& run, std::size_t job) {
  return Seconds(*run.jobs[job].start);
}
double EndOf(const results::RunResult& run, std::size_t job) { return Seconds(*run.jobs[job].end); }

// ---------------------------------------------------------------------------------------- results

TEST_F(ScenarioTest, RunsATraceFromItsFilesToItsResult) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const results::RunResult run = Done({.preset = "tiresias", .policy = "fifo"});
  ASSERT_EQ(run.jobs.size(), 2U);
  EXPECT_EQ(run.jobs[0].outcome, results::Outcome::kCompleted);
  EXPECT_EQ(StartOf(run, 0), 0);
  EXPECT_EQ(EndOf(run, 0), 100);
  EXPECT_EQ(StartOf(run, 1), 100);
  EXPECT_EQ(EndOf(run, 1), 120);
  EXPECT_EQ(run.jobs[1].waited, FromSeconds(90));
  EXPECT_EQ(run.jobs[0].attained_service, 100);
}

// GPU-seconds by job, summed over the holdings.
std::vector<double> HeldByJob(const results::RunResult& run) {
  std::vector<double> held(run.jobs.size(), 0);
  for (const results::Holding& holding : run.allocations->holdings) {
    held[holding.job] += std::popcount(holding.gpus) * Seconds(holding.end - holding.start);
  }
  return held;
}

TEST_F(ScenarioTest, AllocationsAreRecordedOnRequest) {
  WriteTrace("a,0,1,100,,,,\nb,10,2,20,,,,\nc,11,1,5,,,,\nd,11,2,900,,,,\n");
  paths_.cluster = "1x2";
  EXPECT_FALSE(Done({.policy = "srtf"}).allocations.has_value());
  const Result<results::RunResult> run = Run(
      {.names = {.policy = "srtf"}, .stop = {.until = AtSeconds(300)}, .keep_allocations = true});
  ASSERT_TRUE(run.ok()) << run.error().message;
  ASSERT_TRUE(run.value().allocations.has_value());
  const std::vector<double> held = HeldByJob(run.value());
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_NEAR(held[i], run.value().jobs[i].attained_service, 1e-6) << "job " << i;
  }
  EXPECT_GT(held[3], 0);  // still held at the stop
  // Of the four jobs two need more than the one GPU that is free while a runs alone.
  EXPECT_EQ(run.value().timeline.front().gpus_fragmented, 0.5);
}

TEST_F(ScenarioTest, TheTimeAloneIsThatOnTheGpusAskedFor) {
  WriteProfiles();
  paths_.cluster = "1x4";
  WriteTrace("a,0,2,,300,m,64,\nb,0,2,,30,m,64,\n");
  const results::RunResult run = Done({.policy = "fifo"});
  EXPECT_EQ(run.jobs[0].alone, FromSeconds(200));
  EXPECT_EQ(run.jobs[1].alone, FromSeconds(20));
}

TEST_F(ScenarioTest, SoundModeChargesTheStart) {
  WriteTrace("a,0,1,100,,,,\n");
  const results::RunResult run = Done({});
  EXPECT_EQ(StartOf(run, 0), 0);
  EXPECT_EQ(EndOf(run, 0), 102.271);
  EXPECT_EQ(run.jobs[0].attained_service, 102.271);
  EXPECT_EQ(run.jobs[0].useful_service, 100);
}

TEST_F(ScenarioTest, JobsAreInTheOrderOfTheTrace) {
  WriteTrace("late,50,1,5,,,,\nearly,0,1,5,,,,\n");
  const results::RunResult run = Done({.preset = "tiresias"});
  EXPECT_EQ(run.jobs[0].spec->name, "late");
  EXPECT_EQ(EndOf(run, 0), 55);
  EXPECT_EQ(EndOf(run, 1), 5);
}

TEST_F(ScenarioTest, OnlyAPresetStartsAJobBeforeItsSubmit) {
  paths_.trace =
      folder_.Write("t.csv", "job_id,submit_time,gpus,duration,handover_time\na,50,1,100,20\n");
  EXPECT_EQ(StartOf(Done({.preset = "blox:round=10"}), 0), 20);
  EXPECT_EQ(StartOf(Done({}), 0), 50);
}

TEST_F(ScenarioTest, PreemptionsAreCounted) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const results::RunResult run =
      Done({.preset = "tiresias", .policy = "shortest", .placement = "count"});
  EXPECT_EQ(EndOf(run, 1), 30);
  EXPECT_EQ(EndOf(run, 0), 120);
  EXPECT_EQ(run.jobs[0].preemptions, 1U);
}

TEST_F(ScenarioTest, SaysWhatWasRun) {
  WriteTrace("a,0,1,100,,,,\n");
  const results::RunResult run = Done({.preset = "tiresias", .policy = "shortest"});
  EXPECT_EQ(run.policy, "shortest");
  EXPECT_EQ(run.label, "shortest");
  EXPECT_EQ(run.placement, "first-fit");
  EXPECT_EQ(run.admission, "all");
  EXPECT_EQ(run.grouping, "");
  EXPECT_EQ(run.preset, "tiresias");
  EXPECT_EQ(run.cluster_name, "1x1");
  EXPECT_EQ(run.nodes, 1);
  EXPECT_EQ(run.gpus, 1);
  EXPECT_EQ(run.trace_path, paths_.trace);
  EXPECT_EQ(run.trace_sha256, io::Sha256OfFile(paths_.trace).value());
}

TEST_F(ScenarioTest, ALabelAndASeedAreKept) {
  WriteTrace("a,0,1,100,,,,\n");
  const Result<results::RunResult> run = Run({.seed = 7, .label = "mine"});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().label, "mine");
  EXPECT_EQ(run.value().seed, 7U);
}

TEST_F(ScenarioTest, TheTimelineHasASampleForEachDecision) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const results::RunResult run = Done({.preset = "tiresias"});
  ASSERT_FALSE(run.timeline.empty());
  EXPECT_EQ(static_cast<std::int64_t>(run.timeline.size()), run.decisions);
  EXPECT_EQ(run.timeline.front().gpus_used, 1);
  EXPECT_EQ(run.timeline.back().gpus_used, 0);
  EXPECT_EQ(run.timeline.back().time, AtSeconds(120));
}

TEST_F(ScenarioTest, TheTimelineCanBeLeftOut) {
  WriteTrace("a,0,1,100,,,,\n");
  const Result<results::RunResult> run = Run({.keep_timeline = false});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run.value().timeline.empty());
  EXPECT_GT(run.value().decisions, 0);
}

TEST_F(ScenarioTest, ARunCanStopBeforeAllJobsHaveEnded) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\nc,90,1,20,,,,\n");
  const Result<results::RunResult> run =
      Run({.names = {.preset = "tiresias"}, .stop = {.until = AtSeconds(50), .tracked = {}}});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().jobs[0].outcome, results::Outcome::kUnfinished);
  EXPECT_EQ(run.value().jobs[0].attained_service, 50);
  EXPECT_FALSE(run.value().jobs[0].end.has_value());
  EXPECT_FALSE(run.value().jobs[1].start.has_value());
  EXPECT_EQ(run.value().jobs[1].waited, FromSeconds(40));
  EXPECT_EQ(run.value().jobs[2].outcome, results::Outcome::kUnfinished);  // never submitted
}

TEST_F(ScenarioTest, ProgressIsReported) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  std::size_t last = 0;
  const Result<results::RunResult> run =
      Run({.on_progress = [&last](std::size_t ended, std::size_t jobs) {
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
  const results::RunResult run = Done({.preset = "", .policy = "fifo"});
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
  const results::RunResult run = Done({.policy = "elastic-edf", .placement = "buddy"});
  EXPECT_NEAR(EndOf(run, 0), 2.271 + 120 / 2.0, 1e-6);  // on 4 GPUs
}

double MeanJct(const results::RunResult& run) {
  double sum = 0;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    sum += EndOf(run, i) - Seconds(run.jobs[i].spec->submit);
  }
  return sum / static_cast<double>(run.jobs.size());
}

// Half a millisecond before the first job ends, the second one gives its GPU back. A larger share
// would cost the first a restart, beyond its deadline.
TEST_F(ScenarioTest, SurplusBreaksNoPromiseOfAJobThatIsAboutToEnd) {
  WriteTrace("a,0,1,,100,m,64,103\nc,0,1,,199999,c,64,200\n");
  WriteProfiles();
  (void)folder_.Write("profiles/c.csv", "global_batch_size,1\n64,2000\n");
  paths_.cluster = "1x2";
  const results::RunResult run = Done({.policy = "elasticflow"});
  ASSERT_EQ(run.jobs.size(), 2U);
  EXPECT_LE(EndOf(run, 0), 103);
  EXPECT_EQ(run.jobs[0].resizes, 0);
  EXPECT_NEAR(EndOf(run, 0) - EndOf(run, 1), 0.0005, 1e-9);
}

TEST_F(ScenarioTest, OptimusEndsTheExampleSoonerThanFifo) {
  const std::string data = TRAINYARD_SOURCE_DIR "/data/example_";
  paths_ = {.trace = data + "trace.csv",
            .cluster = data + "cluster.toml",
            .profiles = data + "profiles.csv"};
  const results::RunResult fifo = Done({.policy = "fifo"});
  const results::RunResult optimus = Done({.policy = "optimus"});
  ASSERT_EQ(optimus.jobs.size(), 400U);
  EXPECT_LT(MeanJct(optimus), MeanJct(fifo) / 2);  // 2h09m and 5h09m
  EXPECT_EQ(optimus.journal_digest, Done({.policy = "optimus"}).journal_digest);
}

TEST_F(ScenarioTest, AnElasticPolicyMayServeAJobThatAsksForMoreThanTheClusterHas) {
  WriteTrace("a,0,4,,120,m,64,1000\n");
  WriteProfiles();
  paths_.cluster = "1x2";
  const results::RunResult run = Done({.policy = "elastic-edf", .placement = "buddy"});
  EXPECT_EQ(run.jobs[0].outcome, results::Outcome::kCompleted);
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
  const Result<results::RunResult> run = RunNamed({});
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.error().message.find(folder_.path()), std::string::npos) << run.error().message;
}

TEST_F(ScenarioTest, SamplesOfAPriorLieBesideTheProfiles) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  (void)folder_.Write("prior.csv", "duration\n10\n20\n3000\n");
  paths_.profiles = folder_.path();
  const results::RunResult run =
      Done({.preset = "tiresias", .policy = "tiresias:ranking=gittins,prior=prior.csv"});
  EXPECT_EQ(run.jobs[0].outcome, results::Outcome::kCompleted);
  EXPECT_EQ(run.jobs[1].outcome, results::Outcome::kCompleted);
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
  const Result<results::RunResult> run = RunNamed({});
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
  const Result<results::RunResult> run = RunNamed({.policy = "elastic-edf"});
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
  const Result<results::RunResult> run = RunNamed({.placement = "count"});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(run.error().message,
            "placement 'count' names no GPUs, so it cannot be used with nodes that fail or change; "
            "expected another placement, or no failures and no changes of nodes");
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
  const Result<results::RunResult> run = Run({.journal_path = path});
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
  const Result<results::RunResult> first = RunScenario(inputs.value(), request);
  (void)RunScenario(inputs.value(), {.names = {.policy = "las"}});
  const Result<results::RunResult> again = RunScenario(inputs.value(), request);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first.value().journal_digest, again.value().journal_digest);
}

TEST_F(ScenarioTest, TheJournalFileHasTheDigestOfTheRun) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const std::string path = folder_.path() + "/journal";
  const Result<results::RunResult> run = Run({.journal_path = path});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(io::Sha256OfFile(path).value(), run.value().journal_digest);
}

TEST_F(ScenarioTest, AJournalFileDoesNotChangeTheDigest) {
  WriteTrace("a,0,1,100,,,,\nb,10,1,20,,,,\n");
  const Result<results::RunResult> with_file = Run({.journal_path = folder_.path() + "/journal"});
  ASSERT_TRUE(with_file.ok());
  EXPECT_EQ(Done({}).journal_digest, with_file.value().journal_digest);
}

// ------------------------------------------------------------------------------ CPUs and memory

// Nodes of 2 GPUs and 8 CPUs. Model v: 1 s for an iteration with 4 CPUs, twice as fast with 8;
// model t never wants more than 1 CPU.
class SensitiveScenarioTest : public ScenarioTest {
 protected:
  SensitiveScenarioTest() {
    std::filesystem::create_directory(folder_.path() + "/profiles");
    (void)folder_.Write("profiles/model_profiles.csv",
                        "cpu_per_gpu_ratio,model,gpus,best_cpus_per_gpu,best_mem_gb_per_gpu,"
                        "best_sspeed_per_gpu,batch_size,speedup,iter_time_s\n"
                        "4,v,1,7,10,10,32,1.75,1\n4,t,1,1,10,10,32,1,1\n");
    (void)folder_.Write("profiles/throughput_matrix.csv",
                        "cpu_per_gpu_ratio,model,gpus,cpus_per_gpu,mem_10_gb\n"
                        "4,v,1,1,0.25\n4,v,1,7,1.75\n4,t,1,1,1\n");
    paths_.profiles = folder_.path() + "/profiles";
    paths_.cluster = folder_.Write("c.ini",
                                   "[CLUSTER]\nracks=1\nservers_per_rack=1\ngpus_per_server=2\n"
                                   "cpus_per_server=8\ndram_per_server=20\nsspeed_per_server=0\n");
  }
  void WriteJobs(const std::string& rows) {
    paths_.trace = folder_.Write("t.csv", "job_id,model,arrival_s,total_iterations,gpus\n" + rows);
  }
};

// While t runs beside it, v has the 7 CPUs that t leaves: 1.75 iterations a second.
TEST_F(SensitiveScenarioTest, CpusThatOneJobLeavesMakeAnotherFaster) {
  WriteJobs("0,v,0,1750,1\n1,t,0,2000,1\n");
  const results::RunResult filled = Done({.policy = "srtf", .placement = "synergy"});
  const results::RunResult shared =
      Done({.policy = "srtf", .placement = "synergy:mechanism=proportional"});
  const double start_cost = EndOf(filled, 1) - 2000;
  EXPECT_NEAR(EndOf(filled, 0), 1000 + start_cost, 1e-3);
  EXPECT_NEAR(EndOf(shared, 0), 1750 + start_cost, 1e-3);
  EXPECT_EQ(filled.jobs[1].migrations, 0U);
  EXPECT_EQ(shared.jobs[1].migrations, 0U);
}

// v gives CPUs back when another v comes, and nothing is charged for that: 4 and 4.
TEST_F(SensitiveScenarioTest, AChangeOfCpusAloneCostsNothing) {
  WriteJobs("0,v,0,3500,1\n1,v,1000,4000,1\n");
  const results::RunResult run = Done({.policy = "srtf", .placement = "synergy"});
  EXPECT_EQ(run.jobs[0].migrations, 0U);
  EXPECT_EQ(run.jobs[0].preemptions, 0U);
  const double start_cost = EndOf(Done({.policy = "srtf", .placement = "consolidated"}), 0) - 3500;
  // 1750 less the start's in 1000 s, the rest at 1 a second.
  EXPECT_NEAR(EndOf(run, 0), 1000 + 1750 + 1.75 * start_cost, 1e-2);
}

TEST_F(SensitiveScenarioTest, RoundsOfWholeIterations) {
  WriteJobs("0,v,0.5,1050,1\n1,t,0.5,300,1\n");
  const results::RunResult run = Done({.preset = "synergy:first_round=1", .policy = "FIFO+tune"});
  EXPECT_EQ(StartOf(run, 0), 1);
  EXPECT_EQ(Seconds(*run.jobs[0].logged), 601);  // 525 in each round
  EXPECT_EQ(Seconds(*run.jobs[1].logged), 301);
  EXPECT_TRUE(run.uses_logged_end);
}

TEST_F(SensitiveScenarioTest, ComplainsAboutWhatTheProfilesLack) {
  WriteJobs("0,w,0,10,1\n");
  EXPECT_EQ(ErrorOf({}), "t.csv:2: model 'w' is not in the profiles; expected one that " +
                             paths_.profiles + " has");
  WriteJobs("0,v,0,10,1\n");
  paths_.cluster = folder_.Write("d.ini",
                                 "[CLUSTER]\nracks=1\nservers_per_rack=1\ngpus_per_server=2\n"
                                 "cpus_per_server=10\ndram_per_server=20\nsspeed_per_server=0\n");
  EXPECT_EQ(ErrorOf({.preset = "synergy"}),
            "the cluster has 5 CPUs for each GPU; expected one of the ratios that the profiles are "
            "for: 4");
  EXPECT_EQ(ErrorOf({}), "no error");  // the matrix serves any ratio
  paths_.profiles.clear();
  EXPECT_EQ(ErrorOf({.preset = "synergy"}),
            "policy 'fifo' needs sensitivity profiles; expected --profiles DIR with "
            "model_profiles.csv");
}

// --------------------------------------------------------------------------------- loader workers

// Jobs that name their GPUs, one node with two of them and eight cores. A GPU that nobody else uses
// takes four iterations of four images per second; each worker makes two images per second.
class LoaderScenarioTest : public ScenarioTest {
 protected:
  LoaderScenarioTest() {
    paths_.cluster = folder_.Write("c.toml", "[[nodes]]\nname = \"d\"\ngpus = 2\ncpus = 8\n");
    std::filesystem::create_directory(folder_.path() + "/models");
    (void)folder_.Write("models/models.csv", "model,params,flops\na1,0,1\n");
    const loader::ThroughputModel model{.gpu = {.base = 0.25}, .loader = {.per_worker = 0.5}};
    (void)folder_.Write("models/loader_model.csv", model.Write());
    paths_.profiles = folder_.path() + "/models";
  }
  // Arrival and GPUs; 100 iterations each.
  void WriteJobs(std::initializer_list<std::pair<int, std::string_view>> jobs) {
    std::string text = "arch,depth,batch,workers,arrival_time,cuda_device,end_iter,end_epoch\n";
    for (const auto& [arrival, gpus] : jobs) {
      text += "a,1,4,2," + std::to_string(arrival) + "," + std::string(gpus) + ",50,2\n";
    }
    paths_.trace = folder_.Write("t.csv", text);
  }
};

constexpr double kStartCost = 2.271;  // sound mode, seconds

TEST_F(LoaderScenarioTest, AJobRunsAsFastAsItsWorkersLoad) {
  WriteJobs({{0, "0"}});
  EXPECT_NEAR(EndOf(Done({.policy = "torchloader"}), 0), kStartCost + 25,
              1e-5);  // 8 workers: 16 images/s
  EXPECT_NEAR(EndOf(Done({.policy = "torchloader:mode=1"}), 0), kStartCost + 100,
              1e-5);  // 2 as asked for
  EXPECT_NEAR(EndOf(Done({.policy = "fifo"}), 0), kStartCost + 100, 1e-5);
}

// Behind any policy: fifo places a second job beside the first, which gives it half of its workers
// and gets them back.
TEST_F(LoaderScenarioTest, ATuningDividesTheCoresBesideAnyPolicy) {
  WriteJobs({{0, "0"}});
  EXPECT_NEAR(EndOf(Done({.policy = "fifo", .tuning = "loader"}), 0), kStartCost + 25, 1e-5);
  WriteJobs({{0, "0"}, {10, "1"}});
  const results::RunResult run = Done({.policy = "fifo", .tuning = "loader"});
  const double alone = 10 - kStartCost;  // at 4 iterations a second; then at 2
  EXPECT_NEAR(EndOf(run, 0), 10 + (100 - 4 * alone) / 2, 1e-4);
  const double beside = EndOf(run, 0) - 10 - kStartCost;
  EXPECT_NEAR(EndOf(run, 1), EndOf(run, 0) + (100 - 2 * beside) / 4, 1e-4);
  EXPECT_EQ(run.jobs[0].preemptions + run.jobs[0].migrations, 0U);
  EXPECT_EQ(run.journal_digest, Done({.policy = "fifo", .tuning = "loader"}).journal_digest);
}

TEST_F(LoaderScenarioTest, ATuningIsRefusedWhereItDoesNotFit) {
  WriteJobs({{0, "0"}});
  EXPECT_NE(ErrorOf({.policy = "torchloader", .tuning = "loader"}).find("expected a policy and a"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.policy = "fifo", .placement = "synergy", .tuning = "loader"})
                .find("expected a policy and a"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.policy = "fifo", .tuning = "louder"}).find("unknown tuning 'louder'"),
            std::string::npos);
}

TEST_F(LoaderScenarioTest, WorkersChangeWithoutAStop) {
  WriteJobs({{0, "0"}, {10, "0"}});
  const results::RunResult run = Done({.policy = "torchloader"});
  // Four iterations a second while it is alone, then two, with half of the workers.
  const double first = 10 + (100 - 4 * (10 - kStartCost)) / 2;
  EXPECT_NEAR(EndOf(run, 0), first, 1e-5);
  EXPECT_NEAR(EndOf(run, 1), first + (100 - 2 * (first - 10 - kStartCost)) / 4, 1e-5);
  EXPECT_EQ(run.jobs[0].preemptions + run.jobs[1].preemptions, 0);
}

TEST_F(LoaderScenarioTest, AsPublishedAChangeIsAPauseAndArrivalsComeEarly) {
  WriteJobs({{0, "0"}, {17, "0"}});
  const results::RunResult run = Done({.preset = "torchloader", .policy = "v2"});
  EXPECT_EQ(StartOf(run, 1), 10);  // handed over at the start of its window
  EXPECT_EQ(run.jobs[0].preemptions, 1);
  EXPECT_EQ(run.jobs[0].migrations, 0);
  // 40 iterations, a pause of 10 s, then half of the GPU.
  EXPECT_NEAR(EndOf(run, 0), 10 + 10 + 60 / 2.0, 1e-5);
}

TEST_F(LoaderScenarioTest, DeparturesWithinTheBufferAreOne) {
  WriteJobs({{0, "0"}, {0, "1"}, {0, "0"}});
  const results::RunResult five = Done({.preset = "torchloader"});
  const results::RunResult none = Done({.preset = "torchloader:finish_buffer=0.001"});
  EXPECT_EQ(five.jobs.size(), none.jobs.size());
  EXPECT_NE(five.journal_digest, none.journal_digest);
}

TEST_F(LoaderScenarioTest, WhatIsMissingIsNamed) {
  WriteJobs({{0, "0"}});
  paths_.cluster = "1x2";
  EXPECT_EQ(ErrorOf({.policy = "torchloader"}),
            "policy 'torchloader' divides CPU cores, but cluster '1x2' does not state those of "
            "node n0; expected a cluster file with cpus");
  paths_.profiles.clear();
  EXPECT_EQ(ErrorOf({.policy = "torchloader"}),
            "t.csv:2: job a1-line2 has no duration; expected one, or profiles (--profiles)");
}

TEST_F(LoaderScenarioTest, JobsThatNameNoGpusAreAloneOnTheFirst) {
  WriteTrace("x,0,1,100,100,a1,4,\ny,1,1,100,100,a1,4,\nz,2,1,100,100,a1,4,\n");
  const results::RunResult run = Done({.policy = "torchloader"});
  EXPECT_EQ(StartOf(run, 1), 1);
  EXPECT_EQ(StartOf(run, 2), EndOf(run, 0));  // two GPUs
}

TEST_F(LoaderScenarioTest, WithoutACatalogueNothingIsDivided) {
  WriteTrace("x,0,1,100,,,,\ny,1,2,100,,,,\nz,2,1,100,,,,\n");
  paths_.profiles.clear();
  paths_.cluster = "1x2";
  const results::RunResult run = Done({.policy = "torchloader"});
  EXPECT_NEAR(EndOf(run, 0), kStartCost + 100, 1e-5);
  EXPECT_EQ(StartOf(run, 1), EndOf(run, 0));
  EXPECT_EQ(StartOf(run, 2), EndOf(run, 1));  // in the order of arrival
}

TEST_F(LoaderScenarioTest, JobsThatCannotBeRunAreNamedByLine) {
  WriteJobs({{0, "0"}, {1, "2"}});
  EXPECT_EQ(ErrorOf({.policy = "torchloader"}),
            "t.csv:3: GPU 2 of node 'd0' is asked for; expected one below 2");
  WriteTrace("x,0,1,100,10,b1,4,\n");
  EXPECT_NE(ErrorOf({.policy = "fifo"}).find("unknown model 'b1'"), std::string::npos);
}

// ------------------------------------------------------------------------------------------ stages

// The jobs of the concepts page, 5.2, on one GPU: A bert, B dqn at 100 s, C vgg16 at 104 s.
class StagesTest : public ScenarioTest {
 protected:
  void WriteThreeJobs() {
    paths_.trace = folder_.Write(
        "t.csv",
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
        "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n"
        "A,1,0,1000,bert,4,178000,0,178,0.5,160,0,0\n"
        "B,1,100000,400,dqn,128,196000,100000,490,446,8,0,1\n"
        "C,1,104000,1000,vgg16,16,107000,4000,107,117,68,0,0\n");
  }
};

TEST_F(StagesTest, UnderMuriEveryEventCostsAndTheUnpaidRestIsForgotten) {
  WriteThreeJobs();
  const results::RunResult run = Done({.preset = "muri", .policy = "shortest"});
  ASSERT_EQ(run.jobs.size(), 3U);
  EXPECT_NEAR(EndOf(run, 0), 194.67, 1e-5);
  EXPECT_NEAR(EndOf(run, 2), 303.275, 1e-5);
  EXPECT_NEAR(EndOf(run, 1), 502.215, 2e-5);
}

TEST_F(StagesTest, WithoutAPresetJobsRunAtTheirStatedPaceToo) {
  WriteThreeJobs();
  const results::RunResult run = Done({.policy = "fifo"});
  ASSERT_EQ(run.jobs.size(), 3U);
  const double bert = 3.744;      // the sound cost of a start
  const double fallback = 2.271;  // of a model that is not listed
  EXPECT_NEAR(EndOf(run, 0), bert + 178, 1e-5);
  EXPECT_NEAR(EndOf(run, 1), bert + 178 + fallback + 196, 1e-5);
}

TEST_F(StagesTest, UnderMuriEveryJobMustStateStages) {
  WriteTrace("a,0,1,60,,,,\n");
  EXPECT_EQ(ErrorOf({.preset = "muri"}),
            "t.csv:2: job a has no stage times; expected some, as in traces of format muri");
}

// -------------------------------------------------------------------------------- several types

class MixedScenarioTest : public ScenarioTest {
 protected:
  MixedScenarioTest() {
    paths_.cluster = folder_.Write("c.toml",
                                   "[[nodes]]\ngpus = 4\ngpu_type = \"A100\"\n"
                                   "[[nodes]]\ngpus = 2\ngpu_type = \"V100\"\n"
                                   "[[gpu_types]]\nname = \"A100\"\nspeed = 2\n");
  }
  void WriteTypedTrace(const std::string& rows) {
    paths_.trace = folder_.Write(
        "t.csv", "job_id,submit_time,gpus,duration,iterations,model,batch_size,gpu_types\n" + rows);
  }
  void WriteTypedProfiles() {
    paths_.profiles =
        folder_.Write("p.csv",
                      "model,batch_size,gpus,iterations_per_second,gpu_type\n"
                      "m,64,1,10,A100\nm,64,1,2,V100\nm,64,2,18,A100\nplain,64,1,3,\n");
  }
};

TEST_F(MixedScenarioTest, JobsRunOnTypesThatTheyAcceptAsFastAsTheseAre) {
  WriteTypedTrace("a,0,1,100,,,,A100\nb,0,1,100,,,,V100\nc,0,4,100,,,,\n");
  const results::RunResult run =
      Done({.preset = "tiresias", .policy = "fifo", .placement = "consolidated"});
  EXPECT_EQ(EndOf(run, 0), 50);
  EXPECT_EQ(EndOf(run, 1), 100);
  EXPECT_EQ(EndOf(run, 2), 100);  // waits for the first: 4 GPUs together are A100
}

TEST_F(MixedScenarioTest, ProfilesMayDifferByType) {
  WriteTypedProfiles();
  WriteTypedTrace("a,0,1,,1000,m,64,\nb,0,1,,1000,m,64,V100\nc,0,1,,600,plain,64,\n");
  const results::RunResult run = Done({.policy = "fifo"});
  EXPECT_NEAR(run.jobs[0].useful_service, 100, 1e-3);
  EXPECT_NEAR(run.jobs[1].useful_service, 500, 1e-3);
  EXPECT_NEAR(run.jobs[2].useful_service, 100, 1e-3);  // 3 a second, twice as fast on A100
}

// "a" on A100, "b" on V100 as it says, "c" twice as fast as without a type.
TEST_F(MixedScenarioTest, AloneAJobHasTheFastestTypeThatItAccepts) {
  WriteTypedProfiles();
  WriteTypedTrace("a,0,1,,1000,m,64,\nb,0,1,,1000,m,64,V100\nc,0,1,,600,plain,64,\n");
  const results::RunResult run = Done({.policy = "fifo"});
  EXPECT_EQ(run.jobs[0].alone, FromSeconds(100));
  EXPECT_EQ(run.jobs[1].alone, FromSeconds(500));
  EXPECT_EQ(run.jobs[2].alone, FromSeconds(100));
  paths_.profiles.clear();
  WriteTypedTrace("a,0,1,50,,,,\nb,0,1,50,,,,V100\n");
  const results::RunResult by_speed = Done({.policy = "fifo"});
  EXPECT_EQ(by_speed.jobs[0].alone, FromSeconds(25));
  EXPECT_EQ(by_speed.jobs[1].alone, FromSeconds(50));
}

// Jobs would never end.
TEST_F(MixedScenarioTest, RefusesPoliciesWithoutAPlanWherePlansSayTheEnds) {
  WriteTypedProfiles();
  WriteTypedTrace("a,0,1,,1000,m,64,\n");
  for (const char* policy : {"max-min-fairness", "sia"}) {
    EXPECT_NE(ErrorOf({.preset = "gavel", .policy = policy})
                  .find("policy '" + std::string(policy) + "' plans none"),
              std::string::npos)
        << ErrorOf({.preset = "gavel", .policy = policy});
  }
}

TEST_F(MixedScenarioTest, ProfilesOfOtherTypesAreNamedAsThat) {
  paths_.profiles = folder_.Write(
      "p.csv",
      "model,batch_size,gpus,iterations_per_second,gpu_type\nm,64,1,10,K80\nm,64,1,12,T4\n");
  WriteTypedTrace("a,0,1,,1000,m,64,\n");
  EXPECT_NE(ErrorOf({.policy = "sia"})
                .find("it has rates on GPUs of type K80, T4, and the cluster has GPUs of type "
                      "A100, V100; expected a cluster of these types, such as --cluster 4x8:K80"),
            std::string::npos)
      << ErrorOf({.policy = "sia"});
}

TEST_F(MixedScenarioTest, RefusesJobsThatRunOnNoType) {
  WriteTypedTrace("a,0,1,100,,,,\nb,0,1,100,,,,H100|T4\n");
  EXPECT_EQ(ErrorOf({}),
            "t.csv:3: job b: it accepts GPUs of type H100 or T4; expected one of cluster 'c': A100 "
            "and V100");
  paths_.trace = folder_.Write("t.csv",
                               "job_id,submit_time,gpus,duration,gpu_types,node_list\n"
                               "a,0,1,100,H100,nosuch\n");
  EXPECT_EQ(ErrorOf({}),
            "t.csv:2: job a: it accepts GPUs of type H100; expected one of cluster 'c': A100 and "
            "V100\n"
            "it names node 'nosuch', which the cluster has not; expected one of its nodes");
  WriteTypedTrace("a,0,4,100,,,,V100\n");
  EXPECT_EQ(
      ErrorOf({}),
      "t.csv:2: job a: it asks for 4 GPUs and runs on V100; expected at most the 2 that there "
      "are");
  WriteTypedProfiles();
  WriteTypedTrace("a,0,2,,100,m,64,V100\n");
  EXPECT_EQ(ErrorOf({}),
            "t.csv:2: job a: its model has no throughput on 2 GPUs of V100; expected a profile for "
            "one of the types that it accepts");
}

TEST_F(MixedScenarioTest, ATypeThatIsNotThereIsRefusedOnOneTypeToo) {
  paths_.cluster = folder_.Write("one.toml", "[[nodes]]\ngpus = 4\ngpu_type = \"V100\"\n");
  WriteTypedTrace("a,0,1,100,,,,A100\n");
  EXPECT_EQ(ErrorOf({}),
            "t.csv:2: job a: it accepts GPUs of type A100; expected one of cluster 'one': V100");
}

TEST_F(MixedScenarioTest, WhereNoNodeStatesATypeAllJobsRun) {
  paths_.cluster = "1x4";
  WriteTypedTrace("a,0,1,100,,,,A100\n");
  EXPECT_EQ(EndOf(Done({.preset = "tiresias", .policy = "fifo", .placement = "consolidated"}), 0),
            100);
}

TEST_F(MixedScenarioTest, PoliciesThatCountWantJobsThatRunOnAllTypes) {
  WriteTypedProfiles();
  WriteTypedTrace("a,0,1,,100,plain,64,\nb,0,1,,100,m,64,\n");
  EXPECT_EQ(
      ErrorOf({.policy = "elasticflow"}),
      "t.csv:3: job b: it does not run on 2 GPUs of V100, but policy 'elasticflow' counts GPUs "
      "of all types alike; expected a job that runs on all, or another policy (srtf)");
  WriteTypedTrace("a,0,1,,100,plain,64,\n");
  EXPECT_EQ(EndOf(Done({.policy = "elasticflow"}), 0), EndOf(Done({.policy = "elastic-edf"}), 0));
}

TEST_F(MixedScenarioTest, WhoKnowsOneTypeOnlyIsRefused) {
  WriteTypedTrace("a,0,1,100,,,,\n");
  const std::string rest =
      " takes all GPUs for equal, but cluster 'c' has A100 and V100; expected a cluster of one "
      "type, or another, such as policy srtf with placement consolidated";
  EXPECT_EQ(ErrorOf({.policy = "gandiva", .placement = "gandiva"}), "policy 'gandiva'" + rest);
  EXPECT_EQ(ErrorOf({.policy = "srtf", .placement = "count"}), "placement 'count'" + rest);
  EXPECT_EQ(ErrorOf({.policy = "srtf", .placement = "synergy"}), "placement 'synergy'" + rest);
}

TEST_F(ScenarioTest, GroupingsGoWithOrderingsOnly) {
  WriteTrace("a,0,1,100,,,,\n");
  const results::RunResult grouped = Done({.policy = "srtf", .grouping = "interleave"});
  EXPECT_EQ(EndOf(Done({.policy = "srtf"}), 0), EndOf(grouped, 0));
  EXPECT_EQ(grouped.grouping, "interleave");
  for (const std::string policy : {"muri-s", "themis", "auto"}) {
    EXPECT_EQ(ErrorOf({.policy = policy, .grouping = "interleave"}),
              "grouping 'interleave' groups jobs that a policy puts in order, but policy '" +
                  policy +
                  "' plans or shares GPUs itself; expected an order, such as fifo, srtf, las or "
                  "tiresias");
  }
  EXPECT_NE(ErrorOf({.policy = "srtf", .placement = "count", .grouping = "interleave"})
                .find("expected a placement such as consolidated"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf({.policy = "srtf", .grouping = "interleaved"}).find("did you mean 'interleave'?"),
      std::string::npos);
}

}  // namespace
}  // namespace trainyard::scenario
