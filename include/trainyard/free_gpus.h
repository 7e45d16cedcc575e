// SPDX-License-Identifier: Apache-2.0
// Which GPUs are free on which node, indexed by how many are free: what placements choose from.
//
// A placement is given a const FreeGpus and finds a node in O(log nodes) or less, however large the
// cluster is. The tightest node for a gang, the lowest of equals:
//
//   if (const int count = free.SmallestCount(demand.gpus); count > 0) {
//     const NodeId node = *free.NodesWith(count).First();
//     ...  // demand.gpus of the bits of free.gpus(node)
//   }
//
// A packer, which places a whole list, takes a copy (O(nodes)) and takes from it what it has given.
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

// A set of node numbers with fast "first at or after", which iterates in ascending order:
//
//   for (auto node = set.First(); node; node = set.First(NodeAt(Index(*node) + 1)))
//
// Insert and Erase cost O(1), a copy O(nodes / 64).
class NodeSet {
 public:
  // An empty set of nodes below `nodes`.
  explicit NodeSet(std::size_t nodes = 0);
  // REQUIRES: Index(node) < nodes, and the node is not in the set (Insert) or is in it (Erase).
  void Insert(NodeId node);
  void Erase(NodeId node);
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // The lowest member >= `from`, or nothing; O(nodes / 4096) in the worst case. `from` may lie
  // behind the last node.
  [[nodiscard]] std::optional<NodeId> First(NodeId from = NodeId{0}) const;

 private:
  std::vector<std::uint64_t> words_;    // bit per node
  std::vector<std::uint64_t> summary_;  // bit per non-empty word
  std::size_t size_ = 0;
};

// Where the data of jobs lie at present: what a placement asks that minds it. The engine keeps the
// books: a node fetches a data set when a job starts there, keeps it if its cache has room, and
// drops the least recently used (src/model/data_caches.h).
class DataLocality {
 public:
  virtual ~DataLocality() = default;
  // How long a job that starts on the node now waits for its data; zero: they are there, or the
  // node does not state its bandwidth. A gang waits for the slowest of its nodes. O(log data sets).
  [[nodiscard]] virtual Duration WaitOn(const DataSet& data, NodeId node) const = 0;
  // The nodes that keep the data set, or are fetching it, and its home, in node order, whether they
  // are up or not. Empty where no node of the cluster states a bandwidth. O(nodes returned).
  [[nodiscard]] virtual std::vector<NodeId> Holders(const DataSet& data) const = 0;
};

// The free GPUs, CPUs and memory of every node that is up. A node that is down has none, and is in
// no NodesWith. What a placement is given is not always the whole cluster: GPUs are taken of nodes
// that the job avoids or that do not meet its request (NodeRequest), all but as many as its CPUs
// and memory reach for on the others, and nodes of GPU types that it may not have, or that are not
// tried at this call, are down.
class FreeGpus {
 public:
  // Of no cluster: only to be assigned to.
  FreeGpus() = default;
  // All nodes up, all GPUs free. Both must outlive it; `data` may be null: nobody knows where data
  // lie. O(nodes x GPUs of the largest).
  explicit FreeGpus(const Cluster& cluster, const DataLocality* data = nullptr);
  // The same of a part of the nodes, those with `nodes[Index(node)]`. The others are down for ever,
  // and Take and Return pass over slices on them. An empty `nodes`: all.
  FreeGpus(const Cluster& cluster, const DataLocality* data, std::vector<bool> nodes);

  [[nodiscard]] const Cluster& cluster() const { return *cluster_; }
  // Null: nobody knows where data lie.
  [[nodiscard]] const DataLocality* data() const { return data_; }
  // GPUs of the largest node of the part, up or not. O(1), unlike Cluster::largest_node().
  [[nodiscard]] int largest_node() const { return static_cast<int>(by_count_.size()) - 1; }
  // Free GPUs of all nodes; may be negative when counting.
  [[nodiscard]] int total() const { return total_; }
  // The free GPUs of a node, bit i for GPU i, as in Slice; count() of them. O(1).
  [[nodiscard]] std::uint64_t gpus(NodeId node) const { return free_[Index(node)]; }
  // Its capacity less Slice::soft of what is taken. Of an amount that the node does not state it is
  // zero or less, and no limit; of a node that is down, without meaning.
  [[nodiscard]] const Resources& resources(NodeId node) const { return soft_[Index(node)]; }
  [[nodiscard]] bool up(NodeId node) const { return up_[Index(node)]; }
  [[nodiscard]] int count(NodeId node) const { return count_[Index(node)]; }
  // The `count` free GPUs of the node with the lowest numbers, for a slice. REQUIRES: the node has
  // so many. O(count).
  [[nodiscard]] std::uint64_t Lowest(NodeId node, int count) const;
  // Nodes with exactly `count` free GPUs, nodes that are down excepted; valid as long as this
  // FreeGpus. REQUIRES: 0 <= count <= largest_node(). O(1).
  [[nodiscard]] const NodeSet& NodesWith(int count) const {
    return by_count_[static_cast<std::size_t>(count)];
  }

  // The smallest number of free GPUs, of at least `least`, that some node has; 0: no node has so
  // many. REQUIRES: 1 <= least <= kMaxGpusPerNode. O(1).
  [[nodiscard]] int SmallestCount(int least) const {
    const std::uint64_t counts = counts_ & (~std::uint64_t{0} << (least - 1));
    return counts == 0 ? 0 : std::countr_zero(counts) + 1;
  }

  // Takes the GPUs and Slice::soft of the slices, or returns them. O(slices). REQUIRES: every GPU
  // of the slices is free (Take) or taken (Return), and the node is up; otherwise the program ends.
  // Resources are not checked: they may become negative.
  void Take(const Slices& slices);
  void Return(const Slices& slices);
  // Whether the nodes are up, the GPUs free, and resources() cover Slice::soft, of amounts that the
  // node states.
  [[nodiscard]] bool AreFree(const Slices& slices) const;
  // Counts without naming GPUs: changes total() alone.
  void Take(int gpus) { total_ -= gpus; }
  void Return(int gpus) { total_ += gpus; }
  // The node comes up, with all GPUs free, or goes down. Without effect if it is so already, or not
  // of the part. REQUIRES, to go down: nothing is taken on the node.
  void SetUp(NodeId node, bool up);

 private:
  [[nodiscard]] bool HasRoomFor(const Slice& slice) const;
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
