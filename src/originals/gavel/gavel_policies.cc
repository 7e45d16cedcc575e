// SPDX-License-Identifier: Apache-2.0
#include "originals/gavel/gavel_policies.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "policies/gavel/allox_matching.h"
#include "policies/gavel/fair_allocations.h"
#include "policies/gavel/pair_book.h"
#include "policies/gavel/simple_allocations.h"
#include "policies/gavel/throughput_allocations.h"

namespace trainyard::originals {
namespace {

using policies::Allocation;
using policies::AllocationJob;
using policies::AllocationProblem;

// Prices per hour that the published program states for its types.
const std::map<std::string, double>& Prices() {
  static const std::map<std::string, double> kPrices{
      {"k80", 0.135}, {"p100", 0.43}, {"v100", 0.74}};
  return kPrices;
}

template <typename Rate>
AllocationProblem GavelRates(AllocationProblem problem, const Rate& rate) {
  for (AllocationJob& job : problem.jobs) {
    const std::vector<double> own = job.rates;
    for (std::size_t j = 0; j < own.size(); ++j) {
      job.rates[j] = rate(own, j);
    }
  }
  return problem;
}

AllocationProblem AllOnes(const AllocationProblem& problem) {
  return GavelRates(problem, [](const auto&, std::size_t) { return 1.0; });
}

// Of the last type on all of them: v100. The rates of a job that does not run there are 0.
AllocationProblem OfLastType(const AllocationProblem& problem) {
  return GavelRates(problem, [](const auto& rates, std::size_t) { return rates.back(); });
}

// Rates of units over the weights of their jobs; kinds are of one weight.
AllocationProblem DividedByWeights(AllocationProblem problem) {
  std::map<int, double> weights;
  const auto divide = [&weights](std::vector<double>& rates, int kind) {
    for (double& rate : rates) {
      rate /= weights[kind];
    }
  };
  for (AllocationJob& job : problem.jobs) {
    weights[job.kind] = job.weight;
    divide(job.rates, job.kind);
  }
  for (policies::PairRates& pair : problem.pairs) {
    divide(pair.first_rates, pair.first);
    divide(pair.second_rates, pair.second);
  }
  return problem;
}

// The time that the done steps would have taken with the isolated shares of the solves before.
Allocation SolveFinishTimes(const AllocationProblem& own, bool packed, std::span<const int> numbers,
                            GavelState& state) {
  AllocationProblem problem = own;
  const std::vector<double> fair = policies::IsolatedRates(problem);
  std::map<int, GavelPolicyState::Isolated> now;
  for (std::size_t i = 0; i < problem.jobs.size(); ++i) {
    AllocationJob& job = problem.jobs[i];
    const auto before = state.policy.isolated.find(numbers[i]);
    if (before != state.policy.isolated.end()) {
      const GavelPolicyState::Isolated& last = before->second;
      job.isolated_time = last.time + (last.steps_left - job.work_left) / last.rate;
    }
    now[numbers[i]] = {job.isolated_time, job.work_left, fair[i]};
  }
  state.policy.isolated = std::move(now);
  return policies::FairFinishTimes(packed ? DividedByWeights(std::move(problem)) : problem, fair);
}

using NumberedJobs = std::map<int, std::size_t>;  // places in the problem, by number

// Whoever waits first takes the type of a job that has left, if it fits.
void TakeOver(const AllocationProblem& problem, const NumberedJobs& at, std::deque<int>& queue,
              std::vector<double>& free, std::map<int, std::size_t>& placed) {
  const std::map<int, std::size_t> before = placed;
  for (const auto& [number, type] : before) {
    if (const auto job = at.find(number); job != at.end()) {
      free[type] -= problem.jobs[job->second].gpus;
      continue;
    }
    placed.erase(number);
    if (queue.empty()) {
      continue;
    }
    const AllocationJob& head = problem.jobs[at.at(queue.front())];
    if (head.gpus <= free[type] && head.rates[type] > 0) {
      placed[queue.front()] = type;
      free[type] -= head.gpus;
      queue.pop_front();
    }
  }
}

// The places in `open` of types that have so many GPUs.
std::vector<std::size_t> WithRoom(const std::vector<std::size_t>& open,
                                  const std::vector<double>& free, int gpus) {
  std::vector<std::size_t> places;
  for (std::size_t k = 0; k < open.size(); ++k) {
    if (free[open[k]] >= gpus) {
      places.push_back(k);
    }
  }
  return places;
}

// Types last until their jobs leave. The program draws a type and then gives the last one that is
// still in its list, even beyond its GPUs; what was drawn leaves the list when the last one is
// used up to the last GPU.
Allocation SolveFifo(const AllocationProblem& problem, std::span<const int> numbers,
                     GavelState& state) {
  NumberedJobs at;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    at[numbers[i]] = i;
  }
  std::map<int, std::size_t>& placed = state.policy.placed;
  std::deque<int> queue;
  for (const auto& [number, i] : at) {
    if (!placed.contains(number)) {
      queue.push_back(number);
    }
  }
  std::vector<double> free = problem.gpus;
  TakeOver(problem, at, queue, free, placed);
  std::vector<std::size_t> open;
  for (std::size_t j = 0; j < free.size(); ++j) {
    if (free[j] > 0) {
      open.push_back(j);
    }
  }
  for (; !queue.empty() && !open.empty(); queue.pop_front()) {
    const AllocationJob& job = problem.jobs[at[queue.front()]];
    const std::vector<std::size_t> with_room = WithRoom(open, free, job.gpus);
    if (with_room.empty()) {
      break;
    }
    const std::size_t drawn =
        with_room[state.policy.random->Below(static_cast<std::uint32_t>(with_room.size()))];
    const std::size_t type = open.back();
    if (job.rates[type] <= 0) {
      continue;
    }
    placed[queue.front()] = type;
    free[type] -= job.gpus;
    if (free[type] == 0) {
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(drawn));
    }
  }
  Allocation allocation = policies::NoShares(problem);
  for (const auto& [number, type] : placed) {
    allocation.units[at[number]].shares[type] = 1;
  }
  return allocation;
}

Allocation SolveAllox(const AllocationProblem& problem, std::span<const int> numbers,
                      GavelState& state) {
  std::vector<policies::PlacedJob> placed;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (const auto job = state.policy.placed.find(numbers[i]); job != state.policy.placed.end()) {
      placed.push_back({i, job->second});
    }
  }
  Allocation allocation = policies::Allox(problem, placed);
  state.policy.placed.clear();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::vector<double>& shares = allocation.units[i].shares;
    const auto type = std::find(shares.begin(), shares.end(), 1.0);
    if (type != shares.end()) {
      state.policy.placed[numbers[i]] = static_cast<std::size_t>(type - shares.begin());
    }
  }
  return allocation;
}

// Whether both together do so little that the program takes the pair apart: on all types together
// less than one of them alone on one type, or nothing on one type.
bool IsBadPair(const AllocationProblem& problem, const policies::PairBook& pairs, std::size_t first,
               std::size_t second) {
  double sum = 0;
  for (std::size_t j = 0; j < problem.types(); ++j) {
    const double worth = policies::PairedWorth(problem, pairs, first, second, j);
    if (worth == 0) {
      return true;
    }
    sum += worth;
  }
  return sum < 1;
}

// Two different positions of `count`, as random.sample() draws them.
std::pair<std::size_t, std::size_t> DrawTwo(base::PythonRandom& random, std::size_t count) {
  constexpr std::size_t kFew = 21;  // are moved about in a list
  const auto below = [&random](std::size_t n) {
    return static_cast<std::size_t>(random.Below(static_cast<std::uint32_t>(n)));
  };
  const std::size_t first = below(count);
  if (count <= kFew) {
    const std::size_t second = below(count - 1);
    return {first, second == first ? count - 1 : second};
  }
  std::size_t second = below(count);
  while (second == first) {
    second = below(count);
  }
  return {first, second};
}

// Pairs by chance among the jobs that are in none: as many times as there are such jobs two are
// drawn, and paired if they ask for as many GPUs.
Allocation SolveGandiva(const AllocationProblem& problem, std::span<const int> numbers,
                        GavelState& state) {
  std::map<int, std::size_t> at;
  double asked = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    at[numbers[i]] = i;
    asked += problem.jobs[i].gpus;
  }
  std::map<int, int>& partners = state.policy.partners;
  const policies::PairBook pairs(problem);
  std::erase_if(partners, [&](const auto& pair) {
    return !at.contains(pair.first) || !at.contains(pair.second) ||
           IsBadPair(problem, pairs, at[pair.first], at[pair.second]);
  });
  if (asked <= std::accumulate(problem.gpus.begin(), problem.gpus.end(), 0.0)) {
    return policies::Isolated(problem);
  }
  std::vector<int> single;
  for (const int number : numbers) {
    if (!partners.contains(number)) {
      single.push_back(number);
    }
  }
  for (std::size_t left = single.size(); left > 0 && single.size() > 1; --left) {
    const auto [a, b] = DrawTwo(*state.policy.random, single.size());
    const int first = single[a];
    const int second = single[b];
    if (problem.jobs[at[first]].gpus == problem.jobs[at[second]].gpus) {
      partners[first] = second;
      partners[second] = first;
      std::erase_if(single, [&](int number) { return number == first || number == second; });
    }
  }
  std::vector<std::size_t> by_job;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto partner = partners.find(numbers[i]);
    by_job.push_back(partner == partners.end() ? i : at[partner->second]);
  }
  return policies::EqualUnits(problem, by_job);
}

struct NamedPolicy {
  std::string_view name;
  bool ordered = false;  // types from the last one on: those of Perf and Packing
  bool pairs = false;
  bool fifo = false;
  Allocation (*solve)(const AllocationProblem& problem, std::span<const int> numbers,
                      GavelState& state) = nullptr;
};

constexpr std::array<NamedPolicy, 20> kPolicies{{
    {"allox", true, false, false, SolveAllox},
    {"fifo", false, false, true, SolveFifo},
    {"fifo_packed", true, true, true,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::FifoByThroughput(problem, true);
     }},
    {"fifo_perf", true, false, true,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::FifoByThroughput(problem);
     }},
    {"finish_time_fairness", false, false, false,
     [](const AllocationProblem& problem, std::span<const int> numbers, GavelState& state) {
       const AllocationProblem blind = OfLastType(problem);
       return policies::SpreadOverTypes(blind, SolveFinishTimes(blind, false, numbers, state));
     }},
    {"finish_time_fairness_packed", true, true, false,
     [](const AllocationProblem& problem, std::span<const int> numbers, GavelState& state) {
       return SolveFinishTimes(problem, true, numbers, state);
     }},
    {"finish_time_fairness_perf", true, false, false,
     [](const AllocationProblem& problem, std::span<const int> numbers, GavelState& state) {
       return SolveFinishTimes(problem, false, numbers, state);
     }},
    {"gandiva", true, true, false, SolveGandiva},
    {"isolated", false, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::Isolated(problem);
     }},
    {"max_min_fairness", false, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       const AllocationProblem blind = AllOnes(problem);
       return policies::SpreadOverTypes(blind, policies::MaxMinFairness(blind));
     }},
    {"max_min_fairness_packed", true, true, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::MaxMinFairness(problem);
     }},
    {"max_min_fairness_perf", true, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::MaxMinFairness(problem);
     }},
    {"max_min_fairness_water_filling", false, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       const AllocationProblem blind = AllOnes(problem);
       return policies::SpreadOverTypes(blind, policies::WaterFilling(blind));
     }},
    {"max_min_fairness_water_filling_packed", true, true, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::WaterFilling(problem);
     }},
    {"max_min_fairness_water_filling_perf", true, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::WaterFilling(problem);
     }},
    {"max_sum_throughput_normalized_by_cost_perf", true, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::MostThroughput(problem, false).allocation;
     }},
    {"max_sum_throughput_perf", true, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::MostThroughput(problem, false).allocation;
     }},
    {"min_total_duration", false, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       const AllocationProblem blind = OfLastType(problem);
       return policies::SpreadOverTypes(blind, policies::LeastMakespan(blind));
     }},
    {"min_total_duration_packed", true, true, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::LeastMakespan(problem);
     }},
    {"min_total_duration_perf", true, false, false,
     [](const AllocationProblem& problem, std::span<const int>, GavelState&) {
       return policies::LeastMakespan(problem);
     }},
}};

}  // namespace

std::vector<std::string_view> GavelPolicyNames() {
  std::vector<std::string_view> names;
  names.reserve(kPolicies.size());
  for (const NamedPolicy& policy : kPolicies) {
    names.push_back(policy.name);
  }
  return names;
}

std::optional<GavelPolicy> FindGavelPolicy(std::string_view name,
                                           const std::vector<std::string>& types) {
  const auto policy = std::find_if(kPolicies.begin(), kPolicies.end(),
                                   [name](const NamedPolicy& one) { return one.name == name; });
  if (policy == kPolicies.end()) {
    return std::nullopt;
  }
  std::vector<double> prices;
  if (name.find("cost") != std::string_view::npos) {
    for (const std::string& type : types) {
      const auto price = Prices().find(type);
      prices.push_back(price == Prices().end() ? 1 : price->second);
    }
  }
  const auto solve = policy->solve;
  return GavelPolicy{.rules = {.shuffles_types = !policy->ordered,
                               .needs_priority = policy->fifo,
                               .pairs = policy->pairs},
                     .solve = [=](const AllocationProblem& problem, std::span<const int> numbers,
                                  GavelState& state) {
                       if (prices.empty()) {
                         return solve(problem, numbers, state);
                       }
                       AllocationProblem priced = problem;
                       priced.prices = prices;
                       return solve(priced, numbers, state);
                     }};
}

}  // namespace trainyard::originals
