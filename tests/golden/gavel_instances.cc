// SPDX-License-Identifier: Apache-2.0
#include "golden/gavel_instances.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "support/dice.h"

namespace trainyard {
namespace {

using policies::AllocationJob;
using policies::AllocationProblem;
using policies::PairRates;

constexpr std::size_t kMostPacked = 25;  // jobs
constexpr int kOfNoPair = -1;
constexpr double kNever = std::numeric_limits<double>::infinity();

bool IsPositive(double value) { return value > 0; }

// By type: whether the cluster has it and the job runs there.
bool RunsSomewhere(const AllocationProblem& problem, const std::vector<double>& rates) {
  for (std::size_t j = 0; j < rates.size(); ++j) {
    if (problem.gpus[j] > 0 && rates[j] > 0) {
      return true;
    }
  }
  return false;
}

double Largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

class InstanceDraw {
 public:
  explicit InstanceDraw(unsigned seed) : dice_(seed) {}

  GavelInstance Draw() {
    DrawCluster();
    DrawKinds();
    DrawJobs();
    if (problem_.jobs.size() <= kMostPacked && Chance(60)) {
      DrawPairs();
    }
    if (problem_.pairs.empty() && problem_.jobs.size() > 1 && Chance(6)) {
      AllocationJob& job = problem_.jobs.front();
      std::fill(job.rates.begin(), job.rates.end(), 0.0);
      job.kind = kOfNoPair;
    }
    DrawDeadlines();
    return {.problem = problem_, .fast_type = problem_.types() - 1, .policies = Policies()};
  }

 private:
  bool Chance(int percent) { return dice_.From(1, 100) <= percent; }
  double Between(double low, double high) {
    constexpr int kSteps = 1 << 20;
    return low + (high - low) * dice_.From(0, kSteps) / kSteps;
  }
  // Even in the logarithm.
  double Spread(double low, double high) { return low * std::pow(high / low, Between(0, 1)); }

  void DrawCluster() {
    const int most = std::vector{2, 16, 64, 400}[static_cast<std::size_t>(dice_.From(0, 3))];
    const int types = dice_.From(1, 5);
    for (int j = 0; j < types; ++j) {
      problem_.gpus.push_back(types > 1 && Chance(10) ? 0 : dice_.From(1, most));
      problem_.prices.push_back(Spread(0.1, 5));
    }
    if (std::none_of(problem_.gpus.begin(), problem_.gpus.end(), IsPositive)) {
      problem_.gpus[0] = 1;
    }
  }

  int DrawGpus(int style) {
    switch (style) {
      case 0:
        return 1;
      case 1:
        return 1 << dice_.From(0, 4);
      default:
        return dice_.From(1, 16);
    }
  }

  // The rates of a model: some have no preference, some do not run everywhere.
  std::vector<double> DrawRates(bool even, bool picky) {
    const double base = Spread(0.02, 100);
    std::vector<double> rates;
    for (std::size_t j = 0; j < problem_.gpus.size(); ++j) {
      const bool may_lack = j + 1 < problem_.gpus.size() || lacks_fast_type_;
      const bool lacks = picky && may_lack && Chance(35);
      rates.push_back(lacks ? 0 : base * (even ? 1 : Spread(0.05, 1)));
    }
    if (!RunsSomewhere(problem_, rates)) {
      const auto type = std::find_if(problem_.gpus.begin(), problem_.gpus.end(), IsPositive);
      rates[static_cast<std::size_t>(type - problem_.gpus.begin())] = base;
    }
    return rates;
  }

  double DrawWeight() {
    switch (weights_) {
      case 0:
        return 1;
      case 1:
        return Chance(20) ? 5 : 1;
      default:
        return Spread(0.1, 10);
    }
  }

  void DrawKinds() {
    const int kinds = Chance(30) ? dice_.From(1, 4) : dice_.From(5, 30);
    const int gpus = dice_.From(0, 2);
    const bool picky = Chance(50);
    lacks_fast_type_ = Chance(30);
    weights_ = dice_.From(0, 3);
    for (int k = 0; k < kinds; ++k) {
      AllocationJob kind{.kind = k, .gpus = DrawGpus(gpus), .weight = DrawWeight()};
      kind.rates = DrawRates(Chance(15), picky);
      kinds_.push_back(std::move(kind));
    }
  }

  void DrawJobs() {
    const int jobs = Chance(40) ? dice_.From(1, 6) : dice_.From(1, 40);
    const bool all_new = Chance(25);
    for (int i = 0; i < jobs; ++i) {
      if (i > 0 && Chance(15)) {  // the same again
        problem_.jobs.push_back(problem_.jobs.back());
        continue;
      }
      const int kind = dice_.From(0, static_cast<int>(kinds_.size()) - 1);
      AllocationJob job = kinds_[static_cast<std::size_t>(kind)];
      if (weights_ == kByJob) {
        job.weight = DrawWeight();
      }
      if (Chance(10)) {
        job.kind = kOfNoPair;
      }
      job.work_left = Largest(job.rates) * Spread(100, 1e6);
      if (!all_new && Chance(80)) {
        job.age = Spread(10, 1e6);
        job.isolated_time = Chance(70) ? job.age * Between(0, 1.5) : 0;
      }
      problem_.jobs.push_back(std::move(job));
    }
  }

  // Each of two jobs on the same GPUs, as a part of its rate alone.
  std::pair<double, double> DrawParts(int mood) {
    if (Chance(20)) {
      return {0, 0};  // they do not fit into the memory
    }
    switch (mood) {
      case 0: {  // not worth it
        const double first = Between(0.05, 0.9);
        return {first, Between(0.02, 0.99) * (1 - first)};
      }
      case 1:
        return {Between(0.5, 1), Between(0.5, 1)};
      case 2:
        return {Between(0.05, 1.1), Between(0.05, 1.1)};
      default:
        return Chance(10) ? std::pair(0.0, Between(0.05, 1)) : std::pair(Between(0.3, 0.8), 0.7);
    }
  }

  void DrawPairs() {
    const int density = std::vector{20, 60, 100}[static_cast<std::size_t>(dice_.From(0, 2))];
    std::set<int> present;
    for (const AllocationJob& job : problem_.jobs) {
      present.insert(job.kind);
    }
    present.erase(kOfNoPair);
    for (const int first : present) {
      for (const int second : present) {
        const AllocationJob& one = kinds_[static_cast<std::size_t>(first)];
        const AllocationJob& other = kinds_[static_cast<std::size_t>(second)];
        if (first <= second && one.gpus == other.gpus && Chance(density)) {
          DrawPair(one, other);
        }
      }
    }
  }

  void DrawPair(const AllocationJob& one, const AllocationJob& other) {
    PairRates pair{.first = one.kind, .second = other.kind};
    const int mood = dice_.From(0, 3);
    for (std::size_t j = 0; j < one.rates.size(); ++j) {
      auto [first, second] = DrawParts(mood);
      if (one.rates[j] == 0 || other.rates[j] == 0) {
        first = second = 0;
      }
      if (one.kind == other.kind) {
        first = second;
      }
      pair.first_rates.push_back(first * one.rates[j]);
      pair.second_rates.push_back(second * other.rates[j]);
    }
    problem_.pairs.push_back(std::move(pair));
  }

  // By far, hardly or not to be met, as the cluster is loaded.
  void DrawDeadlines() {
    const int part = std::vector{0, 30, 100}[static_cast<std::size_t>(dice_.From(0, 2))];
    double wanted = 0;
    for (const AllocationJob& job : problem_.jobs) {
      wanted += job.gpus;
    }
    const double has = std::accumulate(problem_.gpus.begin(), problem_.gpus.end(), 0.0);
    const double load = std::max(1.0, wanted / has) * Spread(0.8, 20);
    for (AllocationJob& job : problem_.jobs) {
      job.time_left = kNever;
      const double rate = Largest(job.rates);
      if (Chance(part)) {
        job.time_left = rate == 0 ? 1e4 : job.work_left / rate * load * Spread(1, 3);
      }
    }
  }

  std::vector<std::string> Policies() {
    std::vector<std::string> names{"max_sum_throughput_perf",
                                   "max_sum_throughput_normalized_by_cost_perf",
                                   "max_sum_throughput_normalized_by_cost_perf_SLOs"};
    bool all_run = true;
    bool all_run_fast = true;
    for (const AllocationJob& job : problem_.jobs) {
      all_run = all_run && RunsSomewhere(problem_, job.rates);
      all_run_fast = all_run_fast && job.rates.back() > 0;
    }
    if (all_run) {
      names.insert(names.end(),
                   {"max_min_fairness", "max_min_fairness_perf", "max_min_fairness_water_filling",
                    "max_min_fairness_water_filling_perf", "finish_time_fairness_perf",
                    "min_total_duration_perf"});
    }
    if (all_run_fast) {
      names.insert(names.end(), {"finish_time_fairness", "min_total_duration"});
    }
    if (!problem_.pairs.empty()) {
      names.insert(names.end(), {"max_min_fairness_packed", "max_min_fairness_water_filling_packed",
                                 "min_total_duration_packed"});
      if (weights_ != kByJob) {  // the published program divides by the weight of the kind
        names.emplace_back("finish_time_fairness_packed");
      }
    }
    return names;
  }

  static constexpr int kByJob = 3;
  Dice dice_;
  AllocationProblem problem_;
  std::vector<AllocationJob> kinds_;
  int weights_ = 0;  // all 1, some 5, by kind, by job
  bool lacks_fast_type_ = false;
};

using Shapes = std::set<std::string>;

void AddIf(bool holds, const std::string& shape, Shapes& shapes) {
  if (holds) {
    shapes.insert(shape);
  }
}

void AddShapesOfCluster(const AllocationProblem& problem, Shapes& shapes) {
  shapes.insert(std::to_string(problem.types()) + " types");
  const std::size_t jobs = problem.jobs.size();
  shapes.insert(jobs == 1    ? "1 job"
                : jobs < 10  ? "2 to 9 jobs"
                : jobs <= 25 ? "10 to 25 jobs"
                             : "26 to 40 jobs");
  double wanted = 0;
  int largest = 0;
  for (const AllocationJob& job : problem.jobs) {
    wanted += job.gpus;
    largest = std::max(largest, job.gpus);
  }
  const double has = std::accumulate(problem.gpus.begin(), problem.gpus.end(), 0.0);
  AddIf(has >= wanted, "GPUs for all", shapes);
  AddIf(has < wanted / 10, "GPUs for less than a tenth", shapes);
  AddIf(std::count(problem.gpus.begin(), problem.gpus.end(), 0.0) > 0, "a type without GPUs",
        shapes);
  AddIf(largest == 16, "a job of 16 GPUs", shapes);
  AddIf(largest > Largest(problem.gpus), "a job larger than each type", shapes);
}

bool Alike(const AllocationJob& a, const AllocationJob& b) {
  return a.kind == b.kind && a.gpus == b.gpus && a.weight == b.weight && a.rates == b.rates &&
         a.work_left == b.work_left && a.age == b.age && a.isolated_time == b.isolated_time;
}

void AddShapesOfJobs(const GavelInstance& instance, Shapes& shapes) {
  const AllocationProblem& problem = instance.problem;
  std::map<int, double> weights;
  std::set<double> all_weights;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    const AllocationJob& job = problem.jobs[i];
    const std::vector<double>& rates = job.rates;
    AddIf(std::count(rates.begin(), rates.end(), 0.0) > 0, "a rate of 0", shapes);
    AddIf(rates[instance.fast_type] == 0, "a rate of 0 on the fast type", shapes);
    AddIf(Largest(rates) == 0, "a job that runs nowhere", shapes);
    AddIf(rates.size() > 1 && std::count(rates.begin(), rates.end(), rates[0]) == std::ssize(rates),
          "a job as fast on all types", shapes);
    AddIf(i > 0 && Alike(problem.jobs[i - 1], job), "equal jobs", shapes);
    AddIf(job.age == 0, "a new job", shapes);
    AddIf(job.isolated_time > job.age, "a job ahead of its share", shapes);
    AddIf(std::isfinite(job.time_left), "a deadline", shapes);
    AddIf(job.kind >= 0 && weights.emplace(job.kind, job.weight).first->second != job.weight,
          "weights that differ within a kind", shapes);
    all_weights.insert(job.weight);
  }
  AddIf(all_weights.size() > 1, "weights that differ", shapes);
}

void AddShapesOfPairs(const AllocationProblem& problem, Shapes& shapes) {
  std::map<int, const AllocationJob*> of_kind;
  std::set<int> paired;
  for (const AllocationJob& job : problem.jobs) {
    of_kind.emplace(job.kind, &job);
  }
  for (const PairRates& pair : problem.pairs) {
    paired.insert({pair.first, pair.second});
    AddIf(pair.first == pair.second, "a pair of one kind", shapes);
    for (std::size_t j = 0; j < pair.first_rates.size(); ++j) {
      const double first = pair.first_rates[j];
      const double second = pair.second_rates[j];
      if (first == 0 && second == 0) {
        shapes.insert("a pair that does not run on a type");
        continue;
      }
      const double first_part = first / of_kind.at(pair.first)->rates[j];
      const double second_part = second / of_kind.at(pair.second)->rates[j];
      AddIf(first_part + second_part > 1, "a pair worth it", shapes);
      AddIf(first_part + second_part < 1, "a pair not worth it", shapes);
      AddIf(std::max(first_part, second_part) > 1, "a pair in which a job gains", shapes);
      AddIf(first == 0 || second == 0, "a pair in which one job stands still", shapes);
    }
  }
  if (!problem.pairs.empty()) {
    AddIf(std::any_of(problem.jobs.begin(), problem.jobs.end(),
                      [&](const AllocationJob& job) { return !paired.contains(job.kind); }),
          "a job of no pair beside pairs", shapes);
  }
}

}  // namespace

AllocationProblem GavelInstance::Unpacked() const {
  AllocationProblem unpacked = problem;
  unpacked.pairs.clear();
  return unpacked;
}

GavelInstance DrawGavelInstance(unsigned seed) { return InstanceDraw(seed).Draw(); }

std::set<std::string> ShapesOf(const GavelInstance& instance) {
  Shapes shapes;
  AddShapesOfCluster(instance.problem, shapes);
  AddShapesOfJobs(instance, shapes);
  AddShapesOfPairs(instance.problem, shapes);
  return shapes;
}

}  // namespace trainyard
