// SPDX-License-Identifier: Apache-2.0
// How many loader workers each job gets: three rules of the published torchloader and the
// exact optimum. One worker occupies one core.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "loader/throughput_model.h"

namespace trainyard::loader {

enum class AllocationRule : unsigned char {
  kExact,      // the most images per second under the cores of each node
  kV2,         // what all want, then one at a time from who has the most to spare
  kMultiNode,  // in turns, the fastest first; cores that are left are handed out as well
  kCp,         // as kV2, for a model without sharing of GPUs
};

// What is predicted of one job. Rates in images per second.
struct LoaderNeed {
  double gpu_rate = 0;     // of one device, as many jobs as there are on its GPUs
  double worker_rate = 0;  // of one worker; kCp: of one worker on each device together
  int devices = 0;         // >= 1

  // Workers for each device that keep it busy; a real number.
  [[nodiscard]] double Ratio() const { return gpu_rate / worker_rate; }
};

// `sharing`: the largest number of jobs on one of the job's GPUs, itself included.
[[nodiscard]] LoaderNeed PredictNeed(AllocationRule rule, const ThroughputModel& model,
                                     const ModelSize& size, TrainingShape shape, int sharing);

// Workers for each device before cores run short. REQUIRES: rule is not kExact.
[[nodiscard]] int WantedWorkers(AllocationRule rule, const LoaderNeed& need);

// Workers for each device of each job, by a published rule: `cores` are those of the cluster, no
// node is looked at, and a sum may exceed them by the devices of one job less one (kMultiNode) or
// because no job goes below one worker (kV2, kCp). Negative predictions give negative numbers, as
// published. REQUIRES: rule is not kExact.
[[nodiscard]] std::vector<int> PublishedAllocation(AllocationRule rule,
                                                   std::span<const LoaderNeed> needs, int cores);

// One job for the exact rule.
struct LoaderDemand {
  struct Part {
    int node = 0;
    int devices = 0;  // of the job on this node
  };
  std::vector<Part> parts;  // by node; at least one
  // Images per second of the whole job with as many workers for each device as the index says,
  // rising; more workers give no more than the last.
  std::vector<double> rates;
  int workers = 0;       // for each device, now
  bool settled = false;  // it runs with them: another number is a change

  [[nodiscard]] int devices() const;
  [[nodiscard]] double RateWith(int per_device) const;
};

struct ExactOptions {
  // Jobs that have settled keep their workers unless the sum of images per second rises by more
  // than this part of it.
  double least_gain = 0;
};

// Workers for each device of each job. Most images per second, in thousandths; a worker that gives
// less than one of them is not used. Among equals few settled jobs change and workers are spread
// evenly. Every device gets a worker on nodes that have the cores; the cores of no node are
// exceeded. Nodes without a common job are solved apart: one node by dynamic programming, several
// by integer programming. `cores`: by node.
[[nodiscard]] std::vector<int> ExactAllocation(std::span<const LoaderDemand> demands,
                                               std::span<const int> cores,
                                               const ExactOptions& options = {});

// What ExactAllocation maximises, in thousandths of an image per second.
[[nodiscard]] std::int64_t AllocationScore(std::span<const LoaderDemand> demands,
                                           std::span<const int> per_device);

// The rule's name in options; and back. REQUIRES: AllocationRuleOf: `name` is one of them.
inline constexpr std::string_view kAllocationRules = "exact|v2|multi_node|cp";
[[nodiscard]] std::string_view NameOf(AllocationRule rule);
[[nodiscard]] AllocationRule AllocationRuleOf(std::string_view name);

}  // namespace trainyard::loader
