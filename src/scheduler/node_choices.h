// SPDX-License-Identifier: Apache-2.0
// On which nodes a demand may lie, by their classes (GPU types, partitions), by name and by what it
// asks for beside GPUs, and which of them it prefers.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/node_classes.h"
#include "model/request/request_fit.h"
#include "trainyard/snapshot.h"
#include "trainyard/state.h"

namespace trainyard::scheduler {

// Demands that fit alike: where one finds no place, the others find none.
struct DemandClass {
  int gpus = 0;
  int kind = 0;                                                               // of NodeChoices
  friend auto operator<=>(const DemandClass&, const DemandClass&) = default;  // NOLINT
};

class NodeChoices {
 public:
  struct Choice {
    // Nodes that are equally fast for the job, the fastest first. It cannot run on others.
    std::vector<model::NodeClassSet> pools{};
    std::vector<NodeId> avoided{};  // where it may not lie whatever the class, ascending
    model::NodeClassSet all = 0;    // of all pools
    int largest_node = 0;           // GPUs of the largest node that is left
    // What it asks for beside GPUs, and where that lets it lie; null: nothing.
    std::shared_ptr<const model::SpreadRules> rules{};
    NodeRequest request{};
  };

  // Both must outlive it.
  NodeChoices(const Cluster& cluster, const ExecutionModel& rates);

  // False: every job may lie on every node, and is as fast there, but for nodes that it avoids.
  [[nodiscard]] bool several() const { return classes_.several(); }
  // False: every demand is of kind 0 and may lie anywhere.
  [[nodiscard]] bool several_kinds() const { return several() || choices_.size() > 1; }
  [[nodiscard]] const model::NodeClasses& classes() const { return classes_; }

  // Demands of one kind have the same choice. A new kind gets the next number. O(classes).
  [[nodiscard]] DemandClass ClassOf(const JobSpec& job, int gpus);
  // The same without making a new kind: nothing if there has been no such demand yet.
  [[nodiscard]] std::optional<DemandClass> KnownClassOf(const JobSpec& job, int gpus) const;
  [[nodiscard]] std::size_t kinds() const { return choices_.size(); }
  [[nodiscard]] const Choice& Of(int kind) const {
    return choices_[static_cast<std::size_t>(kind)];
  }
  // GPUs of the largest node for such a demand, with its CPUs and memory and nothing else there; 0:
  // it has to lie on several.
  [[nodiscard]] int LargestNodeFor(const DemandClass& of);
  // Which kinds there are. Reading: into choices of the same cluster that have none yet.
  void Serialize(StateStream& state);
  // Why the job may not hold these GPUs; empty: their classes are no reason. REQUIRES: several().
  [[nodiscard]] std::string Conflict(const JobSpec& job, const Grant& grant);

 private:
  // What two demands of one kind have in common.
  struct Kind {
    std::vector<model::NodeClassSet> pools;
    std::vector<NodeId> avoided{};
    std::optional<NodeRequest> request{};
    friend auto operator<=>(const Kind&, const Kind&) = default;  // NOLINT
  };

  [[nodiscard]] Kind KindOf(const JobSpec& job, int gpus) const;
  [[nodiscard]] std::vector<model::NodeClassSet> PoolsOf(const JobSpec& job, int gpus) const;
  void Restrict(Choice& choice) const;
  [[nodiscard]] int LargestNodeOf(const Choice& choice) const;
  int NumberOf(Kind kind);

  const Cluster& cluster_;
  model::NodeClasses classes_;
  const ExecutionModel& rates_;
  std::vector<Choice> choices_;  // by kind
  std::map<Kind, int> kinds_;
  std::map<DemandClass, int> largest_;  // of those that ask for more than GPUs, so far
};

}  // namespace trainyard::scheduler
