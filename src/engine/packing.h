// SPDX-License-Identifier: Apache-2.0
// A trial packing: demands go in and out, nothing happens to jobs. Placements choose, the packing
// keeps the books, so that no placement repeats the walk and no policy the fit test.
#pragma once

#include <optional>

#include "trainyard/component.h"
#include "trainyard/free_gpus.h"

namespace trainyard {

class Packing {
 public:
  // Both must outlive the packing. Starts with nothing placed. Null: GPUs are counted, not named.
  Packing(const Cluster& cluster, const Placement* placement);

  // A grant for the demand of `job`, taken from the free GPUs; nothing if it does not fit.
  // Where the job's `former` grant (may be null) is still free, it stays there.
  [[nodiscard]] std::optional<Grant> TryAdd(const JobSpec& job, Demand demand, const Grant* former);
  void Add(const Grant& grant);     // REQUIRES: its GPUs are free
  void Remove(const Grant& grant);  // REQUIRES: it was added
  [[nodiscard]] bool IsFree(const Grant& grant) const;

  // All at once, by the placement's PlaceAll. REQUIRES: places_all(), and nothing is placed.
  [[nodiscard]] std::optional<std::vector<Slices>> TryAddAll(std::span<const Demand> demands,
                                                             Memory* memory);
  [[nodiscard]] bool places_all() const {
    return placement_ != nullptr && placement_->places_all();
  }

  // Why TryAdd refuses `gpus` now.
  [[nodiscard]] WaitReason WhyNot(int gpus) const {
    return gpus > free_.total() ? WaitReason::kGpus : WaitReason::kLocality;
  }

  [[nodiscard]] int free_gpus() const { return free_.total(); }
  [[nodiscard]] int free_gpus(NodeId node) const { return free_.count(node); }
  [[nodiscard]] const Cluster& cluster() const { return free_.cluster(); }
  [[nodiscard]] int largest_node() const { return free_.largest_node(); }
  [[nodiscard]] bool names_gpus() const {
    return placement_ != nullptr && placement_->names_gpus();
  }
  void Clear();  // removes everything; nodes that are down stay so
  void SetUp(NodeId node, bool up) {
    free_.SetUp(node, up);
    all_free_.SetUp(node, up);
  }
  [[nodiscard]] bool up(NodeId node) const { return free_.up(node); }

 private:
  // The GPUs for a demand of at least one.
  [[nodiscard]] std::optional<Slices> Find(const JobSpec& job, Demand demand,
                                           const Grant* former) const;

  const Placement* placement_;
  FreeGpus free_;
  FreeGpus all_free_;  // the same with nothing placed
};

}  // namespace trainyard
