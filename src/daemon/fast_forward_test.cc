// SPDX-License-Identifier: Apache-2.0
#include "daemon/fast_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "io/scratch_folder.h"
#include "report/metrics.h"

namespace trainyard {
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
  const Result<Inputs> inputs =
      ReadInputs({.trace = scratch.Write("trace.csv", MakeTrace(GetParam().jobs, 11)),
                  .cluster = "2x8",
                  .profiles = scratch.Write("profiles.csv", kProfiles)});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  RunRequest request{.names = {.policy = GetParam().policy}};
  if (GetParam().policy == "gandiva") {
    request.names.placement = "gandiva";
  }
  if (GetParam().policy == "elasticflow") {
    request.names.admission = "deadline";
  }
  const Result<RunResult> simulated = RunScenario(inputs.value(), request);
  const Result<RunResult> live = RunFastForward(inputs.value(), request);
  ASSERT_TRUE(simulated.ok()) << simulated.error().message;
  ASSERT_TRUE(live.ok()) << live.error().message;
  ASSERT_EQ(live.value().jobs.size(), simulated.value().jobs.size());
  for (std::size_t i = 0; i < live.value().jobs.size(); ++i) {
    const JobResult& a = simulated.value().jobs[i];
    const JobResult& b = live.value().jobs[i];
    ASSERT_EQ(b.outcome, a.outcome) << "job " << i;
    EXPECT_EQ(b.start, a.start) << "job " << i;
    ASSERT_EQ(b.end.has_value(), a.end.has_value()) << "job " << i;
    if (a.end) {
      EXPECT_NEAR(Seconds(*b.end), Seconds(*a.end), 1e-3) << "job " << i;
    }
    EXPECT_EQ(b.preemptions, a.preemptions) << "job " << i;
    EXPECT_EQ(b.migrations, a.migrations) << "job " << i;
    EXPECT_EQ(b.resizes, a.resizes) << "job " << i;
    EXPECT_NEAR(b.attained_service, a.attained_service, 0.1) << "job " << i;
  }
  EXPECT_GT(Measure(simulated.value()).completed, GetParam().jobs / 2);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* policy : {"fifo", "fjf", "sjf", "srtf", "srsf", "las", "tiresias", "gandiva",
                             "themis", "edf", "elastic-edf", "elasticflow"}) {
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

TEST(FastForwardTest, NodeFailuresOfAClusterFileAreRefused) {
  const ScratchFolder scratch;
  const Result<Inputs> inputs = ReadInputs(
      {.trace = scratch.Write("trace.csv", MakeTrace(3, 1)),
       .cluster = scratch.Write("cluster.toml",
                                "[[nodes]]\ncount = 2\ngpus = 8\n[[failures]]\nnode = \"n0\"\ndown "
                                "= 5\nup = 50\n"),
       .profiles = scratch.Write("profiles.csv", kProfiles)});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  const Result<RunResult> run = RunFastForward(inputs.value(), {.names = {.policy = "fifo"}});
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.error().message.find("cannot be played to agents"), std::string::npos);
}

}  // namespace
}  // namespace trainyard
