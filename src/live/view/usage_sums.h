// SPDX-License-Identifier: Apache-2.0
// Sums of what has been held, as somebody asks for them.
#pragma once

#include <optional>
#include <string>

#include "live/history/usage.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::live {

// `only`: the one user of whom the caller may know; none: of all. Error: the request names a field
// that there is not.
[[nodiscard]] Result<v1::UsageReply> SumUsage(const Usage::Days& days,
                                              const v1::UsageRequest& request,
                                              const std::optional<std::string>& only);

}  // namespace trainyard::live
