// SPDX-License-Identifier: Apache-2.0
// A trial packing: demands go in and out, nothing happens to jobs. Placements choose, the packing
// keeps the books, so that no placement repeats the walk and no policy the fit test.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/blocked.h"
#include "model/request/request_book.h"
#include "scheduler/node_choices.h"
#include "trainyard/component.h"
#include "trainyard/free_gpus.h"

namespace trainyard::scheduler {

class Packing {
 public:
  // All must outlive the packing. Starts with nothing placed, and counts GPUs without naming them.
  explicit Packing(const Cluster& cluster);
  // Names GPUs. `placement`: null: demands and grants say which GPUs. `data` may be
  // null. `choices`: null: all nodes are alike.
  Packing(const Cluster& cluster, const Placement* placement, const DataLocality* data = nullptr,
          NodeChoices* choices = nullptr);

  // A grant for the demand of `job`, taken from the free GPUs; nothing if it does not fit.
  // Where the job's `former` grant (may be null) is still free, it stays there. `but`: classes of
  // nodes where it shall not lie otherwise; REQUIRES: it may have others (NodesFor).
  [[nodiscard]] std::optional<Grant> TryAdd(const JobSpec& job, Demand&& demand,
                                            const Grant* former, model::NodeClassSet but = 0);
  // What the job holds. REQUIRES: its GPUs are free.
  void Add(const JobSpec& job, const Grant& grant);
  void Remove(const JobSpec& job, const Grant& grant);  // REQUIRES: it was added
  // GPUs without names. REQUIRES: names_gpus() is false.
  void AddCount(int gpus) { free_.Take(gpus); }
  // The same GPUs with other CPUs and memory. REQUIRES: `before` was added.
  void Replace(const Slices& before, const Slices& after);
  [[nodiscard]] bool IsFree(const JobSpec& job, const Grant& grant) const;
  // The part of its GPUs that is free, where GPUs are named; else nothing.
  [[nodiscard]] Grant FreePartOf(const Grant& grant) const;

  // The free GPUs that jobs which ask for nothing beside them may have.
  [[nodiscard]] FreeGpus LeftToSilent() const {
    return SeenBy(free_, requests_, kMaxGpusPerNode, nullptr);
  }
  // The free GPUs if nothing were placed.
  [[nodiscard]] const FreeGpus& all_free() const { return all_free_; }
  // A node whose CPUs or memory are given out beyond what it states.
  [[nodiscard]] std::optional<NodeId> Overcommitted() const;

  // Why TryAdd refuses a demand of this class now.
  [[nodiscard]] model::WaitReason WhyNot(const DemandClass& of);

  [[nodiscard]] DemandClass ClassOf(const JobSpec& job, int gpus) const {
    return choices_ == nullptr ? DemandClass{.gpus = gpus} : choices_->ClassOf(job, gpus);
  }
  [[nodiscard]] int free_gpus() const { return free_.total(); }
  // Free GPUs that such a demand may have, in all and of one node.
  [[nodiscard]] int free_gpus(const DemandClass& of);
  // Whether such a demand has enough GPUs if nothing is placed, with what it asks for beside them.
  // Otherwise it cannot be met until a node comes up, and is in no other's way.
  [[nodiscard]] bool CanBeMet(const DemandClass& of);
  [[nodiscard]] int free_gpus(NodeId node) const { return free_.count(node); }
  // Whether such a demand may have GPUs of the node.
  [[nodiscard]] bool MayUse(const DemandClass& of, NodeId node) const {
    return !several_kinds() || MayUse(choices_->Of(of.kind), node);
  }
  // The classes of nodes that such a demand may have.
  [[nodiscard]] model::NodeClassSet NodesFor(const DemandClass& of) const {
    return several_kinds() ? choices_->Of(of.kind).all : kAllNodes;
  }
  // GPUs of the largest node that such a demand may use; 0: it has to lie on several nodes.
  [[nodiscard]] int largest_node(const DemandClass& of) const;
  // False: where one demand may lie, any may.
  [[nodiscard]] bool several_kinds() const {
    return choices_ != nullptr && choices_->several_kinds();
  }
  [[nodiscard]] const Cluster& cluster() const { return free_.cluster(); }
  [[nodiscard]] bool names_gpus() const { return names_gpus_; }
  void Clear();  // removes everything; nodes that are down stay so
  void SetUp(NodeId node, bool up);
  // The GPUs and resources of the grant, where its nodes are up, are not there for anyone, or are
  // again; of one without slices its number of GPUs. REQUIRES: they are free, or reserved.
  void Reserve(const JobSpec& job, const Grant& grant);
  void Unreserve(const JobSpec& job, const Grant& grant);

 private:
  static constexpr model::NodeClassSet kAllNodes = 1;  // as one class

  // Free GPUs, and the same with nothing placed.
  struct Free {
    FreeGpus now;
    FreeGpus all;
  };

  // The GPUs for a demand of at least one.
  [[nodiscard]] std::optional<Slices> Find(const JobSpec& job, Demand&& demand, const Grant* former,
                                           model::NodeClassSet but);
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& job,
                                             const Demand& demand, int kind) const;
  [[nodiscard]] std::optional<Slices> ChooseAsked(const FreeGpus& seen, const JobSpec& job,
                                                  Demand demand, int kind) const;
  [[nodiscard]] const NodeChoices::Choice* RestrictedBy(int kind) const;
  [[nodiscard]] std::vector<model::NodeOffer> OffersIn(const FreeGpus& seen) const;
  [[nodiscard]] const FreeGpus& PartFor(const NodeChoices::Choice& choice, FreeGpus Free::*part,
                                        const FreeGpus& whole);
  [[nodiscard]] int FreeWithoutRequests(const DemandClass& of) const;
  [[nodiscard]] FreeGpus SeenBy(const FreeGpus& free, const model::RequestBook& book, int gpus,
                                const NodeChoices::Choice* choice) const;
  [[nodiscard]] int KindOf(const JobSpec& job, int gpus) const {
    return choices_ == nullptr ? 0 : choices_->ClassOf(job, gpus).kind;
  }
  [[nodiscard]] std::optional<Slices> ChooseAmong(const FreeGpus& free, const JobSpec& job,
                                                  const Demand& demand) const;
  [[nodiscard]] static std::optional<Slices> ChooseTightest(const FreeGpus& free,
                                                            const Demand& demand);
  [[nodiscard]] bool MayUse(const NodeChoices::Choice& choice, NodeId node) const;
  [[nodiscard]] std::optional<Slices> ChooseByType(const JobSpec& job, const Demand& demand,
                                                   model::NodeClassSet but);
  [[nodiscard]] Grant OnNodesUp(const Grant& grant) const;
  [[nodiscard]] bool IsMixed(const Slices& slices) const;
  [[nodiscard]] const Free& Of(model::NodeClassSet classes);
  [[nodiscard]] int CountFor(const DemandClass& of, FreeGpus Free::*part, const FreeGpus& whole,
                             const model::RequestBook& book);
  void Take(const Slices& slices);
  void Return(const Slices& slices);

  bool names_gpus_;
  const Placement* placement_;
  const DataLocality* data_;
  NodeChoices* choices_;  // null: every demand may lie anywhere
  FreeGpus free_;
  FreeGpus all_free_;                             // the same with nothing placed
  model::RequestBook requests_;                   // of those who hold GPUs
  model::RequestBook reserved_;                   // of those whose GPUs are reserved
  std::map<model::NodeClassSet, Free> by_class_;  // those asked for so far
};

}  // namespace trainyard::scheduler
