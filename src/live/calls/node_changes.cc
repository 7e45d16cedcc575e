// SPDX-License-Identifier: Apache-2.0
#include "live/calls/node_changes.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "service/call_error.h"

namespace trainyard::live {
namespace {

constexpr double kLongestDrain = 10 * 365.0 * 24 * 3600;

// By name, each once. The node of the field that calls had first comes first.
std::vector<std::string> NamesOf(const v1::DrainRequest& request) {
  std::vector<std::string> names(request.nodes().begin(), request.nodes().end());
  if (!request.node().empty() || names.empty()) {
    names.insert(names.begin(), request.node());
  }
  return names;
}

// Whether the node is to be drained otherwise than it is.
bool IsAnother(const LiveNode& node, const v1::DrainRequest& request,
               std::optional<TimePoint> until) {
  if (!node.drained) {
    return true;
  }
  return request.finish() ? node.finish_until && node.finish_until != until
                          : node.finish_until.has_value();
}

}  // namespace

// What becomes of the jobs on nodes that are drained. `until`: as of LiveNode::finish_until.
std::string NodeChanges::FinishText(std::optional<TimePoint> until) const {
  return !until                 ? ""
         : *until == kEndOfTime ? "; jobs on it run until they end"
                                : "; jobs on it have until " +
                                      base::UtcText(context_.state().options.UnixSeconds(*until));
}

Result<Reply> NodeChanges::Drain(const Call& call, const v1::DrainRequest& request) {
  if (!call.principal.MayOperate()) {
    return PermissionDenied(call.principal.text() +
                            " may not drain or undrain nodes; expected an operator or an admin");
  }
  if (request.reason().size() > kMostReason) {
    return InvalidArgument("the reason has " + std::to_string(request.reason().size()) +
                           " bytes; expected at most " + std::to_string(kMostReason));
  }
  if (!(request.deadline_s() >= 0 && request.deadline_s() <= kLongestDrain) ||
      (request.deadline_s() > 0 && !(request.drain() && request.finish()))) {
    return InvalidArgument(
        "the deadline of a drain is " + std::to_string(request.deadline_s()) +
        " s; expected 0 to ten years, and one only where jobs may run until they end");
  }
  std::vector<NodeId> nodes;
  std::vector<v1::LeftOut> left;
  for (const std::string& name : NamesOf(request)) {
    const std::optional<NodeId> id = context_.state().nodes.Named(name);
    if (id && !engine::IsRemoved(context_.state().cluster.nodes[Index(*id)])) {
      nodes.push_back(*id);
      continue;
    }
    left.emplace_back().set_code(service::NumberOf(ErrorCode::kNotFound));
    left.back().set_why("there is no node '" + name + "'");
  }
  if (nodes.empty()) {
    return NotFound(left.front().why());
  }
  AddDrains(call, request, nodes);
  return Reply(
      [this, nodes = std::move(nodes), left = std::move(left)]() -> std::optional<v1::ClientReply> {
        v1::ClientReply reply;
        v1::DrainReply& drain = *reply.mutable_drain();
        const std::vector<v1::NodeStatus> all = context_.statuses().OfNodes();
        for (const NodeId node : nodes) {
          *drain.add_nodes() = all[Index(node)];
        }
        *drain.mutable_status() = drain.nodes(0);
        drain.mutable_left_out()->Assign(left.begin(), left.end());
        return reply;
      });
}

// Why the node is drained, as it was said; empty: it is not, or nothing was said.
std::string NodeChanges::ReasonOf(NodeId node) const {
  constexpr std::string_view kSeparator = ": ";  // no time has one
  const LiveState& state = context_.state();
  const std::string text = state.nodes[node].drained ? state.changes.Of(node) : "";
  const std::size_t at = text.find(kSeparator);
  return at == std::string::npos ? "" : text.substr(at + kSeparator.size());
}

bool NodeChanges::HasAnotherReason(NodeId node, const std::string& reason) const {
  return !reason.empty() && reason != ReasonOf(node);
}

// A drain without a reason of its own, of nodes that are drained for one and the same, is another
// way of it.
std::string NodeChanges::ReasonOf(const v1::DrainRequest& request,
                                  const std::vector<NodeId>& nodes) const {
  if (!request.reason().empty()) {
    return request.reason();
  }
  const std::string first = ReasonOf(nodes.front());
  const bool all =
      std::all_of(nodes.begin(), nodes.end(), [&](NodeId node) { return ReasonOf(node) == first; });
  return all ? first : std::string();
}

// Undraining a node forgets its failures, also where the node was not drained.
void NodeChanges::AddDrains(const Call& call, const v1::DrainRequest& request,
                            std::vector<NodeId> nodes) {
  LiveState& state = context_.state();
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::optional<TimePoint> until;
  if (request.drain() && request.finish()) {
    until = request.deadline_s() > 0
                ? state.now + state.options.Scaled(FromSeconds(request.deadline_s()))
                : kEndOfTime;
  }
  const auto is_another = [&](NodeId id) { return IsAnother(state.nodes[id], request, until); };
  std::erase_if(nodes, [&](NodeId id) {
    return request.drain() ? !is_another(id) && !HasAnotherReason(id, request.reason())
                           : !state.nodes[id].drained && !state.failures.HasRecord(id);
  });
  if (nodes.empty()) {
    return;
  }
  const bool only_reason = request.drain() && std::none_of(nodes.begin(), nodes.end(), is_another);
  const std::optional<TimePoint> told =
      only_reason ? state.nodes[nodes.front()].finish_until : until;
  const std::string reason = request.drain() ? ReasonOf(request, nodes) : request.reason();
  context_.NoteChange(call, request.drain() ? "drained" : "undrained",
                      {.of_node = true,
                       .node = nodes.front(),
                       .text = " at " + base::UtcText(state.options.UnixSeconds(state.now)) +
                               FinishText(told) + (reason.empty() ? "" : ": " + reason),
                       .other_nodes = {nodes.begin() + 1, nodes.end()}});
  for (const NodeId id : nodes) {
    if (!request.drain()) {
      AddUndrain(id);
    } else if (!is_another(id)) {
      continue;  // its reason alone is another one
    } else if (until) {
      context_.Add(model::fact::NodeCordoned{.node = id, .until = *until});
    } else {
      context_.Add(model::fact::NodeDrained{.node = id});
    }
  }
}

void NodeChanges::AddUndrain(NodeId id) {
  context_.Add(model::fact::NodeUndrained{.node = id});
  if (context_.state().nodes.MayOpen(id)) {
    context_.Add(model::fact::NodeUp{.node = id});
  }
}

}  // namespace trainyard::live
