// SPDX-License-Identifier: Apache-2.0
#include "model/node_classes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "model/job_fields.h"

namespace trainyard::model {
namespace {

// By partition and node: whether it has the node.
using Membership = std::vector<std::vector<bool>>;

// A node that has been removed is in none.
Membership MembersOf(const Cluster& cluster) {
  std::map<std::string_view, std::size_t> nodes;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    nodes.emplace(cluster.nodes[i].name, i);
  }
  Membership members;
  members.reserve(cluster.partitions.size());
  for (const Partition& partition : cluster.partitions) {
    std::vector<bool>& in = members.emplace_back(cluster.nodes.size(), partition.has_all_nodes);
    for (const std::string& name : partition.nodes) {
      if (const auto node = nodes.find(name); node != nodes.end()) {
        in[node->second] = true;
      }
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = in[i] && cluster.nodes[i].gpus > 0;
    }
  }
  return members;
}

std::vector<bool> PartitionsOf(const Membership& members, std::size_t node) {
  std::vector<bool> in;
  in.reserve(members.size());
  for (const std::vector<bool>& partition : members) {
    in.push_back(partition[node]);
  }
  return in;
}

std::string NamesText(const Cluster& cluster) {
  std::string names;
  for (const Partition& partition : cluster.partitions) {
    names += names.empty() ? "" : ", ";
    names += partition.name;
  }
  return names;
}

// Of one by itself.
Status CheckPartition(const Partition& partition, const std::set<std::string_view>& nodes) {
  const std::string named = "partition '" + partition.name + "' ";
  if (partition.name.empty() || partition.name.find_first_of(" \t\n,'\"") != std::string::npos) {
    return InvalidArgument(named +
                           "has a name that no job can state; expected one without blanks, "
                           "commas and quotes");
  }
  const auto missing =
      std::find_if(partition.nodes.begin(), partition.nodes.end(),
                   [&nodes](const std::string& node) { return !nodes.contains(node); });
  if (missing != partition.nodes.end()) {
    return InvalidArgument(named + "has node '" + *missing +
                           "', which the cluster has not; expected one of its nodes");
  }
  if (partition.longest > Duration{0} && partition.default_time > partition.longest) {
    return InvalidArgument(
        named + "has default_time " + base::ShortDuration(Seconds(partition.default_time)) +
        "; expected at most its max_time of " + base::ShortDuration(Seconds(partition.longest)));
  }
  return {};
}

}  // namespace

TypesInOrder TypesOf(const std::vector<std::string>& gpu_types) {
  TypesInOrder types;
  for (const std::string& text : gpu_types) {
    for (const std::string_view name : base::Split(text, ",")) {
      types.names.emplace_back(name);
    }
  }
  types.ranked = types.names.size() > gpu_types.size();
  return types;
}

bool NamesType(const std::vector<std::string>& gpu_types, std::string_view type) {
  const std::vector<std::string> names = TypesOf(gpu_types).names;
  return std::find(names.begin(), names.end(), type) != names.end();
}

std::string TypesText(const std::vector<std::string>& gpu_types) {
  const TypesInOrder types = TypesOf(gpu_types);
  std::string text;
  for (const std::string& name : types.names) {
    text += (text.empty() ? "" : types.ranked ? ", else " : " or ") + name;
  }
  return text;
}

GpuTypes::GpuTypes(const Cluster& cluster) {
  of_node_.reserve(cluster.nodes.size());
  for (const NodeSpec& node : cluster.nodes) {
    const auto known = std::find_if(types_.begin(), types_.end(), [&node](const GpuType& type) {
      return type.name == node.gpu_type;
    });
    of_node_.push_back(static_cast<std::uint8_t>(known - types_.begin()));
    if (known == types_.end()) {
      CHECK(types_.size() < kMaxGpuTypes);
      types_.push_back({.name = node.gpu_type, .speed = cluster.SpeedOf(node.gpu_type)});
    }
  }
}

GpuTypeSet GpuTypes::Accepted(const JobSpec& job) const {
  const bool known = types_.size() > 1 || !types_.front().name.empty();
  if (!known || !job.traits || job.traits->gpu_types.empty()) {
    return all();
  }
  const std::vector<std::string> named = TypesOf(job.traits->gpu_types).names;
  GpuTypeSet set = 0;
  for (std::size_t i = 0; i < types_.size(); ++i) {
    const bool accepted = std::find(named.begin(), named.end(), types_[i].name) != named.end();
    set |= GpuTypeSet{accepted} << i;
  }
  return set;
}

std::string GpuTypes::NamesOf(GpuTypeSet set) const {
  std::string names;
  ForEachOf(set, [&](std::size_t type) {
    names += names.empty() ? "" : " and ";
    names += types_[type].name.empty() ? "(no type)" : types_[type].name;
  });
  return names;
}

NodeClasses::NodeClasses(const Cluster& cluster)
    : types_(cluster), partitions_(cluster.partitions), of_partition_(partitions_.size(), 0) {
  for (Partition& partition : partitions_) {
    partition.nodes.clear();
  }
  const Membership members = MembersOf(cluster);
  std::map<std::pair<std::size_t, std::vector<bool>>, std::size_t> numbers;
  of_node_.reserve(cluster.nodes.size());
  for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
    std::pair key(types_.of(NodeAt(node)), PartitionsOf(members, node));
    const auto [known, is_new] = numbers.try_emplace(key, classes_.size());
    if (is_new) {
      CHECK(classes_.size() < kMaxNodeClasses);
      classes_.push_back({.type = key.first, .in = std::move(key.second)});
    }
    Class& of = classes_[known->second];
    of.gpus += cluster.nodes[node].gpus;
    of.largest = std::max(of.largest, cluster.nodes[node].gpus);
    of_node_.push_back(static_cast<std::uint8_t>(known->second));
  }
  for (std::size_t partition = 0; partition < partitions_.size(); ++partition) {
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      of_partition_[partition] |= NodeClassSet{classes_[i].in[partition]} << i;
    }
  }
  several_ =
      classes_.size() > 1 || std::any_of(of_partition_.begin(), of_partition_.end(),
                                         [this](NodeClassSet open) { return open != all(); });
}

NodeClassSet NodeClasses::OpenTo(std::string_view queue) const {
  NodeClassSet open = all();
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    if (partitions_[i].name == queue) {
      return of_partition_[i];
    }
    open = partitions_[i].is_default ? of_partition_[i] : open;
  }
  return open;
}

NodeClassSet NodeClasses::Accepted(const JobSpec& job) const {
  const NodeClassSet open = OpenTo(job.queue);
  const GpuTypeSet accepted = types_.Accepted(job);
  NodeClassSet set = 0;
  ForEachOf(open, [&](std::size_t one) { set |= (accepted >> classes_[one].type & 1U) << one; });
  return set;
}

bool NodeClasses::InPartition(const JobSpec& job, const Slices& slices) const {
  const NodeClassSet open = OpenTo(job.queue);
  return std::all_of(slices.begin(), slices.end(),
                     [&](const Slice& slice) { return Has(open, slice.node); });
}

int NodeClasses::GpusOf(NodeClassSet set) const {
  int gpus = 0;
  ForEachOf(set, [&](std::size_t one) { gpus += classes_[one].gpus; });
  return gpus;
}

int NodeClasses::LargestNodeOf(NodeClassSet set) const {
  int gpus = 0;
  ForEachOf(set, [&](std::size_t one) { gpus = std::max(gpus, classes_[one].largest); });
  return gpus;
}

GpuTypeSet NodeClasses::TypesOf(NodeClassSet set) const {
  GpuTypeSet types = 0;
  ForEachOf(set, [&](std::size_t one) { types |= GpuTypeSet{1} << classes_[one].type; });
  return types;
}

NodeClassSet NodeClasses::OfType(std::size_t type) const {
  NodeClassSet set = 0;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    set |= NodeClassSet{classes_[i].type == type} << i;
  }
  return set;
}

// ------------------------------------------------------------------------------------- partitions

Status CheckPartitions(const Cluster& cluster) {
  std::set<std::string_view> nodes;
  for (const NodeSpec& node : cluster.nodes) {
    nodes.insert(node.name);
  }
  std::set<std::string_view> names;
  const Partition* usual = nullptr;
  for (const Partition& partition : cluster.partitions) {
    if (Status status = CheckPartition(partition, nodes); !status.ok()) {
      return status;
    }
    if (!names.insert(partition.name).second) {
      return InvalidArgument("there are two partitions '" + partition.name +
                             "'; expected another name for one");
    }
    if (partition.is_default && usual != nullptr) {
      return InvalidArgument("partitions '" + usual->name + "' and '" + partition.name +
                             "' are both the default; expected one at most");
    }
    usual = partition.is_default ? &partition : usual;
  }
  const Membership members = MembersOf(cluster);
  std::set<std::pair<std::string_view, std::vector<bool>>> classes;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    classes.emplace(cluster.nodes[i].gpu_type, PartitionsOf(members, i));
  }
  if (classes.size() > kMaxNodeClasses) {
    return InvalidArgument("nodes of " + std::to_string(classes.size()) +
                           " kinds, by GPU types and partitions; expected at most " +
                           std::to_string(kMaxNodeClasses));
  }
  return {};
}

const Partition* FirstWithSomeNodes(const Cluster& cluster) {
  const Membership members = MembersOf(cluster);
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
      if (!members[i][node] && cluster.nodes[node].gpus > 0) {
        return &cluster.partitions[i];
      }
    }
  }
  return nullptr;
}

Status EnterPartition(const Cluster& cluster, JobSpec& job) {
  if (cluster.partitions.empty()) {
    return {};
  }
  const Partition* const partition = cluster.PartitionOf(job.queue);
  if (partition == nullptr) {
    return InvalidArgument((job.queue.empty() ? "it names no queue, and no partition is the default"
                                              : "there is no partition '" + job.queue + "'") +
                           "; expected a queue that is one of: " + NamesText(cluster));
  }
  const int most = std::max(job.gpus, PartOf<GpuRange>(job).most);
  if (partition->most_gpus > 0 && most > partition->most_gpus) {
    return InvalidArgument("it asks for " + std::to_string(most) + " GPUs; partition '" +
                           partition->name + "' gives a job at most " +
                           std::to_string(partition->most_gpus));
  }
  const std::optional<Duration>& limit = PartOf<JobTraits>(job).time_limit;
  if (limit && partition->longest > Duration{0} && *limit > partition->longest) {
    return InvalidArgument("its time limit is " + base::ShortDuration(Seconds(*limit)) +
                           "; partition '" + partition->name + "' gives a job at most " +
                           base::ShortDuration(Seconds(partition->longest)));
  }
  job.queue = partition->name;
  const bool lacks_time = !limit && partition->TimeIfNoneStated() > Duration{0};
  NodeRequest request = PartOf<NodeRequest>(job);
  const bool lacks_amounts = partition->FillIn(job.gpus, request);
  if (lacks_time || lacks_amounts) {
    auto traits = std::make_shared<JobTraits>(PartOf<JobTraits>(job));
    traits->time_limit = lacks_time ? partition->TimeIfNoneStated() : limit;
    if (lacks_amounts) {
      traits->request = std::move(request);
    }
    job.traits = std::move(traits);
  }
  return {};
}

}  // namespace trainyard::model
