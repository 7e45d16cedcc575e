// SPDX-License-Identifier: Apache-2.0
#include "policies/synergy/resource_split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "model/resource_amounts.h"
#include "solver/milp.h"

namespace trainyard::policies {
namespace {

constexpr double kSplitRounding = 1e-9;

// One way to serve a job.
struct Choice {
  Resources per_gpu{};
  double speed = 1;  // against the proportional share
};

// Jobs that are alike.
struct Kind {
  const JobSpec* job = nullptr;
  std::vector<std::size_t> members;  // positions in the list of jobs
  std::vector<Choice> choices;       // the fastest first
  int first_column = 0;
};

double RateWith(const JobSpec& job, const Resources& per_gpu, const ExecutionModel& rates) {
  const Grant grant{.gpus = job.gpus,
                    .slices = {{.gpus = 1, .soft = model::Times(per_gpu, job.gpus)}}};
  return rates.RateUnder(job, grant, {});
}

class Program {
 public:
  Program(const SplitRules& rules, const ExecutionModel& rates, const Resources& total,
          const Resources& share)
      : rules_(rules), rates_(rates), total_(total), share_(share) {}

  void Add(const JobSpec& job, std::size_t position) {
    const auto [at, is_new] = numbers_.emplace(
        std::tuple{job.model, job.batch_size, job.profile_row, job.gpus}, kinds_.size());
    if (is_new) {
      kinds_.push_back({.job = &job, .choices = ChoicesOf(job)});
    }
    kinds_[at->second].members.push_back(position);
  }

  [[nodiscard]] ResourceSplit Solve(std::size_t jobs) {
    const solver::MilpSolution solution =
        solver::SolveMilp(Model(), {.maximize = true, .tree_only = true});
    ResourceSplit split{.amounts = std::vector<Resources>(jobs),
                        .optimal = solution.status == solver::MilpStatus::kOptimal};
    for (const Kind& kind : kinds_) {
      auto member = kind.members.begin();
      for (std::size_t i = 0; solution.has_values() && i < kind.choices.size(); ++i) {
        const Choice& choice = kind.choices[i];
        const auto column = static_cast<std::size_t>(kind.first_column) + i;
        for (auto left = std::llround(solution.values[column]); left > 0; --left, ++member) {
          split.amounts[*member] = model::Times(choice.per_gpu, kind.job->gpus);
          split.objective += Weight(kind) * choice.speed;
        }
      }
      for (; member != kind.members.end(); ++member) {
        split.amounts[*member] = model::Times(share_, kind.job->gpus);
        split.objective += Weight(kind);
      }
    }
    return split;
  }

 private:
  [[nodiscard]] double Weight(const Kind& kind) const {
    return rules_.weigh_by_gpus ? kind.job->gpus : 1;
  }

  // No choice is slower than the share, and none costs as much as another one that is as fast.
  [[nodiscard]] std::vector<Choice> ChoicesOf(const JobSpec& job) const {
    std::vector<Choice> choices{{.per_gpu = share_}};
    const double proportional = RateWith(job, share_, rates_);
    for (const double cpus : rules_.cpus) {
      for (const double memory_gb : rules_.memory_gb) {
        const Resources per_gpu{
            .milli_cpus = total_.milli_cpus > 0 ? std::llround(cpus * 1000) : 0,
            .memory_mib = total_.memory_mib > 0 ? static_cast<std::int64_t>(memory_gb * 1024) : 0};
        const double speed = RateWith(job, per_gpu, rates_) / proportional;
        if (speed >= 1 - kSplitRounding) {
          choices.push_back({.per_gpu = per_gpu, .speed = speed});
        }
      }
    }
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::tuple(-a.speed, a.per_gpu.milli_cpus, a.per_gpu.memory_mib) <
             std::tuple(-b.speed, b.per_gpu.milli_cpus, b.per_gpu.memory_mib);
    });
    std::vector<Choice> useful;
    for (const Choice& choice : choices) {
      const bool beaten =  // what came before is at least as fast
          std::any_of(useful.begin(), useful.end(), [&choice](const Choice& other) {
            return choice.per_gpu.Covers(other.per_gpu);
          });
      if (!beaten) {
        useful.push_back(choice);
      }
    }
    return useful;
  }

  // An integer column for each kind and choice: how many of the kind get it.
  [[nodiscard]] solver::MilpModel Model() {
    solver::MilpModel model;
    std::vector<solver::MilpTerm> cpus;
    std::vector<solver::MilpTerm> memory;
    for (Kind& kind : kinds_) {
      std::vector<solver::MilpTerm> all;
      const auto members = static_cast<double>(kind.members.size());
      kind.first_column = model.columns();
      for (const Choice& choice : kind.choices) {
        const int column =
            model.AddColumn({.upper = members, .objective = Weight(kind) * choice.speed});
        const Resources whole = model::Times(choice.per_gpu, kind.job->gpus);
        all.push_back({column, 1});
        cpus.push_back({column, static_cast<double>(whole.milli_cpus) / 1000});
        memory.push_back({column, static_cast<double>(whole.memory_mib) / 1024});
      }
      model.AddRow(all, solver::MilpSense::kEqual, members);
    }
    if (total_.milli_cpus > 0) {
      model.AddRow(cpus, solver::MilpSense::kAtMost, static_cast<double>(total_.milli_cpus) / 1000);
    }
    if (total_.memory_mib > 0) {
      model.AddRow(memory, solver::MilpSense::kAtMost,
                   static_cast<double>(total_.memory_mib) / 1024);
    }
    return model;
  }

  const SplitRules& rules_;
  const ExecutionModel& rates_;
  const Resources& total_;
  const Resources& share_;
  std::vector<Kind> kinds_;
  std::map<std::tuple<std::string, std::int64_t, std::int32_t, int>, std::size_t> numbers_;
};

}  // namespace

ResourceSplit SplitResources(const SplitRules& rules, std::span<const JobSpec* const> jobs,
                             const ExecutionModel& rates, const Resources& total,
                             const Resources& share_of_gpu) {
  if (jobs.empty()) {
    return {};
  }
  Program program(rules, rates, total, share_of_gpu);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    program.Add(*jobs[i], i);
  }
  return program.Solve(jobs.size());
}

}  // namespace trainyard::policies
