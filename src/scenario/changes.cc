// SPDX-License-Identifier: Apache-2.0
#include "scenario/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/toml.h"
#include "trace/clusters/cluster_formats.h"

namespace trainyard::scenario {
namespace {

// What becomes of one node by failures and by changes, each of which may keep it away.
class NodeHistory {
 public:
  // What the cluster sees of it; nothing: the other one keeps the node as it is.
  [[nodiscard]] std::optional<NodeChange> Take(const NodeChange& change, bool is_failure) {
    const bool was_up = is_up();
    (is_failure ? has_failed_ : is_out_) = !change.up;
    const bool returns = !was_up && is_up();
    // Who only gets no new jobs may still lose those that it has.
    const bool leaves = !change.up && (was_up || (finishes_ && change.how != kFinish));
    if (!returns && !leaves) {
      return std::nullopt;
    }
    finishes_ = leaves && change.how == kFinish;
    return change;
  }

 private:
  static constexpr NodeChange::How kFinish = NodeChange::How::kFinish;

  [[nodiscard]] bool is_up() const { return !has_failed_ && !is_out_; }

  bool has_failed_ = false;
  bool is_out_ = false;
  bool finishes_ = false;
};

// Both by time. At one instant failures come first.
std::vector<NodeChange> Merged(const std::vector<NodeChange>& failures,
                               const std::vector<NodeChange>& changes) {
  std::map<NodeId, NodeHistory> nodes;
  std::vector<NodeChange> seen;
  auto failure = failures.begin();
  const auto take = [&](const NodeChange& change, bool is_failure) {
    if (const auto one = nodes[change.node].Take(change, is_failure)) {
      seen.push_back(*one);
    }
  };
  for (const NodeChange& change : changes) {
    for (; failure != failures.end() && failure->at <= change.at; ++failure) {
      take(*failure, true);
    }
    take(change, false);
  }
  std::for_each(failure, failures.end(), [&](const NodeChange& one) { take(one, true); });
  return seen;
}

class ChangesReader {
 public:
  ChangesReader(const std::string& path, Cluster& cluster) : path_(path), cluster_(cluster) {}

  [[nodiscard]] Result<std::vector<ConfigurationChange>> Read(const io::TomlTable& root) {
    failures_ = std::exchange(cluster_.changes, {});
    const io::TomlSection section(path_, "top-level", root);
    RETURN_IF_ERROR(section.CheckKeys({"changes", "nodes", "gpu_types"}));
    RETURN_IF_ERROR(AddNodes(root));
    ASSIGN_OR_RETURN(const std::vector<const io::TomlTable*> tables, section.Tables("changes"));
    if (tables.empty()) {
      return section.Bad("no changes; expected a [[changes]] at least");
    }
    for (const io::TomlTable* table : tables) {
      RETURN_IF_ERROR(Read(io::TomlSection(path_, "[[changes]]", *table)));
    }
    for (const auto& [name, line] : waiting_) {
      return BadInput(
          fmt::format("{}:{}: node '{}' is added by no change; expected its name in the "
                      "'add' of one",
                      path_, line, name));
    }
    std::stable_sort(
        changes_.begin(), changes_.end(),
        [](const ConfigurationChange& a, const ConfigurationChange& b) { return a.at < b.at; });
    trace::SortChanges(cluster_);
    cluster_.changes = Merged(failures_, cluster_.changes);
    return std::move(changes_);
  }

 private:
  // Those of the file come behind those of the cluster.
  [[nodiscard]] Status AddNodes(const io::TomlTable& root) {
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      nodes_[cluster_.nodes[i].name] = NodeAt(i);
    }
    const io::TomlEntry* const entry = root.Find("nodes");
    if (entry == nullptr) {
      return {};
    }
    io::TomlTable of_cluster = root;
    std::erase_if(of_cluster.entries,
                  [](const io::TomlEntry& one) { return one.key == "changes"; });
    ASSIGN_OR_RETURN(Cluster added, trace::ParseClusterToml(path_, of_cluster));
    for (NodeSpec& node : added.nodes) {
      const NodeId id = NodeAt(cluster_.nodes.size());
      if (!nodes_.emplace(node.name, id).second) {
        return BadInput(
            fmt::format("{}:{}: the cluster has a node '{}' already; expected another "
                        "'name' or 'host'",
                        path_, entry->line, node.name));
      }
      waiting_[node.name] = entry->line;
      cluster_.changes.push_back({.at = TimePoint{}, .node = id});
      cluster_.nodes.push_back(std::move(node));
    }
    for (GpuType& type : added.gpu_types) {
      cluster_.gpu_types.push_back(std::move(type));
    }
    return {};
  }

  [[nodiscard]] Status Read(const io::TomlSection& section) {
    std::optional<double> at;
    RETURN_IF_ERROR(io::FirstFailure({
        section.CheckKeys({"at", "add", "remove", "drain", "preset", "policy", "placement",
                           "admission", "grouping", "tuning", "profiles", "partitions"}),
        section.Has("at") ? Status{} : section.Bad("no 'at'; expected a time in seconds"),
        section.ReadNumber("at", {.most = trace::kMostSeconds}, at),
    }));
    if (section.table().entries.size() == 1) {
      return section.Bad("it changes nothing; expected 'add', 'remove', 'drain', 'policy' ...");
    }
    const TimePoint time = AtSeconds(*at);
    named_.clear();
    RETURN_IF_ERROR(io::FirstFailure({
        ReadNodes(section, "add", {.at = time, .up = true}),
        ReadNodes(section, "remove", {.at = time, .how = NodeChange::How::kNotice}),
        ReadNodes(section, "drain", {.at = time, .how = NodeChange::How::kFinish}),
    }));
    return ReadConfiguration(section, time);
  }

  [[nodiscard]] Status ReadConfiguration(const io::TomlSection& section, TimePoint time) {
    ConfigurationChange change{.at = time,
                               .where = fmt::format("{}:{}", path_, section.table().line)};
    RETURN_IF_ERROR(io::FirstFailure({
        ReadName(section, "preset", change.preset),
        ReadName(section, "policy", change.policy),
        ReadName(section, "placement", change.placement),
        ReadName(section, "admission", change.admission),
        ReadName(section, "grouping", change.grouping),
        ReadName(section, "tuning", change.tuning),
        ReadName(section, "profiles", change.profiles),
        ReadPartitions(section, change.partitions),
    }));
    if (change.profiles) {
      const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
      change.profiles = (folder / *change.profiles).string();
    }
    if (change.preset || change.policy || change.placement || change.admission || change.grouping ||
        change.tuning || change.profiles || change.partitions) {
      changes_.push_back(std::move(change));
    }
    return {};
  }

  [[nodiscard]] Status ReadPartitions(const io::TomlSection& section,
                                      std::optional<std::vector<Partition>>& partitions) {
    if (!section.Has("partitions")) {
      return {};
    }
    Cluster with{.nodes = cluster_.nodes, .changes = {}};
    RETURN_IF_ERROR(trace::ParsePartitions(path_, section.table(), "[[changes.partitions]]", with));
    partitions = std::move(with.partitions);
    return {};
  }

  [[nodiscard]] Status ReadNodes(const io::TomlSection& section, std::string_view key,
                                 NodeChange change) {
    std::vector<std::string> names;
    RETURN_IF_ERROR(section.ReadTexts(key, R"(["n1", "n2"])", names));
    for (const std::string& name : names) {
      const auto node = nodes_.find(name);
      if (node == nodes_.end()) {
        return section.BadKey(
            key,
            fmt::format("no node '{}'; expected one of the cluster, or of [[nodes]] here", name));
      }
      if (!named_.insert(name).second) {
        return section.BadKey(
            key, fmt::format("node '{}' is in this change already; expected it once", name));
      }
      change.node = node->second;
      waiting_.erase(change.up ? name : "");
      cluster_.changes.push_back(change);
    }
    return {};
  }

  [[nodiscard]] static Status ReadName(const io::TomlSection& section, std::string_view key,
                                       std::optional<std::string>& name) {
    if (!section.Has(key)) {
      return {};
    }
    return section.ReadText(key, name.emplace());
  }

  const std::string& path_;
  Cluster& cluster_;
  std::map<std::string, NodeId, std::less<>> nodes_;
  std::vector<NodeChange> failures_;                 // of the cluster file
  std::set<std::string, std::less<>> named_;         // nodes of one change
  std::map<std::string, int, std::less<>> waiting_;  // nodes that no change has added yet, by line
  std::vector<ConfigurationChange> changes_;
};

}  // namespace

void ConfigurationChange::ApplyTo(PresetRequest& names) const {
  const auto put = [](const std::optional<std::string>& from, std::string& to) {
    to = from.value_or(to);
  };
  put(preset, names.preset);
  put(policy, names.policy);
  put(placement, names.placement);
  put(admission, names.admission);
  put(grouping, names.grouping);
  put(tuning, names.tuning);
}

Result<std::vector<ConfigurationChange>> ParseChanges(const std::string& path,
                                                      std::string_view text, Cluster& cluster) {
  ASSIGN_OR_RETURN(const io::TomlTable root, io::ParseToml(path, text));
  return ChangesReader(path, cluster).Read(root);
}

}  // namespace trainyard::scenario
