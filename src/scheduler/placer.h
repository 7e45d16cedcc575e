// SPDX-License-Identifier: Apache-2.0
// Finds GPUs for an ordered list of demands: which jobs hold what from now on. Keeps the packing,
// against which the next list is tried.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/job_fields.h"
#include "model/job_records.h"
#include "scheduler/bundle.h"
#include "scheduler/node_choices.h"
#include "scheduler/packing.h"
#include "scheduler/proposal_check.h"
#include "scheduler/queue/ordered_list.h"
#include "scheduler/walk.h"
#include "trainyard/snapshot.h"

namespace trainyard::scheduler {

// What schedulers see of the engine that they are part of. All of it outlives them.
struct SchedulerContext {
  const Cluster& cluster;
  const std::vector<bool>& nodes_up;
  const model::JobRecords& jobs;
  const JobTable& views;  // the same jobs, as components see them
  const DataLocality& data;
  NodeChoices& choices;
};

class Placer {
 public:
  // `bundle` and `check` must outlive it; Reopen comes before anything else.
  Placer(const SchedulerContext& context, const Bundle& bundle, const ProposalCheck& check);

  // The bundle is another one: begins afresh with the nodes that are up and the grants that there
  // are.
  void Reopen();
  // What is free and what is held is found anew, from nodes and jobs. O(nodes + running).
  void Refill();
  void SetUp(NodeId node, bool up);
  // The job has lost its grant, which is still in its record.
  void Remove(JobId job);
  // The same of a job that finishes: its GPUs, where its nodes are up, are the policy's again.
  void EndFinishing(JobId job);
  // Whether the CPUs and memory of a job without GPUs are kept from the jobs with GPUs.
  [[nodiscard]] static bool KeepsCpus(const model::JobRecords& jobs, JobId job) {
    return jobs.cpu_finishing().contains(job) && model::IsNoRequeue(*jobs[job].spec);
  }

  // Where the queue places jobs one by one: the packing, or the count of GPUs (Walk::count_first).
  [[nodiscard]] Packing& of_queue() { return counting_ ? *counting_ : packing_; }
  [[nodiscard]] bool counts_first() const { return counting_.has_value(); }
  // The queue's selection by count, with GPUs that the placement chooses. REQUIRES: counts_first().
  [[nodiscard]] Result<Selection> PlaceCounted(Selection selection);
  // All live jobs in their order. REQUIRES: packs_queue().
  [[nodiscard]] Result<Selection> PlaceQueue(std::span<const Ranked> list);
  // Demands in the order of their priority. REQUIRES: they have been checked.
  [[nodiscard]] Result<Selection> PlaceProposed(std::vector<Demand> demands, const Walk& walk);
  // Asks the tuning about every job that will hold GPUs, also about those that keep theirs.
  // O(running).
  void Tune(Selection& selection, const Snapshot& snapshot);
  // The jobs that hold GPUs and, by a complete selection, are to hold none; ascending.
  [[nodiscard]] std::vector<JobId> DroppedBy(const Selection& selection);

  // Whether a packer places all live jobs at once, as there is no placement.
  [[nodiscard]] bool packs_queue() const {
    return bundle_.packer != nullptr && bundle_.placement == nullptr;
  }
  // Whether a job that avoids nodes is kept away from them.
  [[nodiscard]] bool keeps_away() const { return packs_grants() && !bundle_.packs(walk_); }
  // What the packer remembers; null: nothing.
  [[nodiscard]] Memory* memory() { return memory_.get(); }

 private:
  // Whether the packing holds what the jobs hold; otherwise it is empty between decisions: it
  // has no place for what is shared, and where the policy names GPUs nothing is chosen.
  [[nodiscard]] bool packs_grants() const { return !may_.share && !may_.name_gpus; }

  void Reserve(JobId job);
  void AddUnnamedRunning(Selection& selection) const;
  void CountPlaced();
  [[nodiscard]] std::vector<Demand> FitByCount(std::span<const Ranked> list);
  [[nodiscard]] Result<Selection> TakeNamed(std::vector<Demand> demands);
  class Beside;
  [[nodiscard]] bool AnyoneAsks(std::span<const Demand> demands) const;
  [[nodiscard]] bool NamesTaken(std::span<const Demand> demands) const;
  [[nodiscard]] std::optional<Grant> FindOthers(const Demand& demand, const DemandClass& of);
  [[nodiscard]] model::NodeClassSet OtherTypes(const Demand& demand, const DemandClass& of) const;
  [[nodiscard]] Result<Selection> PlaceNearNamed(std::vector<Demand> demands);
  [[nodiscard]] Selection PlaceChanging(std::vector<Demand> demands, const Walk& walk);
  void SortForWalk(std::vector<Demand>& demands, const Walk& walk);
  [[nodiscard]] std::vector<Demand>::iterator PutSameSizeFirst(std::vector<Demand>& demands);
  [[nodiscard]] Result<Selection> PackDemands(std::vector<Demand> demands);
  [[nodiscard]] Result<Selection> PackQueue(std::span<const Ranked> list);
  template <typename List, typename Same, typename DemandOf>
  [[nodiscard]] Result<Selection> PackList(List& list, Same same, DemandOf demand_of);
  [[nodiscard]] Result<Selection> Pack(std::size_t same);
  [[nodiscard]] bool Asks(const Demand& demand) const;
  [[nodiscard]] bool PackAround();
  void ClearPlaced();
  void BlockUnplaced(Selection& selection);
  void TakeAll(Selection& selection);
  void TakeMoved(Selection& selection);
  void AddPlaced(std::size_t number, Selection& selection);
  void DropUndemanded(Selection& selection);

  // Marks of jobs, each set valid until the next NewMark.
  void NewMark();
  void Mark(JobId job) { marked_[Index(job)] = mark_; }
  [[nodiscard]] std::vector<JobId> RunningUnmarked() const;
  std::vector<JobId> RemoveUnmarked();

  const SchedulerContext context_;
  const model::JobRecords& jobs_;
  const Bundle& bundle_;
  const ProposalCheck& check_;
  Walk walk_;
  May may_;
  std::unique_ptr<Memory> memory_;

  Packing packing_;
  std::optional<Packing> counting_;    // Walk::count_first
  std::vector<std::uint32_t> marked_;  // by JobId
  std::uint32_t mark_ = 0;
  // What the packer was asked last; empty when nodes have changed since.
  std::vector<Demand> placed_;
  std::vector<Slices> placed_slices_;
  std::vector<model::Blocked> placed_blocked_;
  bool is_as_placed_ = false;            // no job has lost GPUs since
  std::vector<Demand> scratch_demands_;  // empty between calls
};

}  // namespace trainyard::scheduler
