// SPDX-License-Identifier: Apache-2.0
// scontrol: jobs, nodes and partitions in full, and changes of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/job_selection.h"
#include "cli/live/status/array_lines.h"
#include "cli/slurm/slurm_commands.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_words.h"
#include "live/jobs/job_request.h"
#include "requests/job_file.h"
#include "supervisor/steps/slurm_tools.h"

namespace trainyard::cli {
namespace {

using enum SlurmOption::Value;
using enum SlurmOption::Use;
using Words = std::vector<std::string>;

constexpr const char* kScontrol = "scontrol";
constexpr std::array kScontrolOptions{
    SlurmOption{"all", 'a', kNone, kNoEffect, ""},
    SlurmOption{"clusters", 'M', kNeeded, kRefused, "TRAINYARD_CONTROLLER names the cluster"},
    SlurmOption{"details", 'd', kNone, kNoEffect, ""},
    SlurmOption{"help", 'h', kNone, kDone, ""},
    SlurmOption{"hide", 0, kNone, kNoEffect, ""},
    SlurmOption{"json", 0, kNone, kRefused, "'trainyard status --json' has the same"},
    SlurmOption{"oneliner", 'o', kNone, kDone, ""},
    SlurmOption{"quiet", 'Q', kNone, kNoEffect, ""},
    SlurmOption{"verbose", 'v', kNone, kNoEffect, ""},
    SlurmOption{"version", 'V', kNone, kDone, ""},
};
constexpr const char* kScontrolUsage =
    "Usage: scontrol [-o] show job [JOB] | node [NODE] | partition [NAME] | hostnames [LIST] |\n"
    "                     hostlist LIST\n"
    "       scontrol hold|uhold|release|requeue|requeuehold JOB...\n"
    "       scontrol update JobId=JOB KEY=VALUE... | NodeName=NODE State=drain|down|resume\n"
    "                       [Reason=TEXT]\n"
    "       scontrol ping\n"
    "Trainyard by the name of Slurm's scontrol.\n";

// ------------------------------------------------------------------------------------------- show

// Key=Value, several a line.
using Lines = std::vector<Words>;

std::string TextOfLines(const Lines& lines, bool in_one) {
  std::vector<std::string> texts;
  for (const Words& line : lines) {
    texts.push_back(fmt::format("{}", fmt::join(line, " ")));
  }
  return fmt::format("{}\n{}", fmt::join(texts, in_one ? " " : "\n   "), in_one ? "" : "\n");
}

Words NamesOfJob(const JobLine& line) {
  const v1::JobStatus& job = *line.job;
  Words first{fmt::format("JobId={}", job.job())};
  if (job.has_array_job()) {
    std::string tasks = TextOf(line);
    tasks = tasks.substr(tasks.find('_') + 1);
    if (tasks.starts_with('[')) {
      tasks = tasks.substr(1, tasks.size() - 2);
      first.front() = fmt::format("JobId={}", job.array_job());
    }
    first.push_back(fmt::format("ArrayJobId={}", job.array_job()));
    first.push_back("ArrayTaskId=" + tasks);
  }
  first.push_back("JobName=" + (job.request().name().empty() ? std::to_string(job.job())
                                                             : Printable(job.request().name())));
  return first;
}

std::string TresOf(const v1::JobStatus& job) {
  const std::string memory = SlurmMemory(job);
  std::string text = fmt::format("cpu={}", SlurmCpus(job));
  if (memory != "0") {
    text += ",mem=" + memory;
  }
  text += fmt::format(",node={}", SlurmNodeCount(job));
  const std::string gpus = SlurmGpus(job);
  return gpus.empty()
             ? text
             : text + ",gres/" + gpus.substr(0, 3) + "=" + gpus.substr(gpus.rfind(':') + 1);
}

Lines LinesOfJob(const JobLine& line, const std::string& unnamed) {
  const v1::JobStatus& job = *line.job;
  const v1::JobRequest& request = job.request();
  const v1::LaunchSpec& launch = request.launch();
  const std::uint32_t uid = launch.owner().uid();
  const std::string limit = request.has_time_s() ? SlurmLongSpan(request.time_s()) : "UNLIMITED";
  const auto stamp = [](bool given, double at) {
    return given ? SlurmStamp(at) : std::string("Unknown");
  };
  const double eligible =
      request.has_begin_s() ? job.submitted() + request.begin_s() : job.submitted();
  const std::optional<double> end = SlurmEnd(job);
  const std::string nodes = SlurmNodes(job);
  Lines lines{
      NamesOfJob(line),
      {fmt::format("UserId={}({})", Printable(request.user()), uid), "GroupId=(null)",
       "MCS_label=N/A"},
      {fmt::format("Priority={}", launch.priority()), fmt::format("Nice={}", -launch.priority()),
       "Account=" + OrNull(request.account()), "QOS=" + SlurmKept(job, "qos")},
      {fmt::format("JobState={}", SlurmState(job)), "Reason=" + job.reason_code(),
       "Dependency=" + OrNull(request.dependency())},
      {request.no_requeue() ? "Requeue=0" : "Requeue=1",
       fmt::format("Restarts={}", job.attempt() > 1 ? job.attempt() - 1 : 0),
       fmt::format("BatchFlag={}", launch.has_batch() ? 1 : 0), "Reboot=0",
       "ExitCode=" + SlurmExitCode(job)},
      {"RunTime=" + SlurmLongSpan(job.run_s()), "TimeLimit=" + limit, "TimeMin=N/A"},
      {"SubmitTime=" + SlurmStamp(job.submitted()), "EligibleTime=" + SlurmStamp(eligible)},
      {"StartTime=" + stamp(job.has_started(), job.started()),
       "EndTime=" + stamp(end.has_value(), end.value_or(0)),
       "Deadline=" + (job.has_deadline() ? SlurmStamp(job.deadline()) : std::string("N/A"))},
      {"Partition=" + Printable(PartitionOf(job, unnamed))},
      {"ReqNodeList=" + OrNull(request.node_list()), "ExcNodeList=" + OrNull(request.exclude())},
      {"NodeList=" + nodes}};
  if (job.grants_size() > 0) {
    lines.push_back({"BatchHost=" + job.grants(0).node()});
  }
  const std::string gpus = SlurmGpus(job);
  lines.insert(
      lines.end(),
      {{fmt::format("NumNodes={}", SlurmNodeCount(job)), fmt::format("NumCPUs={}", SlurmCpus(job)),
        fmt::format("NumTasks={}", SlurmTasks(job)),
        fmt::format("CPUs/Task={}", std::max(1, SlurmCpus(job) / std::max(1, SlurmTasks(job))))},
       {"TRES=" + TresOf(job)},
       {fmt::format("MinCPUsNode={}", std::max(1, SlurmCpus(job) / SlurmNodeCount(job))),
        "MinMemoryNode=" + SlurmMemory(job),
        "MinTmpDiskNode=" + (request.tmp().empty() ? std::string("0") : Printable(request.tmp()))},
       {"Features=" + OrNull(request.constraint())},
       {std::string("OverSubscribe=") + (request.exclusive() ? "NO" : "OK"),
        "Licenses=" + OrNull(request.licenses())},
       {"Command=" +
        OrNull(job.command().empty() || launch.has_batch() ? std::string() : job.command(0))},
       {"WorkDir=" + OrNull(launch.working_directory())}});
  if (!gpus.empty()) {
    lines.push_back({"TresPerJob=gres:" + gpus});
  }
  for (const char* const kept : {"comment", "wckey", "mail-user"}) {
    if (const std::string text = SlurmKept(job, kept); text != "(null)") {
      lines.push_back({fmt::format("{}={}", kept, text)});
    }
  }
  return lines;
}

Status ShowJobs(const Words& ids, bool in_one, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(const v1::NodesReply nodes, NodesOf(client));
  std::vector<v1::JobStatus> jobs;
  if (ids.empty()) {
    ASSIGN_OR_RETURN(const v1::ClientReply all, CallForJobs(client, JobsCall({}, false)));
    jobs.assign(all.jobs().jobs().begin(), all.jobs().jobs().end());
  } else {
    if (std::any_of(ids.begin(), ids.end(),
                    [](const std::string& id) { return !requests::ReadJobNumber(id).ok(); })) {
      return Failed("scontrol_print_job error: Invalid job id specified");
    }
    ASSIGN_OR_RETURN(jobs, JobsOfIds(client, ids));
    if (jobs.empty()) {
      return Failed(kNoSuchJob);
    }
  }
  std::vector<const v1::JobStatus*> each;
  each.reserve(jobs.size());
  for (const v1::JobStatus& job : jobs) {
    each.push_back(&job);
  }
  if (each.empty()) {
    fmt::print("No jobs in the system\n");
  }
  for (const JobLine& line : LinesOf(each)) {
    fmt::print("{}", TextOfLines(LinesOfJob(line, DefaultPartition(nodes)), in_one));
  }
  return {};
}

Lines LinesOfNode(const v1::NodeStatus& node, const v1::JobsReply& jobs) {
  int cpus = 0;
  for (const v1::JobStatus& job : jobs.jobs()) {
    cpus += SlurmCpusOn(job, node.node());
  }
  std::string state = SlurmNodeState(node, true);
  std::transform(state.begin(), state.end(), state.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (node.up() && node.drained()) {
    state = state.starts_with("DRAINED") ? "IDLE+DRAIN" : "MIXED+DRAIN";
  }
  const std::string labels = OrNull(fmt::format("{}", fmt::join(node.labels(), ",")));
  const std::int64_t memory =
      node.stated_memory_mib() > 0 ? node.stated_memory_mib() : node.memory_mib();
  Lines lines{
      {"NodeName=" + node.node()},
      {fmt::format("CPUAlloc={}", cpus), fmt::format("CPUTot={}", SlurmCpus(node))},
      {"AvailableFeatures=" + labels},
      {"ActiveFeatures=" + labels},
      {"Gres=" + SlurmGres(node)},
      {"NodeAddr=" + node.address(), "NodeHostName=" + node.node()},
      {fmt::format("RealMemory={}", memory)},
      {"State=" + state},
      {fmt::format("Partitions={}", fmt::join(node.partitions(), ","))},
      {fmt::format("CfgTRES=cpu={},mem={}M,gres/gpu={}", SlurmCpus(node), memory, node.gpus())},
      {fmt::format("AllocTRES=cpu={},gres/gpu={}", cpus, node.gpus_used())}};
  if (node.drained()) {
    const SlurmDrain drain = SlurmDrainOf(node);
    lines.push_back({fmt::format("Reason={} [{}@{}]", drain.reason, drain.user, drain.when)});
  }
  return lines;
}

Status ShowNodes(const Words& lists, bool in_one, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(const v1::NodesReply nodes, NodesOf(client));
  ASSIGN_OR_RETURN(const v1::ClientReply jobs, CallForJobs(client, JobsCall({}, true)));
  Words names;
  for (const std::string& list : lists) {
    ASSIGN_OR_RETURN(const Words expanded, base::ExpandNames(list));
    names.insert(names.end(), expanded.begin(), expanded.end());
  }
  for (const std::string& name : names) {
    if (std::none_of(nodes.nodes().begin(), nodes.nodes().end(),
                     [&name](const v1::NodeStatus& node) { return node.node() == name; })) {
      return Failed(fmt::format("Node {} not found", name));
    }
  }
  for (const v1::NodeStatus& node : nodes.nodes()) {
    if (names.empty() || std::find(names.begin(), names.end(), node.node()) != names.end()) {
      fmt::print("{}", TextOfLines(LinesOfNode(node, jobs.jobs()), in_one));
    }
  }
  return {};
}

Status ShowPartitions(const Words& names, bool in_one, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(v1::NodesReply nodes, NodesOf(client));
  bool is_found = names.empty();
  for (const v1::PartitionStatus& partition : nodes.partitions()) {
    if (!names.empty() && std::find(names.begin(), names.end(), partition.name()) == names.end()) {
      continue;
    }
    is_found = true;
    Words members;
    int cpus = 0;
    for (const v1::NodeStatus& node : nodes.nodes()) {
      if (std::find(node.partitions().begin(), node.partitions().end(), partition.name()) !=
          node.partitions().end()) {
        members.push_back(node.node());
        cpus += SlurmCpus(node);
      }
    }
    const auto limit = [](double seconds, const char* none) {
      return seconds > 0 ? SlurmLongSpan(seconds) : std::string(none);
    };
    const std::size_t count = members.size();
    std::sort(members.begin(), members.end());
    fmt::print("{}", TextOfLines(
                         {{"PartitionName=" + Printable(partition.name())},
                          {std::string("Default=") + (partition.is_default() ? "YES" : "NO")},
                          {"DefaultTime=" + limit(partition.default_time_s(), "NONE")},
                          {"MaxTime=" + limit(partition.max_time_s(), "UNLIMITED")},
                          {"Nodes=" + base::FoldNames(members)},
                          {std::string("State=") + (nodes.switches().paused().on() ? "DOWN" : "UP"),
                           fmt::format("TotalCPUs={}", cpus), fmt::format("TotalNodes={}", count)}},
                         in_one));
  }
  return is_found ? Status() : Failed(fmt::format("Partition {} not found", names.front()));
}

// "show job 12", "show jobid=12", "show node=n0".
Status Show(Words words, bool in_one, rpc::ClusterClient& client) {
  std::string what = live::LowerCase(words.front());
  words.erase(words.begin());
  if (const std::size_t equals = what.find('='); equals != std::string::npos) {
    words.insert(words.begin(), what.substr(equals + 1));
    what.resize(equals);
  }
  Words items;
  for (const std::string& word : words) {
    for (const std::string_view item :
         what.starts_with("node") ? std::vector<std::string_view>{word} : base::Split(word, ",")) {
      items.emplace_back(item);
    }
  }
  if (what == "job" || what == "jobs" || what == "jobid") {
    return ShowJobs(items, in_one, client);
  }
  if (what == "node" || what == "nodes" || what == "nodename") {
    return ShowNodes(items, in_one, client);
  }
  if (what == "partition" || what == "partitions" || what == "partitionname") {
    return ShowPartitions(items, in_one, client);
  }
  return InvalidArgument(fmt::format("invalid entity: {} for keyword:show", what));
}

// ---------------------------------------------------------------------------------------- changes

// What a call has left out is an error that names the job.
Status SendChange(v1::ClientRequest& request, const v1::Selection& chosen,
                  rpc::ClusterClient& client) {
  (request.has_hold()      ? *request.mutable_hold()->mutable_selection()
   : request.has_requeue() ? *request.mutable_requeue()->mutable_selection()
                           : *request.mutable_update()->mutable_selection()) = chosen;
  ASSIGN_OR_RETURN(const v1::ClientReply reply, client.Call(request, kTimeout));
  const v1::Changed* const changed = live::ChangedOf(reply);
  return changed == nullptr ? Status() : TellLeftOut(changed->left_out());
}

Result<v1::Selection> Chosen(const Words& words) {
  requests::JobSelection selection;
  for (const std::string& word : words) {
    const Result<Words> ids = base::ExpandNames(word);
    for (const std::string& id : ids.ok() ? ids.value() : Words{word}) {
      if (!requests::ReadJobNumber(id).ok()) {
        return InvalidArgument("Invalid job id specified: " + word);
      }
      selection.jobs.push_back(id);
    }
  }
  return requests::SelectionOf(selection);
}

// As there: a job that may not start again is not asked to.
Status CheckRequeue(const v1::Selection& chosen, rpc::ClusterClient& client) {
  for (const std::string& id : chosen.jobs()) {
    ASSIGN_OR_RETURN(const std::vector<v1::JobStatus> jobs, JobsOfIds(client, {id}));
    if (std::any_of(jobs.begin(), jobs.end(),
                    [](const v1::JobStatus& job) { return job.request().no_requeue(); })) {
      return Failed("Requested operation is presently disabled for job " + id);
    }
  }
  return {};
}

Status Change(const std::string& verb, const Words& jobs, rpc::ClusterClient& client) {
  if (jobs.empty()) {
    return InvalidArgument(fmt::format("too few arguments for keyword:{}", verb));
  }
  ASSIGN_OR_RETURN(const v1::Selection chosen, Chosen(jobs));
  v1::ClientRequest request;
  if (verb == "requeue" || verb == "requeuehold") {
    RETURN_IF_ERROR(CheckRequeue(chosen, client));
    request.mutable_requeue()->set_hold(verb == "requeuehold");
  } else {
    request.mutable_hold()->set_hold(verb != "release");
  }
  return SendChange(request, chosen, client);
}

// What is updated of a job, and by which key here.
struct UpdateKey {
  std::string_view name;
  std::string_view key;
};
constexpr std::array kUpdateKeys{
    UpdateKey{"timelimit", "time"},
    UpdateKey{"priority", "priority"},
    UpdateKey{"nice", "priority"},
    UpdateKey{"jobname", "name"},
    UpdateKey{"name", "name"},
    UpdateKey{"partition", "queue"},
    UpdateKey{"starttime", "begin"},
    UpdateKey{"eligibletime", "begin"},
    UpdateKey{"dependency", "dependency"},
    UpdateKey{"numnodes", "nodes"},
    UpdateKey{"reqnodelist", "node_list"},
    UpdateKey{"excnodelist", "exclude"},
    UpdateKey{"features", "constraint"},
    UpdateKey{"licenses", "licenses"},
    UpdateKey{"mincpusnode", "cpus"},
    UpdateKey{"minmemorynode", "memory"},
};

// The value as it is typed here.
std::string ValueHere(std::string_view name, const std::string& value) {
  const bool is_number =
      !value.empty() &&
      std::all_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (name == "timelimit") {
    return is_number ? value + "m" : value;
  }
  if (name == "nice") {
    return value.starts_with('-') ? value.substr(1) : "-" + value;
  }
  if (name == "mincpusnode") {
    return value + "/node";
  }
  return name == "minmemorynode" ? (is_number ? value + "M" : value) + "/node" : value;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;  // keys in lower case

Status UpdateJob(const Pairs& pairs, rpc::ClusterClient& client) {
  v1::ClientRequest request;
  v1::UpdateRequest& update = *request.mutable_update();
  Words jobs;
  for (const auto& [name, value] : pairs) {
    if (name == "jobid" || name == "job") {
      for (const std::string_view id : base::Split(value, ",")) {
        jobs.emplace_back(id);
      }
      continue;
    }
    const auto* const known =
        std::find_if(kUpdateKeys.begin(), kUpdateKeys.end(),
                     [&name = name](const UpdateKey& one) { return one.name == name; });
    if (known == kUpdateKeys.end()) {
      return InvalidArgument(fmt::format(
          "Update of this parameter is not supported: {}={}\nRequest aborted", name, value));
    }
    update.add_fields(std::string(known->key));
    if (!value.empty()) {
      RETURN_IF_ERROR(
          requests::SetJobOption(known->key, ValueHere(name, value), *update.mutable_values()));
    }
  }
  ASSIGN_OR_RETURN(const v1::Selection chosen, Chosen(jobs));
  return SendChange(request, chosen, client);
}

Status UpdateNode(const Pairs& pairs, rpc::ClusterClient& client) {
  v1::ClientRequest request;
  v1::DrainRequest& drain = *request.mutable_drain();
  std::string state;
  for (const auto& [name, value] : pairs) {
    if (name == "nodename") {
      ASSIGN_OR_RETURN(const Words nodes, base::ExpandNames(value));
      drain.set_node(nodes.empty() ? "" : nodes.front());
      for (std::size_t i = 1; i < nodes.size(); ++i) {
        drain.add_nodes(nodes[i]);
      }
    } else if (name == "state") {
      state = live::LowerCase(value);
    } else if (name == "reason") {
      drain.set_reason(value);
    } else {
      return InvalidArgument(fmt::format(
          "Update of this parameter is not supported: {}={}\nRequest aborted", name, value));
    }
  }
  if (state != "drain" && state != "down" && state != "resume" && state != "undrain") {
    return InvalidArgument(fmt::format(
        "Invalid input: {}\nRequest aborted\nValid states are: DRAIN DOWN RESUME UNDRAIN", state));
  }
  if ((state == "drain" || state == "down") && drain.reason().empty()) {
    return InvalidArgument(
        "You must specify a reason when DOWNING or DRAINING a node. Request "
        "denied");
  }
  drain.set_drain(state == "drain" || state == "down");
  drain.set_finish(state == "drain");
  ASSIGN_OR_RETURN(const v1::ClientReply reply, client.Call(request, kTimeout));
  return TellLeftOut(reply.drain().left_out());
}

Status Update(const Words& words, rpc::ClusterClient& client) {
  Pairs pairs;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      return InvalidArgument(fmt::format("Invalid input: {}\nRequest aborted", word));
    }
    pairs.emplace_back(live::LowerCase(word.substr(0, equals)), word.substr(equals + 1));
  }
  const auto has = [&pairs](std::string_view name) {
    return std::any_of(pairs.begin(), pairs.end(),
                       [name](const auto& pair) { return pair.first == name; });
  };
  if (has("nodename")) {
    return UpdateNode(pairs, client);
  }
  return has("jobid") || has("job")
             ? UpdateJob(pairs, client)
             : InvalidArgument(
                   "No valid entity in update command\nInput line must include "
                   "\"NodeName\" or \"JobId\"");
}

Status RunVerb(const Words& words, bool in_one) {
  const std::string verb = live::LowerCase(words.front());
  const Words rest(words.begin() + 1, words.end());
  constexpr std::array<std::string_view, 5> kChanges{"hold", "uhold", "release", "requeue",
                                                     "requeuehold"};
  const bool changes = std::find(kChanges.begin(), kChanges.end(), verb) != kChanges.end();
  if (!changes && verb != "show" && verb != "update" && verb != "ping") {
    return InvalidArgument("invalid keyword: " + words.front());
  }
  if (rest.empty() && verb != "ping") {
    return InvalidArgument("too few arguments for keyword:" + verb);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectAsSlurm());
  if (verb == "ping") {
    RETURN_IF_ERROR(NodesOf(*client));
    fmt::print("Slurmctld(primary) is UP\n");
    return {};
  }
  return changes          ? Change(verb, rest, *client)
         : verb == "show" ? Show(rest, in_one, *client)
                          : Update(rest, *client);
}

}  // namespace

int Scontrol(const std::vector<std::string>& words) {
  const std::optional<SlurmWords> read = ReadSlurmWords(kScontrol, words, kScontrolOptions);
  if (!read) {
    return 1;
  }
  if (read->Has("help") || read->rest.empty()) {
    fmt::print(read->Has("help") ? stdout : stderr, "{}", kScontrolUsage);
    return read->Has("help") ? 0 : 1;
  }
  if (read->rest.size() > 1 && read->rest[0] == "show" && read->rest[1].starts_with("host")) {
    const char* const nodes = std::getenv("SLURM_JOB_NODELIST");
    const supervisor::ToolAnswer answer =
        supervisor::Scontrol(read->rest, nodes == nullptr ? "" : nodes);
    fmt::print("{}", answer.out);
    fmt::print(stderr, "{}", answer.errors);
    return answer.status;
  }
  const Status status = RunVerb(read->rest, read->Has("oneliner"));
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", status.error().message);
    return 1;
  }
  return 0;
}

}  // namespace trainyard::cli
