// SPDX-License-Identifier: Apache-2.0
// The GPU types of a cluster, as small numbers and as sets of them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/job.h"

namespace trainyard {

inline constexpr std::size_t kMaxGpuTypes = 64;
using GpuTypeSet = std::uint64_t;  // bit i: type i

class GpuTypes {
 public:
  // Types are numbered in the order of their first nodes. Nodes that state none are of one type
  // without a name. REQUIRES: at most kMaxGpuTypes.
  explicit GpuTypes(const Cluster& cluster);

  [[nodiscard]] const std::vector<GpuType>& types() const { return types_; }
  [[nodiscard]] bool several() const { return types_.size() > 1; }
  [[nodiscard]] GpuTypeSet all() const { return SetBelow(types_.size()); }
  [[nodiscard]] std::size_t of(NodeId node) const { return of_node_[Index(node)]; }
  [[nodiscard]] bool Has(GpuTypeSet set, NodeId node) const { return (set >> of(node) & 1U) != 0; }
  // Those that the job says it accepts, among those of the cluster; all where no node states one.
  [[nodiscard]] GpuTypeSet Accepted(const JobSpec& job) const;
  // GPUs of all nodes of these types, and of the largest one.
  [[nodiscard]] int GpusOf(GpuTypeSet set) const;
  [[nodiscard]] int LargestNodeOf(GpuTypeSet set) const;
  // "A100 and V100"; a type without a name is "(no type)".
  [[nodiscard]] std::string NamesOf(GpuTypeSet set) const;

 private:
  [[nodiscard]] static GpuTypeSet SetBelow(std::size_t count) {
    return count == kMaxGpuTypes ? ~GpuTypeSet{0} : (GpuTypeSet{1} << count) - 1;
  }

  std::vector<GpuType> types_;
  std::vector<std::uint8_t> of_node_;
  std::vector<int> gpus_;     // by type
  std::vector<int> largest_;  // by type: GPUs of its largest node
};

// Calls `visit` with the number of each type of the set, ascending.
template <typename Visit>
void ForEachType(GpuTypeSet set, Visit visit) {
  for (; set != 0; set &= set - 1) {
    visit(static_cast<std::size_t>(std::countr_zero(set)));
  }
}

}  // namespace trainyard
