// SPDX-License-Identifier: Apache-2.0
// sinfo: partitions and their nodes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/slurm/output_format.h"
#include "cli/slurm/slurm_commands.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_json.h"
#include "cli/slurm/slurm_words.h"
#include "live/jobs/job_request.h"

namespace trainyard::cli {
namespace {

using enum SlurmOption::Value;
using enum SlurmOption::Use;

constexpr const char* kSinfo = "sinfo";
constexpr std::string_view kNodesJson = "'trainyard nodes --json' has the same";
constexpr std::array kSinfoOptions{
    SlurmOption{"all", 'a', kNone, kNoEffect, ""},
    SlurmOption{"cluster", 0, kNeeded, kRefused, "TRAINYARD_CONTROLLER names the cluster"},
    SlurmOption{"clusters", 'M', kNeeded, kRefused, "TRAINYARD_CONTROLLER names the cluster"},
    SlurmOption{"dead", 'd', kNone, kDone, ""},
    SlurmOption{"exact", 'e', kNone, kNoEffect, ""},
    SlurmOption{"federation", 0, kNone, kNoEffect, ""},
    SlurmOption{"format", 'o', kNeeded, kDone, ""},
    SlurmOption{"Format", 'O', kNeeded, kDone, ""},
    SlurmOption{"help", 0, kNone, kDone, ""},
    SlurmOption{"hide", 0, kNone, kNoEffect, ""},
    SlurmOption{"iterate", 'i', kNeeded, kDone, ""},
    SlurmOption{"json", 0, kNone, kDone, ""},
    SlurmOption{"list-reasons", 'R', kNone, kDone, ""},
    SlurmOption{"local", 0, kNone, kNoEffect, ""},
    SlurmOption{"long", 'l', kNone, kDone, ""},
    SlurmOption{"noconvert", 0, kNone, kNoEffect, ""},
    SlurmOption{"Node", 'N', kNone, kDone, ""},
    SlurmOption{"nodes", 'n', kNeeded, kDone, ""},
    SlurmOption{"noheader", 'h', kNone, kDone, ""},
    SlurmOption{"partition", 'p', kNeeded, kDone, ""},
    SlurmOption{"reservation", 'T', kNone, kRefused, "there are no reservations"},
    SlurmOption{"responding", 'r', kNone, kDone, ""},
    SlurmOption{"sort", 'S', kNeeded, kDone, ""},
    SlurmOption{"states", 't', kNeeded, kDone, ""},
    SlurmOption{"summarize", 's', kNone, kDone, ""},
    SlurmOption{"usage", 0, kNone, kDone, ""},
    SlurmOption{"verbose", 'v', kNone, kNoEffect, ""},
    SlurmOption{"version", 'V', kNone, kDone, ""},
    SlurmOption{"yaml", 0, kNone, kRefused, kNodesJson},
};
constexpr const char* kSinfoUsage =
    "Usage: sinfo [-d] [-h] [-i seconds] [-l] [-n nodes] [-N] [-o format] [-O fields]\n"
    "             [-p partitions] [-r] [-R] [-s] [-S fields] [-t states]\n"
    "Trainyard by the name of Slurm's sinfo; 'trainyard nodes' says more.\n";

// Nodes of a partition that are alike.
struct InfoRow {
  const v1::PartitionStatus* partition = nullptr;
  const v1::NodesReply* all = nullptr;
  const v1::JobsReply* jobs = nullptr;  // that have not ended; null: no column needs them
  std::vector<const v1::NodeStatus*> nodes;

  [[nodiscard]] const v1::NodeStatus& node() const { return *nodes.front(); }
};

// Numbers of nodes or CPUs by what becomes of them.
struct InfoCounts {
  int used = 0;
  int idle = 0;
  int other = 0;  // of nodes that are down or drained

  [[nodiscard]] std::string Text() const {
    return fmt::format("{}/{}/{}/{}", used, idle, other, used + idle + other);
  }
};

InfoCounts CountNodes(const InfoRow& row) {
  InfoCounts counts;
  for (const v1::NodeStatus* node : row.nodes) {
    const std::string state = SlurmNodeState(*node, false);
    ++(state.starts_with("mix") || state.starts_with("alloc") || state.starts_with("drng")
           ? counts.used
       : state.starts_with("idle") ? counts.idle
                                   : counts.other);
  }
  return counts;
}

InfoCounts CountCpus(const InfoRow& row) {
  InfoCounts counts;
  for (const v1::NodeStatus* node : row.nodes) {
    int used = 0;
    for (const v1::JobStatus& job : row.jobs->jobs()) {
      used += SlurmCpusOn(job, node->node());
    }
    const int rest = std::max(0, SlurmCpus(*node) - used);
    counts.used += used;
    (node->up() && !node->drained() ? counts.idle : counts.other) += rest;
  }
  return counts;
}

std::string LimitText(double seconds, const char* none) {
  return seconds > 0 ? SlurmSpan(seconds) : std::string(none);
}

// The partition as a whole: operators may have switched off starts or submissions.
std::string Availability(const InfoRow& row) {
  const bool paused = row.all->switches().paused().on();
  const bool closed = row.all->switches().closed().on();
  return paused && closed ? "inact" : paused ? "down" : closed ? "drain" : "up";
}

std::string NamesOf(const InfoRow& row) {
  std::vector<std::string> names;
  for (const v1::NodeStatus* node : row.nodes) {
    names.push_back(node->node());
  }
  std::sort(names.begin(), names.end());
  return base::FoldNames(names);
}

// drng, drain and down before mix, alloc and idle, as there.
double StateRank(const InfoRow& row) {
  constexpr std::array<std::string_view, 6> kRising{"down", "idle",  "alloc",
                                                    "mix",  "drain", "drng"};
  const std::string state = SlurmNodeState(row.node(), false);
  return static_cast<double>(std::distance(
      kRising.begin(), std::find_if(kRising.begin(), kRising.end(), [&state](std::string_view one) {
        return state.starts_with(one);
      })));
}

// In the order of the configuration.
double PartitionPlace(const InfoRow& row) {
  const auto& all = row.all->partitions();
  const auto at = std::find_if(all.begin(), all.end(), [&row](const v1::PartitionStatus& one) {
    return one.name() == row.partition->name();
  });
  return static_cast<double>(std::distance(all.begin(), at));
}

constexpr std::array kInfoFields{
    OutputField<InfoRow>{'a', "available", "AVAIL", Availability},
    OutputField<InfoRow>{'A', "nodeai", "NODES(A/I)",
                         [](const InfoRow& row) {
                           const InfoCounts counts = CountNodes(row);
                           return fmt::format("{}/{}", counts.used, counts.idle);
                         },
                         nullptr, true},
    OutputField<InfoRow>{'b', "features_act", "ACTIVE_FEATURES",
                         [](const InfoRow& row) {
                           return OrNull(fmt::format("{}", fmt::join(row.node().labels(), ",")));
                         }},
    OutputField<InfoRow>{'c', "cpus", "CPUS",
                         [](const InfoRow& row) { return std::to_string(SlurmCpus(row.node())); }},
    OutputField<InfoRow>{'C', "cpusstate", "CPUS(A/I/O/T)",
                         [](const InfoRow& row) { return CountCpus(row).Text(); }, nullptr, true},
    OutputField<InfoRow>{'d', "disk", "TMP_DISK", [](const InfoRow&) { return std::string("0"); }},
    OutputField<InfoRow>{
        'D', "nodes", "NODES", [](const InfoRow& row) { return std::to_string(row.nodes.size()); },
        [](const InfoRow& row) { return static_cast<double>(row.nodes.size()); }, true},
    OutputField<InfoRow>{'E', "reason", "REASON",
                         [](const InfoRow& row) { return SlurmDrainOf(row.node()).reason; }},
    OutputField<InfoRow>{'f', "features", "AVAIL_FEATURES",
                         [](const InfoRow& row) {
                           return OrNull(fmt::format("{}", fmt::join(row.node().labels(), ",")));
                         }},
    OutputField<InfoRow>{'F', "nodeaiot", "NODES(A/I/O/T)",
                         [](const InfoRow& row) { return CountNodes(row).Text(); }, nullptr, true},
    OutputField<InfoRow>{'g', "groups", "GROUPS",
                         [](const InfoRow&) { return std::string("all"); }},
    OutputField<InfoRow>{'G', "gres", "GRES",
                         [](const InfoRow& row) { return SlurmGres(row.node()); }},
    OutputField<InfoRow>{'h', "oversubscribe", "OVERSUBSCRIBE",
                         [](const InfoRow&) { return std::string("NO"); }},
    OutputField<InfoRow>{'H', "timestamp", "TIMESTAMP",
                         [](const InfoRow& row) { return SlurmDrainOf(row.node()).when; }},
    OutputField<InfoRow>{
        'l', "time", "TIMELIMIT",
        [](const InfoRow& row) { return LimitText(row.partition->max_time_s(), "infinite"); }},
    OutputField<InfoRow>{
        'L', "defaulttime", "DEFAULTTIME",
        [](const InfoRow& row) { return LimitText(row.partition->default_time_s(), "n/a"); }},
    OutputField<InfoRow>{'m', "memory", "MEMORY",
                         [](const InfoRow& row) {
                           const v1::NodeStatus& node = row.node();
                           return std::to_string(node.stated_memory_mib() > 0
                                                     ? node.stated_memory_mib()
                                                     : node.memory_mib());
                         }},
    OutputField<InfoRow>{'n', "nodehost", "HOSTNAMES",
                         [](const InfoRow& row) { return row.node().node(); }},
    OutputField<InfoRow>{'N', "nodelist", "NODELIST", NamesOf, nullptr, true},
    OutputField<InfoRow>{'o', "nodeaddr", "NODE_ADDR",
                         [](const InfoRow& row) { return row.node().address(); }},
    OutputField<InfoRow>{'P', "partition", "PARTITION",
                         [](const InfoRow& row) {
                           return Printable(row.partition->name()) +
                                  (row.partition->is_default() ? "*" : "");
                         },
                         PartitionPlace},
    OutputField<InfoRow>{'r', "root", "ROOT", [](const InfoRow&) { return std::string("no"); }},
    OutputField<InfoRow>{'R', "partitionname", "PARTITION",
                         [](const InfoRow& row) { return Printable(row.partition->name()); }},
    OutputField<InfoRow>{'s', "size", "JOB_SIZE",
                         [](const InfoRow&) { return std::string("1-infinite"); }},
    OutputField<InfoRow>{'t', "statecompact", "STATE",
                         [](const InfoRow& row) { return SlurmNodeState(row.node(), false); },
                         StateRank},
    OutputField<InfoRow>{'T', "statelong", "STATE",
                         [](const InfoRow& row) { return SlurmNodeState(row.node(), true); },
                         StateRank},
    OutputField<InfoRow>{'u', "user", "USER",
                         [](const InfoRow& row) { return SlurmDrainOf(row.node()).user; }},
    OutputField<InfoRow>{'w', "weight", "WEIGHT", [](const InfoRow&) { return std::string("1"); }},
    OutputField<InfoRow>{'X', "sockets", "SOCKETS",
                         [](const InfoRow& row) { return std::to_string(SlurmCpus(row.node())); }},
    OutputField<InfoRow>{'Y', "cores", "CORES", [](const InfoRow&) { return std::string("1"); }},
    OutputField<InfoRow>{
        'z', "socketcorethread", "S:C:T",
        [](const InfoRow& row) { return std::to_string(SlurmCpus(row.node())) + ":1:1"; }},
    OutputField<InfoRow>{'Z', "threads", "THREADS",
                         [](const InfoRow&) { return std::string("1"); }},
};
constexpr std::span<const OutputField<InfoRow>> kOfInfo{kInfoFields};

// Which nodes, of which partitions.
struct InfoFilter {
  std::set<std::string, std::less<>> nodes, partitions, states;
  bool only_dead = false;
  bool only_responding = false;
  bool only_reasons = false;

  [[nodiscard]] bool Fits(const v1::NodeStatus& node) const {
    const std::string state = SlurmNodeState(node, false);
    const std::string plain = state.substr(0, state.find('*'));
    const bool answers = node.up() && !node.silent();
    const std::string full = SlurmNodeState(node, true);
    const auto of_state = [&](const std::string& named) {
      return plain == named || full.starts_with(named) ||
             (named == "drain" && plain == "drng");  // both are drained for operators
    };
    return (nodes.empty() || nodes.contains(node.node())) && (!only_dead || !answers) &&
           (!only_responding || answers) && (!only_reasons || node.drained()) &&
           (states.empty() || std::any_of(states.begin(), states.end(), of_state));
  }
};

Result<InfoFilter> InfoFilterOf(const SlurmWords& words) {
  InfoFilter filter{.nodes = {},
                    .partitions = {},
                    .states = {},
                    .only_dead = words.Has("dead"),
                    .only_responding = words.Has("responding"),
                    .only_reasons = words.Has("list-reasons")};
  for (const std::string& name : words.Items("partition")) {
    filter.partitions.insert(name);
  }
  for (const std::string& state : words.Items("states")) {
    filter.states.insert(live::LowerCase(state));
  }
  if (const std::optional<std::string> list = words.Value("nodes")) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, base::ExpandNames(*list));
    filter.nodes.insert(names.begin(), names.end());
  }
  return filter;
}

std::string FormatOf(const SlurmWords& words) {
  const bool is_long = words.Has("long");
  if (words.Has("list-reasons")) {
    return is_long ? "%20E %12u %19H %6t %N" : "%20E %9u %19H %N";
  }
  if (words.Has("summarize")) {
    return "%#9P %.5a %.10l %.16F %N";
  }
  if (words.Has("Node")) {
    return is_long ? "%#9N %.6D %.#9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
                   : "%#9N %.6D %.#9P %6t";
  }
  return is_long ? "%#9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
                 : "%#9P %.5a %.10l %.6D %.6t %N";
}

// What the columns show of the row, but for sums of several nodes.
std::string KeyOf(const InfoRow& row, std::span<const OutputColumn<InfoRow>> columns) {
  std::string key;
  for (const OutputColumn<InfoRow>& column : columns) {
    if (column.field != nullptr && !column.field->is_sum) {
      key += column.field->text(row) + '\n';
    }
  }
  return key;
}

bool IsIn(const v1::PartitionStatus& partition, const v1::NodeStatus& node) {
  return std::find(node.partitions().begin(), node.partitions().end(), partition.name()) !=
         node.partitions().end();
}

// Nodes that the columns show alike are one row; `apart`: each has its own.
std::vector<InfoRow> GroupNodes(const InfoFilter& filter, const v1::NodesReply& all,
                                const v1::JobsReply* jobs,
                                std::span<const OutputColumn<InfoRow>> columns, bool apart) {
  std::vector<InfoRow> rows;
  for (const v1::PartitionStatus& partition : all.partitions()) {
    if (!filter.partitions.empty() && !filter.partitions.contains(partition.name())) {
      continue;
    }
    std::map<std::string, std::size_t> known;
    for (const v1::NodeStatus& node : all.nodes()) {
      if (!filter.Fits(node) || !IsIn(partition, node)) {
        continue;
      }
      InfoRow alone{.partition = &partition, .all = &all, .jobs = jobs, .nodes = {&node}};
      const std::string key = (apart ? node.node() : "") + KeyOf(alone, columns);
      const auto [at, is_new] = known.try_emplace(key, rows.size());
      if (is_new) {
        rows.push_back(std::move(alone));
      } else {
        rows[at->second].nodes.push_back(&node);
      }
    }
  }
  return rows;
}

Result<std::vector<OutputColumn<InfoRow>>> InfoColumns(const SlurmWords& words) {
  if (const std::optional<std::string> names = words.Value("Format")) {
    return ColumnsOfNames(*names, kOfInfo, "node");
  }
  return ColumnsOfFormat(words.Value("format").value_or(FormatOf(words)), kOfInfo, "node");
}

// The nodes that the options choose, once each.
Status ShowInfoAsJson(const SlurmWords& words, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(const InfoFilter filter, InfoFilterOf(words));
  ASSIGN_OR_RETURN(const v1::NodesReply all, NodesOf(client));
  ASSIGN_OR_RETURN(const v1::ClientReply jobs, CallForJobs(client, JobsCall({}, true)));
  std::vector<NodeWithCpus> list;
  for (const v1::NodeStatus& node : all.nodes()) {
    const auto is_open = [&filter](const std::string& name) {
      return filter.partitions.empty() || filter.partitions.contains(name);
    };
    if (!filter.Fits(node) ||
        std::none_of(node.partitions().begin(), node.partitions().end(), is_open)) {
      continue;
    }
    int used = 0;
    for (const v1::JobStatus& job : jobs.jobs().jobs()) {
      used += SlurmCpusOn(job, node.node());
    }
    list.push_back({.node = &node, .used_cpus = used});
  }
  fmt::print("{}", JsonOfNodes(list));
  return {};
}

Status ShowInfo(const SlurmWords& words, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(const InfoFilter filter, InfoFilterOf(words));
  ASSIGN_OR_RETURN(std::vector<OutputColumn<InfoRow>> columns, InfoColumns(words));
  ASSIGN_OR_RETURN(v1::NodesReply all, NodesOf(client));
  v1::JobsReply jobs;
  const bool needs_jobs = std::any_of(columns.begin(), columns.end(), [](const auto& column) {
    return column.field != nullptr && column.field->letter == 'C';
  });
  if (needs_jobs) {
    ASSIGN_OR_RETURN(v1::ClientReply reply, CallForJobs(client, JobsCall({}, true)));
    jobs = std::move(*reply.mutable_jobs());
  }
  std::vector<InfoRow> rows = GroupNodes(filter, all, &jobs, columns, words.Has("Node"));
  const char* const order = words.Has("Node") ? "N" : words.Has("list-reasons") ? "N" : "P,-t";
  RETURN_IF_ERROR(SortRows(rows, words.Value("sort").value_or(order), kOfInfo));
  FitColumns<InfoRow>(columns, rows);
  PrintRows<InfoRow>(words, columns, rows);
  return {};
}

}  // namespace

int Sinfo(const std::vector<std::string>& words) {
  const std::optional<SlurmWords> read = ReadSlurmWords(kSinfo, words, kSinfoOptions);
  if (!read) {
    return 1;
  }
  if (read->Has("help") || read->Has("usage")) {
    fmt::print("{}", kSinfoUsage);
    return 0;
  }
  return Repeat(kSinfo, *read, read->Has("json") ? ShowInfoAsJson : ShowInfo);
}

}  // namespace trainyard::cli
