// SPDX-License-Identifier: Apache-2.0
// The optima of Gavel's policies (OSDI'20) on 200 random problems, each against what was published
// solvers found: golden/gavel/objectives.csv.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "golden/gavel_variants.h"
#include "io/csv_reader.h"
#include "policies/gavel/allox_matching.h"
#include "policies/gavel/fair_allocations.h"
#include "policies/gavel/simple_allocations.h"
#include "policies/gavel/throughput_allocations.h"
#include "profile/throughput_table.h"
#include "support/reference.h"

namespace trainyard {
namespace {

using policies::Allocation;
using policies::AllocationJob;
using policies::AllocationProblem;

const std::vector<std::string> kTypes{"k80", "p100", "v100"};
const std::vector<double> kPrices{0.135, 0.43, 0.74};
constexpr std::size_t kFastType = 2;
constexpr std::size_t kMostPacked = 25;  // jobs

struct Instance {
  AllocationProblem problem;
  std::vector<std::string> names;  // of the jobs' types
};

io::CsvTable Open(const std::string& path) {
  Result<io::CsvTable> table = io::CsvTable::Open(Reference() + "/golden/gavel/" + path);
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.error().message);
  return std::move(table).value();
}

double NumberIn(const io::CsvRow& row, const std::string& column) {
  return base::ToNumber(row.Text(row.Column(column))).value_or(std::nan(""));
}

std::map<int, Instance> ReadInstances() {
  std::map<int, Instance> instances;
  std::map<std::tuple<std::string, int, double>, int> kinds;
  const Status read = Open("instances.csv.gz").ForEach([&](const io::CsvRow& row) -> Status {
    Instance& instance = instances[static_cast<int>(NumberIn(row, "instance"))];
    AllocationJob job{.gpus = static_cast<int>(NumberIn(row, "scale_factor")),
                      .weight = NumberIn(row, "priority_weight"),
                      .work_left = NumberIn(row, "steps_remaining"),
                      .age = NumberIn(row, "time_since_start_s"),
                      .isolated_time = NumberIn(row, "isolated_time_so_far_s"),
                      .time_left = NumberIn(row, "slo_s_left")};
    instance.problem.gpus.clear();
    for (const std::string& type : kTypes) {
      instance.problem.gpus.push_back(NumberIn(row, type));
      job.rates.push_back(NumberIn(row, "steps_per_s_" + type));
    }
    const std::string name(row.Text(row.Column("job_type")));
    const int next = static_cast<int>(kinds.size());
    job.kind = kinds.emplace(std::tuple(name, job.gpus, job.weight), next).first->second;
    instance.problem.jobs.push_back(std::move(job));
    instance.names.push_back(name);
    return {};
  });
  EXPECT_TRUE(read.ok());
  return instances;
}

// Every pair of kinds, as the table of the published simulator has them.
void AddPairs(const profile::ThroughputTable& table, Instance& instance) {
  std::map<int, std::size_t> kinds;  // and a job of each
  for (std::size_t i = 0; i < instance.names.size(); ++i) {
    kinds.emplace(instance.problem.jobs[i].kind, i);
  }
  const auto row_of = [&](std::size_t job) {
    std::string name = instance.names[job];
    const std::size_t at = name.find(" (batch size ");
    if (at == std::string::npos) {
      return table.Find(name, 0);
    }
    return table.Find(name.substr(0, at), std::stoll(name.substr(at + 13)));
  };
  for (const auto& [kind, job] : kinds) {
    for (const auto& [other_kind, other] : kinds) {
      const int gpus = instance.problem.jobs[job].gpus;
      if (kind > other_kind || instance.problem.jobs[other].gpus != gpus) {
        continue;
      }
      policies::PairRates pair{.first = kind, .second = other_kind};
      for (const std::string& type : kTypes) {
        pair.first_rates.push_back(table.RateBeside(row_of(job), row_of(other), gpus, type));
        pair.second_rates.push_back(table.RateBeside(row_of(other), row_of(job), gpus, type));
      }
      instance.problem.pairs.push_back(std::move(pair));
    }
  }
}

AllocationProblem PerCost(AllocationProblem problem) {
  problem.prices = kPrices;
  return problem;
}

double Bisected(double least) {
  double low = 100;
  double high = 1e6;
  for (double most = high;; low = most, most *= 10, high = most) {
    bool found = false;
    while (1.05 * low < high) {
      const double middle = (low + high) / 2;
      found = found || middle >= least;
      (middle >= least ? high : low) = middle;
    }
    if (found) {
      return high;
    }
  }
}

std::map<std::string, double> OptimaOf(const Instance& instance,
                                       const profile::ThroughputTable& table) {
  const AllocationProblem& problem = instance.problem;
  const AllocationProblem blind = OfType(problem, kFastType);
  std::map<std::string, double> optima{
      {"max_min_fairness", MaxMinFairness(OfRateOne(problem)).objective},
      {"max_min_fairness_perf", MaxMinFairness(problem).objective},
      {"finish_time_fairness_perf", FinishTimes(problem, problem)},
      {"finish_time_fairness", FinishTimes(blind, blind)},
      {"min_total_duration_perf", LeastMakespan(problem).objective},
      {"min_total_duration", LeastMakespan(blind).objective},
      {"max_sum_throughput_perf", MostThroughput(problem, false).allocation.objective},
      {"max_sum_throughput_normalized_by_cost_perf",
       MostThroughput(PerCost(problem), false).allocation.objective}};
  const policies::ThroughputAllocation in_time = MostThroughput(PerCost(problem), true);
  optima["max_sum_throughput_normalized_by_cost_perf_SLOs"] = in_time.allocation.objective;
  optima["SLOs_feasible"] = in_time.deadlines_hold ? 1 : 0;
  // Gavel halves an interval until its ends are 5 % apart.
  optima["min_total_duration_bisected"] = Bisected(optima["min_total_duration"]);
  optima["min_total_duration_perf_bisected"] = Bisected(optima["min_total_duration_perf"]);
  if (problem.jobs.size() <= kMostPacked) {
    Instance packed = instance;
    AddPairs(table, packed);
    optima["max_min_fairness_packed"] = MaxMinFairness(packed.problem).objective;
    optima["finish_time_fairness_packed"] = FinishTimes(OverWeights(packed.problem), problem);
  }
  if (std::all_of(problem.jobs.begin(), problem.jobs.end(),
                  [](const AllocationJob& job) { return job.gpus == 1; })) {
    optima["allox_cost"] = Allox(problem, {}).objective;
  }
  return optima;
}

TEST(GavelOptimaTest, AreThoseOfThePublishedPolicies) {
  TRAINYARD_NEEDS_REFERENCE();
  const Result<profile::ThroughputTable> table = profile::ThroughputTable::Read(
      Reference() + "/data/gavel/simulation_throughputs.csv.gz", kTypes);
  ASSERT_TRUE(table.ok()) << table.error().message;
  const std::map<int, Instance> instances = ReadInstances();
  ASSERT_EQ(instances.size(), 200);
  std::map<int, std::map<std::string, double>> optima;
  for (const auto& [number, instance] : instances) {
    optima[number] = OptimaOf(instance, table.value());
  }
  std::map<std::string, double> largest;
  std::map<std::string, int> compared;
  const Status read = Open("objectives.csv").ForEach([&](const io::CsvRow& row) -> Status {
    const std::string policy(row.Text(row.Column("policy")));
    const int instance = static_cast<int>(NumberIn(row, "instance"));
    const auto found = optima[instance].find(policy);
    if (found == optima[instance].end()) {
      return {};
    }
    const double expected = NumberIn(row, "objective");
    const double off = std::abs(found->second - expected) / std::max(std::abs(expected), 1e-9);
    const double most = policy.ends_with("_packed") ? 1e-6 : 1e-8;
    EXPECT_LE(off, most) << policy << " of instance " << instance << ": " << found->second
                         << ", expected " << expected;
    largest[policy] = std::max(largest[policy], off);
    ++compared[policy];
    return {};
  });
  EXPECT_TRUE(read.ok());
  for (const auto& [policy, off] : largest) {
    fmt::print("{:<50} {:4} instances, off by {:.1e} at most\n", policy, compared[policy], off);
  }
}

TEST(GavelOptimaTest, EachJobHasWhatThePublishedPoliciesGiveIt) {
  TRAINYARD_NEEDS_REFERENCE();
  struct OfJobs {
    std::vector<double> isolated;
    std::vector<double> mean;
    std::vector<double> level;       // lexicographic, with a rate of 1 on all types
    std::vector<double> level_perf;  // with the job's rates
    Allocation fifo;
  };
  const auto levels = [](const AllocationProblem& problem) {
    return LevelsBy(problem, WaterFilling(problem));
  };
  std::map<int, OfJobs> found;
  for (const auto& [number, instance] : ReadInstances()) {
    const AllocationProblem& problem = instance.problem;
    OfJobs of{.isolated = IsolatedRates(problem),
              .level = levels(OfRateOne(problem)),
              .level_perf = levels(problem),
              .fifo = FifoByThroughput(problem)};
    for (const AllocationJob& job : problem.jobs) {
      of.mean.push_back(MeanRate(problem, job));
    }
    found[number] = std::move(of);
  }
  int compared = 0;
  const Status read = Open("instance_jobs.csv.gz").ForEach([&](const io::CsvRow& row) -> Status {
    const int instance = static_cast<int>(NumberIn(row, "instance"));
    const auto job = static_cast<std::size_t>(NumberIn(row, "job"));
    const OfJobs& of = found[instance];
    const auto near = [&](const std::string& column, double value, double within) {
      const double expected = NumberIn(row, column);
      EXPECT_NEAR(value, expected, within * expected)
          << column << " of job " << job << " of instance " << instance;
    };
    near("isolated_steps_per_s", of.isolated[job], 1e-9);
    near("proportional_steps_per_s", of.mean[job], 1e-9);
    near("lexicographic_level", of.level[job], 1e-6);
    near("lexicographic_perf_level", of.level_perf[job], 1e-6);
    const std::vector<double>& shares = of.fifo.units[job].shares;
    const auto type = std::find(shares.begin(), shares.end(), 1.0);
    EXPECT_EQ(row.Text(row.Column("fifo_perf_type")),
              type == shares.end() ? "" : kTypes[static_cast<std::size_t>(type - shares.begin())])
        << "job " << job << " of instance " << instance;
    ++compared;
    return {};
  });
  EXPECT_TRUE(read.ok());
  EXPECT_EQ(compared, 1993);
}

}  // namespace
}  // namespace trainyard
