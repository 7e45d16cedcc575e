// SPDX-License-Identifier: Apache-2.0
#include "cli/live/node_changes.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/try.h"
#include "cli/live/configuring.h"
#include "cli/live/job_selection.h"
#include "cli/numbers.h"
#include "daemon/configurations.h"

namespace trainyard::cli {
namespace {

constexpr double kMilli = 1000;
constexpr double kMibPerGib = 1024;

struct NodeOptions : Configuring {
  std::vector<std::string> names;
  std::optional<int> gpus{};
  std::optional<std::string> gpu_type{};
  std::optional<double> cpus{};
  std::optional<double> memory_gb{};
};

void Put(const NodeOptions& options, NodeSpec& node) {
  node.gpus = options.gpus.value_or(node.gpus);
  node.gpu_type = options.gpu_type.value_or(node.gpu_type);
  if (options.cpus) {
    node.capacity.milli_cpus = static_cast<std::int64_t>(*options.cpus * kMilli);
  }
  if (options.memory_gb) {
    node.capacity.memory_mib = static_cast<std::int64_t>(*options.memory_gb * kMibPerGib);
  }
}

std::vector<NodeSpec>::iterator Find(Cluster& cluster, const std::string& name) {
  return std::find_if(cluster.nodes.begin(), cluster.nodes.end(),
                      [&name](const NodeSpec& node) { return node.name == name; });
}

Status Add(const NodeOptions& options, const std::string& name, Cluster& cluster) {
  if (Find(cluster, name) != cluster.nodes.end()) {
    return Failed(fmt::format("node '{}' is there already; 'trainyard node set' changes it", name));
  }
  Put(options, cluster.nodes.emplace_back(NodeSpec{.name = name}));
  return {};
}

Status Set(const NodeOptions& options, const std::string& name, Cluster& cluster) {
  const auto node = Find(cluster, name);
  if (node == cluster.nodes.end()) {
    return Failed(fmt::format("there is no node '{}'; 'trainyard node add' adds it", name));
  }
  Put(options, *node);
  return {};
}

Status Remove(const NodeOptions& /*options*/, const std::string& name, Cluster& cluster) {
  const auto node = Find(cluster, name);
  if (node == cluster.nodes.end()) {
    return Failed(fmt::format("there is no node '{}'", name));
  }
  cluster.nodes.erase(node);
  return {};
}

using ChangeNode = Status (*)(const NodeOptions& options, const std::string& name,
                              Cluster& cluster);

// The configuration in force with other nodes takes its place, unless another one has done so
// meanwhile.
Status Change(NodeOptions options, ChangeNode change) {
  ASSIGN_OR_RETURN(const v1::ConfigurationReply present, FetchConfiguration(options, std::nullopt));
  const std::string name = fmt::format("configuration {} with these nodes", present.number());
  ASSIGN_OR_RETURN(daemon::GivenConfiguration given, daemon::FromText(name, present.text()));
  for (const std::string& node : options.names) {
    RETURN_IF_ERROR(change(options, node, given.cluster));
  }
  options.expected = present.number();
  options.how = "without --rehearse it is";
  return Configure(options, name, daemon::TextOf(given));
}

CLI::App* AddChange(CLI::App& above, const char* name, const char* about, ChangeNode change,
                    const std::shared_ptr<NodeOptions>& options, Command& chosen) {
  CLI::App* command = above.add_subcommand(name, about);
  AddNames(*command, "NODE", options->names, "names of nodes, or lists: n[0-2],v0")->required();
  command->add_flag("--rehearse", options->rehearse,
                    "change nothing; say what would change, and which jobs it would touch");
  AddClusterOptions(*command, *options);
  command->callback([options, change, &chosen] {
    chosen.run = [options, change] { return Change(*options, change); };
  });
  return command;
}

void AddFields(CLI::App& command, NodeOptions& options, bool is_new) {
  CLI::Option* const gpus = command.add_option("--gpus", options.gpus, "how many the node has");
  gpus->check(CLI::Range(1, kMaxGpusPerNode));
  gpus->required(is_new);
  command.add_option("--gpu-type", options.gpu_type, "such as A100");
  command.add_option("--cpus", options.cpus, "cores that decisions go by (0: not stated)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--memory", options.memory_gb, "GiB that decisions go by (0: not stated)")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace

void AddNodeChanges(CLI::App& node, Command& chosen) {
  const auto added = std::make_shared<NodeOptions>();
  AddFields(*AddChange(node, "add", "more nodes, which are down until their agents join", Add,
                       added, chosen),
            *added, true);
  const auto changed = std::make_shared<NodeOptions>();
  AddFields(*AddChange(node, "set", "other GPUs, CPUs or memory of nodes", Set, changed, chosen),
            *changed, false);
  AddChange(
      node, "remove",
      "nodes are there no longer: their jobs get notice and go on elsewhere ('drain' first lets "
      "them end)",
      Remove, std::make_shared<NodeOptions>(), chosen);
}

}  // namespace trainyard::cli
