// SPDX-License-Identifier: Apache-2.0
// Which GPUs are free on which node, indexed by how many are free: what placements choose from.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/ids.h"
#include "trainyard/job.h"
#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

// A set of node numbers with fast "first at or after". Insert and Erase cost O(1).
class NodeSet {
 public:
  explicit NodeSet(std::size_t nodes = 0);
  void Insert(NodeId node);
  void Erase(NodeId node);
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // The lowest member >= `from`; O(nodes / 4096) in the worst case.
  [[nodiscard]] std::optional<NodeId> First(NodeId from = NodeId{0}) const;

 private:
  std::vector<std::uint64_t> words_;    // bit per node
  std::vector<std::uint64_t> summary_;  // bit per non-empty word
  std::size_t size_ = 0;
};

// Where the data of jobs lie at present: what a placement asks that minds it.
class DataLocality {
 public:
  virtual ~DataLocality() = default;
  // How long a job that starts on the node now waits for its data; zero: they are there, or the
  // node does not state its bandwidth.
  [[nodiscard]] virtual Duration WaitOn(const DataSet& data, NodeId node) const = 0;
  // The nodes that keep the data set, or are fetching it, in node order.
  [[nodiscard]] virtual std::vector<NodeId> Holders(const DataSet& data) const = 0;
};

// The free GPUs, CPUs and memory of every node that is up. A node that is down has none.
class FreeGpus {
 public:
  FreeGpus() = default;
  // Both must outlive it; `data` may be null: nobody knows where data lie.
  explicit FreeGpus(const Cluster& cluster, const DataLocality* data = nullptr);
  // As if the other nodes did not exist: they are down for ever. Slices with some of them are for
  // Take and Return what they are without these. `nodes`: by NodeId.
  FreeGpus(const Cluster& cluster, const DataLocality* data, std::vector<bool> nodes);

  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }
  [[nodiscard]] const DataLocality* data() const { return data_; }
  // GPUs of the largest node. O(1), unlike Cluster::largest_node().
  [[nodiscard]] int largest_node() const { return static_cast<int>(by_count_.size()) - 1; }
  [[nodiscard]] int total() const { return total_; }  // free GPUs, may be negative when counting
  [[nodiscard]] std::uint64_t gpus(NodeId node) const { return free_[Index(node)]; }
  [[nodiscard]] const Resources& resources(NodeId node) const { return soft_[Index(node)]; }
  [[nodiscard]] bool up(NodeId node) const { return up_[Index(node)]; }
  [[nodiscard]] int count(NodeId node) const { return count_[Index(node)]; }
  // The `count` free GPUs of the node with the lowest numbers, for a slice. REQUIRES: the node has
  // so many. O(count).
  [[nodiscard]] std::uint64_t Lowest(NodeId node, int count) const;
  // Nodes with exactly `count` free GPUs (0 to the largest node), nodes that are down excepted.
  [[nodiscard]] const NodeSet& NodesWith(int count) const {
    return by_count_[static_cast<std::size_t>(count)];
  }

  // The smallest count of at least `least` that some node has, or 0. REQUIRES: least >= 1. O(1).
  [[nodiscard]] int SmallestCount(int least) const {
    const std::uint64_t counts = counts_ & (~std::uint64_t{0} << (least - 1));
    return counts == 0 ? 0 : std::countr_zero(counts) + 1;
  }

  // O(slices). REQUIRES: every GPU of the slices is free (Take) or taken (Return), and the node is
  // up.
  void Take(const Slices& slices);
  void Return(const Slices& slices);
  [[nodiscard]] bool AreFree(const Slices& slices) const;
  // Counts without naming GPUs.
  void Take(int gpus) { total_ -= gpus; }
  void Return(int gpus) { total_ += gpus; }
  // REQUIRES: nothing is taken on the node.
  void SetUp(NodeId node, bool up);

 private:
  [[nodiscard]] bool IsPart(NodeId node) const { return part_.empty() || part_[Index(node)]; }
  void Move(NodeId node, std::uint64_t now_free, int now_count);
  void Enlist(NodeId node, int count);
  void Delist(NodeId node, int count);

  const Cluster* cluster_ = nullptr;
  const DataLocality* data_ = nullptr;
  std::vector<std::uint64_t> free_;
  std::vector<Resources> soft_;
  std::vector<bool> up_;
  std::vector<bool> part_;           // empty: all nodes
  std::vector<std::uint8_t> count_;  // free GPUs by node
  std::vector<NodeSet> by_count_;
  std::uint64_t counts_ = 0;  // bit i: some node has i + 1 free GPUs
  int total_ = 0;
};

}  // namespace trainyard
