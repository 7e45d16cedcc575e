// SPDX-License-Identifier: Apache-2.0
#include "daemon/configurations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "io/sha256.h"
#include "io/toml.h"
#include "live/live_world.h"
#include "model/node_classes.h"
#include "model/request/node_request.h"
#include "scenario/assembly.h"
#include "scenario/known_models.h"
#include "scenario/packed_profiles.h"
#include "trace/clusters/cluster_file.h"
#include "trace/clusters/cluster_formats.h"

namespace trainyard {

void Serialize(StateStream& state, NodeSpec& node) {
  state(node.name, node.gpus, node.gpu_type, node.capacity, node.switch_index, node.cache_mib,
        node.remote_kbps);
}
void Serialize(StateStream& state, License& license) { state(license.name, license.count); }
void Serialize(StateStream& state, GpuType& type) { state(type.name, type.speed); }
void Serialize(StateStream& state, Partition& partition) {
  state(partition.name, partition.has_all_nodes, partition.nodes, partition.is_default,
        partition.most_gpus, partition.longest, partition.default_time);
}

}  // namespace trainyard

namespace trainyard::daemon {
namespace {

// Raised when notes are laid out otherwise; earlier ones must go on being read. Notes without
// partitions, profiles and labels are written as version 1, which 0.3.0 reads; those without
// licences and space for temporary files as version 2, and so on.
constexpr int kNoteVersion = 4;
constexpr int kBeforeDefaults = 3;  // of CPUs and memory, of partitions
constexpr int kBeforeLicenses = 2;
constexpr int kBeforePartitions = 1;

constexpr double kMilli = 1000;
constexpr double kMibPerGib = 1024;
constexpr std::string_view kNoModels = "none";  // KnownModels::Digest

// The settings of a store under which profiles are kept.
std::string KeyOf(const GivenProfiles& profiles) { return "profiles " + profiles.digest; }
std::string EarlyKeyOf(const GivenConfiguration& given) { return "tables " + given.models; }

// In a note of 0.3.0 or earlier, which does not say from where.
bool HasEarlyProfiles(const GivenConfiguration& given) {
  return given.profiles.path.empty() && !given.models.empty() && given.models != kNoModels;
}

// What a configuration is made of, owned by it.
struct Parts {
  Cluster cluster;
  scenario::KnownModels models;
  scenario::Assembly assembly;
};

bool IsSame(const NodeSpec& one, const NodeSpec& other) {
  return engine::HasSameGpus(one, other) && one.capacity == other.capacity &&
         one.switch_index == other.switch_index && one.cache_mib == other.cache_mib &&
         one.remote_kbps == other.remote_kbps && one.labels == other.labels &&
         one.tmp_mib == other.tmp_mib;
}

// The same decisions follow from two of one content, whoever has made them and when.
std::string ContentOf(GivenConfiguration given) {
  given.number = 0;
  given.author.clear();
  given.since = 0;
  given.changes.clear();
  given.options.clear();
  return given.Note();
}

// The nodes of `next` in the places that they have in `present`, and new ones behind these.
void PutInPlace(const Cluster& present, Cluster& next) {
  std::map<std::string, NodeSpec, std::less<>> named;
  for (const NodeSpec& node : next.nodes) {
    named.emplace(node.name, node);
  }
  std::vector<NodeSpec> nodes;
  for (const NodeSpec& node : present.nodes) {
    const auto again = named.extract(node.name);
    nodes.push_back(again.empty() ? node : again.mapped());
    nodes.back().gpus = again.empty() ? 0 : nodes.back().gpus;
  }
  for (NodeSpec& node : next.nodes) {
    if (named.contains(node.name)) {
      nodes.push_back(std::move(node));
    }
  }
  std::set<std::string_view> removed;
  for (const NodeSpec& node : nodes) {
    if (engine::IsRemoved(node)) {
      removed.insert(node.name);
    }
  }
  for (Partition& partition : next.partitions) {
    std::erase_if(partition.nodes,
                  [&removed](const std::string& name) { return removed.contains(name); });
  }
  next.nodes = std::move(nodes);
}

NodeSpec* FindNode(Cluster& cluster, std::string_view name) {
  const auto found = std::find_if(cluster.nodes.begin(), cluster.nodes.end(),
                                  [name](const NodeSpec& node) { return node.name == name; });
  return found == cluster.nodes.end() ? nullptr : &*found;
}

// Does to `merged` what leads from `before` to `asked`.
void MergeNodes(const Cluster& before, const Cluster& asked, Cluster& merged) {
  std::map<std::string, NodeSpec, std::less<>> gone;
  for (const NodeSpec& node : before.nodes) {
    gone.emplace(node.name, node);
  }
  for (const NodeSpec& node : asked.nodes) {
    const auto was = gone.extract(node.name);
    if (!was.empty() && IsSame(was.mapped(), node)) {
      continue;
    }
    if (NodeSpec* const present = FindNode(merged, node.name)) {
      *present = node;
    } else {
      merged.nodes.push_back(node);
    }
  }
  for (const auto& [name, node] : gone) {
    if (NodeSpec* const present = FindNode(merged, name)) {
      present->gpus = 0;
    }
  }
}

// Likewise.
void MergePartitions(const Cluster& before, const Cluster& asked, Cluster& merged) {
  for (const Partition& partition : asked.partitions) {
    const Partition* const was = before.PartitionOf(partition.name);
    if (was != nullptr && *was == partition) {
      continue;
    }
    if (Partition* const present = FindPartition(merged, partition.name)) {
      *present = partition;
    } else {
      merged.partitions.push_back(partition);
    }
  }
  for (const Partition& was : before.partitions) {
    if (asked.PartitionOf(was.name) == nullptr) {
      std::erase_if(merged.partitions,
                    [&was](const Partition& other) { return other.name == was.name; });
    }
  }
}

void AddChange(std::string& changes, const std::string& change) {
  changes += (changes.empty() ? "" : "; ") + change;
}

void CompareNames(std::string_view what, const std::string& former, const std::string& next,
                  std::string& changes) {
  const auto shown = [](const std::string& name) { return name.empty() ? "default" : name; };
  if (former != next) {
    AddChange(changes, fmt::format("{} {}, now {}", what, shown(former), shown(next)));
  }
}

void CompareProfiles(const GivenConfiguration& former, const GivenConfiguration& next,
                     std::string& changes) {
  const std::string& was = former.profiles.path;
  const std::string& is = next.profiles.path;
  if (HasEarlyProfiles(former) && !is.empty()) {
    AddChange(changes, "profiles of " + is + " are kept with the state");
  } else if (was != is) {
    CompareNames("profiles", was.empty() ? "none" : was, is.empty() ? "none" : is, changes);
  } else if (former.profiles.digest != next.profiles.digest) {
    AddChange(changes, "profiles of " + is + " changed");
  }
}

// "GPU type V100, now A100, 8 CPUs, now 16"
std::string DifferencesOf(const NodeSpec& was, const NodeSpec& is) {
  std::string text;
  const auto add = [&text](std::string_view what, const auto& one, const auto& other) {
    if (one != other) {
      text += fmt::format("{}{} {}, now {}", text.empty() ? "" : ", ", what, one, other);
    }
  };
  const auto shown = [](const std::string& type) { return type.empty() ? "none" : type; };
  add("GPU type", shown(was.gpu_type), shown(is.gpu_type));
  add("CPUs", static_cast<double>(was.capacity.milli_cpus) / kMilli,
      static_cast<double>(is.capacity.milli_cpus) / kMilli);
  add("GiB of memory", static_cast<double>(was.capacity.memory_mib) / kMibPerGib,
      static_cast<double>(is.capacity.memory_mib) / kMibPerGib);
  add("switch", was.switch_index, is.switch_index);
  add("MiB of cache", was.cache_mib, is.cache_mib);
  add("kB/s of fetches", was.remote_kbps, is.remote_kbps);
  add("MiB for temporary files", was.tmp_mib, is.tmp_mib);
  const auto listed = [](const std::vector<std::string>& labels) {
    return labels.empty() ? std::string("none") : fmt::format("{}", fmt::join(labels, ","));
  };
  add("labels", listed(was.labels), listed(is.labels));
  return text;
}

// "matlab:2,simulink:1".
std::string LicensesText(const Cluster& cluster) {
  std::string text;
  for (const License& license : cluster.licenses) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", license.name, license.count);
  }
  return text.empty() ? "none" : text;
}

// "node a", "nodes a, b, c", "nodes a to z (26)".
std::string NamesText(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  if (names.size() == 1) {
    return "node " + names.front();
  }
  return names.size() <= kMost
             ? fmt::format("nodes {}", fmt::join(names, ", "))
             : fmt::format("nodes {} to {} ({})", names.front(), names.back(), names.size());
}

// What becomes of one node: "removed", "has 4 GPUs, now 8"; empty: nothing.
std::string ChangeOf(const NodeSpec* was, const NodeSpec& is) {
  if (was == nullptr) {
    return engine::IsRemoved(is) ? "" : "added";
  }
  if (engine::IsRemoved(is)) {
    return "removed";
  }
  if (was->gpus != is.gpus) {
    return fmt::format("has {} GPUs, now {}", was->gpus, is.gpus);
  }
  return IsSame(*was, is) ? "" : "changed: " + DifferencesOf(*was, is);
}

// Nodes of which the same becomes are told together, in the order of the first of them.
void CompareNodes(const Cluster& former, const Cluster& next, std::string& changes) {
  std::map<std::string, NodeSpec, std::less<>> named;
  for (const NodeSpec& node : former.nodes) {
    if (!engine::IsRemoved(node)) {
      named.emplace(node.name, node);
    }
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> told;
  const auto tell = [&told](const std::string& change, const std::string& name) {
    const auto same = std::find_if(told.begin(), told.end(),
                                   [&change](const auto& one) { return one.first == change; });
    if (same != told.end()) {
      same->second.push_back(name);
    } else if (!change.empty()) {
      told.emplace_back(change, std::vector{name});
    }
  };
  for (const NodeSpec& node : next.nodes) {
    const auto was = named.extract(node.name);
    tell(ChangeOf(was.empty() ? nullptr : &was.mapped(), node), node.name);
  }
  for (const auto& [name, node] : named) {
    tell("removed", name);
  }
  for (const auto& [change, names] : told) {
    const bool has = names.size() > 1 && change.starts_with("has");
    AddChange(changes, NamesText(names) + " " + (has ? "have" + change.substr(3) : change));
  }
}

std::string NodesText(const Partition& partition) {
  return partition.has_all_nodes   ? "all nodes"
         : partition.nodes.empty() ? "no nodes"
                                   : "nodes " + base::FoldNames(partition.nodes);
}

std::string TimeText(Duration time) {
  return time > Duration{0} ? base::ShortDuration(Seconds(time)) : "none";
}

// "4/gpu"
template <model::HasText T>
std::string AmountText(const T& amount) {
  return amount == T{} ? "none" : model::TextOf(amount);
}

// "nodes n[0-3], now n[0-5], max_time none, now 2h"; empty: nothing.
std::string DifferencesOf(const Partition& was, const Partition& is) {
  std::string text;
  const auto add = [&text](const std::string& what, const std::string& one,
                           const std::string& other) {
    if (one != other) {
      text += fmt::format("{}{}{}, now {}", text.empty() ? "" : ", ", what, one, other);
    }
  };
  const auto count = [](int most) { return most == 0 ? "any" : std::to_string(most); };
  add("", NodesText(was), NodesText(is));
  add("", was.is_default ? "the default" : "not the default",
      is.is_default ? "the default" : "not the default");
  add("max_gpus ", count(was.most_gpus), count(is.most_gpus));
  add("max_time ", TimeText(was.longest), TimeText(is.longest));
  add("default_time ", TimeText(was.default_time), TimeText(is.default_time));
  add("default_cpus ", AmountText(was.default_cpus), AmountText(is.default_cpus));
  add("default_memory ", AmountText(was.default_memory), AmountText(is.default_memory));
  return text;
}

void ComparePartitions(const Cluster& former, const Cluster& next, std::string& changes) {
  for (const Partition& is : next.partitions) {
    const Partition* const was = former.PartitionOf(is.name);
    if (was == nullptr) {
      AddChange(changes, fmt::format("partition {} added, with {}{}", is.name, NodesText(is),
                                     is.is_default ? ", the default" : ""));
    } else if (const std::string differences = DifferencesOf(*was, is); !differences.empty()) {
      AddChange(changes, fmt::format("partition {}: {}", is.name, differences));
    }
  }
  for (const Partition& was : former.partitions) {
    if (next.PartitionOf(was.name) == nullptr) {
      AddChange(changes, fmt::format("partition {} removed", was.name));
    }
  }
}

void AddPartition(const Partition& partition, std::string& text) {
  text += fmt::format("\n[[partitions]]\nname = {}\n", io::TomlString(partition.name));
  if (!partition.has_all_nodes) {
    text += fmt::format("nodes = [{}]\n", partition.nodes.empty()
                                              ? ""
                                              : io::TomlString(base::FoldNames(partition.nodes)));
  }
  text += partition.is_default ? "default = true\n" : "";
  const auto add = [&text](std::string_view key, double value) {
    text += value == 0 ? "" : fmt::format("{} = {}\n", key, value);
  };
  add("max_gpus", partition.most_gpus);
  add("max_time", Seconds(partition.longest));
  add("default_time", Seconds(partition.default_time));
  const auto add_amount = [&text](std::string_view key, const auto& amount) {
    text += amount == std::decay_t<decltype(amount)>{}
                ? ""
                : fmt::format("{} = {}\n", key, io::TomlString(model::TextOf(amount)));
  };
  add_amount("default_cpus", partition.default_cpus);
  add_amount("default_memory", partition.default_memory);
}

std::vector<std::string> Quoted(std::vector<std::string> texts) {
  for (std::string& text : texts) {
    text = io::TomlString(text);
  }
  return texts;
}

void AddNode(const NodeSpec& node, std::string& text) {
  const auto add = [&text](std::string_view key, double value) {
    text += value == 0 ? "" : fmt::format("{} = {}\n", key, value);
  };
  text += fmt::format("host = {}\ngpus = {}\n", io::TomlString(node.name), node.gpus);
  if (!node.gpu_type.empty()) {
    text += fmt::format("gpu_type = {}\n", io::TomlString(node.gpu_type));
  }
  add("cpus", static_cast<double>(node.capacity.milli_cpus) / kMilli);
  add("memory_gb", static_cast<double>(node.capacity.memory_mib) / kMibPerGib);
  add("switch", node.switch_index);
  add("cache_gb", static_cast<double>(node.cache_mib) / kMibPerGib);
  add("remote_mb_per_s", static_cast<double>(node.remote_kbps) / kMilli);
  if (!node.labels.empty()) {
    text += fmt::format("labels = [{}]\n", fmt::join(Quoted(node.labels), ", "));
  }
  add("tmp_gb", static_cast<double>(node.tmp_mib) / kMibPerGib);
}

}  // namespace

void GivenConfiguration::Serialize(StateStream& state) {
  const bool says_more = !cluster.partitions.empty() || !profiles.path.empty() ||
                         std::any_of(cluster.nodes.begin(), cluster.nodes.end(),
                                     [](const NodeSpec& node) { return !node.labels.empty(); });
  const bool has_requests = !cluster.licenses.empty() ||
                            std::any_of(cluster.nodes.begin(), cluster.nodes.end(),
                                        [](const NodeSpec& node) { return node.tmp_mib > 0; });
  const bool has_defaults =
      std::any_of(cluster.partitions.begin(), cluster.partitions.end(), [](const Partition& one) {
        return one.default_cpus.milli > 0 || one.default_memory.mib > 0;
      });
  int version = has_defaults   ? kNoteVersion
                : has_requests ? kBeforeDefaults
                : says_more    ? kBeforeLicenses
                               : kBeforePartitions;
  state(version);
  if (version < kBeforePartitions || version > kNoteVersion) {
    return state.Fail();
  }
  state(number, author, since, changes, options, names.preset, names.policy, names.placement,
        names.admission, names.tuning, names.grouping, preset, models, cluster.name, cluster.nodes,
        cluster.gpu_types, cluster.checkpoint_interval);
  if (version > kBeforePartitions) {
    state(cluster.partitions, profiles);
    for (NodeSpec& node : cluster.nodes) {
      state(node.labels);
    }
  }
  if (version > kBeforeLicenses) {
    state(cluster.licenses);
    for (NodeSpec& node : cluster.nodes) {
      state(node.tmp_mib);
    }
  }
  if (version > kBeforeDefaults) {
    for (Partition& partition : cluster.partitions) {
      state(partition.default_cpus.milli, partition.default_cpus.per, partition.default_memory.mib,
            partition.default_memory.per);
    }
  }
}

std::string GivenConfiguration::Note() const {
  StateStream state;
  GivenConfiguration copy = *this;
  copy.Serialize(state);
  return state.TakeBytes();
}

Result<GivenConfiguration> GivenConfiguration::From(std::string_view note) {
  GivenConfiguration given;
  StateStream state{note};
  given.Serialize(state);
  if (!state.complete()) {
    return BadInput(
        "a configuration in the journal cannot be understood; expected one that this "
        "version of Trainyard has written");
  }
  return given;
}

Partition* FindPartition(Cluster& cluster, std::string_view name) {
  const auto found =
      std::find_if(cluster.partitions.begin(), cluster.partitions.end(),
                   [name](const Partition& partition) { return partition.name == name; });
  return found == cluster.partitions.end() ? nullptr : &*found;
}

Result<GivenConfiguration> Given(const scenario::PresetRequest& names, const std::string& cluster,
                                 const GivenProfiles& profiles) {
  GivenConfiguration given{.names = names, .profiles = profiles};
  ASSIGN_OR_RETURN(given.preset, scenario::PresetContent(names.preset));
  ASSIGN_OR_RETURN(given.cluster, trace::ReadCluster(cluster));
  given.options = ContentOf(given);
  return given;
}

Result<GivenConfiguration> FromText(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(io::TomlTable root, io::ParseToml(path, text));
  GivenConfiguration given;
  const io::TomlSection section(path, "top-level", root);
  scenario::PresetRequest& names = given.names;
  RETURN_IF_ERROR(io::FirstFailure({
      section.CheckKeys({"preset", "policy", "placement", "admission", "grouping", "tuning",
                         "profiles", "profiles_digest", "cluster", "nodes", "gpu_types",
                         "partitions", "licenses"}),
      section.ReadText("preset", names.preset),
      section.ReadText("policy", names.policy),
      section.ReadText("placement", names.placement),
      section.ReadText("admission", names.admission),
      section.ReadText("grouping", names.grouping),
      section.ReadText("tuning", names.tuning),
      section.ReadText("profiles", given.profiles.path),
      section.ReadText("profiles_digest", given.profiles.digest),
  }));
  if (given.profiles.path.empty() && !given.profiles.digest.empty()) {
    return section.BadKey("profiles_digest",
                          "there are no profiles; expected 'profiles' beside it");
  }
  ASSIGN_OR_RETURN(given.preset, scenario::PresetContent(names.preset));
  std::erase_if(root.entries, [](const io::TomlEntry& entry) {
    return entry.key != "cluster" && entry.key != "nodes" && entry.key != "gpu_types" &&
           entry.key != "partitions" && entry.key != "licenses";
  });
  ASSIGN_OR_RETURN(given.cluster, trace::ParseClusterToml(path, root));
  return given;
}

Result<GivenConfiguration> Merged(const GivenConfiguration& present,
                                  const GivenConfiguration& asked) {
  if (present.options.empty()) {
    return asked;
  }
  ASSIGN_OR_RETURN(const GivenConfiguration before, GivenConfiguration::From(present.options));
  GivenConfiguration merged = present;
  merged.options = asked.options;
  const auto take = [](const auto& was, const auto& is, auto& to) { to = was == is ? to : is; };
  if (before.preset != asked.preset) {
    merged.preset = asked.preset;
    merged.names.preset = asked.names.preset;
  }
  take(before.names.policy, asked.names.policy, merged.names.policy);
  take(before.names.placement, asked.names.placement, merged.names.placement);
  take(before.names.admission, asked.names.admission, merged.names.admission);
  take(before.names.grouping, asked.names.grouping, merged.names.grouping);
  take(before.names.tuning, asked.names.tuning, merged.names.tuning);
  if (before.profiles != asked.profiles) {
    merged.profiles = asked.profiles;
    merged.models.clear();
  }
  take(before.cluster.name, asked.cluster.name, merged.cluster.name);
  take(before.cluster.checkpoint_interval, asked.cluster.checkpoint_interval,
       merged.cluster.checkpoint_interval);
  if (!std::equal(before.cluster.gpu_types.begin(), before.cluster.gpu_types.end(),
                  asked.cluster.gpu_types.begin(), asked.cluster.gpu_types.end(),
                  [](const GpuType& one, const GpuType& other) {
                    return one.name == other.name && one.speed == other.speed;
                  })) {
    merged.cluster.gpu_types = asked.cluster.gpu_types;
  }
  take(before.cluster.licenses, asked.cluster.licenses, merged.cluster.licenses);
  MergePartitions(before.cluster, asked.cluster, merged.cluster);
  MergeNodes(before.cluster, asked.cluster, merged.cluster);
  return merged;
}

std::string ChangesBetween(const GivenConfiguration& former, const GivenConfiguration& next) {
  std::string changes;
  CompareNames("preset", former.names.preset, next.names.preset, changes);
  if (former.names.preset == next.names.preset && former.preset != next.preset) {
    AddChange(changes, "preset " + next.names.preset + " changed");
  }
  CompareNames("policy", former.names.policy, next.names.policy, changes);
  CompareNames("placement", former.names.placement, next.names.placement, changes);
  CompareNames("admission", former.names.admission, next.names.admission, changes);
  CompareNames("grouping", former.names.grouping, next.names.grouping, changes);
  CompareNames("tuning", former.names.tuning, next.names.tuning, changes);
  CompareProfiles(former, next, changes);
  if (former.cluster.checkpoint_interval != next.cluster.checkpoint_interval) {
    AddChange(changes, fmt::format("checkpoint_interval {} s, now {} s",
                                   Seconds(former.cluster.checkpoint_interval),
                                   Seconds(next.cluster.checkpoint_interval)));
  }
  CompareNodes(former.cluster, next.cluster, changes);
  for (const GpuType& type : next.cluster.gpu_types) {
    if (former.cluster.SpeedOf(type.name) != type.speed) {
      AddChange(changes, fmt::format("GPU type {} has speed {:g}, now {:g}", type.name,
                                     former.cluster.SpeedOf(type.name), type.speed));
    }
  }
  for (const GpuType& type : former.cluster.gpu_types) {
    if (type.speed != 1 &&
        std::none_of(next.cluster.gpu_types.begin(), next.cluster.gpu_types.end(),
                     [&](const GpuType& other) { return other.name == type.name; })) {
      AddChange(changes, fmt::format("GPU type {} has speed {:g}, now 1", type.name, type.speed));
    }
  }
  ComparePartitions(former.cluster, next.cluster, changes);
  if (former.cluster.licenses != next.cluster.licenses) {
    AddChange(changes,
              "licences " + LicensesText(former.cluster) + ", now " + LicensesText(next.cluster));
  }
  return changes;
}

std::string TextOf(const GivenConfiguration& given) {
  const scenario::PresetRequest& names = given.names;
  std::string text;
  const auto add = [&text](std::string_view key, const std::string& value) {
    text += value.empty() ? "" : fmt::format("{} = {}\n", key, io::TomlString(value));
  };
  add("preset", names.preset);
  add("policy", names.policy);
  add("placement", names.placement);
  add("admission", names.admission);
  add("grouping", names.grouping);
  add("tuning", names.tuning);
  add("profiles", given.profiles.path);
  add("profiles_digest", given.profiles.digest);
  text += "\n[cluster]\n";
  add("name", given.cluster.name);
  if (given.cluster.checkpoint_interval > Duration{0}) {
    text += fmt::format("checkpoint_interval = {}\n", Seconds(given.cluster.checkpoint_interval));
  }
  for (const NodeSpec& node : given.cluster.nodes) {
    if (!engine::IsRemoved(node)) {
      text += "\n[[nodes]]\n";
      AddNode(node, text);
    }
  }
  for (const GpuType& type : given.cluster.gpu_types) {
    text += fmt::format("\n[[gpu_types]]\nname = {}\nspeed = {}\n", io::TomlString(type.name),
                        type.speed);
  }
  for (const Partition& partition : given.cluster.partitions) {
    AddPartition(partition, text);
  }
  for (const License& license : given.cluster.licenses) {
    text += fmt::format("\n[[licenses]]\nname = {}\ncount = {}\n", io::TomlString(license.name),
                        license.count);
  }
  return text;
}

// ---------------------------------------------------------------------------------------- profiles

// Where components read them.
class Configurations::Profiles {
 public:
  Profiles() = default;  // there are none
  explicit Profiles(std::string path) : path_(std::move(path)) {}
  explicit Profiles(std::unique_ptr<scenario::UnpackedProfiles> unpacked)
      : path_(unpacked->path()), unpacked_(std::move(unpacked)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  // As they were taken, and not as they lie there now.
  [[nodiscard]] bool are_kept() const { return unpacked_ != nullptr; }

 private:
  std::string path_;
  std::unique_ptr<scenario::UnpackedProfiles> unpacked_;
};

// Packed; empty: there is none of that key.
Result<std::string> Configurations::Kept(const std::string& key) const {
  if (store_ != nullptr) {
    return store_->Setting(key);
  }
  const auto taken = taken_.find(key);
  return taken == taken_.end() ? std::string() : taken->second;
}

Status Configurations::Keep(const std::string& key, const std::string& packed) const {
  if (store_ == nullptr) {
    taken_[key] = packed;
    return {};
  }
  ASSIGN_OR_RETURN(const std::string kept, store_->Setting(key));
  return kept.empty() ? store_->SetSetting(key, packed) : Status();
}

Status Configurations::KeepIn(store::Store& store) {
  store_ = &store;
  for (const auto& [key, packed] : std::exchange(taken_, {})) {
    RETURN_IF_ERROR(Keep(key, packed));
  }
  return {};
}

Result<GivenProfiles> Configurations::Take(const std::string& path) const {
  if (path.empty()) {
    return GivenProfiles{};
  }
  constexpr std::size_t kEnough = 32;
  ASSIGN_OR_RETURN(const std::string packed, scenario::PackProfiles(path));
  GivenProfiles given{.path = path, .digest = io::Sha256Hex(packed).substr(0, kEnough)};
  RETURN_IF_ERROR(Keep(KeyOf(given), packed));
  return given;
}

// Those of notes of 0.3.0 and earlier are known by their tables only, and taken from --profiles
// once.
Result<Configurations::Profiles> Configurations::ProfilesOf(const GivenConfiguration& given) const {
  const bool is_early = HasEarlyProfiles(given);
  if (!is_early && given.profiles.path.empty()) {
    return Profiles();
  }
  ASSIGN_OR_RETURN(const std::string packed,
                   Kept(is_early ? EarlyKeyOf(given) : KeyOf(given.profiles)));
  if (packed.empty() && is_early) {
    return Profiles(profiles_);
  }
  if (packed.empty()) {
    return BadInput(
        "profiles of " + given.profiles.path + " with the digest " + given.profiles.digest +
        " are not kept here; expected no profiles_digest, for those that lie there now");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<scenario::UnpackedProfiles> unpacked,
                   scenario::UnpackedProfiles::Make(packed));
  return Profiles(std::move(unpacked));
}

// With its parts as owner; `given` gets the digest of the profiles' tables.
Result<std::shared_ptr<engine::Configuration>> Configurations::Assemble(
    GivenConfiguration& given) const {
  ASSIGN_OR_RETURN(const Profiles profiles, ProfilesOf(given));
  auto parts = std::make_shared<Parts>();
  parts->cluster = given.cluster;
  Result<scenario::KnownModels> read = scenario::KnownModels::Read(profiles.path(), parts->cluster);
  if (!read.ok()) {  // the files that the operator knows, and not their copies
    Error error = read.error();
    error.message =
        base::ReplaceAll(std::move(error.message), profiles.path(), given.profiles.path);
    return profiles.are_kept() ? error : read.error();
  }
  parts->models = std::move(read).value();
  const loader::LoaderProfiles* loader = parts->models.loader ? &*parts->models.loader : nullptr;
  ASSIGN_OR_RETURN(parts->assembly, scenario::AssembleComponents(given.names, parts->cluster,
                                                                 profiles.path(), loader));
  RETURN_IF_ERROR(live::CheckRules(parts->assembly.preset.rules));
  RETURN_IF_ERROR(scenario::MakeLiveRates(parts->models, parts->cluster, parts->assembly));
  const std::string models = parts->models.Digest();
  if (!profiles.are_kept() && !given.models.empty() && given.models != models) {
    return BadInput(
        "--profiles gives others than the journal was written with; expected the same as before "
        "for one start, after which they may change");
  }
  given.models = models;
  if (!profiles.are_kept() && !profiles.path().empty()) {
    ASSIGN_OR_RETURN(const std::string packed, scenario::PackProfiles(profiles.path()));
    RETURN_IF_ERROR(Keep(EarlyKeyOf(given), packed));
  }
  std::shared_ptr<engine::Configuration> made =
      scenario::LiveConfiguration(parts->models, parts->assembly, parts->cluster);
  made->text = TextOf(given);
  made->owner = std::move(parts);
  return made;
}

// ----------------------------------------------------------------------------------- from notes

Result<engine::SharedConfiguration> Configurations::Read(
    std::string_view note, const engine::Configuration& present) const {
  if (last_ != nullptr && last_->note == note) {
    return last_;
  }
  ASSIGN_OR_RETURN(GivenConfiguration given, GivenConfiguration::From(note));
  PutInPlace(present.cluster, given.cluster);
  RETURN_IF_ERROR(model::CheckPartitions(given.cluster));
  ASSIGN_OR_RETURN(const std::string preset, scenario::PresetContent(given.names.preset));
  if (preset != given.preset) {
    return BadInput("preset '" + given.names.preset +
                    "' is another one than the journal was written with; expected the former");
  }
  std::shared_ptr<engine::Configuration> next;
  if (last_ != nullptr && last_content_ == ContentOf(given)) {
    next = std::make_shared<engine::Configuration>(*last_);
  } else {
    ASSIGN_OR_RETURN(next, Assemble(given));
    last_content_ = ContentOf(given);
  }
  next->number = given.number;
  next->note = given.Note();
  next->author = given.author;
  next->since = given.since;
  next->changes = given.changes;
  last_ = next;
  return last_;
}

Result<engine::SharedConfiguration> Configurations::Make(
    const engine::AskedConfiguration& asked, const engine::Configuration& present) const {
  ASSIGN_OR_RETURN(GivenConfiguration given, FromText(asked.name, asked.text));
  ASSIGN_OR_RETURN(const GivenConfiguration former, GivenConfiguration::From(present.note));
  if (given.names == scenario::PresetRequest{}) {  // a cluster file
    given.names = former.names;
    given.preset = former.preset;
    given.profiles = given.profiles.path.empty() ? former.profiles : given.profiles;
  }
  if (given.profiles.path.empty() && former.profiles.path.empty()) {
    given.models = former.models;
  }
  if (given.profiles.digest.empty()) {
    const Result<GivenProfiles> taken = Take(given.profiles.path);
    if (!taken.ok()) {
      return InvalidArgument(asked.name + ": " + taken.error().message);
    }
    given.profiles = taken.value();
  }
  given.changes = ChangesBetween(former, given);
  given.number = present.number + 1;
  given.author = asked.author;
  given.since = asked.since;
  given.options = former.options;
  Result<engine::SharedConfiguration> next = Read(given.Note(), present);
  return next.ok() ? std::move(next) : InvalidArgument(asked.name + ": " + next.error().message);
}

}  // namespace trainyard::daemon
