// SPDX-License-Identifier: Apache-2.0
// Max-min fairness, water filling and finish-time fairness.
#include "policies/gavel/fair_allocations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "policies/gavel/share_program.h"
#include "policies/gavel/simple_allocations.h"

namespace trainyard::policies {
namespace {

using solver::LinearBasis;
using solver::LinearSolution;
using solver::MilpModel;
using solver::MilpSense;
using solver::MilpStatus;
using solver::MilpTerm;

// The largest t such that each class has `factors` times its rate at least t, but for the classes
// that are final, which have at least their levels.
class LevelProgram {
 public:
  explicit LevelProgram(const ShareProgram& program) : program_(program) {}

  struct Level {
    double factor = 1;
    double least = 0;  // of a final class
    bool final = false;
  };

  [[nodiscard]] LinearSolution Solve(std::span<const Level> levels) {
    MilpModel model = program_.base();
    const int t =
        model.AddColumn({.upper = solver::kMilpInfinity, .objective = 1, .integer = false});
    first_row_ = model.rows();
    for (std::size_t c = 0; c < program_.classes(); ++c) {
      std::vector<MilpTerm> terms = program_.Rate(c, levels[c].factor);
      terms.push_back({t, levels[c].final ? 0.0 : -1.0});
      model.AddRow(terms, MilpSense::kAtLeast, levels[c].final ? levels[c].least : 0.0);
    }
    return SolveLinear(model, {.maximize = true}, &basis_);
  }
  // What t loses if the class must have more. REQUIRES: the solution is optimal.
  [[nodiscard]] double PriceOf(const LinearSolution& solution, std::size_t of) const {
    return -solution.prices[static_cast<std::size_t>(first_row_) + of];
  }

 private:
  const ShareProgram& program_;
  LinearBasis basis_;
  int first_row_ = 0;
};

std::vector<LevelProgram::Level> StartingLevels(const AllocationProblem& problem,
                                                const ShareProgram& program) {
  std::vector<LevelProgram::Level> levels;
  for (std::size_t c = 0; c < program.classes(); ++c) {
    const AllocationJob& job = program.job(c);
    levels.push_back({.factor = job.gpus / (job.weight * MeanRate(problem, job))});
  }
  return levels;
}

Allocation TakeSolution(const AllocationProblem& problem, const ShareProgram& program,
                        const LinearSolution& solution) {
  if (solution.values.empty()) {
    Allocation none = Isolated(problem);
    none.optimal = false;
    return none;
  }
  Allocation allocation = program.Expand(solution.values);
  allocation.objective = solution.objective;
  allocation.optimal = solution.status == MilpStatus::kOptimal;
  return allocation;
}

// One rho for all: the search for the least.
class FinishTimes {
 public:
  FinishTimes(const AllocationProblem& problem, std::span<const double> fair_rates)
      : problem_(problem), program_(problem, Numbers(problem)) {
    for (std::size_t c = 0; c < program_.classes(); ++c) {
      const AllocationJob& job = program_.job(c);
      fair_times_.push_back(job.isolated_time + job.work_left / fair_rates[program_.first(c)]);
      least_ = std::max(least_,
                        (job.age + job.work_left / program_.LargestRate(c)) / fair_times_.back());
      const double alone = job.age + job.work_left / fair_rates[program_.first(c)];
      rho_ = std::max(rho_, alone / fair_times_.back());
    }
  }

  // Newton's method: for the prices of one rho the rates that another one needs are a bound, which
  // all later rhos keep to, so that they only rise after the first step.
  [[nodiscard]] Allocation Search() {
    constexpr int kMostSteps = 60;
    constexpr double kClose = 1e-11;
    Allocation best;
    for (int step = 0; step < kMostSteps; ++step) {
      const LinearSolution solution = Solve(rho_);
      if (solution.status != MilpStatus::kOptimal) {
        best = TakeSolution(problem_, program_, solution);
        best.optimal = false;
        return best;
      }
      best = TakeSolution(problem_, program_, solution);
      best.objective = rho_;
      const double next = Next(solution);
      if (std::abs(next - rho_) <= kClose * rho_) {
        return best;
      }
      rho_ = next;
    }
    best.optimal = false;
    return best;
  }

 private:
  static std::vector<double> Numbers(const AllocationProblem& problem) {
    std::vector<double> numbers(problem.jobs.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<double>(i);
    }
    return numbers;
  }

  // The rate that the class needs to have finished in time.
  [[nodiscard]] double Needed(std::size_t of, double rho) const {
    const AllocationJob& job = program_.job(of);
    return job.work_left / (rho * fair_times_[of] - job.age);
  }

  // How many times the needed rates all can have.
  [[nodiscard]] LinearSolution Solve(double rho) {
    levels_.clear();
    for (std::size_t c = 0; c < program_.classes(); ++c) {
      levels_.push_back({.factor = 1 / Needed(c, rho)});
    }
    return level_program_.Solve(levels_);
  }

  // The rho at which, by the prices of this one, all can have just what they need.
  [[nodiscard]] double Next(const LinearSolution& solution) const {
    std::vector<std::pair<std::size_t, double>> priced;
    for (std::size_t c = 0; c < program_.classes(); ++c) {
      if (const double price = level_program_.PriceOf(solution, c); price > 0) {
        priced.emplace_back(c, price / Needed(c, rho_));
      }
    }
    const auto needed = [&](double rho) {
      double sum = 0;
      for (const auto& [c, price] : priced) {
        sum += price * Needed(c, rho);
      }
      return sum;
    };
    if (needed(least_) <= solution.objective) {
      return least_;
    }
    double low = least_;
    double high = std::max(rho_, least_) * 2;
    while (needed(high) > solution.objective) {
      high *= 2;
    }
    constexpr int kHalvings = 100;
    for (int i = 0; i < kHalvings && low < high; ++i) {
      const double middle = low + (high - low) / 2;
      (needed(middle) > solution.objective ? low : high) = middle;
    }
    return high;
  }

  const AllocationProblem& problem_;
  const ShareProgram program_;
  LevelProgram level_program_{program_};
  std::vector<LevelProgram::Level> levels_;
  std::vector<double> fair_times_;  // by class
  double least_ = 0;                // no rho can be less
  double rho_ = 0;
};

}  // namespace

Allocation MaxMinFairness(const AllocationProblem& problem) {
  const ShareProgram program(problem);
  LevelProgram levels(program);
  return TakeSolution(problem, program, levels.Solve(StartingLevels(problem, program)));
}

namespace {

constexpr double kPriced = 1e-7;  // a level with such a price holds the others back

// Makes the levels final that hold the others back: those with a price, and the dearest one, or all
// that are left where none has any. Gives how many.
std::size_t EndLevels(const LevelProgram& level_program, const LinearSolution& solution,
                      std::vector<LevelProgram::Level>& levels) {
  constexpr double kRounding = 1e-10;
  const std::size_t classes = levels.size();
  std::size_t dearest = classes;
  double most = kPriced;
  for (std::size_t c = 0; c < classes; ++c) {
    const double price = levels[c].final ? 0 : level_program.PriceOf(solution, c);
    if (price > most) {
      most = price;
      dearest = c;
    }
  }
  std::size_t ended = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    const bool ends = !levels[c].final && (c == dearest || dearest == classes ||
                                           level_program.PriceOf(solution, c) > kPriced);
    if (ends) {
      levels[c].final = true;
      levels[c].least = solution.objective * (1 - kRounding);
      ++ended;
    }
  }
  return ended;
}

// By rounding, levels that were reached may lie out of reach in the next program: then they are
// given up by a trifle, and by ten of them.
LinearSolution SolveAbove(LevelProgram& level_program, std::vector<LevelProgram::Level>& levels) {
  LinearSolution solution = level_program.Solve(levels);
  for (const double trifle : {1e-9, 1e-8}) {
    if (solution.status == MilpStatus::kOptimal) {
      break;
    }
    for (LevelProgram::Level& level : levels) {
      level.least *= 1 - trifle;
    }
    solution = level_program.Solve(levels);
  }
  return solution;
}

}  // namespace

Allocation WaterFilling(const AllocationProblem& problem) {
  const ShareProgram program(problem);
  LevelProgram level_program(program);
  std::vector<LevelProgram::Level> levels = StartingLevels(problem, program);
  Allocation allocation = NoShares(problem);
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t left = program.classes(); left > 0;) {
    const LinearSolution solution = SolveAbove(level_program, levels);
    const bool optimal = solution.status == MilpStatus::kOptimal;
    if (!optimal && std::isfinite(least)) {
      allocation.optimal = false;  // what the last program gave stays
      return allocation;
    }
    allocation = TakeSolution(problem, program, solution);
    least = std::min(least, allocation.objective);
    allocation.objective = least;
    if (!optimal) {
      return allocation;
    }
    left -= EndLevels(level_program, solution, levels);
  }
  return allocation;
}

Allocation FairFinishTimes(const AllocationProblem& problem, std::span<const double> fair_rates) {
  return problem.jobs.empty() ? NoShares(problem) : FinishTimes(problem, fair_rates).Search();
}

}  // namespace trainyard::policies
