// SPDX-License-Identifier: Apache-2.0
// Typed identities of jobs and nodes. Both kinds are dense and start at 0, so they index flat
// vectors (Index()). They are compared with < and ==; the compiler refuses to mix the two kinds, or
// to take a plain number for one of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainyard {

// The row number of the job in its trace, or the submission number of a live cluster. The id says
// nothing about when the job arrives: JobView::arrival is the order of arrival.
enum class JobId : std::uint64_t {};
// The position of the node in Cluster::nodes. A node that is down keeps its number.
enum class NodeId : std::uint32_t {};

// The id as an index of a vector with an element for each job, or for each node. A vector by JobId
// in a Memory must grow as jobs arrive: the number of jobs to come is not known.
[[nodiscard]] constexpr std::size_t Index(JobId id) { return static_cast<std::size_t>(id); }
[[nodiscard]] constexpr std::size_t Index(NodeId id) { return static_cast<std::size_t>(id); }
// The reverse of Index(). NodeAt REQUIRES: `index` fits into 32 bits.
[[nodiscard]] constexpr JobId JobAt(std::size_t index) { return static_cast<JobId>(index); }
[[nodiscard]] constexpr NodeId NodeAt(std::size_t index) { return static_cast<NodeId>(index); }

}  // namespace trainyard
