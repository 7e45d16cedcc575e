// SPDX-License-Identifier: Apache-2.0
#include "trainyard/cluster.h"

#include <algorithm>

namespace trainyard {

double Cluster::SpeedOf(std::string_view gpu_type) const {
  for (const GpuType& type : gpu_types) {
    if (type.name == gpu_type) {
      return type.speed;
    }
  }
  return 1;
}

bool Partition::FillIn(int gpus, NodeRequest& request) const {
  const auto means_something = [gpus](Per per) { return per != Per::kGpu || gpus > 0; };
  const bool cpus =
      request.cpus.milli == 0 && default_cpus.milli > 0 && means_something(default_cpus.per);
  const bool memory =
      request.memory.mib == 0 && default_memory.mib > 0 && means_something(default_memory.per);
  request.cpus = cpus ? default_cpus : request.cpus;
  request.memory = memory ? default_memory : request.memory;
  return cpus || memory;
}

const Partition* Cluster::PartitionOf(std::string_view queue) const {
  const auto found =
      std::find_if(partitions.begin(), partitions.end(), [queue](const Partition& partition) {
        return queue.empty() ? partition.is_default : partition.name == queue;
      });
  return found == partitions.end() ? nullptr : &*found;
}

int Cluster::total_gpus() const {
  int total = 0;
  for (const NodeSpec& node : nodes) {
    total += node.gpus;
  }
  return total;
}

int Cluster::largest_node() const {
  int most = 0;
  for (const NodeSpec& node : nodes) {
    most = std::max(most, node.gpus);
  }
  return most;
}

}  // namespace trainyard
