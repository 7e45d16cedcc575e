// SPDX-License-Identifier: Apache-2.0
// The native cluster file. The only code that knows toml++ is its source file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trainyard/cluster.h"
#include "trainyard/status.h"

namespace trainyard {

// Nodes that a cluster may have; more is taken for a slip.
inline constexpr std::int64_t kMostNodes = 100'000;

// `text` is the content of `path`. The name is empty where the file gives none.
[[nodiscard]] Result<Cluster> ParseClusterToml(const std::string& path, std::string_view text);

}  // namespace trainyard
