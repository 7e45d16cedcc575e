// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_json.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/name_list.h"
#include "base/text.h"
#include "cli/live/client_calls.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_steps.h"
#include "io/json.h"
#include "live/jobs/job_request.h"

namespace trainyard::cli {
namespace {

using SlurmJson = nlohmann::ordered_json;

constexpr double kSecondsOfMinute = 60;

SlurmJson WholeSeconds(double seconds) { return static_cast<std::int64_t>(std::floor(seconds)); }

SlurmJson MinutesOrNull(const v1::JobRequest& request) {
  return request.has_time_s()
             ? SlurmJson(std::llround(std::ceil(request.time_s() / kSecondsOfMinute)))
             : SlurmJson(nullptr);
}

std::string TextOrEmpty(const std::string& text) { return text == "(null)" ? "" : text; }

std::string KeptText(const v1::JobStatus& job, const char* name) {
  return TextOrEmpty(SlurmKept(job, name));
}

bool IsPendingArray(const SlurmJobLine& job) {
  return job.job().has_array_job() && SlurmState(job.job()) == "PENDING";
}

// "3-5,9%2" of "12_[3-5,9%2]".
std::string TasksText(const SlurmJobLine& job) {
  std::string text = TextOf(job.line);
  text = text.substr(text.find('_') + 1);
  std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  return text;
}

// As wait(2) has it.
int RawStatus(int code) {
  constexpr int kCodeShift = 8;
  const int signal = SignalOfExit(code);
  return signal > 0 ? signal : code << kCodeShift;
}

SlurmJson MemoryPerNode(const v1::JobStatus& job) {
  constexpr std::int64_t kMibOfGib = 1024;
  const std::string text = SlurmMemory(job);
  const auto number = base::ToInteger<std::int64_t>(
      std::string_view(text).substr(0, text.find_first_not_of("0123456789")));
  return text == "0" || !number ? SlurmJson(nullptr)
                                : SlurmJson(*number * (text.ends_with('G') ? kMibOfGib : 1));
}

double EligibleTime(const v1::JobStatus& job) { return job.submitted() + job.request().begin_s(); }

SlurmJson ResourcesOf(const v1::JobStatus& job) {
  SlurmJson resources = SlurmJson::object();
  if (job.grants_size() == 0) {
    return resources;
  }
  resources["nodes"] = SlurmNodes(job);
  resources["allocated_hosts"] = job.grants_size();
  resources["allocated_nodes"] = SlurmJson::array();
  for (const v1::NodeGrant& grant : job.grants()) {
    SlurmJson node;
    node["nodename"] = grant.node();
    node["cpus_used"] = SlurmCpusOn(job, grant.node());
    resources["allocated_nodes"].push_back(std::move(node));
  }
  return resources;
}

void PutArray(const SlurmJobLine& line, SlurmJson& json) {
  const v1::JobStatus& job = line.job();
  const bool waits = IsPendingArray(line);
  const std::string tasks = waits ? TasksText(line) : std::string();
  const std::size_t percent = tasks.find('%');
  json["array_job_id"] = job.has_array_job() ? job.array_job() : 0;
  json["array_task_id"] =
      job.has_array_job() && !waits ? SlurmJson(job.array_index()) : SlurmJson(nullptr);
  json["array_max_tasks"] =
      percent == std::string::npos
          ? 0
          : base::ToInteger<int>(std::string_view(tasks).substr(percent + 1)).value_or(0);
  json["array_task_string"] = tasks;
}

void PutTimes(const v1::JobStatus& job, SlurmJson& json) {
  json["eligible_time"] = WholeSeconds(EligibleTime(job));
  json["end_time"] = WholeSeconds(SlurmEnd(job).value_or(0));
  json["start_time"] = WholeSeconds(job.has_started() ? job.started() : 0);
  json["submit_time"] = WholeSeconds(job.submitted());
  json["suspend_time"] = 0;
  json["time_limit"] = MinutesOrNull(job.request());
}

void PutRequest(const v1::JobStatus& job, SlurmJson& json) {
  const v1::JobRequest& request = job.request();
  const std::string per_node = SlurmGpusPerNode(job);
  const v1::LaunchSpec& launch = request.launch();
  json["account"] = request.account();
  json["comment"] = KeptText(job, "comment");
  json["current_working_directory"] = launch.working_directory();
  json["dependency"] = request.dependency();
  json["excluded_nodes"] = request.exclude();
  json["features"] = request.constraint();
  json["licenses"] = request.licenses();
  json["memory_per_node"] = MemoryPerNode(job);
  json["name"] = request.name();
  json["nice"] =
      launch.priority() == 0 ? SlurmJson(nullptr) : SlurmJson(-std::int64_t{launch.priority()});
  json["priority"] = launch.priority();
  json["qos"] = KeptText(job, "qos");
  json["required_nodes"] = request.node_list();
  json["requeue"] = !request.no_requeue();
  json["tres_per_node"] = per_node.empty() ? "" : "gres:" + per_node;
  json["wckey"] = KeptText(job, "wckey");
}

// "SUCCESS", "ERROR" or "SIGNALED", as there. `text`: "7:0".
SlurmJson ExitJson(const std::string& text, bool has_ended) {
  const std::size_t colon = text.find(':');
  const int code = base::ToInteger<int>(std::string_view(text).substr(0, colon)).value_or(0);
  const int signal = base::ToInteger<int>(std::string_view(text).substr(colon + 1)).value_or(0);
  SlurmJson json;
  json["status"] = !has_ended   ? "PENDING"
                   : signal > 0 ? "SIGNALED"
                   : code == 0  ? "SUCCESS"
                                : "ERROR";
  json["return_code"] = signal > 0 ? SlurmJson(nullptr) : SlurmJson(code);
  if (signal > 0) {
    json["signal"]["signal_id"] = signal;
    json["signal"]["name"] = strsignal(signal);
  }
  return json;
}

SlurmJson CpuTimeJson(double seconds) {
  constexpr double kMicros = 1e6;
  SlurmJson json;
  json["seconds"] = WholeSeconds(seconds);
  json["microseconds"] = static_cast<std::int64_t>((seconds - std::floor(seconds)) * kMicros);
  return json;
}

SlurmJson TresJson(const char* type, const SlurmJson& name, int id, std::int64_t count) {
  SlurmJson json;
  json["type"] = type;
  json["name"] = name;
  json["id"] = id;
  json["count"] = count;
  return json;
}

// The numbers are those that Slurm gives them.
SlurmJson TresOf(const v1::JobStatus& job) {
  constexpr int kCpu = 1;
  constexpr int kMemory = 2;
  constexpr int kNode = 4;
  constexpr int kGpu = 1001;
  SlurmJson list = SlurmJson::array();
  list.push_back(TresJson("cpu", nullptr, kCpu, SlurmCpus(job)));
  if (const SlurmJson memory = MemoryPerNode(job); !memory.is_null()) {
    list.push_back(
        TresJson("mem", nullptr, kMemory, memory.get<std::int64_t>() * SlurmNodeCount(job)));
  }
  list.push_back(TresJson("node", nullptr, kNode, SlurmNodeCount(job)));
  if (job.request().gpus() > 0) {
    list.push_back(TresJson("gres", "gpu", kGpu, job.request().gpus()));
  }
  return list;
}

SlurmJson StepJson(const v1::JobStatus& job, const SlurmStep& step, double now) {
  SlurmJson json;
  SlurmJson& nodes = json["nodes"];
  nodes["list"] = SlurmJson::array();
  // A script can write any list into its records.
  if (const auto names = base::ExpandNames(step.node_list);
      names.ok() && static_cast<int>(names.value().size()) == step.nodes) {
    nodes["list"] = names.value();
  }
  nodes["count"] = step.nodes;
  nodes["range"] = step.node_list;
  SlurmJson& time = json["time"];
  time["elapsed"] = WholeSeconds(step.ElapsedAt(now));
  time["end"] = WholeSeconds(step.ended.value_or(0));
  time["start"] = WholeSeconds(step.started);
  time["suspended"] = 0;
  json["exit_code"] = ExitJson(step.exit_code, step.ended.has_value());
  json["tasks"]["count"] = step.tasks;
  json["state"] = step.state;
  json["step"]["job_id"] = job.job();
  json["step"]["id"] = step.is_batch() ? SlurmJson(step.id) : SlurmJson(std::stoi(step.id));
  json["step"]["name"] = step.name;
  return json;
}

SlurmJson AccountedTimes(const v1::JobStatus& job) {
  SlurmJson time;
  time["elapsed"] = WholeSeconds(job.run_s());
  time["eligible"] = WholeSeconds(EligibleTime(job));
  time["end"] = WholeSeconds(job.has_ended() ? job.ended() : 0);
  time["start"] = WholeSeconds(job.has_started() ? job.started() : 0);
  time["submission"] = WholeSeconds(job.submitted());
  time["suspended"] = 0;
  time["limit"] = MinutesOrNull(job.request());
  time["total"] = CpuTimeJson(job.use().cpu_s());
  return time;
}

SlurmJson QueuedJobJson(const SlurmJobLine& line) {
  const v1::JobStatus& job = line.job();
  SlurmJson json;
  PutRequest(job, json);
  PutArray(line, json);
  PutTimes(job, json);
  json["batch_flag"] = job.request().launch().has_batch();
  json["batch_host"] = job.grants_size() > 0 ? job.grants(0).node() : "";
  json["cpus"] = SlurmCpus(job);
  json["exit_code"] = RawStatus(job.exit_code());
  json["job_id"] = IsPendingArray(line) ? job.array_job() : job.job();
  json["job_resources"] = ResourcesOf(job);
  json["job_state"] = SlurmState(job);
  json["node_count"] = SlurmNodeCount(job);
  json["nodes"] = SlurmNodes(job);
  json["partition"] = line.partition;
  json["restart_cnt"] = job.attempt() > 1 ? job.attempt() - 1 : 0;
  json["state_description"] = job.reason();
  json["state_reason"] = job.reason_code();
  json["tasks"] = SlurmTasks(job);
  json["user_id"] = job.request().launch().owner().uid();
  json["user_name"] = job.request().user();
  return json;
}

SlurmJson AccountedJobJson(const SlurmJobLine& line, double now) {
  const v1::JobStatus& job = line.job();
  const v1::JobRequest& request = job.request();
  const bool waits = IsPendingArray(line);
  SlurmJson json;
  json["account"] = request.account();
  json["comment"]["administrator"] = nullptr;
  const std::string comment = KeptText(job, "comment");
  json["comment"]["job"] = comment.empty() ? SlurmJson(nullptr) : SlurmJson(comment);
  json["comment"]["system"] = nullptr;
  json["allocation_nodes"] = job.has_started() ? SlurmNodeCount(job) : 0;
  json["array"]["job_id"] = job.has_array_job() ? job.array_job() : 0;
  json["array"]["task"] = waits ? SlurmJson(TasksText(line)) : SlurmJson(nullptr);
  json["array"]["task_id"] =
      job.has_array_job() && !waits ? SlurmJson(job.array_index()) : SlurmJson(nullptr);
  json["association"]["account"] = request.account();
  json["association"]["partition"] = nullptr;
  json["association"]["user"] = request.user();
  json["constraints"] = request.constraint();
  json["time"] = AccountedTimes(job);
  json["exit_code"] = ExitJson(SlurmExitCode(job), job.has_ended());
  json["job_id"] = job.job();
  json["name"] = request.name();
  json["nodes"] = job.grants_size() > 0 ? SlurmNodes(job) : "None assigned";
  json["partition"] = line.partition;
  json["priority"] = request.launch().priority();
  json["qos"] = KeptText(job, "qos");
  json["required"]["CPUs"] = SlurmCpus(job);
  const SlurmJson memory = MemoryPerNode(job);
  json["required"]["memory"] = memory.is_null() ? SlurmJson(0) : memory;
  json["state"]["current"] = SlurmState(job);
  json["state"]["reason"] = job.reason_code();
  json["steps"] = SlurmJson::array();
  for (const SlurmStep& step : SlurmStepsOf(job)) {
    json["steps"].push_back(StepJson(job, step, now));
  }
  json["tres"]["allocated"] = job.has_started() ? TresOf(job) : SlurmJson::array();
  json["tres"]["requested"] = TresOf(job);
  json["user"] = request.user();
  json["wckey"]["wckey"] = KeptText(job, "wckey");
  json["wckey"]["flags"] = SlurmJson::array();
  json["working_directory"] = request.launch().working_directory();
  return json;
}

SlurmJson NodeJson(const v1::NodeStatus& node, int used_cpus) {
  const std::string labels = fmt::format("{}", fmt::join(node.labels(), ","));
  const SlurmDrain drain = SlurmDrainOf(node);
  const bool uses = used_cpus > 0 || node.gpus_used() > 0 || node.jobs_size() > 0;
  const bool full = node.gpus() > 0 && node.gpus_used() >= node.gpus();
  const int cpus = SlurmCpus(node);
  const std::int64_t memory =
      node.stated_memory_mib() > 0 ? node.stated_memory_mib() : node.memory_mib();
  SlurmJson json;
  json["name"] = node.node();
  json["address"] = node.address();
  json["hostname"] = node.node();
  json["state"] = !node.up() ? "down" : !uses ? "idle" : full ? "allocated" : "mixed";
  json["state_flags"] = SlurmJson::array();
  if (node.drained()) {
    json["state_flags"].push_back("DRAIN");
  }
  if (node.silent()) {
    json["state_flags"].push_back("NOT_RESPONDING");
  }
  json["partitions"] = SlurmJson::array();
  for (const std::string& partition : node.partitions()) {
    json["partitions"].push_back(partition);
  }
  json["cpus"] = cpus;
  json["alloc_cpus"] = used_cpus;
  json["idle_cpus"] = std::max(0, cpus - used_cpus);
  json["real_memory"] = memory;
  json["features"] = labels;
  json["active_features"] = labels;
  json["gres"] = TextOrEmpty(SlurmGres(node));
  json["gres_used"] = fmt::format("gpu:{}{}", node.gpu_type().empty() ? "" : node.gpu_type() + ":",
                                  node.gpus_used());
  json["reason"] = node.drained() ? drain.reason : "";
  json["reason_set_by_user"] =
      node.drained() && drain.user != "Unknown" ? SlurmJson(drain.user) : SlurmJson(nullptr);
  json["tres"] = fmt::format("cpu={},mem={}M", cpus, memory);
  json["tres_used"] =
      used_cpus > 0 ? SlurmJson(fmt::format("cpu={}", used_cpus)) : SlurmJson(nullptr);
  return json;
}

// The list by that name behind what says who has written it. `is_accounting`: of sacct.
std::string TextWith(const char* name, std::vector<SlurmJson> list, bool is_accounting) {
  SlurmJson json;
  SlurmJson& plugin = json["meta"]["plugin"];
  plugin["type"] = is_accounting ? "openapi/dbv0.0.38" : "openapi/v0.0.38";
  plugin["name"] = is_accounting ? "Slurm OpenAPI DB v0.0.38" : "Slurm OpenAPI v0.0.38";
  SlurmJson& slurm = json["meta"]["Slurm"];
  slurm["version"]["major"] = 22;
  slurm["version"]["micro"] = 8;
  slurm["version"]["minor"] = 5;
  slurm["release"] = "22.05.8";
  json["errors"] = SlurmJson::array();
  json[name] = std::move(list);
  // What is no UTF-8 does not keep the rest from being read.
  return json.dump(1, ' ', false, SlurmJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string JsonOfQueue(const std::vector<SlurmJobLine>& jobs) {
  std::vector<SlurmJson> list;
  list.reserve(jobs.size());
  for (const SlurmJobLine& job : jobs) {
    list.push_back(QueuedJobJson(job));
  }
  return TextWith("jobs", std::move(list), false);
}

std::string JsonOfAccounting(const std::vector<SlurmJobLine>& jobs, double now) {
  std::vector<SlurmJson> list;
  list.reserve(jobs.size());
  for (const SlurmJobLine& job : jobs) {
    list.push_back(AccountedJobJson(job, now));
  }
  return TextWith("jobs", std::move(list), true);
}

std::string JsonOfNodes(const std::vector<NodeWithCpus>& nodes) {
  std::vector<SlurmJson> list;
  list.reserve(nodes.size());
  for (const NodeWithCpus& each : nodes) {
    list.push_back(NodeJson(*each.node, each.used_cpus));
  }
  return TextWith("nodes", std::move(list), false);
}

}  // namespace trainyard::cli
