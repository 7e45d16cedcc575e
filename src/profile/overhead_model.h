// SPDX-License-Identifier: Apache-2.0
// What it costs in time to start, restart, resize or move a job. One model for all policies; the
// numbers are data (presets/).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <variant>

#include "trainyard/job.h"
#include "trainyard/plan.h"
#include "trainyard/time.h"

namespace trainyard::profile {

struct ChangeCosts {
  Duration start{0};
  Duration restart{0};
  Duration resize{0};
  Duration migrate{0};
};

// Costs by model name; models that are not listed pay the fallback.
struct OverheadTable {
  ChangeCosts fallback{};
  std::unordered_map<std::string, ChangeCosts> models;
  // By model and GPU count, the same for every change; comes before `models`. A count that is not
  // listed pays what the next larger one does, or the largest.
  std::map<std::string, std::map<int, Duration>, std::less<>> by_gpus{};
};

// Costs by GPU count: base + per_doubling * (log2(gpus) + 1), and `full_restart` more when all jobs
// are restarted; clusters of at least `large_cluster` GPUs have their own base and restart cost.
// (As ElasticFlow's published simulator has it.)
struct OverheadFormula {
  double base = 0;
  double per_doubling = 0;
  double full_restart = 0;
  int large_cluster = 0;
  double large_base = 0;
  double large_full_restart = 0;
};

class OverheadModel {
 public:
  OverheadModel() = default;
  explicit OverheadModel(OverheadTable table) : model_(std::move(table)) {}
  explicit OverheadModel(OverheadFormula formula) : model_(formula) {}

  // `all_restart`: this change is part of a restart of all jobs.
  [[nodiscard]] Duration Cost(Change change, const JobSpec& job, int gpus, int cluster_gpus,
                              bool all_restart) const;
  // On a set of GPUs that was used before (PublishedRules::warm_sets): the formula's base; 0 by the
  // table.
  [[nodiscard]] Duration WarmCost(int cluster_gpus) const;

 private:
  std::variant<OverheadTable, OverheadFormula> model_;
};

}  // namespace trainyard::profile
