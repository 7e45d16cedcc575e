// SPDX-License-Identifier: Apache-2.0
// What the nodes keep of the data sets that jobs train on, and what it takes to fetch the rest.
//
// A node that does not have a data set fetches all of it from its store at the node's remote
// bandwidth, however much is fetched at the same time. It keeps the set if the cache has room
// beside what running jobs use; the least recently used go first. What it cannot keep is fetched
// again at the next start. A fetch that has begun goes on, whatever becomes of its job. On a live
// cluster the books are corrected by what nodes tell (Correct).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/event.h"
#include "trainyard/cluster.h"
#include "trainyard/free_gpus.h"
#include "trainyard/state.h"

namespace trainyard::model {

// A copy is independent, as a fork needs it.
class DataCaches final : public DataLocality {
 public:
  explicit DataCaches(const Cluster& cluster);

  // Questions and changes are as of `now`. REQUIRES: time does not go back.
  void AdvanceTo(TimePoint now) { now_ = now; }

  // A job starts on these nodes: how long it waits until the last of them has its data. O(log of
  // what a node keeps) for each, more where something must go.
  [[nodiscard]] Duration Start(const DataSet& data, const Slices& slices);
  // It leaves them. REQUIRES: it started there with the same arguments.
  void Stop(const DataSet& data, const Slices& slices);
  // The node has failed and keeps nothing any more. REQUIRES: no job is on it.
  void Clear(NodeId node);

  // What the node really keeps, and with how much room, from now on: whole copies are there, and
  // others only if a running job uses them or they are still being fetched. O(sets kept there).
  void Correct(NodeId node, const NodeData& told);

  // What `former`, of another cluster, knew of its nodes, which have the same ids here; of those
  // behind them nothing is known.
  void TakeOver(DataCaches former);

  // The longest that a start of such a job can wait, on any node and at any time.
  [[nodiscard]] Duration LongestWait(const DataSet& data) const;

  [[nodiscard]] Duration WaitOn(const DataSet& data, NodeId node) const override;
  [[nodiscard]] std::vector<NodeId> Holders(const DataSet& data) const override;

  // What the nodes keep. REQUIRES: read into caches of the same cluster.
  void Serialize(StateStream& state);
  // What Correct has said of room and bandwidth; before it there was none.
  void SerializeTold(StateStream& state);

 private:
  struct NodeFacts {
    std::int64_t cache_mib = 0;
    std::int64_t remote_kbps = 0;
    void Serialize(StateStream& state) { state(cache_mib, remote_kbps); }
  };
  struct Facts {
    std::vector<NodeFacts> nodes;
    std::map<std::string, NodeId, std::less<>> by_name;
  };
  struct Entry {
    std::int64_t mib = 0;
    int users = 0;           // running jobs
    bool kept = false;       // false: there only as long as its users
    TimePoint there{};       // kept: when its fetch ends
    std::uint64_t used = 0;  // number of its last use
    void Serialize(StateStream& state) { state(mib, users, kept, there, used); }
  };
  struct Cache {
    std::map<std::string, Entry, std::less<>> entries;
    std::int64_t kept_mib = 0;
    void Serialize(StateStream& state) { state(entries, kept_mib); }
  };

  [[nodiscard]] static std::shared_ptr<const Facts> FactsOf(const Cluster& cluster);
  [[nodiscard]] const NodeFacts& FactsAt(NodeId node) const;
  void FindSlowest();
  [[nodiscard]] bool is_unused() const;
  [[nodiscard]] Duration FetchTime(const DataSet& data, NodeId node) const;
  [[nodiscard]] bool IsHome(const DataSet& data, NodeId node) const;
  [[nodiscard]] const Entry* Kept(const DataSet& data, NodeId node) const;
  void StartOn(const DataSet& data, NodeId node);
  [[nodiscard]] bool MakeRoom(NodeId node, std::int64_t mib);
  void DropOldest(NodeId node);
  void Drop(NodeId node, std::map<std::string, Entry, std::less<>>::iterator entry);

  std::shared_ptr<const Facts> facts_;  // of the cluster file
  std::map<NodeId, NodeFacts> told_;    // in their place
  std::int64_t slowest_kbps_ = 0;       // 0: no node states a bandwidth, fetching takes no time
  std::vector<Cache> caches_;           // by node
  std::map<std::string, std::set<NodeId>, std::less<>>
      holders_;  // the nodes that keep it, by data set
  TimePoint now_{};
  std::uint64_t uses_ = 0;
};

}  // namespace trainyard::model
