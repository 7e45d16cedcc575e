// SPDX-License-Identifier: Apache-2.0
// The optima of Gavel's policies (OSDI'20) on 1,000 allocation problems drawn at random, each
// against gavel_highs.py, which solves them by SciPy's HiGHS and shares no code with the product.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "golden/gavel_instances.h"
#include "golden/gavel_variants.h"
#include "policies/gavel/fair_allocations.h"
#include "policies/gavel/throughput_allocations.h"
#include "support/sanitized.h"
#include "support/scratch_folder.h"

namespace trainyard {
namespace {

using nlohmann::json;
using policies::AllocationJob;
using policies::AllocationProblem;

constexpr double kWithin = 1e-6;  // relative
constexpr int kInstances = 1000;

using Numbers = std::vector<double>;

json AsJson(int number, const GavelInstance& instance) {
  const AllocationProblem& problem = instance.problem;
  json jobs = json::array();
  for (const AllocationJob& job : problem.jobs) {
    jobs.push_back({{"kind", job.kind},
                    {"gpus", job.gpus},
                    {"weight", job.weight},
                    {"rates", job.rates},
                    {"work_left", job.work_left},
                    {"age", job.age},
                    {"isolated_time", job.isolated_time},
                    {"time_left", std::isfinite(job.time_left) ? json(job.time_left) : json()}});
  }
  json pairs = json::array();
  for (const policies::PairRates& pair : problem.pairs) {
    pairs.push_back({{"first", pair.first},
                     {"second", pair.second},
                     {"first_rates", pair.first_rates},
                     {"second_rates", pair.second_rates}});
  }
  return {{"instance", number},
          {"policies", instance.policies},
          {"gpus", problem.gpus},
          {"prices", problem.prices},
          {"jobs", std::move(jobs)},
          {"pairs", std::move(pairs)},
          {"fast_type", instance.fast_type}};
}

// The least level, and that of each job.
Numbers WaterLevels(const AllocationProblem& problem) {
  const policies::Allocation allocation = WaterFilling(problem);
  EXPECT_TRUE(allocation.optimal);
  Numbers numbers{allocation.objective};
  const Numbers levels = LevelsBy(problem, allocation);
  numbers.insert(numbers.end(), levels.begin(), levels.end());
  return numbers;
}

Numbers Throughput(const AllocationProblem& problem, bool deadlines) {
  const policies::ThroughputAllocation found = MostThroughput(problem, deadlines);
  Numbers numbers{found.allocation.objective};
  if (deadlines) {
    numbers.push_back(found.deadlines_hold ? 1 : 0);
  }
  return numbers;
}

std::map<std::string, Numbers> OptimaOf(const GavelInstance& instance) {
  const AllocationProblem& packed = instance.problem;
  const AllocationProblem priced = instance.Unpacked();
  AllocationProblem alone = priced;
  alone.prices.clear();
  const AllocationProblem ones = OfRateOne(alone);
  const AllocationProblem blind = OfType(alone, instance.fast_type);
  const std::map<std::string, std::function<Numbers()>> solvers{
      {"max_min_fairness", [&] { return Numbers{MaxMinFairness(ones).objective}; }},
      {"max_min_fairness_perf", [&] { return Numbers{MaxMinFairness(alone).objective}; }},
      {"max_min_fairness_packed", [&] { return Numbers{MaxMinFairness(packed).objective}; }},
      {"max_min_fairness_water_filling", [&] { return WaterLevels(ones); }},
      {"max_min_fairness_water_filling_perf", [&] { return WaterLevels(alone); }},
      {"max_min_fairness_water_filling_packed", [&] { return WaterLevels(packed); }},
      {"finish_time_fairness", [&] { return Numbers{FinishTimes(blind, blind)}; }},
      {"finish_time_fairness_perf", [&] { return Numbers{FinishTimes(alone, alone)}; }},
      {"finish_time_fairness_packed",
       [&] { return Numbers{FinishTimes(OverWeights(packed), alone)}; }},
      {"min_total_duration", [&] { return Numbers{LeastMakespan(blind).objective}; }},
      {"min_total_duration_perf", [&] { return Numbers{LeastMakespan(alone).objective}; }},
      {"min_total_duration_packed", [&] { return Numbers{LeastMakespan(packed).objective}; }},
      {"max_sum_throughput_perf", [&] { return Throughput(alone, false); }},
      {"max_sum_throughput_normalized_by_cost_perf", [&] { return Throughput(priced, false); }},
      {"max_sum_throughput_normalized_by_cost_perf_SLOs", [&] { return Throughput(priced, true); }},
  };
  std::map<std::string, Numbers> optima;
  for (const std::string& policy : instance.policies) {
    optima[policy] = solvers.at(policy)();
  }
  return optima;
}

// Of instances 0, 1, ...; empty on failure.
std::vector<std::map<std::string, Numbers>> OptimaOfHighs(
    const std::vector<GavelInstance>& instances) {
  const ScratchFolder folder;
  const std::string asked = folder.path() + "/instances.jsonl";
  const std::string answered = folder.path() + "/optima.jsonl";
  std::ofstream file(asked);
  for (std::size_t i = 0; i < instances.size(); ++i) {
    file << AsJson(static_cast<int>(i), instances[i]) << "\n";
  }
  file.close();
  const std::string command =
      "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 /usr/bin/python3 -B '" TRAINYARD_SOURCE_DIR
      "/tests/golden/gavel_highs.py' '" +
      asked + "' '" + answered + "'";
  std::vector<std::map<std::string, Numbers>> optima;
  if (std::system(command.c_str()) != 0) {
    ADD_FAILURE() << "gavel_highs.py failed; it needs python3-scipy (packages.txt)";
    return optima;
  }
  std::ifstream results(answered);
  for (std::string line; std::getline(results, line);) {
    const json result = json::parse(line);
    EXPECT_EQ(result.at("instance"), optima.size());
    optima.push_back(result.at("optima"));
  }
  EXPECT_EQ(optima.size(), instances.size());
  return optima;
}

double Difference(double value, double expected) {
  return value == expected ? 0 : std::abs(value - expected) / std::abs(expected);
}

// Compares the optima, and keeps the largest difference of each policy.
class Comparison {
 public:
  void Add(std::size_t instance, const std::map<std::string, Numbers>& optima,
           const std::map<std::string, Numbers>& expected) {
    ASSERT_EQ(optima.size(), expected.size()) << "instance " << instance;
    for (const auto& [policy, numbers] : expected) {
      const Numbers& found = optima.at(policy);
      ASSERT_EQ(found.size(), numbers.size()) << policy << " of instance " << instance;
      Row& row = rows_[policy];
      ++row.instances;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double off = Difference(found[i], numbers[i]);
        EXPECT_LE(off, kWithin) << policy << " of instance " << instance << ", number " << i << ": "
                                << found[i] << ", by HiGHS " << numbers[i];
        row.largest = std::max(row.largest, off);
      }
    }
  }
  void Print() const {
    for (const auto& [policy, row] : rows_) {
      fmt::print("{:<50} {:4} instances, off by {:.1e} at most\n", policy, row.instances,
                 row.largest);
    }
  }
  [[nodiscard]] std::size_t policies() const { return rows_.size(); }

 private:
  struct Row {
    int instances = 0;
    double largest = 0;
  };
  std::map<std::string, Row> rows_;
};

// What is special about the answers.
std::set<std::string> ShapesOfOptima(std::map<std::string, Numbers> optima) {
  std::set<std::string> shapes;
  const auto add_if = [&shapes](bool holds, const char* shape) {
    if (holds) {
      shapes.insert(shape);
    }
  };
  const auto is_above = [](double a, double b) { return a > b * (1 + 1e-4); };
  if (optima.contains("max_min_fairness_packed")) {
    const bool gains = is_above(optima["max_min_fairness_packed"][0],  //
                                optima["max_min_fairness_perf"][0]);
    add_if(gains, "sharing GPUs raises the least level");
    add_if(!gains, "sharing GPUs does not raise the least level");
    add_if(is_above(optima["min_total_duration_perf"][0], optima["min_total_duration_packed"][0]),
           "sharing GPUs shortens the makespan");
  }
  const Numbers& in_time = optima["max_sum_throughput_normalized_by_cost_perf_SLOs"];
  const double best = optima["max_sum_throughput_normalized_by_cost_perf"][0];
  add_if(in_time[1] == 0, "deadlines that cannot be met");
  add_if(in_time[1] == 1 && is_above(best, in_time[0]), "deadlines that cost throughput");
  return shapes;
}

void ExpectEveryShape(const std::map<std::string, int>& counts, int instances) {
  // About a third of what was counted.
  const std::map<std::string, int> least_of_1000{
      {"1 types", 80},
      {"2 types", 80},
      {"3 types", 80},
      {"4 types", 80},
      {"5 types", 80},
      {"1 job", 30},
      {"2 to 9 jobs", 150},
      {"10 to 25 jobs", 100},
      {"26 to 40 jobs", 100},
      {"GPUs for all", 150},
      {"GPUs for less than a tenth", 60},
      {"a type without GPUs", 100},
      {"a job of 16 GPUs", 80},
      {"a job larger than each type", 80},
      {"a rate of 0", 150},
      {"a rate of 0 on the fast type", 50},
      {"a job that runs nowhere", 10},
      {"a job as fast on all types", 100},
      {"equal jobs", 200},
      {"weights that differ", 200},
      {"weights that differ within a kind", 50},
      {"a new job", 200},
      {"a job ahead of its share", 150},
      {"a deadline", 200},
      {"deadlines that cannot be met", 20},
      {"deadlines that cost throughput", 80},
      {"a pair worth it", 100},
      {"a pair not worth it", 80},
      {"a pair of one kind", 100},
      {"a pair that does not run on a type", 80},
      {"a pair in which a job gains", 20},
      {"a pair in which one job stands still", 10},
      {"a job of no pair beside pairs", 60},
      {"sharing GPUs raises the least level", 30},
      {"sharing GPUs does not raise the least level", 80},
      {"sharing GPUs shortens the makespan", 20},
  };
  for (const auto& [shape, count] : counts) {
    fmt::print("{:<50} {:4} instances\n", shape, count);
  }
  constexpr int kRare = 50;  // a tenth of the instances may have none or one
  for (const auto& [shape, least] : least_of_1000) {
    if (instances < 1000 && least < kRare) {
      continue;
    }
    const auto found = counts.find(shape);
    EXPECT_GE(found == counts.end() ? 0 : found->second, least * instances / 1000) << shape;
  }
}

TEST(GavelHighsTest, TheOptimaOfRandomProblemsAreThoseOfAnotherSolver) {
  std::vector<GavelInstance> instances;
  std::map<std::string, int> counts;
  for (int seed = 0; seed < Rounds(kInstances); ++seed) {
    instances.push_back(DrawGavelInstance(static_cast<unsigned>(seed)));
  }
  const std::vector<std::map<std::string, Numbers>> expected = OptimaOfHighs(instances);
  ASSERT_EQ(expected.size(), instances.size());
  Comparison comparison;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    comparison.Add(i, OptimaOf(instances[i]), expected[i]);
    std::set<std::string> shapes = ShapesOf(instances[i]);
    shapes.merge(ShapesOfOptima(expected[i]));
    for (const std::string& shape : shapes) {
      ++counts[shape];
    }
  }
  comparison.Print();
  EXPECT_EQ(comparison.policies(), 15U);
  ExpectEveryShape(counts, static_cast<int>(instances.size()));
}

}  // namespace
}  // namespace trainyard
