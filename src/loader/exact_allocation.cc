// SPDX-License-Identifier: Apache-2.0
// The exact optimum. A job takes one of a few numbers of workers; the cores of each node bound the
// sum: a knapsack with several bounds, which falls apart where no job spans two nodes.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "loader/allocation.h"
#include "solver/milp.h"

namespace trainyard::loader {
namespace {

constexpr double kScorePerRate = 1000;

std::int64_t ScoreOf(const LoaderDemand& demand, int per_device) {
  return std::llround(kScorePerRate * demand.RateWith(per_device)) -
         std::int64_t{per_device} * demand.devices();
}

// One number of workers that a job may get.
struct Choice {
  int per_device = 0;
  std::int64_t score = 0;
  bool changes = false;
};

// Nodes that jobs connect, and the choices of these jobs.
struct NeedGroup {
  std::vector<int> nodes;
  std::vector<std::size_t> jobs;
  std::vector<std::vector<Choice>> choices;  // by job
};

std::vector<NeedGroup> ComponentsOf(std::span<const LoaderDemand> demands, std::size_t nodes) {
  std::vector<int> root(nodes);  // of each node: the least one that it is connected with
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int node) {
    while (root[static_cast<std::size_t>(node)] != node) {
      node = root[static_cast<std::size_t>(node)];
    }
    return node;
  };
  for (const LoaderDemand& demand : demands) {
    for (const LoaderDemand::Part& part : demand.parts) {
      const auto [low, high] = std::minmax({find(part.node), find(demand.parts.front().node)});
      root[static_cast<std::size_t>(high)] = low;
    }
  }
  std::vector<NeedGroup> by_root(nodes);
  for (std::size_t node = 0; node < nodes; ++node) {
    by_root[static_cast<std::size_t>(find(static_cast<int>(node)))].nodes.push_back(
        static_cast<int>(node));
  }
  for (std::size_t job = 0; job < demands.size(); ++job) {
    by_root[static_cast<std::size_t>(find(demands[job].parts.front().node))].jobs.push_back(job);
  }
  std::erase_if(by_root, [](const NeedGroup& component) { return component.jobs.empty(); });
  return by_root;
}

// A number of cores for each node, and whether the parts of jobs fit into it.
bool FitsOneEach(std::span<const LoaderDemand> demands, const NeedGroup& component,
                 std::span<const int> cores) {
  std::vector<int> left(cores.begin(), cores.end());
  for (const std::size_t job : component.jobs) {
    for (const LoaderDemand::Part& part : demands[job].parts) {
      left[static_cast<std::size_t>(part.node)] -= part.devices;
    }
  }
  return std::all_of(component.nodes.begin(), component.nodes.end(),
                     [&](int node) { return left[static_cast<std::size_t>(node)] >= 0; });
}

// No job may take more on a node than there is, so that no choice is out of the question.
int MostPerDevice(const LoaderDemand& demand, std::span<const int> cores) {
  int most = static_cast<int>(demand.rates.size()) - 1;
  for (const LoaderDemand::Part& part : demand.parts) {
    most = std::min(most, cores[static_cast<std::size_t>(part.node)] / part.devices);
  }
  return std::max(most, 0);
}

std::vector<Choice> ChoicesOf(const LoaderDemand& demand, int least, int most) {
  std::vector<Choice> choices;
  for (int workers = least; workers <= std::max(least, most); ++workers) {
    choices.push_back({.per_device = workers,
                       .score = ScoreOf(demand, workers),
                       .changes = demand.settled && workers != demand.workers});
  }
  return choices;
}

// Larger is better.
struct Value {
  std::int64_t score = 0;
  int unchanged = 0;
  std::int64_t evenness = 0;

  [[nodiscard]] Value Plus(const Choice& choice) const {
    return {.score = score + choice.score,
            .unchanged = unchanged - (choice.changes ? 1 : 0),
            .evenness = evenness - std::int64_t{choice.per_device} * choice.per_device};
  }
  friend bool operator<(const Value& a, const Value& b) {
    return std::tie(a.score, a.unchanged, a.evenness) < std::tie(b.score, b.unchanged, b.evenness);
  }
};

// Dynamic programming over the cores of one node. The position of each job's choice, or nothing.
std::optional<std::vector<std::size_t>> SolveNode(std::span<const LoaderDemand> demands,
                                                  const NeedGroup& component, int cores) {
  const std::size_t sizes = static_cast<std::size_t>(cores) + 1;
  std::vector<std::optional<Value>> best(sizes, Value{});  // with at most so many cores
  std::vector<std::vector<std::size_t>> taken(component.jobs.size(),
                                              std::vector<std::size_t>(sizes, 0));
  const auto cost = [&](std::size_t i, std::size_t choice) {
    const int cores_taken =
        component.choices[i][choice].per_device * demands[component.jobs[i]].devices();
    return static_cast<std::size_t>(cores_taken);
  };
  for (std::size_t i = 0; i < component.jobs.size(); ++i) {
    std::vector<std::optional<Value>> next(sizes);
    for (std::size_t size = 0; size < sizes; ++size) {
      for (std::size_t choice = 0; choice < component.choices[i].size(); ++choice) {
        if (cost(i, choice) > size || !best[size - cost(i, choice)]) {
          continue;
        }
        const Value value = best[size - cost(i, choice)]->Plus(component.choices[i][choice]);
        if (!next[size] || *next[size] < value) {
          next[size] = value;
          taken[i][size] = choice;
        }
      }
    }
    best = std::move(next);
  }
  if (!best.back()) {
    return std::nullopt;
  }
  std::vector<std::size_t> chosen(component.jobs.size());
  std::size_t size = sizes - 1;
  for (std::size_t i = component.jobs.size(); i-- > 0;) {
    chosen[i] = taken[i][size];
    size -= cost(i, chosen[i]);
  }
  return chosen;
}

// One binary column for each choice, one row for each job (exactly one choice), one for each node.
solver::MilpModel MakeProgram(std::span<const LoaderDemand> demands, const NeedGroup& component,
                              std::span<const int> cores) {
  solver::MilpModel model;
  std::vector<std::vector<solver::MilpTerm>> of_node(cores.size());
  for (std::size_t i = 0; i < component.jobs.size(); ++i) {
    std::vector<solver::MilpTerm> of_job;
    for (const Choice& choice : component.choices[i]) {
      const int column = model.AddColumn({.objective = static_cast<double>(choice.score)});
      of_job.push_back({.column = column, .coefficient = 1});
      for (const LoaderDemand::Part& part : demands[component.jobs[i]].parts) {
        of_node[static_cast<std::size_t>(part.node)].push_back(
            {.column = column,
             .coefficient = static_cast<double>(choice.per_device * part.devices)});
      }
    }
    model.AddRow(of_job, solver::MilpSense::kEqual, 1);
  }
  for (const int node : component.nodes) {
    const auto n = static_cast<std::size_t>(node);
    model.AddRow(of_node[n], solver::MilpSense::kAtMost, cores[n]);
  }
  return model;
}

// Integer programming, for jobs that span nodes.
std::optional<std::vector<std::size_t>> SolveNodes(std::span<const LoaderDemand> demands,
                                                   const NeedGroup& component,
                                                   std::span<const int> cores) {
  const solver::MilpSolution solution =
      solver::SolveMilp(MakeProgram(demands, component, cores), {.maximize = true});
  if (!solution.has_values()) {
    return std::nullopt;
  }
  std::vector<std::size_t> chosen;
  auto first = solution.values.begin();
  for (const std::vector<Choice>& choices : component.choices) {
    const auto last = first + static_cast<std::ptrdiff_t>(choices.size());
    chosen.push_back(static_cast<std::size_t>(std::max_element(first, last) - first));
    first = last;
  }
  return chosen;
}

// Workers for each device of the jobs of a component, or nothing where no choice fits.
std::optional<std::vector<int>> Solve(std::span<const LoaderDemand> demands,
                                      const NeedGroup& component, std::span<const int> cores) {
  const auto chosen =
      component.nodes.size() == 1
          ? SolveNode(demands, component, cores[static_cast<std::size_t>(component.nodes.front())])
          : SolveNodes(demands, component, cores);
  if (!chosen) {
    return std::nullopt;
  }
  std::vector<int> workers;
  for (std::size_t i = 0; i < chosen->size(); ++i) {
    workers.push_back(component.choices[i][(*chosen)[i]].per_device);
  }
  return workers;
}

double RateOf(std::span<const LoaderDemand> demands, const NeedGroup& component,
              std::span<const int> workers) {
  double sum = 0;
  for (std::size_t i = 0; i < component.jobs.size(); ++i) {
    sum += demands[component.jobs[i]].RateWith(workers[i]);
  }
  return sum;
}

// The optimum, or what leaves settled jobs alone if the optimum is not better by enough.
std::vector<int> SolveComponent(std::span<const LoaderDemand> demands, NeedGroup component,
                                std::span<const int> cores, const ExactOptions& options) {
  const int least = FitsOneEach(demands, component, cores) ? 1 : 0;
  NeedGroup held = component;
  bool any_held = false;
  for (const std::size_t job : component.jobs) {
    const LoaderDemand& demand = demands[job];
    const bool hold = demand.settled && demand.workers >= least;
    any_held = any_held || hold;
    component.choices.push_back(ChoicesOf(demand, least, MostPerDevice(demand, cores)));
    held.choices.push_back(hold ? ChoicesOf(demand, demand.workers, demand.workers)
                                : component.choices.back());
  }
  // `least` for all fits, and will do should the solver give up.
  std::vector<int> best =
      Solve(demands, component, cores).value_or(std::vector<int>(component.jobs.size(), least));
  if (!any_held) {
    return best;
  }
  const auto calm = Solve(demands, held, cores);
  const bool worth = !calm || RateOf(demands, component, best) >
                                  RateOf(demands, component, *calm) * (1 + options.least_gain);
  return worth ? best : *calm;
}

}  // namespace

int LoaderDemand::devices() const {
  return std::accumulate(parts.begin(), parts.end(), 0,
                         [](int sum, const Part& part) { return sum + part.devices; });
}

double LoaderDemand::RateWith(int per_device) const {
  const auto last = static_cast<int>(rates.size()) - 1;
  return rates[static_cast<std::size_t>(std::clamp(per_device, 0, last))];
}

std::vector<int> ExactAllocation(std::span<const LoaderDemand> demands, std::span<const int> cores,
                                 const ExactOptions& options) {
  std::vector<int> workers(demands.size(), 0);
  for (NeedGroup& component : ComponentsOf(demands, cores.size())) {
    const std::vector<std::size_t> jobs = component.jobs;
    const std::vector<int> solved = SolveComponent(demands, std::move(component), cores, options);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      workers[jobs[i]] = solved[i];
    }
  }
  return workers;
}

std::int64_t AllocationScore(std::span<const LoaderDemand> demands,
                             std::span<const int> per_device) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    sum += ScoreOf(demands[i], per_device[i]);
  }
  return sum;
}

}  // namespace trainyard::loader
