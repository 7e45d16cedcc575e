// SPDX-License-Identifier: Apache-2.0
// The published rules: docs/policies/torchloader.md.
#include "loader/allocation.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace trainyard::loader {
namespace {

constexpr std::array<std::pair<std::string_view, AllocationRule>, 4> kRules{{
    {"exact", AllocationRule::kExact},
    {"v2", AllocationRule::kV2},
    {"multi_node", AllocationRule::kMultiNode},
    {"cp", AllocationRule::kCp},
}};

int Sum(std::span<const int> workers, std::span<const LoaderNeed> needs) {
  int sum = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    sum += workers[i] * needs[i].devices;
  }
  return sum;
}

std::vector<std::size_t> Numbered(std::size_t size) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

// By the part of the last worker that is not needed, then by need; both falling.
std::vector<std::size_t> BySlack(std::span<const LoaderNeed> needs) {
  const auto slack = [&](std::size_t i) {
    const double ratio = needs[i].Ratio();
    return WantedWorkers(AllocationRule::kV2, needs[i]) - ratio;
  };
  std::vector<std::size_t> order = Numbered(needs.size());
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(slack(b), needs[b].Ratio()) < std::pair(slack(a), needs[a].Ratio());
  });
  return order;
}

std::vector<std::size_t> ByRate(std::span<const LoaderNeed> needs) {
  std::vector<std::size_t> order = Numbered(needs.size());
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return needs[b].gpu_rate < needs[a].gpu_rate;
  });
  return order;
}

// Rules v2 and cp: every job has the workers that it wants; then one worker goes at each visit.
void Shrink(std::span<const LoaderNeed> needs, int cores, std::vector<int>& workers) {
  const std::vector<std::size_t> order = BySlack(needs);
  bool taken = true;
  while (taken) {  // ends also where negative numbers keep the second test from ever being true
    taken = false;
    for (const std::size_t i : order) {
      const int all = std::accumulate(workers.begin(), workers.end(), 0);
      if (Sum(workers, needs) <= cores || all == static_cast<int>(needs.size())) {
        return;
      }
      if (workers[i] > 1) {
        --workers[i];
        taken = true;
      }
    }
  }
}

// Rule multi_node, short of cores: every job begins with none. The test comes before the worker, so
// the last one may go beyond the cores.
std::vector<int> Grow(std::span<const LoaderNeed> needs, int cores, std::span<const int> wanted) {
  const std::vector<std::size_t> order = ByRate(needs);
  std::vector<int> workers(needs.size(), 0);
  std::vector<bool> satisfied(needs.size(), false);
  std::size_t all = 0;
  for (std::size_t visit = 0; Sum(workers, needs) < cores && all < needs.size(); ++visit) {
    const std::size_t i = order[visit % order.size()];
    if (workers[i] < wanted[i]) {
      ++workers[i];
    } else if (!satisfied[i]) {
      satisfied[i] = true;
      ++all;
    }
  }
  return workers;
}

// Rule multi_node, with cores to spare: all cores are given away, in proportion to what is wanted,
// then in turns.
std::vector<int> SpreadCores(std::span<const LoaderNeed> needs, int cores,
                             std::span<const int> wanted) {
  const int sum = Sum(wanted, needs);
  std::vector<int> workers(wanted.begin(), wanted.end());
  if (sum == 0) {
    return workers;
  }
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const double part = static_cast<double>(wanted[i] * needs[i].devices) / sum;
    workers[i] = static_cast<int>(part * cores / needs[i].devices);
  }
  const std::vector<std::size_t> order = ByRate(needs);
  for (std::size_t visit = 0; Sum(workers, needs) < cores; ++visit) {
    ++workers[order[visit % order.size()]];
  }
  return workers;
}

}  // namespace

LoaderNeed PredictNeed(AllocationRule rule, const ThroughputModel& model, const ModelSize& size,
                       TrainingShape shape, int sharing) {
  const double gpu_rate = model.DeviceRate(size, shape);
  if (rule == AllocationRule::kCp) {  // both for all devices, and nobody shares
    return {.gpu_rate = shape.batch / model.IterationSeconds(size, shape),
            .worker_rate = model.LoaderRate(shape.devices),
            .devices = shape.devices};
  }
  return {.gpu_rate = gpu_rate / sharing,
          .worker_rate = model.WorkerRate(shape.devices),
          .devices = shape.devices};
}

int WantedWorkers(AllocationRule rule, const LoaderNeed& need) {
  CHECK(rule != AllocationRule::kExact);
  const int spare = rule == AllocationRule::kMultiNode ? 2 : 1;
  constexpr double kMost = 1e6;  // where a prediction is next to nothing, or to minus that
  return static_cast<int>(std::clamp(need.Ratio(), -kMost, kMost)) + spare;
}

std::vector<int> PublishedAllocation(AllocationRule rule, std::span<const LoaderNeed> needs,
                                     int cores) {
  std::vector<int> wanted;
  for (const LoaderNeed& need : needs) {
    wanted.push_back(WantedWorkers(rule, need));
  }
  if (rule == AllocationRule::kMultiNode) {
    return Sum(wanted, needs) > cores ? Grow(needs, cores, wanted)
                                      : SpreadCores(needs, cores, wanted);
  }
  Shrink(needs, cores, wanted);
  return wanted;
}

std::string_view NameOf(AllocationRule rule) {
  for (const auto& [name, named] : kRules) {
    if (named == rule) {
      return name;
    }
  }
  return "";
}

AllocationRule AllocationRuleOf(std::string_view name) {
  const auto found = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const auto& rule) { return rule.first == name; });
  CHECK(found != kRules.end());
  return found->second;
}

}  // namespace trainyard::loader
