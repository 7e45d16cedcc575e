// SPDX-License-Identifier: Apache-2.0
// Sums of what has been held, as somebody asks for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "live/history/usage.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::live {

// What has been held, and is held still.
struct HeldUntil {
  const Usage::Days& days;
  std::vector<const Holding*> held{};
  TimePoint until{};
  const LiveOptions& options;  // of the controller
};

// `only`: the one user of whom the caller may know; none: of all. Error: the request names a field
// that there is not.
[[nodiscard]] Result<v1::UsageReply> SumUsage(const HeldUntil& all, const v1::UsageRequest& request,
                                              const std::optional<std::string>& only);

}  // namespace trainyard::live
