// SPDX-License-Identifier: Apache-2.0
// trainyard config show, diff, apply, history, rollback, and node add, set, remove: what the
// cluster decides by, and which nodes it has.
#include "cli/live/config_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "cli/live/job_selection.h"
#include "cli/numbers.h"
#include "daemon/configurations.h"
#include "io/file.h"
#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::cli {
namespace {

struct Configuring : ClusterOptions {
  std::optional<std::uint64_t> expected{};  // the number of the one in force; none: any
  bool rehearse = false;                    // changes nothing
  std::string how{};  // how to do what has been rehearsed; {}: the number of the one in force
};

constexpr int kMostLines = 20;

std::string HeldText(int gpus, const google::protobuf::RepeatedPtrField<std::string>& nodes) {
  return fmt::format("{} GPU{} on {}", gpus, gpus == 1 ? "" : "s",
                     Printable(fmt::format("{}", fmt::join(nodes, ", "))));
}

std::string EffectText(const v1::JobEffect& effect) {
  if (!effect.remark().empty()) {
    return fmt::format("job {} {}", effect.job(), Printable(effect.remark()));
  }
  const std::string before = HeldText(effect.gpus_before(), effect.nodes_before());
  const std::string after = HeldText(effect.gpus_after(), effect.nodes_after());
  return effect.gpus_before() == 0 ? fmt::format("job {} starts with {}", effect.job(), after)
         : effect.gpus_after() == 0
             ? fmt::format("job {} gives back {}, and waits", effect.job(), before)
             : fmt::format("job {} goes from {} to {}", effect.job(), before, after);
}

std::string EffectsText(const v1::ConfigureReply& reply) {
  std::string text;
  for (const std::string& node : reply.agents_to_restart()) {
    text +=
        fmt::format("  {} gets no jobs until its agent is started with the new number of GPUs\n",
                    Printable(node));
  }
  if (reply.paused()) {
    text +=
        "  decisions are paused: those of the new configuration come with 'trainyard controller "
        "resume'\n";
  }
  if (reply.effects().empty()) {
    return text + "  no job gets or loses GPUs by the change itself\n";
  }
  for (int i = 0; i < reply.effects_size() && i < kMostLines; ++i) {
    text += "  " + EffectText(reply.effects(i)) + "\n";
  }
  if (const int more = reply.effects_size() - kMostLines; more > 0) {
    text += fmt::format("  and {} more; --json names all\n", more);
  }
  return text;
}

Result<v1::ConfigurationReply> FetchConfiguration(const ClusterOptions& options,
                                                  std::optional<std::uint64_t> number) {
  v1::ClientRequest request;
  v1::ConfigurationRequest& asked = *request.mutable_configuration();
  if (number) {
    asked.set_number(*number);
  }
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  return reply.configuration();
}

Status Configure(const Configuring& options, const std::string& name, const std::string& text) {
  v1::ClientRequest request;
  v1::ConfigureRequest& configure = *request.mutable_configure();
  configure.set_text(text);
  configure.set_name(name);
  configure.set_rehearse(options.rehearse);
  if (options.expected) {
    configure.set_expected(*options.expected);
  }
  const Result<v1::ClientReply> reply = CallTo(options, request);
  if (!reply.ok()) {
    const Error& error = reply.error();
    return error.code == ErrorCode::kInvalidArgument ? BadInput(error.message) : error;
  }
  const v1::ConfigureReply& done = reply.value().configure();
  if (options.json) {
    PrintJson(done);
  } else if (done.changes().empty()) {
    fmt::print("configuration {} says the same: nothing to change\n", done.number());
  } else if (options.rehearse) {
    fmt::print("would change configuration {}: {}\n{}nothing has been changed; {}\n", done.number(),
               Printable(done.changes()), EffectsText(done),
               base::ReplaceAll(options.how, "{}", std::to_string(done.number())));
  } else {
    fmt::print("configuration {} is in force: {}\n{}", done.number(), Printable(done.changes()),
               EffectsText(done));
  }
  return {};
}

// ------------------------------------------------------------------------------------------
// config

struct ConfigOptions : Configuring {
  bool force = false;  // whatever number the file states
  std::optional<std::uint64_t> number{};
  std::string file;
};

std::string AuthorText(const std::string& author) {
  return author.empty() ? "the controller's options" : Printable(author);
}

Status Show(const ConfigOptions& options) {
  ASSIGN_OR_RETURN(const v1::ConfigurationReply shown, FetchConfiguration(options, options.number));
  if (options.json) {
    PrintJson(shown);
  } else {
    fmt::print("# configuration {}, since {}, by {}\n{}", shown.number(),
               base::UtcText(shown.since()), AuthorText(shown.author()), shown.text());
  }
  return {};
}

Result<v1::ConfigurationReply> FetchHistory(const ConfigOptions& options) {
  v1::ClientRequest request;
  request.mutable_configuration()->set_history(true);
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  return reply.configuration();
}

Status ShowHistory(const ConfigOptions& options) {
  ASSIGN_OR_RETURN(const v1::ConfigurationReply reply, FetchHistory(options));
  if (options.json) {
    PrintJsonList(
        std::vector<v1::PastConfiguration>(reply.history().begin(), reply.history().end()));
    return {};
  }
  std::vector<std::vector<std::string>> rows{{"number", "since", "by", "changes"}};
  for (const v1::PastConfiguration& one : reply.history()) {
    rows.push_back({std::to_string(one.number()), base::UtcText(one.since()),
                    AuthorText(one.author()), OrDash(one.changes())});
  }
  fmt::print("{}", TableText(rows));
  return {};
}

// The number that 'config show' has written at the top; none: it is another text.
std::optional<std::uint64_t> NumberIn(std::string_view text) {
  constexpr std::string_view kTop = "# configuration ";
  if (!text.starts_with(kTop)) {
    return std::nullopt;
  }
  text.remove_prefix(kTop.size());
  return base::ToInteger<std::uint64_t>(text.substr(0, text.find(',')));
}

Status ConfigureFromFile(const ConfigOptions& asked) {
  ConfigOptions options = asked;
  const bool is_input = options.file == "-";
  ASSIGN_OR_RETURN(const std::string text,
                   io::ReadFile(is_input ? std::string("/dev/stdin") : options.file));
  if (!options.expected && !options.force) {
    options.expected = NumberIn(text);
  }
  options.how = "'trainyard config apply --check-index {} " + Printable(options.file) + "' does it";
  return Configure(options, is_input ? std::string("standard input") : options.file, text);
}

// Without a number: the one before the one in force.
Status RollBack(const ConfigOptions& asked) {
  ConfigOptions options = asked;
  ASSIGN_OR_RETURN(const v1::ConfigurationReply present, FetchHistory(options));
  if (!options.number) {
    if (present.history_size() < 2) {
      return Failed(fmt::format("configuration {} is the first one; there is none before it",
                                present.number()));
    }
    options.number = present.history(present.history_size() - 2).number();
  }
  ASSIGN_OR_RETURN(const v1::ConfigurationReply former,
                   FetchConfiguration(options, options.number));
  options.expected = present.number();
  options.how = "without --rehearse it is";
  return Configure(options, fmt::format("configuration {}", former.number()), former.text());
}

struct ConfigWords {
  const char* name;
  const char* about;
  Status (*run)(const ConfigOptions& options);
};

struct Added {
  CLI::App& command;
  ConfigOptions& options;
};

Added Add(CLI::App& config, const ConfigWords& words, Command& chosen) {
  const auto options = std::make_shared<ConfigOptions>();
  CLI::App* command = config.add_subcommand(words.name, words.about);
  AddClusterOptions(*command, *options);
  command->callback([options, run = words.run, &chosen] {
    chosen.run = [options, run] { return run(*options); };
  });
  return {.command = *command, .options = *options};
}

void AddFile(const Added& added) {
  added.command
      .add_option("FILE", added.options.file,
                  "a configuration as 'config show' prints it; -: standard input")
      ->required();
}

// -------------------------------------------------------------------------------------------
// nodes

constexpr double kMilli = 1000;
constexpr double kMibPerGib = 1024;

struct NodeOptions : Configuring {
  std::vector<std::string> names;
  std::optional<int> gpus{};
  std::optional<std::string> gpu_type{};
  std::optional<double> cpus{};
  std::optional<double> memory_gb{};
  std::vector<std::string> partitions{};
  std::optional<std::string> labels{};  // with commas; empty: none
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
  if (options.labels) {
    node.labels.clear();
    for (const std::string_view label : base::Split(*options.labels, ",")) {
      if (!base::Trim(label).empty()) {
        node.labels.emplace_back(base::Trim(label));
      }
    }
  }
}

std::vector<NodeSpec>::iterator Find(Cluster& cluster, const std::string& name) {
  return std::find_if(cluster.nodes.begin(), cluster.nodes.end(),
                      [&name](const NodeSpec& node) { return node.name == name; });
}

Status PutIntoPartitions(const NodeOptions& options, const std::string& name, Cluster& cluster) {
  for (const std::string& named : options.partitions) {
    Partition* const partition = daemon::FindPartition(cluster, named);
    if (partition == nullptr) {
      return Failed(
          fmt::format("there is no partition '{}'; 'trainyard config apply' adds it", named));
    }
    std::vector<std::string>& nodes = partition->nodes;
    if (!partition->has_all_nodes && std::find(nodes.begin(), nodes.end(), name) == nodes.end()) {
      nodes.push_back(name);
    }
  }
  return {};
}

Status AddNode(const NodeOptions& options, const std::string& name, Cluster& cluster) {
  if (Find(cluster, name) != cluster.nodes.end()) {
    return Failed(fmt::format("node '{}' is there already; 'trainyard node set' changes it", name));
  }
  Put(options, cluster.nodes.emplace_back(NodeSpec{.name = name}));
  return PutIntoPartitions(options, name, cluster);
}

Status SetNode(const NodeOptions& options, const std::string& name, Cluster& cluster) {
  const auto node = Find(cluster, name);
  if (node == cluster.nodes.end()) {
    return Failed(fmt::format("there is no node '{}'; 'trainyard node add' adds it", name));
  }
  Put(options, *node);
  return PutIntoPartitions(options, name, cluster);
}

Status RemoveNode(const NodeOptions& /*options*/, const std::string& name, Cluster& cluster) {
  const auto node = Find(cluster, name);
  if (node == cluster.nodes.end()) {
    return Failed(fmt::format("there is no node '{}'", name));
  }
  cluster.nodes.erase(node);
  for (Partition& partition : cluster.partitions) {
    std::erase(partition.nodes, name);
  }
  return {};
}

using ChangeNode = Status (*)(const NodeOptions& options, const std::string& name,
                              Cluster& cluster);

// The configuration in force with other nodes takes its place, unless another one has done so
// meanwhile.
Status ChangeNodes(NodeOptions options, ChangeNode change) {
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

struct NodeWords {
  const char* name;
  const char* about;
  ChangeNode change;
};

CLI::App* AddChange(CLI::App& above, const NodeWords& words,
                    const std::shared_ptr<NodeOptions>& options, Command& chosen) {
  CLI::App* command = above.add_subcommand(words.name, words.about);
  AddNames(*command, "NODE", options->names, "names of nodes, or lists: n[0-2],v0")->required();
  command->add_flag("--rehearse", options->rehearse,
                    "change nothing; say what would change, and which jobs it would touch");
  AddClusterOptions(*command, *options);
  command->callback([options, change = words.change, &chosen] {
    chosen.run = [options, change] { return ChangeNodes(*options, change); };
  });
  return command;
}

void AddFields(CLI::App& command, NodeOptions& options, bool is_new) {
  CLI::Option* const gpus = command.add_option("--gpus", options.gpus, "how many the node has");
  gpus->check(CLI::Range(1, kMaxGpusPerNode));
  gpus->required(is_new);
  command.add_option("--partition", options.partitions,
                     "a partition that it is put into, beside those of all nodes; may be repeated");
  command.add_option("--gpu-type", options.gpu_type, "such as A100");
  command.add_option("--cpus", options.cpus, "cores that decisions go by (0: not stated)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--memory", options.memory_gb, "GiB that decisions go by (0: not stated)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--labels", options.labels,
                     "names of its properties, with commas, in place of those that it has: "
                     "nvlink,fast ('': none)");
}

}  // namespace

void AddConfig(CLI::App& app, Command& chosen) {
  CLI::App* config = app.add_subcommand("config", "what the cluster decides by");
  config->require_subcommand(1);
  const Added show =
      Add(*config,
          {"show", "policy, placement and nodes in force, as TOML, with number and time", Show},
          chosen);
  show.command.add_option("--number", show.options.number, "an earlier one, of 'config history'")
      ->transform(WholeNumber());
  const Added diff =
      Add(*config,
          {"diff", "what a file would change, and which jobs it would touch", ConfigureFromFile},
          chosen);
  diff.options.rehearse = true;
  AddFile(diff);
  const Added apply =
      Add(*config,
          {"apply", "put what a file says in force, whole or not at all (for admins)",
           ConfigureFromFile},
          chosen);
  AddFile(apply);
  apply.command
      .add_option("--check-index", apply.options.expected,
                  "refuse unless the configuration in force has this number (default: the "
                  "one that 'config show' has written at the top of the file)")
      ->transform(WholeNumber());
  apply.command
      .add_flag("--force", apply.options.force, "whatever number is at the top of the file")
      ->excludes("--check-index");
  Add(*config,
      {"history", "the configurations so far: when, by whom and what changed", ShowHistory},
      chosen);
  const Added rollback = Add(
      *config, {"rollback", "put an earlier configuration in force again (for admins)", RollBack},
      chosen);
  rollback.command
      .add_option("NUMBER", rollback.options.number,
                  "of 'config history' (default: the one before the one in force)")
      ->transform(WholeNumber());
  rollback.command.add_flag("--rehearse", rollback.options.rehearse,
                            "change nothing; say what would change, and which jobs it would touch");
}

void AddNodeChanges(CLI::App& node, Command& chosen) {
  const auto added = std::make_shared<NodeOptions>();
  AddFields(*AddChange(node, {"add", "more nodes, which are down until their agents join", AddNode},
                       added, chosen),
            *added, true);
  const auto changed = std::make_shared<NodeOptions>();
  AddFields(*AddChange(node, {"set", "other GPUs, CPUs, memory or labels of nodes", SetNode},
                       changed, chosen),
            *changed, false);
  AddChange(
      node,
      {"remove",
       "nodes are there no longer: their jobs get notice and go on elsewhere ('drain' first lets "
       "them end)",
       RemoveNode},
      std::make_shared<NodeOptions>(), chosen);
}

}  // namespace trainyard::cli
