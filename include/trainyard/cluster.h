// SPDX-License-Identifier: Apache-2.0
// The machines: what nodes there are, and when they fail and return. Read from a cluster file
// (docs/formats/cluster.md) or, on a live cluster, from the controller's configuration, and the
// same for the whole run: which nodes are up at present is in Snapshot, which GPUs are free in
// FreeGpus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/job.h"
#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

// A node's GPUs are the bits of one 64-bit word (Slice::gpus).
inline constexpr int kMaxGpusPerNode = 64;

// One machine. All GPUs of a node are of one type.
struct NodeSpec {
  std::string name;
  int gpus = 0;          // 1 to kMaxGpusPerNode
  std::string gpu_type;  // may be empty: all such nodes are of one type without a name
  Resources capacity{};  // zero CPUs or memory: not stated, never a limit
  int switch_index = 0;  // nodes with the same number hang on the same switch
  // For data sets (DataSet), MiB; zero: the node keeps none.
  std::int64_t cache_mib = 0;
  // Bandwidth from the stores, kB/s, for each fetch by itself, however many there are at a time;
  // zero: not stated, fetching takes no time.
  std::int64_t remote_kbps = 0;
  std::vector<std::string> labels{};  // what people call its properties: "nvlink"; each once
  std::int64_t tmp_mib = 0;           // space for temporary files; 0: not stated, enough for all
};

struct GpuType {
  std::string name;
  // How many times faster a job is there than what is stated of the job without a type. Throughput
  // profiles by type come before it (ExecutionModel::RateOn).
  double speed = 1;
};

// One node goes down or comes back (cluster file, [[failures]]).
struct NodeChange {
  // What becomes of jobs on a node that is not up any more.
  enum class How : std::uint8_t {
    kFails,   // they lose their GPUs, and the work since their last checkpoint
    kNotice,  // they lose their GPUs and no work
    kFinish,  // they run on until they end; the node gets no others
  };
  TimePoint at{};
  NodeId node{};
  bool up = false;  // the state of the node from then on
  How how = How::kFails;
};

// A named set of nodes, and what holds for jobs there. A job names it as its queue, and lies on its
// nodes only. One node may be in several, or in none.
struct Partition {
  std::string name;
  bool has_all_nodes = true;       // also those that are added
  std::vector<std::string> nodes;  // otherwise: their names, each once
  bool is_default = false;         // of jobs that name no queue; one at most is
  // What a job may ask for when it is submitted. Zero: anything.
  int most_gpus = 0;
  Duration longest{0};       // JobTraits::time_limit
  Duration default_time{0};  // of jobs that state no time limit; zero: `longest`
  // Of jobs that state none; zero: they are silent. Amounts for each GPU mean nothing to jobs
  // without GPUs.
  CpuRequest default_cpus{};
  MemoryRequest default_memory{};

  // The time limit of a job that states none; zero: it has none.
  [[nodiscard]] Duration TimeIfNoneStated() const {
    return default_time > Duration{0} ? default_time : longest;
  }
  // Gives a job with so many GPUs the amounts that it does not state. Whether it lacked any.
  bool FillIn(int gpus, NodeRequest& request) const;
  friend bool operator==(const Partition&, const Partition&) = default;
};

// Something counted that the whole cluster has, and no node: licences of a program.
struct License {
  std::string name;
  int count = 0;  // 1 or more
  friend bool operator==(const License&, const License&) = default;
};

struct Cluster {
  std::string name;
  std::vector<NodeSpec> nodes;       // by NodeId
  std::vector<GpuType> gpu_types{};  // those whose speed is stated; of the others it is 1
  // Empty: every job may lie on every node, and what its queue means is up to the policy.
  std::vector<Partition> partitions{};
  std::vector<License> licenses{};
  // The failures of a simulation, by time, those to come included. They are for the simulated
  // world: a component that looks at them knows the future.
  std::vector<NodeChange> changes;
  // When a node fails, its jobs fall back to the last multiple of this time that they have trained
  // since their launch. Zero: no work is lost.
  Duration checkpoint_interval{0};

  // GpuType::speed of the type of this name; 1 where it is not stated. O(types).
  [[nodiscard]] double SpeedOf(std::string_view gpu_type) const;
  // The partition of jobs with this queue; null: there is none. O(partitions).
  [[nodiscard]] const Partition* PartitionOf(std::string_view queue) const;
  // Of all nodes, those that are down included; Snapshot::gpus_up has those that are up. O(nodes).
  [[nodiscard]] int total_gpus() const;
  // GPUs of the largest node, which may be down. O(nodes); FreeGpus::largest_node() is O(1).
  [[nodiscard]] int largest_node() const;
};

}  // namespace trainyard
