// SPDX-License-Identifier: Apache-2.0
// AntMan (OSDI'20), as Muri's simulator has it (docs/policies/antman.md): jobs of priority 0 are
// guaranteed their GPUs and their pace; the others are opportunistic and use what those leave, at
// most one of each on a GPU. No job is preempted; a guaranteed job that does not fit holds what
// there is and waits. A class, because src/originals derives the published form.
#pragma once

#include <cstdint>
#include <vector>

#include "trainyard/component.h"

namespace trainyard::policies {

// Load of a GPU by a guaranteed job that holds it, and by one that runs on it.
inline constexpr double kAntmanHold = 0.09;
inline constexpr double kAntmanRun = 0.1;

// Adds the GPUs of a node, as a set, to slices that are in order of nodes.
void AddTo(Slices& slices, NodeId node, std::uint64_t gpus);

[[nodiscard]] PolicyTraits AntmanTraits();

class AntmanDecision {
 public:
  explicit AntmanDecision(const Snapshot& snapshot);
  virtual ~AntmanDecision() = default;
  AntmanDecision(const AntmanDecision&) = delete;
  AntmanDecision& operator=(const AntmanDecision&) = delete;

  [[nodiscard]] Proposal Take();

 protected:
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
  // By which opportunistic jobs choose; by node and number on it.
  [[nodiscard]] virtual double LoadOf(std::size_t node, int gpu) const;
  // Whether a waiting job that holds GPUs goes before others of its priority.
  [[nodiscard]] virtual bool HoldersFirst() const { return true; }
  // `more` are the GPUs that the job gets besides those that it held; complete: it runs.
  virtual void Took(JobId /*job*/, const Slices& /*more*/, bool /*guaranteed*/, bool /*complete*/) {
  }

 private:
  // The use of a node's GPUs, as sets of them.
  struct NodeUse {
    std::uint64_t up = 0;
    std::uint64_t guaranteed = 0;     // GPUs with a job that is guaranteed them
    std::uint64_t held = 0;           // with a guaranteed job that waits for more
    std::uint64_t opportunistic = 0;  // with one that is not
    std::uint64_t closed = 0;  // to all other jobs: the job on them does not say how it would share

    [[nodiscard]] std::uint64_t FreeOfGuaranteed() const { return up & ~guaranteed & ~closed; }
  };

  // Nobody gets these beside their holder.
  void Close(const Slices& slices);
  void CloseFull(const JobSpec& job, const Slices& slices, bool running);
  void Use(const JobSpec& job, const Slices& slices, bool running);
  void Try(JobId id);
  // GPUs that a guaranteed job can take now, besides those it holds already.
  [[nodiscard]] Slices Guaranteed(const JobSpec& job, const Slices& held) const;
  // GPUs of a node on which this job may run.
  [[nodiscard]] static std::uint64_t Usable(const JobSpec& job, const NodeUse& node);
  // The first node with room for all, or what the node with the most room has.
  [[nodiscard]] Slices OnANode(const JobSpec& job, int gpus, const Slices& not_these) const;
  // More of the node on which it waits.
  [[nodiscard]] Slices OnThisNode(const JobSpec& job, const Slices& held, int gpus) const;
  // Whole nodes, then a part of another one.
  [[nodiscard]] Slices OnNodes(const JobSpec& job, const Slices& held, int largest) const;
  // GPUs without another opportunistic job, those with the least load first; all or none.
  [[nodiscard]] Slices Opportunistic(const JobSpec& job) const;

  const Snapshot& snapshot_;
  std::vector<NodeUse> nodes_;
  Proposal proposal_;
};

}  // namespace trainyard::policies
