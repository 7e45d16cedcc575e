// SPDX-License-Identifier: Apache-2.0
// Gandiva (OSDI'18), as ElasticFlow's simulator has it: the nodes are divided among the job sizes
// into sets that each hold as many jobs as fit and any number that take turns; sets are added and
// dissolved as the demand of the sizes changes. A class, because src/originals derives the form of
// that simulator.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/component_entry.h"
#include "trainyard/state.h"

namespace trainyard::policies {

// Of option `quantum`: seconds to a duration. Errors: it is too short or too long for `policy`.
[[nodiscard]] Result<Duration> QuantumOf(const Options& options, std::string_view policy);

// Nodes that jobs of one size share. The first `capacity` jobs run, the others wait for their turn.
struct SharedNodes {
  std::vector<NodeId> nodes;  // ascending
  std::size_t capacity = 0;
  std::vector<JobId> jobs;
  // Jobs that have joined since the set was made or dealt out anew; as published, those that have
  // ended still count.
  std::size_t joined = 0;
  std::vector<std::optional<JobId>> seats;  // by position on the nodes, as last proposed

  [[nodiscard]] std::size_t load() const { return jobs.size(); }
  [[nodiscard]] bool over_committed() const { return load() > capacity; }

  void Join(JobId job) {
    jobs.push_back(job);
    ++joined;
  }
  void Serialize(StateStream& state) { state(nodes, capacity, jobs, joined, seats); }
};

using SizeGroup = std::vector<SharedNodes>;  // all sets of one job size

struct PendingJob {
  JobId id{};
  int gpus = 0;

  void Serialize(StateStream& state) { state(id, gpus); }
};

struct GandivaMemory final : Memory {
  std::map<int, SizeGroup> groups;            // by GPUs of a job
  std::vector<SharedNodes> spare;             // given up: only their storage counts
  std::vector<PendingJob> pending;            // jobs without a set
  std::vector<NodeId> up;                     // nodes in use, ascending
  std::optional<std::uint64_t> node_changes;  // as of then
  std::vector<JobId> live;   // at the last decision: those in sets and those pending
  std::vector<NodeId> free;  // those in no set, ascending
  bool nodes_freed = false;  // since pending jobs were last tried
  std::optional<TimePoint> slice_end;

  // Without the storage of sets that were given up.
  void Serialize(StateStream& state) override {
    state(groups, pending, up, node_changes, live, free, nodes_freed, slice_end);
  }
};

// Fewer jobs first.
[[nodiscard]] bool LessLoaded(const SharedNodes& a, const SharedNodes& b);
// Stable.
void SortByLoad(SizeGroup& group);

// The nodes of the cluster and who holds them.
class NodePool {
 public:
  NodePool(const Snapshot& snapshot, GandivaMemory& memory)
      : gpus_per_node_(snapshot.cluster->largest_node()), memory_(memory) {}

  [[nodiscard]] int gpus_per_node() const { return gpus_per_node_; }
  [[nodiscard]] int gpus() const { return static_cast<int>(memory_.up.size()) * gpus_per_node_; }
  // Of a set for jobs of that size.
  [[nodiscard]] std::size_t NodesFor(int gpus) const {
    return static_cast<std::size_t>((gpus + gpus_per_node_ - 1) / gpus_per_node_);
  }
  [[nodiscard]] std::size_t CapacityFor(int gpus) const {
    return NodesFor(gpus) * static_cast<std::size_t>(gpus_per_node_) /
           static_cast<std::size_t>(gpus);
  }

  // Adds an empty set to the group of that size; false: there are not enough free nodes.
  bool AddSet(int gpus, SizeGroup& group) {
    const std::size_t count = NodesFor(gpus);
    if (memory_.free.size() < count) {
      return false;
    }
    SharedNodes& set = AddRecycled(group);
    set.capacity = CapacityFor(gpus);
    set.seats.resize(set.capacity);
    const auto end = memory_.free.begin() + static_cast<std::ptrdiff_t>(count);
    set.nodes.assign(memory_.free.begin(), end);
    memory_.free.erase(memory_.free.begin(), end);
    return true;
  }

  // Takes the set, which has no jobs then and is to be erased.
  void Free(SharedNodes& set) {
    for (const NodeId node : set.nodes) {
      memory_.free.insert(std::lower_bound(memory_.free.begin(), memory_.free.end(), node), node);
    }
    memory_.nodes_freed = true;
    memory_.spare.push_back(std::move(set));
  }

  // Sets on nodes that have gone are given up; their jobs must find another.
  void Follow(std::vector<NodeId> up) {
    if (up == memory_.up) {
      return;
    }
    const auto is_up = [&up](NodeId node) {
      return std::binary_search(up.begin(), up.end(), node);
    };
    std::vector<PendingJob> homeless;
    for (auto& [gpus, group] : memory_.groups) {
      const auto lost =
          std::stable_partition(group.begin(), group.end(), [&is_up](const SharedNodes& set) {
            return std::all_of(set.nodes.begin(), set.nodes.end(), is_up);
          });
      for (auto set = lost; set != group.end(); ++set) {
        for (const JobId job : set->jobs) {
          homeless.push_back({job, gpus});
        }
      }
      group.erase(lost, group.end());
    }
    memory_.pending.insert(memory_.pending.begin(), homeless.begin(), homeless.end());
    memory_.free = up;
    for (const auto& [gpus, group] : memory_.groups) {
      for (const SharedNodes& set : group) {
        std::erase_if(memory_.free, [&set](NodeId node) {
          return std::binary_search(set.nodes.begin(), set.nodes.end(), node);
        });
      }
    }
    memory_.up = std::move(up);
    memory_.nodes_freed = true;
  }

 private:
  // An empty set with the storage of one that was given up, if there is any.
  SharedNodes& AddRecycled(SizeGroup& group) {
    if (memory_.spare.empty()) {
      return group.emplace_back();
    }
    SharedNodes& set = group.emplace_back(std::move(memory_.spare.back()));
    memory_.spare.pop_back();
    set.jobs.clear();
    set.joined = 0;
    set.seats.clear();
    return set;
  }

  const int gpus_per_node_;
  GandivaMemory& memory_;
};

// One decision.
class GandivaDecision {
 public:
  GandivaDecision(Duration quantum, const Snapshot& snapshot, GandivaMemory& memory)
      : quantum_(quantum), snapshot_(snapshot), memory_(memory), pool_(snapshot, memory) {}
  virtual ~GandivaDecision() = default;

  Proposal Take();

 protected:
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
  [[nodiscard]] GandivaMemory& memory() { return memory_; }
  [[nodiscard]] NodePool& pool() { return pool_; }

  // Whether those who ran go behind those who waited.
  [[nodiscard]] virtual bool SliceIsOver() const;
  // When the policy is to be woken for that, while jobs wait for their turn; none: it is not.
  [[nodiscard]] virtual std::optional<TimePoint> SliceEnd() const;
  // Jobs have left the set.
  virtual void NoteLeft(SharedNodes& set) { set.joined = set.jobs.size(); }
  // Finds sets for those that are new and for those that wait for one.
  virtual void PlaceAll(const std::vector<PendingJob>& arrivals);
  // The set that the next job of the group joins if it has room; null: the group has no set.
  [[nodiscard]] virtual SharedNodes* Tried(SizeGroup& group);
  [[nodiscard]] virtual bool HasRoom(const SharedNodes& set) const {
    return set.joined < set.capacity;
  }
  // Adds and dissolves sets as the demand of the sizes has changed.
  virtual void Adjust();

  // Whether the job has found a set: one with room, a new one, or one that is full already.
  bool Place(const PendingJob& job);

 private:
  std::vector<PendingJob> Meet();
  [[nodiscard]] bool Gone(JobId job) const;
  [[nodiscard]] bool Resized(JobId job) const;
  void FollowNodes();
  void CloseInterval();
  void RetryAll();
  [[nodiscard]] std::size_t SeatsTaken() const;
  void AskForSeats(const SharedNodes& set, int gpus, std::vector<Demand>& demands) const;
  Proposal Propose();
  void Seat(SharedNodes& set);
  [[nodiscard]] Slices SlicesOf(const SharedNodes& set, std::size_t seat, int gpus) const;

  const Duration quantum_;
  const Snapshot& snapshot_;
  GandivaMemory& memory_;
  NodePool pool_;
  bool same_jobs_ = false;                     // as at the last decision
  std::vector<JobId> present_;                 // ascending; empty where they are the same
  std::bitset<kMaxGpusPerNode> newly_seated_;  // by seat, in the set at hand
};

}  // namespace trainyard::policies
