// SPDX-License-Identifier: Apache-2.0
// Calls by which operators say what becomes of nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "live/calls/call.h"

namespace trainyard::live {

class NodeChanges {
 public:
  // Must outlive it.
  explicit NodeChanges(CallContext& context) : context_(context) {}

  // Drains or undrains nodes: all that are known of those that the call names, at one time.
  [[nodiscard]] Result<Reply> Drain(const Call& call, const v1::DrainRequest& request);

 private:
  [[nodiscard]] std::string FinishText(std::optional<TimePoint> until) const;
  [[nodiscard]] std::string ReasonOf(NodeId node) const;
  [[nodiscard]] bool HasAnotherReason(NodeId node, const std::string& reason) const;
  [[nodiscard]] std::string ReasonOf(const v1::DrainRequest& request,
                                     const std::vector<NodeId>& nodes) const;
  void AddDrains(const Call& call, const v1::DrainRequest& request, std::vector<NodeId> nodes);
  void AddUndrain(NodeId id);

  CallContext& context_;
};

}  // namespace trainyard::live
