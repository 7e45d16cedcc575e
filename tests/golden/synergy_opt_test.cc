// SPDX-License-Identifier: Apache-2.0
// The integer program of Synergy's OPT against the published objective of each round
// (unit_manifest.csv, "ILP optimum per round"): rounds are played with the policy and the execution
// model alone, as long as no job ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "io/csv_reader.h"
#include "policy/resource_split.h"
#include "profile/sensitivity.h"
#include "scenario/scenario.h"
#include "support/reference.h"

namespace trainyard {
namespace {

constexpr int kRounds = 8;  // later ones depend on which optimum a solver takes

// The column objective_sum_norm_tput of the first rounds.
std::vector<double> Published(const std::string& name) {
  const auto table =
      CsvTable::Open(Reference() + "/golden/synergy/" + name + "/opt_objective.csv").value();
  std::vector<double> objectives;
  const Status read = table.ForEach([&](const CsvRow& row) -> Status {
    objectives.push_back(row.Number(table.Column({"objective_sum_norm_tput"}), 0).value());
    return {};
  });
  EXPECT_TRUE(read.ok());
  objectives.resize(kRounds);
  return objectives;
}

struct Job {
  const JobSpec* spec = nullptr;
  double left = 0;  // iterations
  double rate = 0;  // at full speed
};

class OptRounds : public testing::TestWithParam<std::string> {};

TEST_P(OptRounds, HaveThePublishedObjective) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string data = Reference() + "/data/synergy";
  const auto inputs = ReadInputs({.trace = data + "/trace_static100.csv",
                                  .format = "synergy",
                                  .cluster = data + "/clusters/static_trace.ini",
                                  .profiles = data});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  const Cluster& cluster = inputs.value().cluster;
  const auto rates = MakeSensitivityModel(*inputs.value().models.sensitivity, cluster, {});
  std::vector<Job> jobs;
  for (const JobSpec& spec : *inputs.value().jobs) {
    jobs.push_back({&spec, *spec.iterations, rates->Rate(spec, spec.gpus)});
  }
  const bool by_time = GetParam() == "SRTF";
  Resources total;
  for (const NodeSpec& node : cluster.nodes) {
    total += node.capacity;
  }
  std::vector<double> objectives;
  for (int round = 0; round < kRounds; ++round) {
    std::stable_sort(jobs.begin(), jobs.end(), [by_time](const Job& a, const Job& b) {
      return by_time && a.left / a.rate < b.left / b.rate;
    });
    std::vector<const JobSpec*> chosen;
    for (int i = 0; i < cluster.total_gpus(); ++i) {
      chosen.push_back(jobs[static_cast<std::size_t>(i)].spec);
    }
    const ResourceSplit split =
        SplitResources({.cpus = {1, 2, 3, 4, 5, 6, 9, 12, 24},
                        .memory_gb = {20.83, 62.5, 125, 187.5, 250},
                        .weigh_by_gpus = false},
                       chosen, *rates, total, {.milli_cpus = 3000, .memory_mib = 64000});
    objectives.push_back(split.objective);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      Job& job = jobs[i];
      if (i < chosen.size()) {
        const Grant grant{.gpus = 1, .slices = {{.gpus = 1, .soft = split.amounts[i]}}};
        job.left -= std::floor(300 / rates->ThroughputUnder(*job.spec, grant, {}).seconds_per_unit);
      }
    }
    std::erase_if(jobs, [](const Job& job) { return job.left <= 0; });
  }
  const std::vector<double> published = Published("static100_" + GetParam() + "-opt");
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_NEAR(objectives[static_cast<std::size_t>(round)],
                published[static_cast<std::size_t>(round)], 1e-6)
        << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Synergy, OptRounds, testing::Values("FIFO", "SRTF"));

}  // namespace
}  // namespace trainyard
