// SPDX-License-Identifier: Apache-2.0
// Owns what is known of the nodes: which agent speaks for each and over which connection, when it
// was last heard, when its lease is over, and whether jobs may be there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "live/live_options.h"
#include "model/event.h"
#include "model/node_classes.h"
#include "model/touched.h"
#include "trainyard/cluster.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard::live {

// NodeCordoned::until of a node whose agent is silent: it gets no other jobs until it is heard.
inline constexpr TimePoint kUntilHeard{Duration{-1}};

struct LiveNode {
  std::optional<std::uint64_t> connection;
  TimePoint left = kEndOfTime;  // when its last connection was lost
  bool alive = false;           // its lease runs
  bool drained = false;
  bool available = false;  // as the engine knows it
  // Where it is drained and jobs on it may run on until they end: when they must leave at the
  // latest (kEndOfTime: never).
  std::optional<TimePoint> finish_until{};
  TimePoint heard{};
  v1::Hello hello;                                   // the last, without attempts and data sets
  v1::DataReport data;                               // the last
  std::uint64_t version = 0;                         // rises whenever hello or data changes
  std::shared_ptr<const model::NodeData> told_data;  // to the engine; null: nothing it may rest on

  void Serialize(StateStream& state) { state(alive, drained, available); }
};

class LiveNodes {
 public:
  // All must outlive it. All nodes are down until their agents say hello.
  LiveNodes(const LiveOptions& options, const Cluster& cluster, model::TouchedIds<NodeId>& touched);

  // The node is to have other GPUs: no job is there until an agent with these has said hello.
  void Withdraw(NodeId node) { Edit(node).available = false; }
  // The node is there no longer: what operators have said of it holds no longer, either.
  void Remove(NodeId node);
  // The cluster has other nodes, perhaps more of them.
  void ListNodes();
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] const LiveNode& operator[](NodeId node) const { return nodes_[Index(node)]; }
  [[nodiscard]] std::optional<NodeId> Named(std::string_view name) const;
  // The node whose agent has this connection.
  [[nodiscard]] std::optional<NodeId> At(std::uint64_t connection) const;
  // Whether the GPU types and the queue that the job states let it be on the node.
  [[nodiscard]] bool Accepts(const v1::JobRequest& job, NodeId node) const;
  // Some node states its GPU type.
  [[nodiscard]] bool states_gpu_types() const { return states_gpu_types_; }

  // Error: the agent may not join; kNotFound: there is no such node. `is_awaited`: it is to say
  // what has become of attempts there, and may for that, though its node has been removed or has
  // another number of GPUs.
  [[nodiscard]] Status CheckJoin(const v1::Hello& hello, bool is_awaited) const;
  // The agent speaks for its node from now on, and its lease runs. REQUIRES: it may join.
  void Join(std::uint64_t connection, const v1::Hello& hello, TimePoint now);
  // The connection is gone: the node whose it was.
  std::optional<NodeId> Leave(std::uint64_t connection, TimePoint now);
  void Hear(NodeId node, TimePoint now) { Edit(node).heard = now; }
  // The agent tells of its data sets: what the engine must be told. Null: nothing new.
  [[nodiscard]] std::shared_ptr<const model::NodeData> HearData(NodeId node,
                                                                const v1::DataReport& data);
  // What a fact about a node means for it.
  void Note(const model::Event& event);

  // The nodes whose leases are over: nothing runs there any more, and jobs may start elsewhere.
  [[nodiscard]] std::vector<NodeId> Expired(TimePoint now) const;
  // When the next lease is over.
  [[nodiscard]] std::optional<TimePoint> next_end() const;
  // The nodes that may get jobs, though their agents have lost their connections or missed two
  // heartbeats; and when the next one is to be counted among these.
  [[nodiscard]] std::vector<NodeId> FallenSilent(TimePoint now) const;
  [[nodiscard]] std::optional<TimePoint> next_silence() const;
  // Whether the node may get jobs again: its agent speaks and has the GPUs of the configuration.
  [[nodiscard]] bool MayOpen(NodeId node) const;
  // The drained nodes on which jobs may finish, with a deadline at or before `now`; and the next
  // deadline.
  [[nodiscard]] std::vector<NodeId> PastDeadline(TimePoint now) const;
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  // After a restart all leases begin anew.
  void Restart(TimePoint now);

  void Serialize(StateStream& state);
  // LiveNode::finish_until, which snapshots before format 12 have not.
  void SerializeFinishing(StateStream& state);

 private:
  [[nodiscard]] LiveNode& Edit(NodeId node) {
    touched_.Add(node);
    return nodes_[Index(node)];
  }
  [[nodiscard]] std::optional<TimePoint> EndOf(const LiveNode& node) const;
  [[nodiscard]] std::optional<TimePoint> SilentFrom(const LiveNode& node) const;

  const LiveOptions& options_;
  const Cluster& cluster_;
  model::TouchedIds<NodeId>& touched_;
  std::vector<LiveNode> nodes_;
  std::map<std::string, NodeId, std::less<>> names_;
  std::map<std::uint64_t, NodeId> connections_;
  bool states_gpu_types_ = false;
  std::optional<model::NodeClasses> classes_;  // where there are partitions
};

}  // namespace trainyard::live
