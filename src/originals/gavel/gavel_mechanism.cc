// SPDX-License-Identifier: Apache-2.0
#include "originals/gavel/gavel_mechanism.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

namespace trainyard::originals {
namespace {

constexpr int kMostFailures = 5;
constexpr double kFirstPriority = 1e9;  // of a share of 1 that has had no time yet

std::vector<int> MembersOf(GavelUnitId unit) {
  return unit.first == unit.second ? std::vector<int>{unit.first}
                                   : std::vector<int>{unit.first, unit.second};
}

}  // namespace

void GavelState::Serialize(StateStream& state) {
  state(now, round_start, round_end, last_reset, dirty, jobs, units, order, total, tasks, last,
        next_number, rounds, solves, numbers);
  policy.Serialize(state);
  for (std::optional<base::PythonRandom>* random : {&orders, &policy.random}) {
    bool has = random->has_value();
    state(has);
    if (has && !random->has_value()) {
      random->emplace(0);
    }
    if (has) {
      (*random)->Serialize(state);
    }
  }
}

GavelMechanism::GavelMechanism(const GavelRules& rules, std::span<const int> gpus,
                               const GavelPairs& pairs, const GavelSolver& solve, GavelState& state)
    : rules_(rules), gpus_(gpus), pairs_(pairs), solve_(solve), state_(state) {
  state_.total.resize(gpus.size(), 0.0);
}

std::optional<double> GavelMechanism::RoundEnd() const {
  std::optional<double> end;
  for (const GavelTask& task : state_.tasks) {
    end = std::max(end.value_or(task.finish), task.finish);
  }
  return end;
}

void GavelMechanism::Turn(double now, std::vector<GavelJob> arrived) {
  if (const std::optional<double> end = RoundEnd()) {
    state_.round_start = state_.round_end.value_or(state_.round_start);
    state_.round_end = end;
    state_.now = *end;
    EndTasks();
  } else {
    state_.now = now;
    state_.last_reset = arrived.empty() ? 0 : state_.last_reset;
  }
  for (GavelJob& job : arrived) {
    Add(std::move(job));
  }
  Schedule();
}

// Each GPU has a whole number of steps; one that has none fails.
bool GavelMechanism::Fails(const GavelTask& task) const {
  const std::vector<int> members = MembersOf(task.unit);
  bool fails = false;
  for (std::size_t m = 0; m < members.size(); ++m) {
    fails = fails || task.steps[m] / state_.jobs.at(members[m]).gpus == 0;
  }
  return fails;
}

std::vector<int> GavelMechanism::EndingWith(const GavelTask& task) const {
  std::vector<int> ending = MembersOf(task.unit);
  if (Fails(task)) {
    return {};
  }
  std::size_t m = 0;
  std::erase_if(ending, [&](int job) { return task.steps[m++] < state_.jobs.at(job).steps_left; });
  return ending;
}

void GavelMechanism::Leave(int job) {
  std::erase_if(state_.tasks, [job](const GavelTask& task) {
    return task.unit.first == job || task.unit.second == job;
  });
  Remove(job);
}

void GavelMechanism::ForgetGpus() {
  state_.tasks.clear();
  state_.last.clear();
  state_.dirty = true;
}

void GavelMechanism::EndTasks() {
  const std::vector<GavelTask> tasks = std::move(state_.tasks);
  state_.tasks.clear();
  for (const GavelTask& task : tasks) {
    EndTask(task);
  }
}

void GavelMechanism::EndTask(const GavelTask& task) {
  const std::vector<int> members = MembersOf(task.unit);
  const bool failed = Fails(task);
  if (!failed) {
    const double spent = task.finish - state_.round_start;
    state_.units.at(task.unit).time[task.type] += spent;
    state_.total[task.type] += spent;
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    GavelJob& job = state_.jobs.at(members[m]);
    if (failed) {
      state_.dirty = true;
      if (++job.failures >= kMostFailures) {
        Remove(members[m]);
      }
      continue;
    }
    job.failures = 0;
    job.steps_left -= task.steps[m];
    if (job.steps_left <= 0) {
      Remove(members[m]);
    }
  }
}

void GavelMechanism::Remove(int job) {
  const auto has = [job](GavelUnitId unit) { return unit.first == job || unit.second == job; };
  std::erase_if(state_.order, has);
  std::erase_if(state_.units, [&](const auto& unit) { return has(unit.first); });
  state_.jobs.erase(job);
  state_.dirty = true;
}

void GavelMechanism::Add(GavelJob job) {
  const int number = state_.next_number++;
  state_.numbers[job.id] = number;
  const auto add = [&](GavelUnitId unit, double time) {
    state_.units[unit] = {.time = std::vector<double>(gpus_.size(), time),
                          .deficit = std::vector<double>(gpus_.size(), 0.0)};
    state_.order.push_back(unit);
  };
  add({number, number}, rules_.round / 2);
  if (rules_.pairs) {
    for (const auto& [other, there] : state_.jobs) {
      if (there.gpus == job.gpus && pairs_(there.kind, job.kind) != nullptr) {
        add({other, number}, 0);
      }
    }
  }
  state_.jobs[number] = std::move(job);
  state_.dirty = true;
}

// ----------------------------------------------------------------------------------- allocation

policies::AllocationProblem GavelMechanism::Problem(std::vector<int>& numbers) const {
  policies::AllocationProblem problem{.gpus = std::vector<double>(gpus_.begin(), gpus_.end())};
  std::map<int, int> kinds;  // and a job of each
  for (const auto& [number, job] : state_.jobs) {
    problem.jobs.push_back({.id = job.id,
                            .kind = job.kind,
                            .gpus = job.gpus,
                            .weight = job.weight,
                            .rates = job.rates,
                            .work_left = static_cast<double>(job.steps_left),
                            .age = state_.now - job.arrival});
    numbers.push_back(number);
    kinds.emplace(job.kind, job.gpus);
  }
  if (rules_.pairs) {
    for (auto kind = kinds.begin(); kind != kinds.end(); ++kind) {
      for (auto other = kind; other != kinds.end(); ++other) {
        const policies::PairRates* const pair =
            kind->second == other->second ? pairs_(kind->first, other->first) : nullptr;
        if (pair != nullptr) {
          problem.pairs.push_back(*pair);
        }
      }
    }
  }
  return problem;
}

void GavelMechanism::Take(const policies::Allocation& allocation, std::span<const int> numbers) {
  for (auto& [id, unit] : state_.units) {
    unit.share.assign(gpus_.size(), 0.0);
  }
  for (const policies::AllocationUnit& given : allocation.units) {
    const GavelUnitId id{numbers[given.first], numbers[given.second]};
    if (const auto unit = state_.units.find(id); unit != state_.units.end()) {
      unit->second.share = given.shares;
    }
  }
}

void GavelMechanism::Reset() {
  const double since = state_.now - state_.last_reset;
  const double begin = rules_.round / 2;
  for (std::size_t j = 0; j < gpus_.size(); ++j) {
    state_.total[j] = 0;
    for (const GavelUnitId& id : state_.order) {
      GavelUnit& unit = state_.units.at(id);
      const double due = unit.share.empty() ? 0 : unit.share[j] * since;
      unit.deficit[j] += due - (unit.time[j] - begin);
      unit.time[j] = begin;
      state_.total[j] += begin;
    }
  }
  state_.last_reset = state_.now;
}

void GavelMechanism::Solve() {
  if (!state_.dirty ||
      (state_.last_reset != 0 && state_.now - state_.last_reset < rules_.between_resets)) {
    return;
  }
  Reset();
  state_.dirty = false;
  if (state_.jobs.empty()) {
    return;
  }
  std::vector<int> numbers;
  const policies::AllocationProblem problem = Problem(numbers);
  Take(solve_(problem, numbers, state_), numbers);
  ++state_.solves;
}

// ---------------------------------------------------------------------------------------- rounds

std::vector<double> GavelMechanism::RatesOf(GavelUnitId unit, std::size_t type) const {
  const GavelJob& first = state_.jobs.at(unit.first);
  if (unit.first == unit.second) {
    return {first.rates[type]};
  }
  const GavelJob& second = state_.jobs.at(unit.second);
  const policies::PairRates& pair = *pairs_(first.kind, second.kind);
  return first.kind <= second.kind
             ? std::vector<double>{pair.first_rates[type], pair.second_rates[type]}
             : std::vector<double>{pair.second_rates[type], pair.first_rates[type]};
}

std::vector<GavelMechanism::Candidate> GavelMechanism::Candidates(std::size_t type) const {
  std::vector<Candidate> candidates;
  for (const GavelUnitId& id : state_.order) {
    const GavelUnit& unit = state_.units.at(id);
    const double share = unit.share.empty() ? 0 : unit.share[type];
    const std::vector<double> rates = RatesOf(id, type);
    const bool runs = std::all_of(rates.begin(), rates.end(), [](double rate) { return rate > 0; });
    double priority = 0;
    if (share != 0 && runs) {
      const double part = state_.total[type] > 0 ? unit.time[type] / state_.total[type] : 0;
      priority = part > 0 ? share / part : share * kFirstPriority;
    }
    candidates.push_back({id, priority, unit.deficit[type], share});
  }
  std::stable_sort(
      candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return std::tie(a.priority, a.deficit, a.share) > std::tie(b.priority, b.deficit, b.share);
      });
  return candidates;
}

std::vector<std::size_t> GavelMechanism::TypeOrder() {
  std::vector<std::size_t> order;
  for (std::size_t j = gpus_.size(); j > 0; --j) {
    order.push_back(j - 1);
  }
  if (rules_.shuffles_types) {
    state_.orders->Shuffle(order);
  }
  return order;
}

std::vector<std::vector<GavelMechanism::Candidate>> GavelMechanism::Choose() {
  std::vector<std::vector<Candidate>> chosen(gpus_.size());
  std::set<int> taken;
  for (const std::size_t type : TypeOrder()) {
    int left = gpus_[type];
    for (const Candidate& candidate : Candidates(type)) {
      if (left == 0) {
        break;
      }
      const std::vector<int> members = MembersOf(candidate.unit);
      const std::vector<double> rates = RatesOf(candidate.unit, type);
      const bool runs =
          std::all_of(rates.begin(), rates.end(), [](double rate) { return rate > 0; });
      const bool is_taken =
          std::any_of(members.begin(), members.end(), [&](int job) { return taken.contains(job); });
      if (is_taken || !runs || GpusOf(candidate.unit) > left ||
          (rules_.needs_priority && candidate.priority <= 0)) {
        continue;
      }
      taken.insert(members.begin(), members.end());
      left -= GpusOf(candidate.unit);
      chosen[type].push_back(candidate);
    }
  }
  return chosen;
}

void GavelMechanism::Start(GavelTask& task) {
  const std::vector<int> members = MembersOf(task.unit);
  const std::vector<double> rates = RatesOf(task.unit, task.type);
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::int64_t most = static_cast<std::int64_t>(rates[m] * rules_.round);
    const std::int64_t steps = std::min(most, state_.jobs.at(members[m]).steps_left);
    task.steps.push_back(steps);
    task.finish = std::max(task.finish, state_.now + static_cast<double>(steps) / rates[m]);
  }
}

// Those that ran on this type keep their GPUs; then the others take free ones; larger ones first.
void GavelMechanism::Assign(std::size_t type, std::vector<Candidate> chosen) {
  int first = 0;
  for (std::size_t j = 0; j < type; ++j) {
    first += gpus_[j];
  }
  std::set<int> free;
  for (int gpu = 0; gpu < gpus_[type]; ++gpu) {
    free.insert(first + gpu);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [this](const Candidate& a, const Candidate& b) {
    return GpusOf(a.unit) > GpusOf(b.unit);
  });
  std::map<GavelUnitId, std::vector<int>> given;
  for (std::size_t i = 0; i < chosen.size();) {
    std::size_t end = i;
    while (end < chosen.size() && GpusOf(chosen[end].unit) == GpusOf(chosen[i].unit)) {
      const auto last = state_.last.find(chosen[end].unit);
      if (last != state_.last.end() && last->second.type == type &&
          std::all_of(last->second.gpus.begin(), last->second.gpus.end(),
                      [&](int gpu) { return free.contains(gpu); })) {
        given[chosen[end].unit] = last->second.gpus;
        for (const int gpu : last->second.gpus) {
          free.erase(gpu);
        }
      }
      ++end;
    }
    for (; i < end; ++i) {
      std::vector<int>& gpus = given[chosen[i].unit];
      while (static_cast<int>(gpus.size()) < GpusOf(chosen[i].unit)) {
        gpus.push_back(*free.begin());
        free.erase(free.begin());
      }
    }
  }
  for (const Candidate& candidate : chosen) {
    GavelTask task{.unit = candidate.unit,
                   .type = type,
                   .gpus = given[candidate.unit],
                   .priority = candidate.priority,
                   .deficit = candidate.deficit};
    Start(task);
    state_.tasks.push_back(std::move(task));
  }
}

void GavelMechanism::Schedule() {
  Solve();
  std::vector<std::vector<Candidate>> chosen = Choose();
  for (std::size_t type = gpus_.size(); type > 0; --type) {
    // What has no allocation yet has been counted, and gets nothing.
    std::erase_if(chosen[type - 1], [this](const Candidate& candidate) {
      return state_.units.at(candidate.unit).share.empty();
    });
    Assign(type - 1, std::move(chosen[type - 1]));
  }
  state_.last.clear();
  for (const GavelTask& task : state_.tasks) {
    state_.last[task.unit] = task;
  }
  ++state_.rounds;
}

}  // namespace trainyard::originals
