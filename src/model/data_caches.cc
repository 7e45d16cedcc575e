// SPDX-License-Identifier: Apache-2.0
#include "model/data_caches.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace trainyard::model {
namespace {

// The first whole microsecond by which so much has come.
Duration TimeFor(std::int64_t mib, std::int64_t kbps) {
  constexpr std::int64_t kBytesPerMib = std::int64_t{1} << 20;
  constexpr std::int64_t kMicrosPerMilli = 1000;  // 1 kB/s is 1 byte per millisecond
  const std::int64_t byte_micros = mib * kBytesPerMib * kMicrosPerMilli;
  return Duration{(byte_micros + kbps - 1) / kbps};
}

}  // namespace

DataCaches::DataCaches(const Cluster& cluster)
    : facts_(FactsOf(cluster)), caches_(cluster.nodes.size()) {
  FindSlowest();
}

std::shared_ptr<const DataCaches::Facts> DataCaches::FactsOf(const Cluster& cluster) {
  const auto facts = std::make_shared<Facts>();
  for (const NodeSpec& node : cluster.nodes) {
    facts->by_name.emplace(node.name, NodeAt(facts->nodes.size()));
    facts->nodes.push_back({.cache_mib = node.cache_mib, .remote_kbps = node.remote_kbps});
  }
  return facts;
}

const DataCaches::NodeFacts& DataCaches::FactsAt(NodeId node) const {
  const auto told = told_.find(node);
  return told == told_.end() ? facts_->nodes[Index(node)] : told->second;
}

void DataCaches::FindSlowest() {
  slowest_kbps_ = 0;
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    const std::int64_t kbps = FactsAt(NodeAt(i)).remote_kbps;
    if (kbps > 0 && (slowest_kbps_ == 0 || kbps < slowest_kbps_)) {
      slowest_kbps_ = kbps;
    }
  }
}

void DataCaches::TakeOver(DataCaches former) {
  const std::size_t nodes = caches_.size();
  CHECK(former.caches_.size() <= nodes);
  told_ = std::move(former.told_);
  caches_ = std::move(former.caches_);
  caches_.resize(nodes);
  holders_ = std::move(former.holders_);
  now_ = former.now_;
  uses_ = former.uses_;
  FindSlowest();
}

Duration DataCaches::FetchTime(const DataSet& data, NodeId node) const {
  const std::int64_t kbps = FactsAt(node).remote_kbps;
  return kbps > 0 ? TimeFor(data.mib, kbps) : Duration{0};
}

Duration DataCaches::LongestWait(const DataSet& data) const {
  return slowest_kbps_ > 0 ? TimeFor(data.mib, slowest_kbps_) : Duration{0};
}

bool DataCaches::IsHome(const DataSet& data, NodeId node) const {
  const auto home = facts_->by_name.find(data.home);
  return home != facts_->by_name.end() && home->second == node;
}

const DataCaches::Entry* DataCaches::Kept(const DataSet& data, NodeId node) const {
  const auto& entries = caches_[Index(node)].entries;
  const auto entry = entries.find(data.name);
  return entry != entries.end() && entry->second.kept ? &entry->second : nullptr;
}

Duration DataCaches::WaitOn(const DataSet& data, NodeId node) const {
  if (IsHome(data, node)) {
    return Duration{0};
  }
  const Entry* const entry = Kept(data, node);
  return entry == nullptr ? FetchTime(data, node) : std::max(Duration{0}, entry->there - now_);
}

std::vector<NodeId> DataCaches::Holders(const DataSet& data) const {
  std::vector<NodeId> nodes;
  if (slowest_kbps_ == 0) {
    return nodes;
  }
  if (const auto holders = holders_.find(data.name); holders != holders_.end()) {
    nodes.assign(holders->second.begin(), holders->second.end());
  }
  if (const auto home = facts_->by_name.find(data.home); home != facts_->by_name.end()) {
    const auto place = std::lower_bound(nodes.begin(), nodes.end(), home->second);
    if (place == nodes.end() || *place != home->second) {
      nodes.insert(place, home->second);
    }
  }
  return nodes;
}

Duration DataCaches::Start(const DataSet& data, const Slices& slices) {
  Duration longest{0};
  for (const Slice& slice : slices) {
    longest = std::max(longest, WaitOn(data, slice.node));
    if (!IsHome(data, slice.node)) {
      StartOn(data, slice.node);
    }
  }
  return longest;
}

void DataCaches::StartOn(const DataSet& data, NodeId node) {
  Cache& cache = caches_[Index(node)];
  const TimePoint there = now_ + WaitOn(data, node);
  Entry& entry = cache.entries[data.name];
  ++entry.users;
  entry.used = ++uses_;
  if (!entry.kept && MakeRoom(node, data.mib)) {
    entry.kept = true;
    entry.mib = data.mib;
    entry.there = there;
    cache.kept_mib += data.mib;
    holders_[data.name].insert(node);
  }
}

// Whether `mib` fit beside what running jobs use; they do now. O(data sets kept) for each that
// goes.
bool DataCaches::MakeRoom(NodeId node, std::int64_t mib) {
  const Cache& cache = caches_[Index(node)];
  const std::int64_t size = FactsAt(node).cache_mib;
  std::int64_t in_use = 0;
  for (const auto& [name, entry] : cache.entries) {
    in_use += entry.kept && entry.users > 0 ? entry.mib : 0;
  }
  if (in_use + mib > size) {
    return false;
  }
  while (cache.kept_mib + mib > size) {
    DropOldest(node);
  }
  return true;
}

void DataCaches::DropOldest(NodeId node) {
  Cache& cache = caches_[Index(node)];
  auto oldest = cache.entries.end();
  for (auto entry = cache.entries.begin(); entry != cache.entries.end(); ++entry) {
    if (entry->second.users == 0 &&
        (oldest == cache.entries.end() || entry->second.used < oldest->second.used)) {
      oldest = entry;
    }
  }
  CHECK(oldest != cache.entries.end() && oldest->second.kept);
  Drop(node, oldest);
}

void DataCaches::Drop(NodeId node, std::map<std::string, Entry, std::less<>>::iterator entry) {
  Cache& cache = caches_[Index(node)];
  cache.kept_mib -= entry->second.mib;
  holders_.find(entry->first)->second.erase(node);
  cache.entries.erase(entry);
}

void DataCaches::Correct(NodeId node, const NodeData& told) {
  const NodeFacts& stated = facts_->nodes[Index(node)];
  told_[node] = {.cache_mib = told.cache_mib,
                 .remote_kbps = told.rate_kbps > 0 ? told.rate_kbps : stated.remote_kbps};
  FindSlowest();
  Cache& cache = caches_[Index(node)];
  std::set<std::string_view> held;
  for (const DataSet& data : told.held) {
    held.insert(data.name);
    const auto [entry, is_new] = cache.entries.try_emplace(data.name);
    entry->second.used = is_new ? ++uses_ : entry->second.used;
    cache.kept_mib += data.mib - (entry->second.kept ? entry->second.mib : 0);
    entry->second.mib = data.mib;
    entry->second.there = entry->second.kept ? std::min(entry->second.there, now_) : now_;
    entry->second.kept = true;
    holders_[data.name].insert(node);
  }
  for (auto entry = cache.entries.begin(); entry != cache.entries.end();) {
    const auto next = std::next(entry);
    if (entry->second.users == 0 && entry->second.there <= now_ && !held.contains(entry->first)) {
      Drop(node, entry);
    }
    entry = next;
  }
}

void DataCaches::Stop(const DataSet& data, const Slices& slices) {
  for (const Slice& slice : slices) {
    if (IsHome(data, slice.node)) {
      continue;
    }
    auto& entries = caches_[Index(slice.node)].entries;
    const auto entry = entries.find(data.name);
    CHECK(entry != entries.end() && entry->second.users > 0);
    entry->second.used = ++uses_;
    if (--entry->second.users == 0 && !entry->second.kept) {
      entries.erase(entry);
    }
  }
}

void DataCaches::Clear(NodeId node) {
  Cache& cache = caches_[Index(node)];
  for (const auto& [name, entry] : cache.entries) {
    CHECK(entry.users == 0 && entry.kept);
    holders_.find(name)->second.erase(node);
  }
  cache = {};
}

// Where no node states a bandwidth and no job a data set.
bool DataCaches::is_unused() const { return slowest_kbps_ == 0 && uses_ == 0 && told_.empty(); }

void DataCaches::Serialize(StateStream& state) {
  const std::size_t nodes = caches_.size();
  if (is_unused()) {
    caches_.clear();
  }
  state(caches_, holders_, now_, uses_);
  if (caches_.size() != nodes && !caches_.empty()) {
    state.Fail();
  }
  caches_.resize(nodes);
}

void DataCaches::SerializeTold(StateStream& state) {
  state(told_);
  if (!state.reading()) {
    return;
  }
  if (!told_.empty() && Index(told_.rbegin()->first) >= caches_.size()) {
    told_.clear();
    return state.Fail();
  }
  FindSlowest();
}

}  // namespace trainyard::model
