// SPDX-License-Identifier: Apache-2.0
// Typed identities. Both are dense and start at 0, so they index flat vectors (see Index()).
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard {

// The row number of the job in its trace, or the submission number of a live cluster.
enum class JobId : std::uint64_t {};
// The position of the node in its cluster.
enum class NodeId : std::uint32_t {};

[[nodiscard]] constexpr std::size_t Index(JobId id) { return static_cast<std::size_t>(id); }
[[nodiscard]] constexpr std::size_t Index(NodeId id) { return static_cast<std::size_t>(id); }
[[nodiscard]] constexpr JobId JobAt(std::size_t index) { return static_cast<JobId>(index); }
[[nodiscard]] constexpr NodeId NodeAt(std::size_t index) { return static_cast<NodeId>(index); }

}  // namespace trainyard
