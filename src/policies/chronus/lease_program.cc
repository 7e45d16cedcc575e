// SPDX-License-Identifier: Apache-2.0
#include "policies/chronus/lease_program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

#include "solver/milp.h"

namespace trainyard::policies {
namespace {

// Objectives that differ by less are equal; values and shares of a cluster differ by more.
constexpr double kSameShare = 1e-6;

class LeaseProgram {
 public:
  LeaseProgram(const LeaseProblem& problem, const LeasePlannerOptions& options)
      : problem_(problem), options_(options) {}

  std::optional<LeasePlan> Solve() {
    if (Columns() > options_.most_columns) {
      return std::nullopt;
    }
    Build();
    best_ = SolveOnce();
    if (!best_.has_values()) {
      return std::nullopt;
    }
    if (best_.status == solver::MilpStatus::kOptimal) {
      PreferDeadlines();
      PreferFirstLeases();
    }
    return Plan();
  }

 private:
  struct JobColumns {
    int first_deadline = 0;  // column of its first deadline
    int first_lease = 0;
    int leases = 0;
  };

  [[nodiscard]] static int Window(const LeaseJob& job) {
    int window = 0;
    for (const LeaseDeadline& deadline : job.deadlines) {
      window = std::max(window, deadline.window);
    }
    return window;
  }

  [[nodiscard]] int Columns() const {
    std::int64_t columns = 0;
    for (const LeaseJob& job : problem_.jobs) {
      columns += Window(job) + static_cast<int>(job.deadlines.size());
    }
    return static_cast<int>(std::min<std::int64_t>(columns, options_.most_columns + 1));
  }

  [[nodiscard]] int Capacity(int lease) const {
    const auto index = static_cast<std::size_t>(lease);
    return index < problem_.capacity.size() ? problem_.capacity[index] : problem_.capacity.back();
  }

  [[nodiscard]] double FirstLeaseWeight(const LeaseJob& job) const {
    const int most = *std::max_element(problem_.capacity.begin(), problem_.capacity.end());
    return most <= 0 ? 0 : (problem_.fill_first ? 1.0 : -1.0) * job.gpus / most;
  }

  void Build() {
    std::vector<std::vector<solver::MilpTerm>> used;  // GPUs by lease
    for (const LeaseJob& job : problem_.jobs) {
      AddJob(job);
      const JobColumns& columns = columns_.back();
      used.resize(std::max(used.size(), static_cast<std::size_t>(columns.leases)));
      for (int lease = 0; lease < columns.leases; ++lease) {
        used[static_cast<std::size_t>(lease)].push_back(
            {columns.first_lease + lease, static_cast<double>(job.gpus)});
      }
    }
    for (std::size_t lease = 0; lease < used.size(); ++lease) {
      model_.AddRow(used[lease], solver::MilpSense::kAtMost, Capacity(static_cast<int>(lease)));
    }
  }

  // One deadline; as many leases as it needs; none after the deadline.
  void AddJob(const LeaseJob& job) {
    JobColumns columns{.leases = Window(job)};
    std::vector<solver::MilpTerm> one;
    for (const LeaseDeadline& deadline : job.deadlines) {
      const bool possible = deadline.window >= job.need;
      const int column =
          model_.AddColumn({.upper = possible ? 1.0 : 0.0, .objective = deadline.value});
      one.push_back({column, 1});
    }
    columns.first_deadline = one.front().column;
    model_.AddRow(one, solver::MilpSense::kEqual, 1);
    std::vector<solver::MilpTerm> held;
    held.reserve(static_cast<std::size_t>(columns.leases));
    for (int lease = 0; lease < columns.leases; ++lease) {
      held.push_back({model_.AddColumn({.objective = lease == 0 ? FirstLeaseWeight(job) : 0}), 1});
    }
    model_.AddRow(held, solver::MilpSense::kEqual, job.need);
    columns.first_lease = model_.columns() - columns.leases;
    AddDeadlineRows(job, columns);
    columns_.push_back(columns);
  }

  void AddDeadlineRows(const LeaseJob& job, const JobColumns& columns) {
    for (int lease = 0; lease < columns.leases; ++lease) {
      std::vector<solver::MilpTerm> row{{columns.first_lease + lease, 1}};
      for (std::size_t d = 0; d < job.deadlines.size(); ++d) {
        if (job.deadlines[d].window > lease) {
          row.push_back({columns.first_deadline + static_cast<int>(d), -1});
        }
      }
      if (row.size() <= job.deadlines.size()) {  // a deadline lies before this lease
        model_.AddRow(row, solver::MilpSense::kAtMost, 0);
      }
    }
  }

  [[nodiscard]] solver::MilpSolution SolveOnce() {
    ++solves_;
    return solver::SolveMilp(model_, {.maximize = true, .node_limit = options_.node_limit});
  }

  [[nodiscard]] bool IsSet(int column) const {
    return best_.values[static_cast<std::size_t>(column)] > 0.5;
  }

  // Sets the column to 1 for good if that costs nothing.
  bool Prefer(int column) {
    if (!IsSet(column)) {
      if (solves_ >= options_.most_solves) {
        return false;
      }
      model_.SetBounds(column, 1, 1);
      solver::MilpSolution other = SolveOnce();
      if (!other.has_values() || other.objective < best_.objective - kSameShare) {
        model_.SetBounds(column, 0, 0);
        return false;
      }
      best_ = std::move(other);
    }
    model_.SetBounds(column, 1, 1);
    return true;
  }

  void PreferDeadlines() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const LeaseJob& job = problem_.jobs[i];
      for (std::size_t d = 0; d < job.deadlines.size(); ++d) {
        const bool possible = job.deadlines[d].window >= job.need;
        if (possible && Prefer(columns_[i].first_deadline + static_cast<int>(d))) {
          break;
        }
      }
    }
  }

  [[nodiscard]] int Chosen(std::size_t i) const {
    const auto deadlines = static_cast<int>(problem_.jobs[i].deadlines.size());
    for (int d = 0; d < deadlines; ++d) {
      if (IsSet(columns_[i].first_deadline + d)) {
        return d;
      }
    }
    return -1;
  }

  void PreferFirstLeases() {
    std::vector<std::size_t> order(columns_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto window = [this](std::size_t i) {
      return problem_.jobs[i].deadlines[static_cast<std::size_t>(Chosen(i))].window;
    };
    std::vector<int> windows(order.size());
    std::transform(order.begin(), order.end(), windows.begin(), window);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return windows[a] < windows[b]; });
    for (const std::size_t i : order) {
      Prefer(columns_[i].first_lease);
    }
  }

  [[nodiscard]] LeasePlan Plan() const {
    LeasePlan plan{.objective = best_.objective,
                   .optimal = best_.status == solver::MilpStatus::kOptimal,
                   .solved = true};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      PlannedLeases& job = plan.jobs.emplace_back();
      job.deadline = Chosen(i);
      for (int lease = 0; lease < columns_[i].leases; ++lease) {
        if (IsSet(columns_[i].first_lease + lease)) {
          job.leases.push_back(lease);
        }
      }
    }
    return plan;
  }

  const LeaseProblem& problem_;
  const LeasePlannerOptions& options_;
  solver::MilpModel model_;
  std::vector<JobColumns> columns_;  // by job
  solver::MilpSolution best_;
  int solves_ = 0;
};

}  // namespace

std::optional<LeasePlan> SolveLeaseProgram(const LeaseProblem& problem,
                                           const LeasePlannerOptions& options) {
  return LeaseProgram(problem, options).Solve();
}

}  // namespace trainyard::policies
