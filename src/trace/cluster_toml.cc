// SPDX-License-Identifier: Apache-2.0
#include "trace/cluster_toml.h"

#include <fmt/format.h>

// toml++ 3.3 asserts, and in release builds assumes, what a malformed file can violate ("[[["; its
// pull request 301). Without that it goes on to report an ordinary error.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "model/gpu_types.h"

namespace trainyard {
namespace {

constexpr double kMostSeconds = 9e9;  // as in traces
constexpr double kMostAmount = 1e9;   // CPUs, gigabytes, MB/s
constexpr double kLeastSpeed = 1e-3;
constexpr double kMostSpeed = 1e3;

struct NumberRange {
  double least = 0;
  double most = 0;
};

// One table of the file, whose values are read by key. Every key must be known.
class Section {
 public:
  // `name` as it stands in the file, such as "[[nodes]]".
  Section(const std::string& path, std::string_view name, const toml::table& table)
      : path_(path), name_(name), table_(table) {}

  [[nodiscard]] Error Bad(std::string_view what) const {
    return BadAt(table_.source(), fmt::format("{}: {}", name_, what));
  }
  [[nodiscard]] Error BadKey(std::string_view key, std::string_view what) const {
    const toml::node* const node = table_.get(key);
    return node == nullptr ? Bad(what) : BadAt(node->source(), what);
  }

  Status CheckKeys(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
        return BadAt(key.source(), UnknownName(fmt::format("{} key", name_), key.str(),
                                               {known.begin(), known.size()}));
      }
    }
    return {};
  }

  // The readers leave the target as it is where the key is absent.
  Status Read(std::string_view key, std::string& text) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) {
      return {};
    }
    const auto value = node->value_exact<std::string>();
    if (!value.has_value() || value->empty()) {
      return BadAt(node->source(), fmt::format("'{}' is {}; expected a text", key, Shown(*node)));
    }
    text = *value;
    return {};
  }

  Status Read(std::string_view key, NumberRange range, std::optional<double>& number) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) {
      return {};
    }
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value.has_value() || !(*value >= range.least && *value <= range.most)) {
      return BadAt(node->source(), fmt::format("'{}' is {}; expected a number from {} to {:.0f}",
                                               key, Shown(*node), range.least, range.most));
    }
    number = *value;
    return {};
  }

  Status Read(std::string_view key, NumberRange range, std::int64_t& number) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) {
      return {};
    }
    const auto value = node->value_exact<std::int64_t>();
    if (!value.has_value() || static_cast<double>(*value) < range.least ||
        static_cast<double>(*value) > range.most) {
      return BadAt(node->source(), fmt::format("'{}' is {}; expected an integer from {} to {}", key,
                                               Shown(*node), range.least, range.most));
    }
    number = *value;
    return {};
  }

  [[nodiscard]] bool Has(std::string_view key) const { return table_.get(key) != nullptr; }

 private:
  static std::string Shown(const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) {
      return fmt::format("'{}'", text->substr(0, 60));
    }
    if (const auto whole = node.value_exact<std::int64_t>()) {
      return fmt::format("{}", *whole);
    }
    if (const auto number = node.value_exact<double>()) {
      return fmt::format("{}", *number);
    }
    return node.is_boolean() ? "true or false" : "something else";
  }

  [[nodiscard]] Error BadAt(const toml::source_region& where, std::string_view what) const {
    return BadInput(fmt::format("{}:{}: {}", path_, where.begin.line, what));
  }

  const std::string& path_;
  std::string_view name_;
  const toml::table& table_;
};

Status FirstFailure(std::initializer_list<Status> results) {
  for (const Status& result : results) {
    if (!result.ok()) {
      return result;
    }
  }
  return {};
}

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
};

Result<NodeGroup> ReadGroup(const Section& section) {
  NodeGroup group;
  RETURN_IF_ERROR(FirstFailure({
      section.CheckKeys({"count", "gpus", "gpu_type", "cpus", "memory_gb", "switch", "cache_gb",
                         "remote_mb_per_s", "name", "host"}),
      section.Has("gpus") ? Status{} : section.Bad("no 'gpus'; expected the GPUs of a node"),
      section.Read("count", {.least = 1, .most = kMostNodes}, group.count),
      section.Read("gpus", {.least = 1, .most = kMaxGpusPerNode}, group.gpus),
      section.Read("gpu_type", group.gpu_type),
      section.Read("cpus", {.most = kMostAmount}, group.cpus),
      section.Read("memory_gb", {.most = kMostAmount}, group.memory_gb),
      section.Read("switch", {.most = kMostNodes}, group.switch_index),
      section.Read("cache_gb", {.most = kMostAmount}, group.cache_gb),
      section.Read("remote_mb_per_s", {.most = kMostAmount}, group.remote_mb_per_s),
      section.Read("name", group.prefix),
      section.Read("host", group.host),
  }));
  if (!group.host.empty() && (group.count != 1 || section.Has("name"))) {
    return section.Bad("'host' beside 'name' or 'count'; expected it alone: it names one node");
  }
  return group;
}

// A failure of one node; without an end it never returns.
struct Failure {
  NodeId node{};
  TimePoint down{};
  TimePoint up = kEndOfTime;
};

// Reads the sections of one file into a cluster.
class ClusterParser {
 public:
  ClusterParser(const std::string& path, const toml::table& root) : path_(path), root_(root) {}

  [[nodiscard]] Result<Cluster> Parse() {
    for (const auto part :
         {&ClusterParser::ReadRoot, &ClusterParser::ReadGeneral, &ClusterParser::ReadNodes,
          &ClusterParser::ReadTypes, &ClusterParser::ReadFailures}) {
      RETURN_IF_ERROR((this->*part)());
    }
    return std::move(cluster_);
  }

 private:
  using TableReader = Status (ClusterParser::*)(const Section& section);

  [[nodiscard]] Section Root() const { return {path_, "top-level", root_}; }

  Status ReadRoot() { return Root().CheckKeys({"cluster", "nodes", "gpu_types", "failures"}); }

  Status ReadGeneral() {
    if (!Root().Has("cluster")) {
      return {};
    }
    const toml::table* const table = root_.get_as<toml::table>("cluster");
    if (table == nullptr) {
      return Root().BadKey("cluster", "'cluster' is no table; expected [cluster]");
    }
    const Section section(path_, "[cluster]", *table);
    std::optional<double> interval;
    Status status = FirstFailure({
        section.CheckKeys({"name", "checkpoint_interval"}),
        section.Read("name", cluster_.name),
        section.Read("checkpoint_interval", {.most = kMostSeconds}, interval),
    });
    cluster_.checkpoint_interval = FromSeconds(interval.value_or(0));
    return status;
  }

  // Calls `read` for each [[key]].
  Status ForEachTable(std::string_view key, std::string_view name, TableReader read) {
    if (!Root().Has(key)) {
      return {};
    }
    const toml::array* const array = root_.get_as<toml::array>(key);
    if (array == nullptr) {
      return Root().BadKey(key, fmt::format("'{}' is no list of tables; expected {}", key, name));
    }
    for (const toml::node& node : *array) {
      const toml::table* const table = node.as_table();
      if (table == nullptr) {
        return Root().BadKey(key, fmt::format("'{}' is no list of tables; expected {}", key, name));
      }
      RETURN_IF_ERROR((this->*read)(Section(path_, name, *table)));
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

  Status AddGroup(const Section& section) {
    ASSIGN_OR_RETURN(const NodeGroup group, ReadGroup(section));
    if (std::ssize(cluster_.nodes) + group.count > kMostNodes) {
      return section.Bad(fmt::format("more than {} nodes; expected fewer", kMostNodes));
    }
    type_names_.insert(group.gpu_type);
    if (type_names_.size() > kMaxGpuTypes) {
      return section.Bad(fmt::format("more than {} GPU types; expected fewer", kMaxGpuTypes));
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
           .remote_kbps = std::llround(group.remote_mb_per_s.value_or(0) * 1000)});
    }
    return {};
  }

  Status ReadTypes() { return ForEachTable("gpu_types", "[[gpu_types]]", &ClusterParser::AddType); }

  Status AddType(const Section& section) {
    GpuType type;
    std::optional<double> speed;
    RETURN_IF_ERROR(FirstFailure({
        section.CheckKeys({"name", "speed"}),
        section.Has("name") ? Status{} : section.Bad("no 'name'; expected a 'gpu_type' of nodes"),
        section.Has("speed") ? Status{} : section.Bad("no 'speed'; expected a number, such as 1"),
        section.Read("name", type.name),
        section.Read("speed", {.least = kLeastSpeed, .most = kMostSpeed}, speed),
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

  Status ReadFailures() {
    RETURN_IF_ERROR(ForEachTable("failures", "[[failures]]", &ClusterParser::AddFailure));
    std::stable_sort(cluster_.changes.begin(), cluster_.changes.end(),
                     [](const NodeChange& a, const NodeChange& b) {
                       return std::pair(a.at, a.node) < std::pair(b.at, b.node);
                     });
    return {};
  }

  Status AddFailure(const Section& section) {
    std::string name;
    std::optional<double> down;
    std::optional<double> up;
    RETURN_IF_ERROR(FirstFailure({
        section.CheckKeys({"node", "down", "up"}),
        section.Has("node") ? Status{} : section.Bad("no 'node'; expected the name of a node"),
        section.Has("down") ? Status{} : section.Bad("no 'down'; expected a time in seconds"),
        section.Read("node", name),
        section.Read("down", {.most = kMostSeconds}, down),
        section.Read("up", {.most = kMostSeconds}, up),
    }));
    const auto node = nodes_.find(name);
    if (node == nodes_.end()) {
      return section.BadKey("node",
                            fmt::format("no node '{}'; expected one of '{}' to '{}'", name,
                                        cluster_.nodes.front().name, cluster_.nodes.back().name));
    }
    const Failure failure{.node = node->second,
                          .down = AtSeconds(*down),
                          .up = up.has_value() ? AtSeconds(*up) : kEndOfTime};
    if (failure.up <= failure.down) {
      return section.BadKey("up", "the node is up before it is down; expected 'up' after 'down'");
    }
    return Take(section, failure);
  }

  // A node that returns and fails in the same instant would make the order of facts matter.
  Status Take(const Section& section, const Failure& failure) {
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
    cluster_.changes.push_back({.at = failure.down, .node = failure.node, .up = false});
    if (failure.up != kEndOfTime) {
      cluster_.changes.push_back({.at = failure.up, .node = failure.node, .up = true});
    }
    return {};
  }

  const std::string& path_;
  const toml::table& root_;
  Cluster cluster_;
  std::map<std::string, std::int64_t> used_;  // numbers given out, by prefix
  std::map<std::string, NodeId> nodes_;       // by name
  std::set<std::string> type_names_;          // of the nodes
  std::map<NodeId, std::vector<Failure>> failures_;
};

}  // namespace

Result<Cluster> ParseClusterToml(const std::string& path, std::string_view text) {
  const toml::parse_result parsed = toml::parse(text, std::string_view(path));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return BadInput(
        fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
  }
  return ClusterParser(path, parsed.table()).Parse();
}

}  // namespace trainyard
