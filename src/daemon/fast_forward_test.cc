// SPDX-License-Identifier: Apache-2.0
#include "daemon/fast_forward.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "loader/throughput_model.h"
#include "support/live_as_simulated.h"
#include "support/scratch_folder.h"

namespace trainyard::daemon {
namespace {

constexpr const char* kProfiles =
    "model,batch_size,gpus,iterations_per_second\n"
    "resnet50,64,1,1\nresnet50,64,2,1.8\nresnet50,64,4,3.1\nresnet50,64,8,4.9\n"
    "bert,32,1,0.5\nbert,32,2,0.95\nbert,32,4,1.7\nbert,32,8,3\nbert,32,16,5\n"
    "vgg16,128,1,2\nvgg16,128,2,3.1\nvgg16,128,4,4.4\n";

// Bursts of jobs of all sizes on two nodes with eight GPUs, with deadlines that can be met by most.
std::string MakeTrace(int jobs, unsigned seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  const std::vector<std::pair<std::string, int>> models = {
      {"resnet50", 64}, {"bert", 32}, {"vgg16", 128}};
  std::string text = "job_id,submit_time,gpus,model,batch_size,iterations,deadline\n";
  int time = 0;
  for (int i = 0; i < jobs; ++i) {
    time += pick(0, 3) == 0 ? 0 : pick(1, 900);
    const auto& [model, batch] = models[static_cast<std::size_t>(pick(0, 2))];
    const int gpus = 1 << pick(0, 2);
    const int iterations = pick(200, 9000);
    const int deadline = time + static_cast<int>(iterations * (0.5 + pick(1, 20) / 10.0));
    text += std::to_string(i) + "," + std::to_string(time) + "," + std::to_string(gpus) + "," +
            model + "," + std::to_string(batch) + "," + std::to_string(iterations) + "," +
            std::to_string(deadline) + "\n";
  }
  return text;
}

struct Case {
  std::string policy;
  int jobs;
};

class LiveEqualsSimulated : public testing::TestWithParam<Case> {};

TEST_P(LiveEqualsSimulated, JobByJob) {
  const ScratchFolder scratch;
  const Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = scratch.Write("trace.csv", MakeTrace(GetParam().jobs, 11)),
                            .cluster = "2x8",
                            .profiles = scratch.Write("profiles.csv", kProfiles)});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  scenario::RunRequest request{.names = {.policy = GetParam().policy}};
  if (GetParam().policy == "gandiva") {
    request.names.placement = "gandiva";
  }
  if (GetParam().policy == "elasticflow") {
    request.names.admission = "deadline";
  }
  static const std::set<std::string> kPlansByEnds{"auto", "chronus", "ftf"};
  const double start_within = kPlansByEnds.contains(GetParam().policy) ? kRounding : 0;
  ExpectLiveAsSimulated(inputs.value(), request, GetParam().jobs / 2, start_within);
}

TEST(FastForwardTest, RowsMayBeInAnyOrder) {
  const ScratchFolder scratch;
  const Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = scratch.Write("trace.csv",
                                                   "job_id,submit_time,gpus,duration\n"
                                                   "late,5000,1,100\n"
                                                   "first,0,2,700\n"
                                                   "second,50,4,300\n"),
                            .cluster = "2x8"});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  ExpectLiveAsSimulated(inputs.value(), {.names = {.policy = "srtf"}}, 3);
}

// Arrays, dependencies, times to begin and limits are the engine's, and so alike in both.
constexpr const char* kTraceWithTerms =
    "job_id,submit_time,gpus,duration,user,time_limit,begin,dependency,array\n"
    "prep,0,2,300,ann,,,,\n"
    "sweep,10,1,200,ann,,,afterok:prep,0-7%3\n"
    "best,20,4,500,ann,,,afterok:sweep,\n"
    "fifth,20,1,100,ann,,,afterany:sweep_5,\n"
    "long,30,2,5000,bob,600,,,\n"
    "clean,31,1,60,bob,,,afternotok:long,\n"
    "never,32,1,60,bob,,,afterok:long,\n"
    "then,33,1,60,bob,,,afterok:never?afternotok:long,\n"
    "night,40,8,700,eve,,4000,,\n"
    "alone,41,1,50,eve,,,singleton,\n"
    "just,50,1,400,eve,403,,,\n"
    "grid,60,2,150,eve,120,100,,1-9:2%2\n"
    "last,70,1,10,eve,,,afternotok:grid,\n";

TEST(FastForwardTest, TermsOfJobsAreAsSimulated) {
  const ScratchFolder scratch;
  const Result<scenario::Inputs> inputs = scenario::ReadInputs(
      {.trace = scratch.Write("trace.csv", kTraceWithTerms), .cluster = "2x8"});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  ASSERT_EQ(inputs.value().jobs->size(), 24U);
  for (const char* const policy : {"fifo", "srtf", "las", "srsf"}) {
    ExpectLiveAsSimulated(inputs.value(), {.names = {.policy = policy}}, 17);
  }
}

// A job that was submitted with a range of GPUs gets no others from policies that choose.
class ElasticRanges : public testing::TestWithParam<std::string> {};

TEST_P(ElasticRanges, AreKept) {
  const ScratchFolder scratch;
  Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = scratch.Write("trace.csv", MakeTrace(60, 5)),
                            .cluster = "2x8",
                            .profiles = scratch.Write("profiles.csv", kProfiles)});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  std::vector<JobSpec> jobs = *inputs.value().jobs;
  for (std::size_t i = 0; i < jobs.size(); i += 2) {
    JobTraits traits;
    traits.range = {.least = jobs[i].gpus, .most = std::min(4, 2 * jobs[i].gpus)};
    jobs[i].traits = std::make_shared<const JobTraits>(std::move(traits));
  }
  inputs.value().jobs = std::make_shared<const std::vector<JobSpec>>(std::move(jobs));
  const scenario::RunRequest request{.names = {.policy = GetParam(), .admission = "all"}};
  for (const auto& run :
       {scenario::RunScenario(inputs.value(), request), RunFastForward(inputs.value(), request)}) {
    ASSERT_TRUE(run.ok()) << run.error().message;
    int elsewhere = 0;  // of jobs without a range
    for (const results::JobResult& job : run.value().jobs) {
      const double gpus =  // on average
          job.attained_service / (Seconds(job.productive) + Seconds(job.overhead));
      if (job.spec->traits == nullptr) {
        elsewhere += gpus > 2.01 * job.spec->gpus || gpus < 0.99 * job.spec->gpus ? 1 : 0;
        continue;
      }
      EXPECT_GE(gpus, 0.999 * job.spec->traits->range.least) << job.spec->name;
      EXPECT_LE(gpus, 1.001 * job.spec->traits->range.most) << job.spec->name;
    }
    EXPECT_GT(elsewhere, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, ElasticRanges,
                         testing::Values("elasticflow", "elastic-edf", "elastic-edf:past_peak=1",
                                         "optimus"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* policy :
       {"fifo", "fjf", "sjf", "srtf", "srsf", "las", "tiresias", "gandiva", "themis", "edf",
        "elastic-edf", "elasticflow", "ftf", "drf", "tetris", "chronus", "auto"}) {
    cases.push_back({policy, 25});
    cases.push_back({policy, 100});
  }
  return cases;
}

void PrintTo(const Case& of, std::ostream* out) { *out << of.policy << " " << of.jobs; }

INSTANTIATE_TEST_SUITE_P(Policies, LiveEqualsSimulated, testing::ValuesIn(Cases()),
                         [](const auto& test) {
                           std::string name =
                               test.param.policy + "_" + std::to_string(test.param.jobs);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Every preset counts work and ends in its own way: to the last microsecond as simulated.
class Presets : public testing::TestWithParam<scenario::PresetRequest> {};

TEST_P(Presets, RunLiveAsSimulated) {
  const Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = TRAINYARD_SOURCE_DIR "/data/example_trace.csv",
                            .cluster = "8x8",
                            .profiles = TRAINYARD_SOURCE_DIR "/data/example_profiles.csv"});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  ExpectLiveAsSimulated(inputs.value(), {.names = GetParam()}, 100, 0, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Published, Presets,
    testing::Values(scenario::PresetRequest{.preset = "tiresias", .policy = "fifo"},
                    scenario::PresetRequest{.preset = "tiresias", .policy = "shortest"},
                    scenario::PresetRequest{.preset = "blox", .policy = "Las"},
                    scenario::PresetRequest{.preset = "blox", .policy = "Optimus"},
                    scenario::PresetRequest{.preset = "chronus", .policy = "time-aware-with-lease"},
                    scenario::PresetRequest{.preset = "elasticflow", .policy = "edf"},
                    scenario::PresetRequest{.preset = "elasticflow", .policy = "ef"},
                    scenario::PresetRequest{.preset = "elasticflow", .policy = "gandiva"}),
    [](const auto& test) {
      std::string name = test.param.preset + "_" + test.param.policy;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// Jobs that state their stages share GPUs: their pace changes with their company.
class StagedJobFiles : public testing::TestWithParam<std::string> {};

TEST_P(StagedJobFiles, RunLiveAsSimulated) {
  std::mt19937_64 random(7);
  const auto pick = [&random](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  std::string trace =
      "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
      "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n";
  int time = 0;
  constexpr int kJobs = 60;
  for (int i = 0; i < kJobs; ++i) {
    time += pick(0, 300) * 1000;
    const int load = pick(0, 200);
    const int gpu = pick(20, 300);
    const int network = pick(0, 150);
    const int iteration = std::max({load, gpu, network});
    const int iterations = pick(500, 20'000);
    trace +=
        fmt::format("{},{},{},{},bert,8,{},0,{},{},{},{},{}\n", i, 1 << pick(0, 3), time,
                    iterations, iteration * iterations, iteration, load, gpu, network, pick(0, 1));
  }
  const ScratchFolder scratch;
  const Result<scenario::Inputs> inputs =
      scenario::ReadInputs({.trace = scratch.Write("trace.csv", trace), .cluster = "2x8"});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  ExpectLiveAsSimulated(inputs.value(), {.names = {.policy = GetParam()}}, kJobs, kRounding);
}

INSTANTIATE_TEST_SUITE_P(Policies, StagedJobFiles,
                         testing::Values("muri-s", "muri-l", "antman", "srtf"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Jobs on the GPUs that they name, on which others are, with loader workers that come and go.
class LoaderWorkers : public testing::TestWithParam<scenario::PresetRequest> {};

TEST_P(LoaderWorkers, RunLiveAsSimulated) {
  std::mt19937_64 random(3);
  const auto pick = [&random](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  std::string trace = "arch,depth,batch,workers,arrival_time,cuda_device,end_iter,end_epoch\n";
  int time = 0;
  constexpr int kJobs = 40;
  for (int i = 0; i < kJobs; ++i) {
    time += pick(0, 60);
    const int gpu = pick(0, 2);
    const std::string gpus =
        pick(0, 1) == 0 ? fmt::format("\"{}\"", gpu) : fmt::format("\"{} {}\"", gpu, gpu + 1);
    trace +=
        fmt::format("a,{},8,{},{},{},{},1\n", pick(1, 2), pick(0, 4), time, gpus, pick(20, 400));
  }
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch.path() + "/models");
  (void)scratch.Write("models/models.csv", "model,params,flops\na1,0,1\na2,0,2\n");
  const loader::ThroughputModel model{.gpu = {.base = 0.25}, .loader = {.per_worker = 0.5}};
  (void)scratch.Write("models/loader_model.csv", model.Write());
  const Result<scenario::Inputs> inputs = scenario::ReadInputs(
      {.trace = scratch.Write("trace.csv", trace),
       .cluster = scratch.Write("c.toml", "[[nodes]]\nname = \"d\"\ngpus = 4\ncpus = 8\n"),
       .profiles = scratch.path() + "/models"});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  ExpectLiveAsSimulated(inputs.value(), {.names = GetParam()}, kJobs);
}

INSTANTIATE_TEST_SUITE_P(Policies, LoaderWorkers,
                         testing::Values(scenario::PresetRequest{.policy = "torchloader"},
                                         scenario::PresetRequest{.policy = "fifo"},
                                         scenario::PresetRequest{.policy = "srtf",
                                                                 .tuning = "loader"}),
                         [](const auto& test) { return test.param.policy + test.param.tuning; });

// Jobs with CPUs and memory that change as they run.
class SensitiveJobs : public testing::TestWithParam<std::string> {};

TEST_P(SensitiveJobs, RunLiveAsSimulated) {
  std::mt19937_64 random(5);
  const auto pick = [&random](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  std::string trace = "job_id,model,arrival_s,total_iterations,gpus\n";
  int time = 0;
  constexpr int kJobs = 60;
  for (int i = 0; i < kJobs; ++i) {
    time += pick(0, 200);
    trace += fmt::format("{},{},{},{},{}\n", i, pick(0, 1) == 0 ? "v" : "t", time, pick(50, 3000),
                         1 << pick(0, 2));
  }
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch.path() + "/profiles");
  (void)scratch.Write("profiles/model_profiles.csv",
                      "cpu_per_gpu_ratio,model,gpus,best_cpus_per_gpu,best_mem_gb_per_gpu,"
                      "best_sspeed_per_gpu,batch_size,speedup,iter_time_s\n"
                      "4,v,1,7,10,10,32,1.75,1\n4,t,1,1,10,10,32,1,1\n");
  (void)scratch.Write("profiles/throughput_matrix.csv",
                      "cpu_per_gpu_ratio,model,gpus,cpus_per_gpu,mem_10_gb\n"
                      "4,v,1,1,0.25\n4,v,1,7,1.75\n4,t,1,1,1\n");
  const Result<scenario::Inputs> inputs = scenario::ReadInputs(
      {.trace = scratch.Write("trace.csv", trace),
       .cluster = scratch.Write("c.ini",
                                "[CLUSTER]\nracks=1\nservers_per_rack=2\ngpus_per_server=4\n"
                                "cpus_per_server=16\ndram_per_server=40\nsspeed_per_server=0\n"),
       .profiles = scratch.path() + "/profiles"});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  ExpectLiveAsSimulated(inputs.value(), {.names = {.policy = GetParam(), .placement = "synergy"}},
                        kJobs, kRounding);
}

INSTANTIATE_TEST_SUITE_P(Policies, SensitiveJobs,
                         testing::Values("fifo", "srtf", "las", "ftf", "drf", "tetris"));

// Jobs with data sets on nodes that keep some of them.
class DataSets : public testing::TestWithParam<std::string> {};

TEST_P(DataSets, AreFetchedLiveAsSimulated) {
  std::mt19937_64 random(7);
  const auto pick = [&random](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  std::string trace = "job_id,submit_time,gpus,duration,data_set,data_mib,data_home\n";
  int time = 0;
  constexpr int kJobs = 60;
  for (int i = 0; i < kJobs; ++i) {
    time += pick(60, 260);
    const int set = pick(0, 3);
    trace += fmt::format("{},{},{},{},d{},{},{}\n", i, time, 1 << pick(0, 2), pick(20, 800), set,
                         20'000 + 10'000 * set, set == 0 ? "n1" : fmt::format("/store/d{}", set));
  }
  const ScratchFolder scratch;
  const Result<scenario::Inputs> inputs = scenario::ReadInputs(
      {.trace = scratch.Write("trace.csv", trace),
       .cluster = scratch.Write("c.toml",
                                "[[nodes]]\ncount = 3\ngpus = 4\ncache_gb = 60\n"
                                "remote_mb_per_s = 200\n")});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  double overhead = 0;
  for (const char* const placement : {"consolidated", "consolidated:locality=1"}) {
    const scenario::RunRequest request{.names = {.policy = GetParam(), .placement = placement}};
    ExpectLiveAsSimulated(inputs.value(), request, kJobs);
    const Result<results::RunResult> run = RunFastForward(inputs.value(), request);
    double seconds = 0;
    for (const results::JobResult& job : run.value().jobs) {
      seconds += Seconds(job.overhead);
    }
    EXPECT_GT(seconds, 0) << "jobs wait for their data";
    EXPECT_TRUE(overhead == 0 || seconds < overhead) << "with locality it fetches less here";
    overhead = seconds;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, DataSets, testing::Values("fifo", "srtf", "tiresias"));

TEST(FastForwardTest, NodeFailuresOfAClusterFileAreRefused) {
  const ScratchFolder scratch;
  const Result<scenario::Inputs> inputs = scenario::ReadInputs(
      {.trace = scratch.Write("trace.csv", MakeTrace(3, 1)),
       .cluster = scratch.Write("cluster.toml",
                                "[[nodes]]\ncount = 2\ngpus = 8\n[[failures]]\nnode = \"n0\"\ndown "
                                "= 5\nup = 50\n"),
       .profiles = scratch.Write("profiles.csv", kProfiles)});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  const Result<results::RunResult> run =
      RunFastForward(inputs.value(), {.names = {.policy = "fifo"}});
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.error().message.find("cannot be played to agents"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::daemon
