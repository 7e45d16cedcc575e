// SPDX-License-Identifier: Apache-2.0
// The published ElasticFlow played to the live controller and agents: the accept and decline counts
// of reference 14.1, and every job as simulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "daemon/fast_forward.h"
#include "results/metrics/metrics.h"
#include "scenario/scenario.h"
#include "support/live_as_simulated.h"
#include "support/reference.h"

namespace trainyard {
namespace {

struct Published {
  std::string policy;
  int accepted = 0;  // of the five jobs of the CIFAR trace
  int declined = 0;
};

void PrintTo(const Published& one, std::ostream* out) { *out << one.policy; }

class LivePresets : public testing::TestWithParam<Published> {
 protected:
  void SetUp() override { TRAINYARD_NEEDS_REFERENCE(); }
  static scenario::Inputs Read(const std::string& trace, const std::string& cluster) {
    const std::string data = Reference() + "/data/elasticflow/";
    Result<scenario::Inputs> inputs =
        scenario::ReadInputs({.trace = data + "traces/" + trace,
                              .format = "elasticflow",
                              .cluster = data + "cluster_specs/" + cluster,
                              .profiles = data + "throughputs_A100"});
    EXPECT_TRUE(inputs.ok()) << inputs.error().message;
    return std::move(inputs).value();
  }
  static scenario::RunRequest Request() {
    return {.names = {.preset = "elasticflow:slot=240", .policy = GetParam().policy}};
  }
};

TEST_P(LivePresets, AcceptAndDeclineAsPublished) {
  const Result<results::RunResult> run =
      daemon::RunFastForward(Read("resnet_cifar_trace.csv", "n1g8.csv"), Request());
  ASSERT_TRUE(run.ok()) << run.error().message;
  const results::Metrics metrics = results::Measure(run.value());
  EXPECT_EQ(metrics.deadlines_met, GetParam().accepted);
  EXPECT_EQ(metrics.deadline_jobs - metrics.deadlines_met, GetParam().declined);
}

TEST_P(LivePresets, RunEveryJobAsSimulated) {
  constexpr int kCompleted = 60;  // of 195: admission declines the most under edf-accessctrl
  ExpectLiveAsSimulated(Read("195job.csv", "n16g8.csv"), Request(), kCompleted, 0, 0);
}

INSTANTIATE_TEST_SUITE_P(ElasticFlow, LivePresets,
                         testing::Values(Published{"edf", 4, 1}, Published{"edf-accessctrl", 4, 1},
                                         Published{"gandiva", 3, 2}, Published{"dlas-gpu", 4, 1},
                                         Published{"themis", 3, 2}, Published{"ef", 3, 2},
                                         Published{"ef-accessctrl", 4, 1}),
                         [](const auto& tested) {
                           std::string name = tested.param.policy;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace trainyard
