// SPDX-License-Identifier: Apache-2.0
#include "trace/clusters/cluster_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "io/toml.h"
#include "model/job_fields.h"
#include "model/node_classes.h"
#include "model/request/node_request.h"
#include "trace/job_times.h"

namespace trainyard::trace {
namespace {

constexpr double kMostAmount = 1e9;  // CPUs, gigabytes, MB/s
constexpr double kLeastSpeed = 1e-3;
constexpr double kMostSpeed = 1e3;

// What one [[nodes]] says, for `count` nodes.
struct NodeGroup {
  std::int64_t count = 1;
  std::int64_t gpus = 0;
  std::string gpu_type;
  std::optional<double> cpus;
  std::optional<double> memory_gb;
  std::int64_t switch_index = 0;
  std::optional<double> cache_gb;
  std::optional<double> remote_mb_per_s;
  std::string prefix = "n";
  std::string host;  // the whole name of the one node
  std::vector<std::string> labels;
  std::optional<double> tmp_gb;
};

// Lists of nodes, as commands take them, are written with these.
Status CheckNodeName(const io::TomlSection& section, std::string_view key, std::string_view name) {
  if (name.find_first_of(" ,[]") == std::string_view::npos) {
    return {};
  }
  return section.BadKey(
      key, fmt::format("'{}'; expected a name without blanks, commas and brackets (for n0 and n1: "
                       "name = \"n\" and count = 2, or a [[nodes]] with 'host' for each)",
                       name));
}

// Requests combine labels with signs, and lists of them have commas.
Status CheckLabels(const io::TomlSection& section, const std::vector<std::string>& labels) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:/=";
  std::set<std::string_view> seen;
  for (const std::string& label : labels) {
    if (label.find_first_not_of(kAllowed) != std::string::npos) {
      return section.BadKey(
          "labels", "label '" + label + "'; expected letters, digits and the signs . _ - : / =");
    }
    if (!seen.insert(label).second) {
      return section.BadKey("labels", "label '" + label + "' is there twice; expected each once");
    }
  }
  return {};
}

Result<NodeGroup> ReadGroup(const io::TomlSection& section) {
  NodeGroup group;
  RETURN_IF_ERROR(io::FirstFailure({
      section.CheckKeys({"count", "gpus", "gpu_type", "cpus", "memory_gb", "switch", "cache_gb",
                         "remote_mb_per_s", "name", "host", "labels", "tmp_gb"}),
      section.Has("gpus") ? Status{} : section.Bad("no 'gpus'; expected the GPUs of a node"),
      section.ReadInteger("count", {.least = 1, .most = kMostNodes}, group.count),
      section.ReadInteger("gpus", {.least = 1, .most = kMaxGpusPerNode}, group.gpus),
      section.ReadText("gpu_type", group.gpu_type),
      section.ReadNumber("cpus", {.most = kMostAmount}, group.cpus),
      section.ReadNumber("memory_gb", {.most = kMostAmount}, group.memory_gb),
      section.ReadInteger("switch", {.most = kMostNodes}, group.switch_index),
      section.ReadNumber("cache_gb", {.most = kMostAmount}, group.cache_gb),
      section.ReadNumber("remote_mb_per_s", {.most = kMostAmount}, group.remote_mb_per_s),
      section.ReadText("name", group.prefix),
      section.ReadText("host", group.host),
      CheckNodeName(section, "name", group.prefix),
      CheckNodeName(section, "host", group.host),
      section.ReadTexts("labels", R"(["nvlink"])", group.labels),
      section.ReadNumber("tmp_gb", {.most = kMostAmount}, group.tmp_gb),
  }));
  RETURN_IF_ERROR(CheckLabels(section, group.labels));
  if (!group.host.empty() && (group.count != 1 || section.Has("name"))) {
    return section.Bad("'host' beside 'name' or 'count'; expected it alone: it names one node");
  }
  return group;
}

// A list of names, or lists of them: ["n[0-3]", "v0"]. Without it the partition has all nodes.
Status ReadNodeNames(const io::TomlSection& section, Partition& partition) {
  partition.has_all_nodes = !section.Has("nodes");
  std::vector<std::string> lists;
  RETURN_IF_ERROR(section.ReadTexts("nodes", R"(["n[0-3]", "v0"])", lists));
  std::set<std::string> seen;
  for (const std::string& list : lists) {
    const Result<std::vector<std::string>> names = base::ExpandNames(list);
    if (!names.ok()) {
      return section.BadKey("nodes", names.error().message);
    }
    std::copy_if(names.value().begin(), names.value().end(), std::back_inserter(partition.nodes),
                 [&seen](const std::string& name) { return seen.insert(name).second; });
  }
  return {};
}

Status ReadTime(const io::TomlSection& section, std::string_view key, Duration& time) {
  std::string text;
  RETURN_IF_ERROR(section.ReadScalar(key, text));
  if (!section.Has(key)) {
    return {};
  }
  const std::optional<double> plain = base::ToNumber(text);
  const std::optional<double> seconds = plain ? plain : ParseSpan(text);
  if (!seconds || *seconds <= 0 || *seconds > kMostSeconds) {
    return section.BadKey(key, fmt::format("'{}' is no time; expected 90m, 2h, 1-12:00:00 or "
                                           "seconds, more than 0",
                                           text));
  }
  time = FromSeconds(*seconds);
  return {};
}

// "4/gpu", "16G/node": as jobs ask for it.
template <model::HasText T>
Status ReadRequested(const io::TomlSection& section, std::string_view key, T& amount) {
  std::string text;
  RETURN_IF_ERROR(section.ReadScalar(key, text));
  return !section.Has(key) || model::ReadText(text, amount)
             ? Status()
             : section.BadKey(key, fmt::format("'{}' is no amount; expected {}", text,
                                               model::ExpectedText(amount)));
}

Result<Partition> ReadPartition(const io::TomlSection& section) {
  Partition partition;
  std::int64_t most_gpus = 0;
  RETURN_IF_ERROR(io::FirstFailure({
      section.CheckKeys({"name", "nodes", "default", "max_gpus", "max_time", "default_time",
                         "default_cpus", "default_memory"}),
      section.Has("name") ? Status{} : section.Bad("no 'name'; expected that of a queue"),
      section.ReadText("name", partition.name),
      ReadNodeNames(section, partition),
      section.ReadFlag("default", partition.is_default),
      section.ReadInteger("max_gpus", {.least = 1, .most = model::kMostGpus}, most_gpus),
      ReadTime(section, "max_time", partition.longest),
      ReadTime(section, "default_time", partition.default_time),
      ReadRequested(section, "default_cpus", partition.default_cpus),
      ReadRequested(section, "default_memory", partition.default_memory),
  }));
  partition.most_gpus = static_cast<int>(most_gpus);
  return partition;
}

// A failure of one node; without an end it never returns.
struct Failure {
  NodeId node{};
  TimePoint down{};
  TimePoint up = kEndOfTime;
  bool drain = false;
};

// Reads the sections of one file into a cluster.
class ClusterParser {
 public:
  ClusterParser(const std::string& path, const io::TomlTable& root) : path_(path), root_(root) {}

  [[nodiscard]] Result<Cluster> Parse() {
    for (const auto part :
         {&ClusterParser::ReadRoot, &ClusterParser::ReadGeneral, &ClusterParser::ReadNodes,
          &ClusterParser::ReadTypes, &ClusterParser::ReadPartitions, &ClusterParser::ReadLicenses,
          &ClusterParser::ReadFailures}) {
      RETURN_IF_ERROR((this->*part)());
    }
    return std::move(cluster_);
  }

 private:
  using TableReader = Status (ClusterParser::*)(const io::TomlSection& section);

  [[nodiscard]] io::TomlSection Root() const { return {path_, "top-level", root_}; }

  Status ReadRoot() {
    return Root().CheckKeys(
        {"cluster", "nodes", "gpu_types", "partitions", "licenses", "failures"});
  }

  Status ReadGeneral() {
    const io::TomlEntry* const entry = root_.Find("cluster");
    if (entry == nullptr) {
      return {};
    }
    const io::TomlTable* const table = entry->value.table();
    if (table == nullptr) {
      return Root().BadKey("cluster", "'cluster' is no table; expected [cluster]");
    }
    const io::TomlSection section(path_, "[cluster]", *table);
    std::optional<double> interval;
    Status status = io::FirstFailure({
        section.CheckKeys({"name", "checkpoint_interval"}),
        section.ReadText("name", cluster_.name),
        section.ReadNumber("checkpoint_interval", {.most = kMostSeconds}, interval),
    });
    cluster_.checkpoint_interval = FromSeconds(interval.value_or(0));
    return status;
  }

  // Calls `read` for each [[key]].
  Status ForEachTable(std::string_view key, std::string_view name, TableReader read) {
    const Result<std::vector<const io::TomlTable*>> tables = Root().Tables(key);
    if (!tables.ok()) {
      return Root().BadKey(key, fmt::format("'{}' is no list of tables; expected {}", key, name));
    }
    for (const io::TomlTable* const table : tables.value()) {
      RETURN_IF_ERROR((this->*read)(io::TomlSection(path_, std::string(name), *table)));
    }
    return {};
  }

  Status ReadNodes() {
    RETURN_IF_ERROR(ForEachTable("nodes", "[[nodes]]", &ClusterParser::AddGroup));
    if (cluster_.nodes.empty()) {
      return BadInput(fmt::format("{}: no nodes; expected a [[nodes]] at least", path_));
    }
    return {};
  }

  Status AddGroup(const io::TomlSection& section) {
    ASSIGN_OR_RETURN(const NodeGroup group, ReadGroup(section));
    if (std::ssize(cluster_.nodes) + group.count > kMostNodes) {
      return section.Bad(fmt::format("more than {} nodes; expected fewer", kMostNodes));
    }
    type_names_.insert(group.gpu_type);
    if (type_names_.size() > model::kMaxGpuTypes) {
      return section.Bad(
          fmt::format("more than {} GPU types; expected fewer", model::kMaxGpuTypes));
    }
    for (std::int64_t i = 0; i < group.count; ++i) {
      // Groups with one prefix are numbered on.
      const std::string name = group.host.empty()
                                   ? fmt::format("{}{}", group.prefix, used_[group.prefix]++)
                                   : group.host;
      if (!nodes_.emplace(name, NodeAt(cluster_.nodes.size())).second) {
        return section.Bad(fmt::format("a second node '{}'; expected another 'name'", name));
      }
      cluster_.nodes.push_back(
          {.name = name,
           .gpus = static_cast<int>(group.gpus),
           .gpu_type = group.gpu_type,
           .capacity = {.milli_cpus = std::llround(group.cpus.value_or(0) * 1000),
                        .memory_mib = std::llround(group.memory_gb.value_or(0) * 1024)},
           .switch_index = static_cast<int>(group.switch_index),
           .cache_mib = std::llround(group.cache_gb.value_or(0) * 1024),
           .remote_kbps = std::llround(group.remote_mb_per_s.value_or(0) * 1000),
           .labels = group.labels,
           .tmp_mib = std::llround(group.tmp_gb.value_or(0) * 1024)});
    }
    return {};
  }

  Status ReadLicenses() {
    return ForEachTable("licenses", "[[licenses]]", &ClusterParser::AddLicense);
  }

  Status AddLicense(const io::TomlSection& section) {
    License license;
    std::int64_t count = 0;
    RETURN_IF_ERROR(io::FirstFailure({
        section.CheckKeys({"name", "count"}),
        section.Has("name") ? Status{} : section.Bad("no 'name'; expected that of a licence"),
        section.Has("count") ? Status{} : section.Bad("no 'count'; expected how many there are"),
        section.ReadText("name", license.name),
        section.ReadInteger("count", {.least = 1, .most = kMostNodes}, count),
    }));
    license.count = static_cast<int>(count);
    const auto same = [&license](const License& other) { return other.name == license.name; };
    if (license.name.find_first_of(" ,:") != std::string::npos ||
        std::any_of(cluster_.licenses.begin(), cluster_.licenses.end(), same)) {
      return section.BadKey("name", "'" + license.name +
                                        "'; expected a name without blanks, commas and colons "
                                        "that no other licence has");
    }
    cluster_.licenses.push_back(std::move(license));
    return {};
  }

  Status ReadTypes() { return ForEachTable("gpu_types", "[[gpu_types]]", &ClusterParser::AddType); }

  Status AddType(const io::TomlSection& section) {
    GpuType type;
    std::optional<double> speed;
    RETURN_IF_ERROR(io::FirstFailure({
        section.CheckKeys({"name", "speed"}),
        section.Has("name") ? Status{} : section.Bad("no 'name'; expected a 'gpu_type' of nodes"),
        section.Has("speed") ? Status{} : section.Bad("no 'speed'; expected a number, such as 1"),
        section.ReadText("name", type.name),
        section.ReadNumber("speed", {.least = kLeastSpeed, .most = kMostSpeed}, speed),
    }));
    const auto same = [&type](const auto& other) { return other.name == type.name; };
    if (std::any_of(cluster_.gpu_types.begin(), cluster_.gpu_types.end(), same)) {
      return section.BadKey("name", fmt::format("a second '{}'; expected one for each", type.name));
    }
    if (!type_names_.contains(type.name)) {
      return section.BadKey(
          "name", fmt::format("no node has GPUs of type '{}'; expected one of: {}", type.name,
                              fmt::join(type_names_, ", ")));
    }
    type.speed = *speed;
    cluster_.gpu_types.push_back(std::move(type));
    return {};
  }

  Status ReadPartitions() { return ParsePartitions(path_, root_, "[[partitions]]", cluster_); }

  Status ReadFailures() {
    RETURN_IF_ERROR(ForEachTable("failures", "[[failures]]", &ClusterParser::AddFailure));
    SortChanges(cluster_);
    return {};
  }

  Status AddFailure(const io::TomlSection& section) {
    bool drain = false;
    std::string name;
    std::optional<double> down;
    std::optional<double> up;
    RETURN_IF_ERROR(io::FirstFailure({
        section.CheckKeys({"node", "down", "up", "drain"}),
        section.Has("node") ? Status{} : section.Bad("no 'node'; expected the name of a node"),
        section.Has("down") ? Status{} : section.Bad("no 'down'; expected a time in seconds"),
        section.ReadText("node", name),
        section.ReadNumber("down", {.most = kMostSeconds}, down),
        section.ReadNumber("up", {.most = kMostSeconds}, up),
        section.ReadFlag("drain", drain),
    }));
    const auto node = nodes_.find(name);
    if (node == nodes_.end()) {
      return section.BadKey("node",
                            fmt::format("no node '{}'; expected one of '{}' to '{}'", name,
                                        cluster_.nodes.front().name, cluster_.nodes.back().name));
    }
    const Failure failure{.node = node->second,
                          .down = AtSeconds(*down),
                          .up = up.has_value() ? AtSeconds(*up) : kEndOfTime,
                          .drain = drain};
    if (failure.up <= failure.down) {
      return section.BadKey("up", "the node is up before it is down; expected 'up' after 'down'");
    }
    return Take(section, failure);
  }

  // A node that returns and fails in the same instant would make the order of facts matter.
  Status Take(const io::TomlSection& section, const Failure& failure) {
    std::vector<Failure>& earlier = failures_[failure.node];
    for (const Failure& other : earlier) {
      if (failure.down <= other.up && other.down <= failure.up) {
        return section.Bad(
            fmt::format("node '{}' is down already at that time; expected failures "
                        "of a node one after the other",
                        cluster_.nodes[Index(failure.node)].name));
      }
    }
    earlier.push_back(failure);
    cluster_.changes.push_back(
        {.at = failure.down,
         .node = failure.node,
         .up = false,
         .how = failure.drain ? NodeChange::How::kFinish : NodeChange::How::kFails});
    if (failure.up != kEndOfTime) {
      cluster_.changes.push_back({.at = failure.up, .node = failure.node, .up = true});
    }
    return {};
  }

  const std::string& path_;
  const io::TomlTable& root_;
  Cluster cluster_;
  std::map<std::string, std::int64_t> used_;  // numbers given out, by prefix
  std::map<std::string, NodeId> nodes_;       // by name
  std::set<std::string> type_names_;          // of the nodes
  std::map<NodeId, std::vector<Failure>> failures_;
};

}  // namespace

void SortChanges(Cluster& cluster) {
  std::stable_sort(cluster.changes.begin(), cluster.changes.end(),
                   [](const NodeChange& a, const NodeChange& b) {
                     return std::pair(a.at, a.node) < std::pair(b.at, b.node);
                   });
}

Status ParsePartitions(const std::string& path, const io::TomlTable& table, const std::string& name,
                       Cluster& cluster) {
  const io::TomlSection section(path, name, table);
  const Result<std::vector<const io::TomlTable*>> tables = section.Tables("partitions");
  if (!tables.ok()) {
    return section.BadKey("partitions",
                          fmt::format("'partitions' is no list of tables; expected {}", name));
  }
  cluster.partitions.clear();
  for (const io::TomlTable* const one : tables.value()) {
    const io::TomlSection partition(path, name, *one);
    ASSIGN_OR_RETURN(cluster.partitions.emplace_back(), ReadPartition(partition));
    const Status status = model::CheckPartitions(cluster);
    if (!status.ok()) {
      return partition.Bad(status.error().message);
    }
  }
  return {};
}

Result<Cluster> ParseClusterToml(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(const io::TomlTable root, io::ParseToml(path, text));
  return ParseClusterToml(path, root);
}

Result<Cluster> ParseClusterToml(const std::string& path, const io::TomlTable& root) {
  return ClusterParser(path, root).Parse();
}

}  // namespace trainyard::trace
