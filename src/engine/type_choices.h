// SPDX-License-Identifier: Apache-2.0
// On which GPU types a demand may lie, and which it prefers, in clusters of several types.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/gpu_types.h"
#include "trainyard/snapshot.h"
#include "trainyard/state.h"

namespace trainyard {

// Demands that fit alike: where one finds no place, the others find none.
struct DemandClass {
  int gpus = 0;
  int kind = 0;                                                               // of TypeChoices
  friend auto operator<=>(const DemandClass&, const DemandClass&) = default;  // NOLINT
};

class TypeChoices {
 public:
  struct Choice {
    // Types that are equally fast for the job, the fastest first. It cannot run on others.
    std::vector<GpuTypeSet> pools{};
    GpuTypeSet all = 0;    // of all pools
    int largest_node = 0;  // GPUs of the largest node of these types
  };

  // `rates` must outlive it.
  TypeChoices(const Cluster& cluster, const ExecutionModel& rates);

  // False: GPUs are all alike, and every demand is of kind 0.
  [[nodiscard]] bool several() const { return types_.several(); }
  [[nodiscard]] const GpuTypes& types() const { return types_; }

  // Demands of one kind have the same choice. A new kind gets the next number. O(types).
  [[nodiscard]] DemandClass ClassOf(const JobSpec& job, int gpus);
  // The same for who only asks: nothing if there has been no such demand yet.
  [[nodiscard]] std::optional<DemandClass> KnownClassOf(const JobSpec& job, int gpus) const;
  // REQUIRES: several().
  [[nodiscard]] const Choice& Of(int kind) const {
    return choices_[static_cast<std::size_t>(kind)];
  }
  // Which kinds there are. Reading: into choices of the same cluster that have none yet.
  void Exchange(StateStream& state);
  // Why the job may not hold these GPUs; empty: their types are no reason. REQUIRES: several().
  [[nodiscard]] std::string Objection(const JobSpec& job, const Grant& grant);

 private:
  [[nodiscard]] std::vector<GpuTypeSet> PoolsOf(const JobSpec& job, int gpus) const;
  int KindOf(std::vector<GpuTypeSet> pools);

  GpuTypes types_;
  const ExecutionModel& rates_;
  std::vector<Choice> choices_;  // by kind
  std::map<std::vector<GpuTypeSet>, int> kinds_;
};

}  // namespace trainyard
