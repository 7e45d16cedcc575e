// SPDX-License-Identifier: Apache-2.0
// The integer programs that the published Chronus solved: the planner's plans are as good, with and
// without bounds that spare it the solver.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "io/csv_reader.h"
#include "policies/chronus/lease_planner.h"
#include "policies/chronus/lease_program.h"
#include "support/reference.h"

namespace trainyard {
namespace {

struct Instance {
  policies::LeaseProblem problem;
  double optimum = 0;
};

Instance Parse(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line);
  Instance instance{.optimum = json.at("optimum").get<double>()};
  instance.problem.capacity = json.at("capacity").get<std::vector<int>>();
  instance.problem.fill_first = json.at("objective") == "maximize";
  for (std::size_t row = 0; row < json.at("gpus").size(); ++row) {
    if (json.at("soft_id")[row] == 0) {  // the first deadline of a job
      instance.problem.jobs.push_back({.gpus = json.at("gpus")[row], .need = json.at("need")[row]});
    }
    instance.problem.jobs.back().deadlines.push_back(
        {.window = json.at("window")[row], .value = json.at("value")[row]});
  }
  return instance;
}

class LeasePrograms : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    path_ = Reference() + "/golden/chronus/" + GetParam() + "/mip_instances.jsonl.gz";
    TRAINYARD_NEEDS_REFERENCE();
  }

  std::vector<Instance> Read() const {
    const Result<io::TextFile> file = io::TextFile::Read(path_);
    EXPECT_TRUE(file.ok()) << file.error().message;
    std::vector<Instance> instances;
    std::istringstream lines(file.value().text);
    for (std::string line; std::getline(lines, line);) {
      instances.push_back(Parse(line));
    }
    return instances;
  }

  std::string path_;
};

TEST_P(LeasePrograms, ArePlannedToTheSameOptimum) {
  const std::vector<Instance> instances = Read();
  ASSERT_FALSE(instances.empty());
  int solved = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const policies::LeasePlan plan = policies::PlanLeases(instances[i].problem);
    EXPECT_NEAR(plan.objective, instances[i].optimum, 1e-3) << "line " << i + 1;
    EXPECT_TRUE(plan.optimal) << "line " << i + 1;
    solved += plan.solved ? 1 : 0;
  }
  RecordProperty("by_the_solver", solved);
}

TEST_P(LeasePrograms, AreSolvedToTheSameOptimum) {
  const std::vector<Instance> instances = Read();
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const auto plan = policies::SolveLeaseProgram(instances[i].problem, {});
    ASSERT_TRUE(plan.has_value()) << "line " << i + 1;
    EXPECT_NEAR(plan->objective, instances[i].optimum, 1e-3) << "line " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Published, LeasePrograms,
                         testing::Values("first25_n4g8", "mix2_300_n4g8"));

}  // namespace
}  // namespace trainyard
