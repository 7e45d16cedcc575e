// SPDX-License-Identifier: Apache-2.0
// The GPU types of a cluster, and the classes of its nodes, as small numbers and as sets of them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/cluster.h"
#include "trainyard/job.h"
#include "trainyard/resources.h"
#include "trainyard/status.h"

namespace trainyard::model {

// The types of JobTraits::gpu_types one by one, and whether they are in an order.
struct TypesInOrder {
  std::vector<std::string> names;
  bool ranked = false;
};
[[nodiscard]] TypesInOrder TypesOf(const std::vector<std::string>& gpu_types);
[[nodiscard]] bool NamesType(const std::vector<std::string>& gpu_types, std::string_view type);
// "A100 or V100", "H100, else A100"
[[nodiscard]] std::string TypesText(const std::vector<std::string>& gpu_types);

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
  // The types of the cluster that the job says it accepts; all where no node states one.
  [[nodiscard]] GpuTypeSet Accepted(const JobSpec& job) const;
  // "A100 and V100"; a type without a name is "(no type)".
  [[nodiscard]] std::string NamesOf(GpuTypeSet set) const;

  [[nodiscard]] static GpuTypeSet SetBelow(std::size_t count) {
    return count == kMaxGpuTypes ? ~GpuTypeSet{0} : (GpuTypeSet{1} << count) - 1;
  }

 private:
  std::vector<GpuType> types_;
  std::vector<std::uint8_t> of_node_;
};

inline constexpr std::size_t kMaxNodeClasses = 64;
using NodeClassSet = std::uint64_t;  // bit i: class i

// Nodes are of one class if their GPUs are of one type and they are in the same partitions: where
// one of them may be given to a job, all may. In a cluster without partitions classes are types.
class NodeClasses {
 public:
  // Classes are numbered in the order of their first nodes. REQUIRES: CheckPartitions.
  explicit NodeClasses(const Cluster& cluster);

  [[nodiscard]] const GpuTypes& types() const { return types_; }
  [[nodiscard]] const GpuType& TypeOf(std::size_t of) const {
    return types_.types()[classes_[of].type];
  }
  // False: all nodes have GPUs of one type, and are open to every queue.
  [[nodiscard]] bool several() const { return several_; }
  [[nodiscard]] NodeClassSet all() const { return GpuTypes::SetBelow(classes_.size()); }
  [[nodiscard]] std::size_t of(NodeId node) const { return of_node_[Index(node)]; }
  [[nodiscard]] bool Has(NodeClassSet set, NodeId node) const {
    return (set >> of(node) & 1U) != 0;
  }
  // Those of the partition of that name; else of the default one; else all.
  [[nodiscard]] NodeClassSet OpenTo(std::string_view queue) const;
  // Of those open to the job's queue, those whose types it accepts; perhaps none.
  [[nodiscard]] NodeClassSet Accepted(const JobSpec& job) const;
  // Whether all of that is on nodes of the job's partition.
  [[nodiscard]] bool InPartition(const JobSpec& job, const Slices& slices) const;
  [[nodiscard]] GpuTypeSet TypesOf(NodeClassSet set) const;
  // All classes with GPUs of that type.
  [[nodiscard]] NodeClassSet OfType(std::size_t type) const;
  // GPUs of all nodes of these classes, and of the largest one.
  [[nodiscard]] int GpusOf(NodeClassSet set) const;
  [[nodiscard]] int LargestNodeOf(NodeClassSet set) const;
  // As GpuTypes::NamesOf, of their types.
  [[nodiscard]] std::string NamesOf(NodeClassSet set) const { return types_.NamesOf(TypesOf(set)); }

 private:
  struct Class {
    std::size_t type = 0;
    std::vector<bool> in{};  // by partition
    int gpus = 0;            // of all its nodes
    int largest = 0;         // of its largest node
  };

  GpuTypes types_;
  std::vector<Partition> partitions_;  // without their nodes
  std::vector<NodeClassSet> of_partition_;
  std::vector<Class> classes_;
  std::vector<std::uint8_t> of_node_;
  bool several_ = false;
};

// Calls `visit` with the number of each type, or class, of the set, ascending.
template <typename Visit>
void ForEachOf(std::uint64_t set, Visit visit) {
  for (; set != 0; set &= set - 1) {
    visit(static_cast<std::size_t>(std::countr_zero(set)));
  }
}

// ------------------------------------------------------------------------------------- partitions

// Errors: names that are none or that two have, nodes that are not there, two defaults, defaults
// above limits, more classes of nodes than can be told apart.
[[nodiscard]] Status CheckPartitions(const Cluster& cluster);

// A partition that has some of the nodes and not all, so that a policy for which all GPUs are alike
// cannot do with it; null: there is none.
[[nodiscard]] const Partition* FirstWithSomeNodes(const Cluster& cluster);

// The job as its partition takes it: with the name of the default one, and the time limit of jobs
// that state none. Errors: there is no such partition, or the job asks for more than it gives.
[[nodiscard]] Status EnterPartition(const Cluster& cluster, JobSpec& job);

}  // namespace trainyard::model
