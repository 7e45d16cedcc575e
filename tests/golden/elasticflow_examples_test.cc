// SPDX-License-Identifier: Apache-2.0
// Runs of ElasticFlow's simulator that its reference gives as examples (6.3, 8.1).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "results/metrics/metrics.h"
#include "scenario/scenario.h"
#include "support/reference.h"

namespace trainyard {
namespace {

class ElasticFlowExamples : public testing::Test {
 protected:
  void SetUp() override {
    TRAINYARD_NEEDS_REFERENCE();
    folder_ = testing::TempDir() + "elasticflow_examples_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  [[nodiscard]] results::RunResult Run(const std::string& trace, const std::string& cluster,
                                       const std::string& preset, const std::string& policy) const {
    const Result<scenario::Inputs> inputs =
        scenario::ReadInputs({.trace = trace,
                              .format = "elasticflow",
                              .cluster = cluster,
                              .profiles = data_ + "throughputs_A100"});
    EXPECT_TRUE(inputs.ok()) << inputs.error().message;
    Result<results::RunResult> run =
        scenario::RunScenario(inputs.value(), {.names = {.preset = preset, .policy = policy}});
    EXPECT_TRUE(run.ok()) << run.error().message;
    return std::move(run).value();
  }

  // Seconds, by name.
  static std::map<std::string, double> EndsOf(const results::RunResult& run) {
    std::map<std::string, double> ends;
    for (const results::JobResult& job : run.jobs) {
      ends[job.spec->name] = Seconds(job.logged.value_or(kEndOfTime));
    }
    return ends;
  }

  const std::string data_ = Reference() + "/data/elasticflow/";
  std::string folder_;
};

// 35ebd32d and afffcfd2 wait for their turns when the last job arrives, as does every job that is
// not named here and pays then; these two had to wait for a first place, and pay nothing.
TEST_F(ElasticFlowExamples, GandivaForgetsTheRestartDebtOfJobsThatHadToWaitForAPlace) {
  const results::RunResult run = Run(data_ + "traces/195job.csv", data_ + "cluster_specs/n16g4.csv",
                                     "elasticflow:slot=240", "gandiva");
  EXPECT_EQ(results::Measure(run).deadlines_met, 17);
  int found = 0;
  for (const auto& [name, end] : EndsOf(run)) {
    if (name.starts_with("35ebd32d")) {
      EXPECT_EQ(end, 3989256);
      ++found;
    } else if (name.starts_with("afffcfd2")) {
      EXPECT_EQ(end, 3943594);
      ++found;
    }
  }
  EXPECT_EQ(found, 2);
}

TEST_F(ElasticFlowExamples, NodesOfTwoSwitchesAreTakenSwitchBySwitchAtFirst) {
  const std::string trace =
      Write("trace.csv",
            "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
            "a,0,14461,deepspeech2,9000,32,1,4784\n"
            "b,0,14461,deepspeech2,9100,32,1,4784\n"
            "c,100,14461,deepspeech2,9200,32,1,4784\n");
  const std::string cluster =
      Write("n16g8.csv",
            "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n"
            "2,8,8,64,256\n");
  using Ends = std::map<std::string, double>;
  EXPECT_EQ(EndsOf(Run(trace, cluster, "elasticflow:slot=60", "edf-accessctrl")),
            (Ends{{"a", 1016}, {"b", 1030}, {"c", 1106}}));
  EXPECT_EQ(EndsOf(Run(trace, cluster, "elasticflow:slot=60", "ef-accessctrl")),
            (Ends{{"a", 1062}, {"b", 1062}, {"c", 1124}}));
}

}  // namespace
}  // namespace trainyard
