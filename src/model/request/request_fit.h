// SPDX-License-Identifier: Apache-2.0
// Which nodes of a cluster meet what a job asks for beside GPUs (NodeRequest), how a gang is spread
// over them, and whether the cluster could ever meet it.
#pragma once

#include <utility>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/free_gpus.h"
#include "trainyard/job.h"
#include "trainyard/resources.h"
#include "trainyard/status.h"

namespace trainyard::model {

// What a gang of `of` GPUs needs for `gpus` of them on the node; zero of what it does not state,
// and all that the node states where it wants the node alone. O(1).
[[nodiscard]] Resources NeedOn(const NodeSpec& node, const NodeRequest& request, int gpus, int of);

// How a gang may be spread, as request, list of nodes and constraint say together. For one cluster.
struct SpreadRules {
  std::vector<bool> open;  // by node: whether it may lie there
  NodeCount nodes;         // 0: any number
  // Of each counted part of the constraint: how many nodes, and by node, whether it meets it.
  std::vector<std::pair<int, std::vector<bool>>> counted;
};
// REQUIRES: CheckTexts. O(nodes x labels).
[[nodiscard]] SpreadRules RulesFor(const Cluster& cluster, const NodeRequest& request);

// A node that may be chosen.
struct NodeOffer {
  NodeId node{};
  int most = 0;   // GPUs that the gang may have there
  int order = 0;  // the smaller are taken first
};
// So many GPUs on as many nodes as the rules say, as evenly as can be, on the fewest nodes that
// have them; empty: there is no such choice. REQUIRES: rules.nodes is stated. `offers`: in node
// order. O(offers log offers) for each number of nodes; of counted parts, more.
[[nodiscard]] std::vector<std::pair<NodeId, int>> Spread(const SpreadRules& rules, int gpus,
                                                         const std::vector<NodeOffer>& offers);

// On how many nodes a job without GPUs lies, one part on each; and on which: empty: there is no
// such choice. `offers`: as for Spread, of one part each.
[[nodiscard]] int NodesOnCpus(const SpreadRules& rules);
[[nodiscard]] std::vector<NodeId> SpreadOnCpus(SpreadRules rules,
                                               const std::vector<NodeOffer>& offers);

// The same of a gang that may lie on any number of nodes: on as few as have them, of equals the
// lowest. REQUIRES: so many are free. O(nodes log nodes).
[[nodiscard]] std::vector<std::pair<NodeId, int>> FewestNodes(const FreeGpus& free, int gpus);

// Why the cluster could not meet the job's request if nothing ran on it, with all nodes up: what is
// lacking and the nearest that there is, a line for each fault that can be judged by itself; ok: it
// could. `may_lie`: by node, where the job may lie otherwise (its types, its partition). O(nodes).
[[nodiscard]] Status CanBeMet(const Cluster& cluster, const JobSpec& job,
                              const std::vector<bool>& may_lie);

}  // namespace trainyard::model
