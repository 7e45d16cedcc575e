// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_types.h"

#include <algorithm>

#include "base/check.h"

namespace trainyard::model {

GpuTypes::GpuTypes(const Cluster& cluster) {
  of_node_.reserve(cluster.nodes.size());
  for (const NodeSpec& node : cluster.nodes) {
    const auto known = std::find_if(types_.begin(), types_.end(), [&node](const GpuType& type) {
      return type.name == node.gpu_type;
    });
    const auto type = static_cast<std::size_t>(known - types_.begin());
    if (known == types_.end()) {
      CHECK(types_.size() < kMaxGpuTypes);
      types_.push_back({.name = node.gpu_type, .speed = cluster.SpeedOf(node.gpu_type)});
      gpus_.push_back(0);
      largest_.push_back(0);
    }
    of_node_.push_back(static_cast<std::uint8_t>(type));
    gpus_[type] += node.gpus;
    largest_[type] = std::max(largest_[type], node.gpus);
  }
}

GpuTypeSet GpuTypes::Accepted(const JobSpec& job) const {
  const bool known = types_.size() > 1 || !types_.front().name.empty();
  if (!known || !job.traits || job.traits->gpu_types.empty()) {
    return all();
  }
  const std::vector<std::string>& named = job.traits->gpu_types;
  GpuTypeSet set = 0;
  for (std::size_t i = 0; i < types_.size(); ++i) {
    const bool accepted = std::find(named.begin(), named.end(), types_[i].name) != named.end();
    set |= GpuTypeSet{accepted} << i;
  }
  return set;
}

int GpuTypes::GpusOf(GpuTypeSet set) const {
  int gpus = 0;
  ForEachType(set, [&](std::size_t type) { gpus += gpus_[type]; });
  return gpus;
}

int GpuTypes::LargestNodeOf(GpuTypeSet set) const {
  int gpus = 0;
  ForEachType(set, [&](std::size_t type) { gpus = std::max(gpus, largest_[type]); });
  return gpus;
}

std::string GpuTypes::NamesOf(GpuTypeSet set) const {
  std::string names;
  ForEachType(set, [&](std::size_t type) {
    names += names.empty() ? "" : " and ";
    names += types_[type].name.empty() ? "(no type)" : types_[type].name;
  });
  return names;
}

}  // namespace trainyard::model
