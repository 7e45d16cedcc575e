// SPDX-License-Identifier: Apache-2.0
// The cluster files of the Synergy simulator (docs/formats/cluster.md). A reader of our own: the
// INI libraries at hand do not tell a handler in which line it is, and take anything for a number.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/cluster.h"
#include "trainyard/status.h"

namespace trainyard {

// `path` is for messages. The cluster has no name.
[[nodiscard]] Result<Cluster> ParseClusterIni(const std::string& path, std::string_view text);

}  // namespace trainyard
