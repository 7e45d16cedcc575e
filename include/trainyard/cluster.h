// SPDX-License-Identifier: Apache-2.0
// The machines: what there is, and when nodes fail and return.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

inline constexpr int kMaxGpusPerNode = 64;

struct NodeSpec {
  std::string name;
  int gpus = 0;          // 1 to kMaxGpusPerNode
  std::string gpu_type;  // may be empty
  Resources capacity{};  // zero CPUs or memory: not stated, never a limit
  int switch_index = 0;
  std::int64_t cache_mib = 0;    // for data sets; zero: it keeps none
  std::int64_t remote_kbps = 0;  // from the stores, kB/s; zero: not stated, fetching takes no time
};

struct GpuType {
  std::string name;
  // How many times faster a job is there than what is stated of it without a type.
  double speed = 1;
};

// One node goes down or comes back (cluster file, [[failures]]).
struct NodeChange {
  TimePoint at{};
  NodeId node{};
  bool up = false;
};

struct Cluster {
  std::string name;
  std::vector<NodeSpec> nodes;
  std::vector<GpuType> gpu_types{};  // those whose speed is stated; of the others it is 1
  std::vector<NodeChange> changes;   // by time
  // Work since the last multiple of this run time is lost when a node fails; zero: none is lost.
  Duration checkpoint_interval{0};

  // 1 where the speed of the type is not stated.
  [[nodiscard]] double SpeedOf(std::string_view gpu_type) const;
  // Of all nodes, those that are down included. O(nodes).
  [[nodiscard]] int total_gpus() const;
  // GPUs of the largest node. O(nodes).
  [[nodiscard]] int largest_node() const;
};

}  // namespace trainyard
