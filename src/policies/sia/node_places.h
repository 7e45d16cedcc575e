// SPDX-License-Identifier: Apache-2.0
// Where jobs lie whose configurations are chosen (Sia, SOSP'23, section 3.5): jobs that are as they
// were stay, whole nodes are emptied where they are wanted, and what is smaller than a node is
// never split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "policies/sia/configurations.h"
#include "trainyard/resources.h"

namespace trainyard::policies {

struct ConfiguredJob {
  Configuration configuration;
  // What it holds, where that is this configuration on nodes that are up; else empty.
  Slices held{};
};

class NodePlaces {
 public:
  // `jobs`: that shall have GPUs. `nodes`: of the cluster. All must outlive the places.
  NodePlaces(std::size_t nodes, std::span<const NodeKind> kinds,
             std::span<const ConfiguredJob> jobs);

  // Where the job lies; empty: there was no place. Where nodes have powers of two of GPUs, and no
  // kind of node is wanted more often than it is there, all jobs have one.
  [[nodiscard]] const Slices& of(std::size_t job) const { return slices_[job]; }
  // Puts a job without a place on what is left, in another configuration. False: it is too large.
  bool PlaceAs(std::size_t job, const Configuration& configuration);

 private:
  struct Node {
    std::uint64_t free = 0;
    int gpus = 0;
    bool whole = false;                // of one job
    std::vector<std::size_t> parts{};  // jobs on a part of it
  };
  void Keep(std::size_t job);
  void Evict(std::size_t job);
  bool PlaceWhole(std::size_t job, const Configuration& configuration, bool may_evict);
  bool PlacePart(std::size_t job, const Configuration& configuration, bool may_evict);
  // The node that lacks the fewest GPUs for so many once smaller jobs leave it; null: none.
  [[nodiscard]] Node* NodeToClear(const NodeKind& kind, int gpus);
  void TakePart(std::size_t job, NodeId node, int gpus);

  const std::span<const NodeKind> kinds_;
  const std::span<const ConfiguredJob> jobs_;
  std::vector<Node> nodes_;  // by NodeId
  std::vector<Slices> slices_;
  std::vector<bool> whole_;
  std::vector<std::size_t> waiting_;  // parts without a place
};

}  // namespace trainyard::policies
