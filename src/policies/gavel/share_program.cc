// SPDX-License-Identifier: Apache-2.0
#include "policies/gavel/share_program.h"

#include <algorithm>
#include <map>
#include <utility>

namespace trainyard::policies {

using solver::MilpModel;
using solver::MilpSense;
using solver::MilpTerm;

ShareProgram::ShareProgram(const AllocationProblem& problem, std::span<const double> key)
    : problem_(problem), pairs_(problem) {
  std::map<std::vector<double>, std::size_t> known;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    const AllocationJob& job = problem.jobs[i];
    std::vector<double> alike{problem.pairs.empty() ? -1.0 : job.kind,
                              static_cast<double>(job.gpus), job.weight};
    alike.insert(alike.end(), job.rates.begin(), job.rates.end());
    if (!key.empty()) {
      alike.push_back(key[i]);
    }
    const auto [at, is_new] = known.emplace(std::move(alike), members_.size());
    if (is_new) {
      members_.emplace_back();
    }
    members_[at->second].push_back(i);
    class_of_.push_back(at->second);
  }
  columns_of_.resize(members_.size());
  AddColumns();
  AddRows();
}

void ShareProgram::AddColumn(Column column) {
  column.number = base_.AddColumn({.upper = solver::kMilpInfinity, .integer = false});
  columns_of_[column.first].push_back(columns_.size());
  if (column.second != column.first) {
    columns_of_[column.second].push_back(columns_.size());
  }
  columns_.push_back(column);
}

void ShareProgram::AddColumns() {
  for (std::size_t c = 0; c < classes(); ++c) {
    for (std::size_t j = 0; j < problem_.types(); ++j) {
      if (problem_.gpus[j] > 0 && job(c).rates[j] > 0) {
        AddColumn({.type = j, .first = c, .second = c, .first_rate = job(c).rates[j]});
      }
    }
  }
  for (std::size_t a = 0; a < classes() && !problem_.pairs.empty(); ++a) {
    for (std::size_t b = a; b < classes(); ++b) {
      const PairRates* const pair = pairs_.Find(job(a).kind, job(b).kind);
      if (pair != nullptr && job(a).gpus == job(b).gpus && (a != b || members(a) >= 2)) {
        AddPairColumns(a, b, *pair);
      }
    }
  }
}

void ShareProgram::AddPairColumns(std::size_t a, std::size_t b, const PairRates& pair) {
  const bool in_order = job(a).kind <= job(b).kind;
  const std::vector<double>& first = in_order ? pair.first_rates : pair.second_rates;
  const std::vector<double>& second = in_order ? pair.second_rates : pair.first_rates;
  for (std::size_t j = 0; j < problem_.types(); ++j) {
    if (problem_.gpus[j] > 0 && (first[j] > 0 || second[j] > 0)) {
      AddColumn({.type = j,
                 .first = a,
                 .second = b,
                 .alone = false,
                 .first_rate = first[j],
                 .second_rate = second[j]});
    }
  }
}

// How many times a unit of the column counts for a member of the class.
double ShareProgram::Times(const Column& column, std::size_t of) const {
  if (column.alone) {
    return 1;
  }
  return (column.first == column.second ? 2.0 : 1.0) / static_cast<double>(members(of));
}

void ShareProgram::AddRows() {
  for (std::size_t c = 0; c < classes(); ++c) {
    std::vector<MilpTerm> time;
    for (const std::size_t at : columns_of_[c]) {
      time.push_back({columns_[at].number, Times(columns_[at], c)});
    }
    base_.AddRow(time, MilpSense::kAtMost, 1);
  }
  std::vector<std::vector<MilpTerm>> gpus(problem_.types());
  for (const Column& column : columns_) {
    const double held = job(column.first).gpus;
    gpus[column.type].push_back(
        {column.number, column.alone ? held * static_cast<double>(members(column.first)) : held});
  }
  for (std::size_t j = 0; j < problem_.types(); ++j) {
    base_.AddRow(gpus[j], MilpSense::kAtMost, problem_.gpus[j]);
  }
}

std::vector<MilpTerm> ShareProgram::Rate(std::size_t of, double factor,
                                         std::span<const double> prices) const {
  std::vector<MilpTerm> terms;
  for (const std::size_t at : columns_of_[of]) {
    const Column& column = columns_[at];
    const double each = factor / static_cast<double>(column.alone ? 1 : members(of)) /
                        (prices.empty() ? 1 : prices[column.type]);
    double rate = column.first == of ? column.first_rate : column.second_rate;
    if (!column.alone && column.first == column.second) {
      rate = column.first_rate + column.second_rate;
    }
    if (rate > 0) {
      terms.push_back({column.number, each * rate});
    }
  }
  return terms;
}

double ShareProgram::LargestRate(std::size_t of) const {
  double largest = 0;
  for (const std::size_t at : columns_of_[of]) {
    const Column& column = columns_[at];
    largest = std::max(largest, column.first == of ? column.first_rate : 0.0);
    largest = std::max(largest, column.second == of ? column.second_rate : 0.0);
  }
  return largest;
}

Allocation ShareProgram::Expand(std::span<const double> values) const {
  Allocation allocation = NoShares(problem_);
  for (const Column& column : columns_) {
    double most = solver::kMilpInfinity;
    if (column.alone) {
      most = 1;
    }
    const double value = std::clamp(values[static_cast<std::size_t>(column.number)], 0.0, most);
    if (!column.alone) {
      ExpandPairs(column, value, allocation);
      continue;
    }
    for (const std::size_t member : members_[column.first]) {
      allocation.units[member].shares[column.type] = value;
    }
  }
  return allocation;
}

void ShareProgram::ExpandPairs(const Column& column, double value, Allocation& allocation) const {
  constexpr double kNothing = 1e-12;
  if (value <= kNothing) {
    return;
  }
  const auto add = [&](std::size_t first, std::size_t second, double share) {
    AllocationUnit unit{std::min(first, second), std::max(first, second),
                        std::vector<double>(problem_.types(), 0.0)};
    // The types of one pair of classes follow one another.
    const auto same =
        std::find_if(allocation.units.begin() + static_cast<std::ptrdiff_t>(problem_.jobs.size()),
                     allocation.units.end(), [&](const AllocationUnit& other) {
                       return other.first == unit.first && other.second == unit.second;
                     });
    AllocationUnit& found =
        same != allocation.units.end() ? *same : allocation.units.emplace_back(std::move(unit));
    found.shares[column.type] = std::min(1.0, found.shares[column.type] + share);
  };
  const std::vector<std::size_t>& first = members_[column.first];
  const std::vector<std::size_t>& second = members_[column.second];
  if (column.first == column.second) {  // each with the next one
    const std::size_t pairs = first.size() == 2 ? 1 : first.size();
    for (std::size_t i = 0; i < pairs; ++i) {
      add(first[i], first[(i + 1) % first.size()], value / static_cast<double>(pairs));
    }
    return;
  }
  // Both classes in their order, each job until it has its part.
  const double own = value / static_cast<double>(first.size());
  const double others = value / static_cast<double>(second.size());
  double left = own;
  double other_left = others;
  for (std::size_t a = 0, b = 0; a < first.size() && b < second.size();) {
    const double share = std::min(left, other_left);
    if (share > kNothing) {
      add(first[a], second[b], share);
    }
    left -= share;
    other_left -= share;
    if (left <= kNothing * value) {
      ++a;
      left = own;
    }
    if (other_left <= kNothing * value) {
      ++b;
      other_left = others;
    }
  }
}

}  // namespace trainyard::policies
