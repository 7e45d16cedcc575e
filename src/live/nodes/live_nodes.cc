// SPDX-License-Identifier: Apache-2.0
#include "live/nodes/live_nodes.h"

#include <algorithm>

#include "base/earlier.h"
#include "engine/configuration.h"
#include "model/job_fields.h"

namespace trainyard::live {
namespace {

// An agent that is started anew is back sooner.
constexpr Duration kReconnect = std::chrono::seconds(2);

}  // namespace

LiveNodes::LiveNodes(const LiveOptions& options, const Cluster& cluster,
                     model::TouchedIds<NodeId>& touched)
    : options_(options), cluster_(cluster), touched_(touched) {
  ListNodes();
}

void LiveNodes::ListNodes() {
  nodes_.resize(cluster_.nodes.size());
  states_gpu_types_ = false;
  classes_.reset();
  if (!cluster_.partitions.empty()) {
    classes_.emplace(cluster_);
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    names_[cluster_.nodes[i].name] = NodeAt(i);
    states_gpu_types_ = states_gpu_types_ || !cluster_.nodes[i].gpu_type.empty();
  }
}

void LiveNodes::Remove(NodeId node) {
  Edit(node).available = false;
  Edit(node).drained = false;
  Edit(node).finish_until.reset();
}

std::optional<NodeId> LiveNodes::Named(std::string_view name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<NodeId> LiveNodes::At(std::uint64_t connection) const {
  const auto at = connections_.find(connection);
  return at == connections_.end() ? std::nullopt : std::optional(at->second);
}

bool LiveNodes::Accepts(const v1::JobRequest& job, NodeId node) const {
  if (classes_ && !classes_->Has(classes_->OpenTo(job.queue()), node)) {
    return false;
  }
  const auto& types = job.gpu_types();
  return types.empty() || !states_gpu_types_ ||
         model::NamesType({types.begin(), types.end()}, cluster_.nodes[Index(node)].gpu_type);
}

Status LiveNodes::CheckJoin(const v1::Hello& hello, bool is_awaited) const {
  const std::optional<NodeId> id = Named(hello.node());
  if (hello.protocol() != 1) {
    return Failed("the agent speaks protocol " + std::to_string(hello.protocol()) + "; expected 1");
  }
  if (!id) {
    return Error{ErrorCode::kNotFound,
                 "node '" + hello.node() + "' is not in the controller's cluster"};
  }
  const NodeSpec& spec = cluster_.nodes[Index(*id)];
  if (engine::IsRemoved(spec) && !is_awaited) {
    return Failed("node '" + hello.node() + "' has been removed from the cluster");
  }
  if (hello.gpus() != spec.gpus && !is_awaited) {
    return Failed("node '" + hello.node() + "' has " + std::to_string(hello.gpus()) +
                  " GPUs; expected " + std::to_string(spec.gpus) + " as the configuration says");
  }
  const LiveNode& node = nodes_[Index(*id)];
  if (node.connection && node.hello.start() != hello.start()) {
    return Failed("node '" + hello.node() + "' has an agent already");
  }
  return {};
}

void LiveNodes::Join(std::uint64_t connection, const v1::Hello& hello, TimePoint now) {
  const NodeId id = names_.find(hello.node())->second;
  LiveNode& node = Edit(id);
  if (node.connection) {
    connections_.erase(*node.connection);
  }
  node.connection = connection;
  node.hello = hello;
  node.hello.clear_attempts();
  node.hello.clear_data();
  node.data.Clear();
  ++node.version;
  node.heard = now;
  node.alive = true;
  connections_[connection] = id;
}

std::optional<NodeId> LiveNodes::Leave(std::uint64_t connection, TimePoint now) {
  const std::optional<NodeId> node = At(connection);
  if (node) {
    Edit(*node).connection.reset();
    Edit(*node).left = now;
    connections_.erase(connection);
  }
  return node;
}

std::shared_ptr<const model::NodeData> LiveNodes::HearData(NodeId id, const v1::DataReport& data) {
  LiveNode& node = Edit(id);
  if (data.number() < node.data.number()) {
    return nullptr;  // overtaken by a newer one
  }
  node.data = data;
  ++node.version;
  if (data.cache_mib() == 0 && node.told_data == nullptr) {
    return nullptr;  // the cluster file counts
  }
  const auto tell = std::make_shared<model::NodeData>();
  tell->cache_mib = std::max<std::int64_t>(0, data.cache_mib());
  tell->rate_kbps = std::max<std::int64_t>(0, data.rate_kbps());
  for (const v1::DataSet& set : data.held()) {
    tell->held.push_back({.name = set.name(),
                          .mib = std::clamp<std::int64_t>(set.mib(), 1, model::kMostDataMib),
                          .home = set.home()});
  }
  return node.told_data != nullptr && *node.told_data == *tell ? nullptr : tell;
}

void LiveNodes::Note(const model::Event& event) {
  LiveNode& node = Edit(event.node());
  switch (event.kind()) {
    case model::EventKind::kNodeDown:
      node.alive = false;
      node.available = false;
      node.told_data = nullptr;  // the engine takes its copies for lost
      return;
    case model::EventKind::kDataKept:
      node.told_data = event.As<model::fact::DataKept>().data;
      return;
    case model::EventKind::kNodeUp:
      node.alive = true;
      node.available = true;
      return;
    case model::EventKind::kNodeDrained:
      node.drained = true;
      node.available = false;
      node.finish_until.reset();
      return;
    case model::EventKind::kNodeCordoned:
      node.available = false;
      if (const TimePoint until = event.As<model::fact::NodeCordoned>().until;
          until != kUntilHeard) {
        node.drained = true;
        node.finish_until = until;
      }
      return;
    case model::EventKind::kNodeUndrained:
      node.drained = false;
      node.finish_until.reset();
      return;
    default:
      return;
  }
}

std::optional<TimePoint> LiveNodes::EndOf(const LiveNode& node) const {
  if (!node.alive) {
    return std::nullopt;
  }
  return node.heard + options_.Scaled(options_.lease + options_.grace + options_.margin);
}

std::vector<NodeId> LiveNodes::Expired(TimePoint now) const {
  std::vector<NodeId> expired;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (const std::optional<TimePoint> end = EndOf(nodes_[i]); end && *end <= now) {
      expired.push_back(NodeAt(i));
    }
  }
  return expired;
}

std::optional<TimePoint> LiveNodes::next_end() const {
  std::optional<TimePoint> next;
  for (const LiveNode& node : nodes_) {
    next = base::Earlier(next, EndOf(node));
  }
  return next;
}

std::optional<TimePoint> LiveNodes::SilentFrom(const LiveNode& node) const {
  if (!node.alive || !node.available) {
    return std::nullopt;
  }
  const TimePoint missed = node.heard + options_.Scaled(2 * options_.heartbeat);
  return node.connection || node.left == kEndOfTime
             ? missed
             : std::min(missed, node.left + options_.Scaled(kReconnect));
}

std::vector<NodeId> LiveNodes::FallenSilent(TimePoint now) const {
  std::vector<NodeId> silent;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (const std::optional<TimePoint> from = SilentFrom(nodes_[i]); from && *from < now) {
      silent.push_back(NodeAt(i));
    }
  }
  return silent;
}

std::optional<TimePoint> LiveNodes::next_silence() const {
  std::optional<TimePoint> next;
  for (const LiveNode& node : nodes_) {
    next = base::Earlier(next, SilentFrom(node));
  }
  return next ? std::optional(*next + Duration{1}) : std::nullopt;
}

bool LiveNodes::MayOpen(NodeId id) const {
  const LiveNode& node = nodes_[Index(id)];
  return node.connection && !node.available && !node.drained &&
         node.hello.gpus() == cluster_.nodes[Index(id)].gpus;
}

std::vector<NodeId> LiveNodes::PastDeadline(TimePoint now) const {
  std::vector<NodeId> over;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].finish_until && *nodes_[i].finish_until <= now) {
      over.push_back(NodeAt(i));
    }
  }
  return over;
}

std::optional<TimePoint> LiveNodes::next_deadline() const {
  TimePoint next = kEndOfTime;
  for (const LiveNode& node : nodes_) {
    next = std::min(next, node.finish_until.value_or(kEndOfTime));
  }
  return next == kEndOfTime ? std::nullopt : std::optional(next);
}

void LiveNodes::Restart(TimePoint now) {
  for (LiveNode& node : nodes_) {
    node.heard = now;
    node.left = kEndOfTime;
    node.told_data = nullptr;  // snapshots do not know it
  }
}

void LiveNodes::Serialize(StateStream& state) {
  if (state.Size(nodes_.size()) != nodes_.size()) {
    return state.Fail();
  }
  for (LiveNode& node : nodes_) {
    state(node);
  }
}

void LiveNodes::SerializeFinishing(StateStream& state) {
  if (state.Size(nodes_.size()) != nodes_.size()) {
    return state.Fail();
  }
  for (LiveNode& node : nodes_) {
    state(node.finish_until);
  }
}

}  // namespace trainyard::live
