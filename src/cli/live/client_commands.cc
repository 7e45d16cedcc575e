// SPDX-License-Identifier: Apache-2.0
// trainyard status, resize, nodes, drain, undrain: users' and operators' calls to the controller of
// a live cluster.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/attach/client_attach.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "cli/live/client_run.h"
#include "cli/live/controller_switches.h"
#include "cli/live/job_changes.h"
#include "cli/live/job_selection.h"
#include "cli/live/status/array_lines.h"
#include "cli/live/status/use_text.h"
#include "cli/numbers.h"
#include "identity/token.h"
#include "live/jobs/job_request.h"
#include "model/node_classes.h"
#include "model/request/node_request.h"
#include "profile/throughput_table.h"
#include "rpc/client.h"

namespace trainyard::cli {
namespace {

using std::chrono::seconds;

// -------------------------------------------------------------------------------------------- text

// "0-3,6"
std::string GpuRangesText(const v1::NodeGrant& grant) {
  std::vector<int> gpus(grant.gpus().begin(), grant.gpus().end());
  std::sort(gpus.begin(), gpus.end());
  std::string text;
  for (std::size_t i = 0; i < gpus.size();) {
    std::size_t last = i;
    while (last + 1 < gpus.size() && gpus[last + 1] == gpus[last] + 1) {
      ++last;
    }
    text += text.empty() ? "" : ",";
    text += last == i ? fmt::format("{}", gpus[i]) : fmt::format("{}-{}", gpus[i], gpus[last]);
    i = last + 1;
  }
  return text;
}

std::string WhereText(const v1::JobStatus& job) {
  std::string text;
  for (const v1::NodeGrant& grant : job.grants()) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", grant.node(),
                        grant.gpus().empty() ? "" : ":", GpuRangesText(grant));
  }
  return OrDash(text);
}

std::string GpuCountText(const v1::JobStatus& job) {
  int held = 0;
  for (const v1::NodeGrant& grant : job.grants()) {
    held += grant.gpus_size();
  }
  return held == 0 || held == job.request().gpus()
             ? std::to_string(job.request().gpus())
             : fmt::format("{} of {}", held, job.request().gpus());
}

std::string Ago(double at, double now) {
  return base::ShortDuration(std::max(0.0, now - at)) + " ago";
}

std::string RunTimeText(const v1::JobStatus& job) {
  return job.has_started() ? base::ShortDuration(job.run_s()) : "-";
}

// `tasks`: each task of an array has a line.
std::string JobsTable(const v1::JobsReply& reply, bool ended_too, bool tasks) {
  std::vector<JobLine> lines;
  std::vector<const v1::JobStatus*> jobs;
  for (const v1::JobStatus& job : reply.jobs()) {
    if (tasks) {
      lines.push_back({.job = &job, .tasks = {}});
    }
    jobs.push_back(&job);
  }
  if (!tasks) {
    lines = LinesOf(jobs);
  }
  std::vector<std::vector<std::string>> rows{{"job", "name", "user", "state", "gpus", "attempt",
                                              "where", "submitted", "run time", "deadline",
                                              "reason"}};
  for (const JobLine& line : lines) {
    const v1::JobStatus& job = *line.job;
    rows.push_back({TextOf(line), OrDash(job.request().name()), OrDash(job.request().user()),
                    live::StateText(job.state()), GpuCountText(job), std::to_string(job.attempt()),
                    WhereText(job), Ago(job.submitted(), reply.now()), RunTimeText(job),
                    job.has_deadline() ? LocalTime(job.deadline()) : "-",
                    OrDash(job.reason().empty() ? job.note() : ReasonOf(line))});
  }
  return rows.size() == 1
             ? (ended_too ? "no jobs\n" : "no jobs that have not ended; --all shows the others\n")
             : TableText(rows);
}

// What it has of a node beside its GPUs; empty: nothing is divided there.
std::string ShareText(const v1::NodeShare& share) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::int64_t amount, double shown, const char* unit) {
    if (amount > 0) {
      parts.push_back(fmt::format("{:g} {}", shown, unit));
    }
  };
  add(share.milli_cpus(), static_cast<double>(share.milli_cpus()) / 1000, "CPUs");
  add(share.memory_mib(), static_cast<double>(share.memory_mib()) / 1024, "GiB of memory");
  add(share.storage_kbps(), static_cast<double>(share.storage_kbps()) / 1024, "MiB/s of storage");
  add(share.loader_workers(), share.loader_workers(), "loader workers");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string MetricsText(const v1::JobStatus& job) {
  std::vector<std::string> parts;
  for (const v1::Metric& metric : job.metrics()) {
    parts.push_back(fmt::format("{} {:.4g}", Printable(metric.name()), metric.value()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Of a job that may try again: how often it has failed, and how.
std::string FailuresText(const v1::JobStatus& job) {
  const auto most = static_cast<std::uint32_t>(std::max(0, job.request().launch().max_restarts()));
  return fmt::format(
      "{} of its own{}; {} more restarts", job.failures(),
      job.has_last_failure() ? fmt::format(", the last with exit code {}", job.last_failure()) : "",
      most - std::min(most, job.failures()));
}

using DetailLines = std::vector<std::pair<std::string, std::string>>;

std::string AskedGpusText(const v1::JobRequest& request) {
  std::string gpus = std::to_string(request.gpus());
  if (request.min_gpus() > 0 || request.max_gpus() > 0) {
    const GpuRange range{.least = request.min_gpus(), .most = request.max_gpus()};
    gpus += fmt::format(" (elastic, {})", profile::RangeText(range));
  }
  const std::vector<std::string> types(request.gpu_types().begin(), request.gpu_types().end());
  return types.empty() ? gpus
                       : fmt::format("{}, of type {}", gpus, Printable(model::TypesText(types)));
}

void AddTimes(const v1::JobStatus& job, DetailLines& lines) {
  const auto add = [&lines](const char* name, bool given, double at) {
    if (given) {
      lines.emplace_back(name, LocalTime(at));
    }
  };
  add("submitted", true, job.submitted());
  add("started", job.has_started(), job.started());
  add("ended", job.has_ended(), job.ended());
  lines.emplace_back("run time", RunTimeText(job));
  add("deadline", job.has_deadline(), job.deadline());
  if (job.has_expected_end() && !live::HasEnded(job.state())) {
    lines.emplace_back("expected end",
                       LocalTime(job.expected_end()) +
                           (job.overrun() ? ", though it has overrun what it has stated" : ""));
  }
}

std::string IterationsText(const v1::JobStatus& job, double now) {
  const v1::JobRequest& request = job.request();
  return fmt::format(
      "{:.0f}{}{}{}", job.iterations_done(),
      request.has_iterations() ? fmt::format(" of {:.0f}", request.iterations()) : "",
      job.iterations_done() > 0 && !live::HasEnded(job.state())
          ? fmt::format(", {:.0f} of them saved", job.iterations_saved())
          : "",
      job.has_progressed() ? ", the last " + Ago(job.progressed(), now) : "");
}

// What a job says of itself, and has beside its GPUs.
void AddTraining(const v1::JobStatus& job, double now, DetailLines& lines) {
  lines.emplace_back("iterations", IterationsText(job, now));
  std::string asks = model::TextOf(live::AsksOf(job.request()));
  if (const int tasks = job.request().launch().workers_per_node(); tasks > 0) {
    asks = fmt::format("{} {}/node{}{}", tasks, tasks == 1 ? "task" : "tasks",
                       asks.empty() ? "" : ", ", asks);
  }
  if (!asks.empty()) {
    lines.emplace_back("asks for", asks);
  }
  for (const v1::NodeGrant& grant : job.grants()) {
    if (const std::string share = ShareText(grant.share()); !share.empty()) {
      lines.emplace_back("share", job.grants_size() == 1 ? share : grant.node() + ": " + share);
    }
  }
  if (job.has_use()) {
    lines.emplace_back("used", UseText(job.use()));
  }
  if (job.metrics_size() > 0) {
    lines.emplace_back("metrics", MetricsText(job));
  }
  if (job.has_group_iteration_predicted_s()) {
    lines.emplace_back(
        "group",
        fmt::format("an iteration takes {} as predicted, {}",
                    base::ShortDuration(job.group_iteration_predicted_s()),
                    job.has_group_iteration_measured_s()
                        ? base::ShortDuration(job.group_iteration_measured_s()) + " as measured"
                        : "not measured yet"));
  }
  if (!job.note().empty()) {
    lines.emplace_back("note", Printable(job.note()));
  }
}

// What has become of its attempts.
void AddAttempts(const v1::JobStatus& job, double now, DetailLines& lines) {
  lines.emplace_back(
      "changes", fmt::format("{} preemptions, {} migrations, {} resizes, {} failures",
                             job.preemptions(), job.migrations(), job.resizes(), job.failures()));
  if (job.failures() > 0 && !live::HasEnded(job.state())) {
    lines.emplace_back("failures", FailuresText(job));
  }
  if (job.has_next_try()) {
    lines.emplace_back("next try",
                       fmt::format("{} (in {})", LocalTime(job.next_try()),
                                   base::ShortDuration(std::max(0.0, job.next_try() - now))));
  }
  if (job.has_start_took_s()) {
    lines.emplace_back("last start", "took " + base::ShortDuration(job.start_took_s()));
  }
  if (job.has_stop_took_s()) {
    lines.emplace_back("last stop", "took " + base::ShortDuration(job.stop_took_s()));
  }
  if (live::HasEnded(job.state()) && job.has_exit_code()) {
    lines.emplace_back("exit code", std::to_string(job.exit_code()));
  }
}

// What it runs, and on which terms.
void AddWork(const v1::JobStatus& job, DetailLines& lines) {
  const v1::JobRequest& request = job.request();
  const auto add = [&lines](const char* name, const std::string& text) {
    if (!text.empty()) {
      lines.emplace_back(name, Printable(text));
    }
  };
  std::vector<std::string> words;
  for (const std::string& word : job.command()) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$&;|<>()*?#~`") == std::string::npos;
    words.push_back(plain ? word : "'" + base::ReplaceAll(word, "'", "'\\''") + "'");
  }
  add("command", fmt::format("{}", fmt::join(words, " ")));
  add("folder", request.launch().working_directory());
  add("array", request.array());
  add("dependency", request.dependency());
  for (const v1::EnvironmentVariable& kept : request.launch().batch().kept()) {
    lines.emplace_back(kept.name(), Printable(kept.value()));
  }
  if (request.has_time_s()) {
    add("time limit", base::ShortDuration(request.time_s()));
  }
  if (request.has_begin_s()) {
    add("begin", LocalTime(job.submitted() + request.begin_s()));
  }
}

// "ann (uid 1001, user, by socket)": who has submitted it.
std::string OwnerText(const v1::Caller& owner) {
  return fmt::format("{} (uid {}, {}, by {})", Printable(owner.user()), owner.uid(),
                     identity::RoleName(owner.role()), Printable(owner.by()));
}

std::string JobDetails(const v1::JobStatus& job, double now) {
  const v1::JobRequest& request = job.request();
  DetailLines lines{{"job", JobText(job)},
                    {"name", OrDash(request.name())},
                    {"user", OrDash(request.user())},
                    {"queue", OrDash(request.queue())},
                    {"model", OrDash(request.model())},
                    {"state", live::StateText(job.state())},
                    {"reason", OrDash(job.reason())},
                    {"gpus", AskedGpusText(request)},
                    {"where", WhereText(job)},
                    {"attempt", std::to_string(job.attempt())}};
  AddWork(job, lines);
  if (!request.account().empty()) {
    lines.insert(lines.begin() + 4, {"account", Printable(request.account())});
  }
  if (request.launch().has_owner()) {
    lines.insert(lines.begin() + 3, {"by", OwnerText(request.launch().owner())});
  }
  if (!job.changed_by().empty()) {
    lines.emplace_back("changed", Printable(job.changed_by()));
  }
  AddTimes(job, lines);
  AddTraining(job, now, lines);
  AddAttempts(job, now, lines);
  std::string text;
  for (const auto& [name, value] : lines) {
    text += fmt::format("{:<14}{}\n", name + ':', value);
  }
  return text;
}

// What has become of it, an event a line.
std::string HistoryText(const v1::JobStatus& job) {
  std::vector<std::vector<std::string>> rows{{"time", "event", "by", "before", "after"}};
  rows.push_back({LocalTime(job.submitted()), "submitted",
                  job.request().launch().has_owner()
                      ? Printable(identity::NameOf(job.request().launch().owner()))
                      : OrDash(job.request().user()),
                  "-", "-"});
  for (const v1::JobEvent& event : job.history()) {
    rows.push_back({LocalTime(event.time()), Printable(event.what()), OrDash(event.by()),
                    OrDash(event.before()), OrDash(event.after())});
  }
  return fmt::format("job {} ({})\n{}", JobText(job), live::StateText(job.state()),
                     TableText(rows));
}

// ------------------------------------------------------------------------------------------ status

struct StatusOptions : ClusterOptions {
  requests::JobSelection selection;
  bool all = false;
  bool watch = false;
  bool tasks = false;
  bool history = false;
};

std::string StatusText(const v1::JobsReply& reply, const StatusOptions& options) {
  const bool array =
      std::any_of(reply.jobs().begin(), reply.jobs().end(), [&reply](const v1::JobStatus& job) {
        return reply.jobs_size() > 1 && job.has_array_job() && job.command().empty();
      });
  if (options.selection.jobs.empty() || (array && !options.history)) {
    return JobsTable(reply, options.all || options.selection.has_filter(), options.tasks);
  }
  std::string text;
  for (const v1::JobStatus& job : reply.jobs()) {
    text += text.empty() ? "" : "\n";
    text += options.history ? HistoryText(job) : JobDetails(job, reply.now());
  }
  return text;
}

// What is asked again and again. The number of an array alone stands for its tasks.
Result<v1::ClientRequest> StatusCall(const StatusOptions& options, rpc::ClusterClient& client) {
  const requests::JobSelection& selection = options.selection;
  if (options.history && selection.jobs.empty()) {
    return InvalidArgument("--history is of jobs named by number; expected status JOB --history");
  }
  if (selection.jobs.empty()) {
    return requests::FilterCall(selection, !options.all);
  }
  if (selection.has_filter()) {
    return InvalidArgument(
        "jobs are named by number and by --name, --user, --queue or --state; expected one of both");
  }
  ASSIGN_OR_RETURN(const std::vector<std::uint64_t> jobs, JobNumbers(client, selection.jobs));
  v1::ClientRequest request = JobsCall(jobs, false);
  request.mutable_jobs()->set_history(options.history);
  if (jobs.size() == 1 && !options.history &&
      selection.jobs.front().find('_') == std::string::npos) {
    ASSIGN_OR_RETURN(const v1::ClientReply reply, client.Call(request, kTimeout));
    if (reply.jobs().jobs_size() == 1 && reply.jobs().jobs(0).array_job() == jobs.front()) {
      request = JobsCall({}, false);
      request.mutable_jobs()->set_array_job(jobs.front());
    }
  }
  return request;
}

Status ShowStatus(const StatusOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  ASSIGN_OR_RETURN(const v1::ClientRequest request, StatusCall(options, *client));
  const bool clear = options.watch && isatty(STDOUT_FILENO) == 1;
  Duration patience{0};
  while (true) {
    ASSIGN_OR_RETURN(const v1::ClientReply reply, CallForJobs(*client, request, patience));
    if (options.json) {
      PrintJson(reply.jobs());
    } else {
      fmt::print("{}{}", clear ? "\x1b[H\x1b[J" : "", StatusText(reply.jobs(), options));
    }
    std::fflush(stdout);
    if (const auto& unknown = reply.jobs().unknown(); !unknown.empty()) {
      return Failed(fmt::format("there {} {}", unknown.size() == 1 ? "is no job" : "are no jobs",
                                fmt::join(unknown, ", ")));
    }
    if (!options.watch) {
      return {};
    }
    patience = kPatience;  // it has been there once
    std::this_thread::sleep_for(seconds(1));
  }
}

void AddStatus(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand("status", "jobs of the cluster");
  AddJobs(*command, options->selection, "ids of jobs to describe (default: list live jobs)");
  AddFilters(*command, options->selection);
  AddClusterOptions(*command, *options);
  command->add_flag("--all", options->all, "list ended jobs too");
  command->add_flag("--tasks", options->tasks, "each task of an array in a line of its own");
  command->add_flag("--history", options->history,
                    "what has become of the jobs and was changed of them, when and by whom");
  command->add_flag("--watch", options->watch, "again every second until Ctrl-C");
  command->callback(
      [options, &chosen] { chosen.run = [options] { return ShowStatus(*options); }; });
}

// ------------------------------------------------------------------------------------------ resize

struct ResizeOptions : ClusterOptions {
  std::string job;
  int gpus = 0;
};

Status Resize(const ResizeOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  ASSIGN_OR_RETURN(const std::vector<std::uint64_t> jobs, JobNumbers(*client, {options.job}));
  v1::ClientRequest request;
  request.mutable_resize()->set_job(jobs.front());
  request.mutable_resize()->set_gpus(options.gpus);
  ASSIGN_OR_RETURN(const v1::ClientReply reply, client->Call(request, kTimeout));
  const v1::JobStatus& status = reply.resize().status();
  if (options.json) {
    PrintJson(status);
  } else {
    fmt::print("job {} is to have {}; it is {}\n", JobText(status), live::GpusText(options.gpus),
               live::StateText(status.state()));
  }
  return {};
}

void AddResize(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<ResizeOptions>();
  CLI::App* command = app.add_subcommand("resize", "change how many GPUs a job asks for");
  command->add_option("JOB", options->job, "id of the job")->required();
  command->add_option("--gpus", options->gpus, "new number of GPUs")->required()->check(Positive());
  AddClusterOptions(*command, *options);
  command->callback([options, &chosen] { chosen.run = [options] { return Resize(*options); }; });
}

// ------------------------------------------------------------------------------------------- nodes

bool HoldsJobs(const v1::NodeStatus& node) { return node.jobs_size() > 0 || node.other_jobs() > 0; }

std::string NodeState(const v1::NodeStatus& node) {
  return std::string(node.silent() ? "silent"
                     : node.up()   ? "up"
                                   : "down") +
         (node.agent_gpus() == 0 ? "" : fmt::format(", its agent has {} GPUs", node.agent_gpus())) +
         (!node.drained()                              ? ""
          : HoldsJobs(node) || node.leaving_size() > 0 ? ", draining"
                                                       : ", drained");
}

// "3 7 and 1 of others; leaving: 5 (at most 4.0s)"
std::string JobsOnText(const v1::NodeStatus& node) {
  std::string text = fmt::format("{}", fmt::join(node.jobs(), " "));
  if (node.other_jobs() > 0) {
    text += fmt::format("{}{} of others", text.empty() ? "" : " and ", node.other_jobs());
  }
  for (int i = 0; i < node.leaving_size(); ++i) {
    const v1::LeavingAttempt& leaving = node.leaving(i);
    text += i > 0 ? ", " : text.empty() ? "leaving: " : "; leaving: ";
    text += leaving.job() > 0 ? std::to_string(leaving.job()) : "another's";
    text += !leaving.has_left_s()   ? ""
            : leaving.left_s() <= 0 ? " (overdue)"
                                    : " (at most " + base::ShortDuration(leaving.left_s()) + ")";
  }
  return OrDash(text);
}

// What the machine has, and what decisions go by where the cluster file states something else.
std::string CpusText(const v1::NodeStatus& node) {
  constexpr double kMilli = 1000;
  const double stated = static_cast<double>(node.stated_milli_cpus()) / kMilli;
  return stated == 0 || stated == node.cpus()
             ? std::to_string(node.cpus())
             : fmt::format("{} (stated {:g})", node.cpus(), stated);
}

std::string MemoryText(const v1::NodeStatus& node) {
  constexpr double kMibOfGib = 1024;
  const auto gib = [](std::int64_t mib) {
    return fmt::format("{:.0f}", static_cast<double>(mib) / kMibOfGib);
  };
  const std::string has = gib(node.memory_mib());
  const std::string stated = gib(node.stated_memory_mib());
  return node.stated_memory_mib() == 0 || has == stated
             ? has + " GiB"
             : fmt::format("{} (stated {}) GiB", has, stated);
}

// "12/200 GiB: coco imagenet"
std::string DataText(const v1::NodeStatus& node) {
  if (node.data_cache_mib() == 0) {
    return "-";
  }
  std::string names;
  std::int64_t mib = 0;
  for (const v1::DataSet& set : node.data_sets()) {
    names += (names.empty() ? ": " : " ") + Printable(set.name());
    mib += set.mib();
  }
  constexpr std::int64_t kMibOfGib = 1024;
  constexpr std::int64_t kFewGib = 10;
  const bool large = node.data_cache_mib() >= kFewGib * kMibOfGib;
  const std::int64_t unit = large ? kMibOfGib : 1;
  return fmt::format("{}/{} {}{}", mib / unit, node.data_cache_mib() / unit, large ? "GiB" : "MiB",
                     names);
}

// The drained nodes of which is known who has drained them, when and why.
std::string DrainsText(const v1::NodesReply& reply) {
  std::string text;
  for (const v1::NodeStatus& node : reply.nodes()) {
    if (node.agent_gpus() > 0) {
      text += fmt::format(
          "{0} gets no jobs: its agent has {1} GPUs, and the configuration says {2}; restart the "
          "agent with --gpus {2}, or 'trainyard node set {0} --gpus {1}'\n",
          node.node(), node.agent_gpus(), node.gpus());
    }
    const bool by_itself = !node.reason().empty();
    if (by_itself || (node.drained() && !node.changed_by().empty())) {
      text += fmt::format(
          "{} is {}{}; 'trainyard undrain {}' {}\n", node.node(),
          node.changed_by().empty() ? "drained by the controller" : Printable(node.changed_by()),
          by_itself ? ": " + Printable(node.reason()) : "", node.node(),
          by_itself ? "when that is put right" : "gives it jobs again");
    }
  }
  return text;
}

std::string NodesText(const v1::NodesReply& reply) {
  std::vector<std::vector<std::string>> rows{
      {"node", "state", "gpus used", "gpu type", "cpus", "memory", "heard", "address", "jobs"}};
  const bool has_data =
      std::any_of(reply.nodes().begin(), reply.nodes().end(),
                  [](const v1::NodeStatus& node) { return node.data_cache_mib() > 0; });
  const bool has_labels =
      std::any_of(reply.nodes().begin(), reply.nodes().end(),
                  [](const v1::NodeStatus& node) { return !node.labels().empty(); });
  if (has_data) {
    rows.front().emplace_back("data sets");
  }
  if (has_labels) {
    rows.front().emplace_back("labels");
  }
  int up = 0;
  int gpus = 0;
  int used = 0;
  for (const v1::NodeStatus& node : reply.nodes()) {
    const bool is_up = node.up() && !node.silent() && node.agent_gpus() == 0;
    up += is_up ? 1 : 0;
    gpus += is_up ? node.gpus() : 0;
    used += is_up ? node.gpus_used() : 0;
    rows.push_back({OrDash(node.node()), NodeState(node),
                    fmt::format("{}/{}", node.gpus_used(), node.gpus()), OrDash(node.gpu_type()),
                    CpusText(node), MemoryText(node),
                    node.last_heard() > 0 ? Ago(node.last_heard(), reply.now()) : "-",
                    OrDash(node.address()), JobsOnText(node)});
    if (has_data) {
      rows.back().push_back(DataText(node));
    }
    if (has_labels) {
      rows.back().push_back(OrDash(fmt::format("{}", fmt::join(node.labels(), ","))));
    }
  }
  return fmt::format("{}{}{}{} of {} node{} up, {} of their {} GPUs in use; policy {}\n",
                     reply.nodes().empty() ? "" : TableText(rows), DrainsText(reply),
                     SwitchesText(reply.switches()), up, reply.nodes_size(),
                     reply.nodes_size() == 1 ? "" : "s", used, gpus, OrDash(reply.policy()));
}

// "8h00m", "-"
std::string TimeText(double seconds) { return seconds > 0 ? base::ShortDuration(seconds) : "-"; }

// A row for each partition: the default one has a star, as in sinfo.
std::string PartitionsText(const v1::NodesReply& reply) {
  std::vector<std::vector<std::string>> rows{{"partition", "nodes up", "gpus used", "max gpus",
                                              "max time", "default time", "default cpus",
                                              "default memory", "nodes"}};
  for (const v1::PartitionStatus& partition : reply.partitions()) {
    std::vector<std::string> names;
    int up = 0;
    int gpus = 0;
    int used = 0;
    for (const v1::NodeStatus& node : reply.nodes()) {
      const auto& in = node.partitions();
      if (std::find(in.begin(), in.end(), partition.name()) == in.end()) {
        continue;
      }
      names.push_back(Printable(node.node()));
      up += node.up() && !node.silent() ? 1 : 0;
      gpus += node.gpus();
      used += node.gpus_used();
    }
    rows.push_back({Printable(partition.name()) + (partition.is_default() ? "*" : ""),
                    fmt::format("{}/{}", up, names.size()), fmt::format("{}/{}", used, gpus),
                    partition.max_gpus() > 0 ? std::to_string(partition.max_gpus()) : "-",
                    TimeText(partition.max_time_s()), TimeText(partition.default_time_s()),
                    OrDash(partition.default_cpus()), OrDash(partition.default_memory()),
                    OrDash(base::FoldNames(names))});
  }
  return reply.partitions().empty() ? "" : "\n" + TableText(rows);
}

struct NodesOptions : ClusterOptions {
  std::vector<std::string> nodes;
  bool watch = false;
};

// Leaves the named ones. Error: there is no such node.
Status Choose(const std::vector<std::string>& names, v1::NodesReply& reply) {
  if (names.empty()) {
    return {};
  }
  const v1::NodesReply all = reply;
  reply.clear_nodes();
  for (const std::string& name : names) {
    const auto named =
        std::find_if(all.nodes().begin(), all.nodes().end(),
                     [&name](const v1::NodeStatus& node) { return node.node() == name; });
    if (named == all.nodes().end()) {
      return Failed("there is no node '" + name + "'; 'trainyard nodes' lists them");
    }
    *reply.add_nodes() = *named;
  }
  return {};
}

Status ShowNodes(const NodesOptions& options) {
  v1::ClientRequest request;
  request.mutable_nodes();
  const bool clear = options.watch && isatty(STDOUT_FILENO) == 1;
  while (true) {
    ASSIGN_OR_RETURN(v1::ClientReply reply, CallTo(options, request));
    RETURN_IF_ERROR(Choose(options.nodes, *reply.mutable_nodes()));
    if (options.json) {
      PrintJson(reply.nodes());
    } else {
      fmt::print("{}{}{}", clear ? "\x1b[H\x1b[J" : "", NodesText(reply.nodes()),
                 options.nodes.empty() ? PartitionsText(reply.nodes()) : "");
    }
    std::fflush(stdout);
    if (!options.watch) {
      return {};
    }
    std::this_thread::sleep_for(seconds(1));
  }
}

void AddNodes(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<NodesOptions>();
  CLI::App* command = app.add_subcommand("nodes", "nodes of the cluster");
  command->add_option("node", options->nodes, "nodes to describe (default: all)");
  command->add_flag("--watch", options->watch, "again every second until Ctrl-C");
  AddClusterOptions(*command, *options);
  command->callback([options, &chosen] { chosen.run = [options] { return ShowNodes(*options); }; });
}

// ------------------------------------------------------------------------------------------ drains

struct DrainOptions : ClusterOptions {
  std::vector<std::string> nodes;
  bool drain = true;
  bool now = false;
  double deadline_s = 0;
  std::string reason;
};

// "; its jobs run until they end: 3 7 ('trainyard drain n0 --now' makes them go on elsewhere)"
std::string FinishText(const v1::NodeStatus& node) {
  if (!node.finishing() || !HoldsJobs(node)) {
    return node.leaving_size() > 0 ? "; " + JobsOnText(node) : std::string();
  }
  return fmt::format(
      "; its jobs run until they end{}: {} ('trainyard drain {} --now' makes them go on "
      "elsewhere)",
      node.finish_until() > 0 ? ", or until " + base::UtcText(node.finish_until()) : std::string(),
      JobsOnText(node), Printable(node.node()));
}

Status Drain(const DrainOptions& options) {
  v1::ClientRequest request;
  v1::DrainRequest& drain = *request.mutable_drain();
  drain.mutable_nodes()->Assign(options.nodes.begin(), options.nodes.end());
  drain.set_drain(options.drain);
  drain.set_reason(options.reason);
  drain.set_finish(options.drain && !options.now);
  drain.set_deadline_s(options.deadline_s);
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  std::vector<v1::NodeStatus> nodes(reply.drain().nodes().begin(), reply.drain().nodes().end());
  std::sort(nodes.begin(), nodes.end(), [](const v1::NodeStatus& a, const v1::NodeStatus& b) {
    return base::ComesBefore(a.node(), b.node());
  });
  if (options.json) {
    PrintJsonList(nodes);
    return TellLeftOut(reply.drain().left_out());
  }
  for (const v1::NodeStatus& node : nodes) {
    fmt::print("node {} is {}{}\n", Printable(node.node()), NodeState(node), FinishText(node));
  }
  return TellLeftOut(reply.drain().left_out());
}

void AddDrain(CLI::App& app, Command& chosen, bool drain) {
  auto options = std::make_shared<DrainOptions>();
  options->drain = drain;
  CLI::App* command = app.add_subcommand(
      drain ? "drain" : "undrain",
      drain ? "clear nodes: they get no new jobs, and those on them run until they end"
            : "give nodes jobs again");
  AddNames(*command, "NODE", options->nodes, "names of nodes, or lists: n[0-2],v0")->required();
  if (drain) {
    CLI::Option* const now = command->add_flag(
        "--now", options->now, "jobs on the nodes get notice now, and go on elsewhere");
    command
        ->add_option("--deadline", options->deadline_s,
                     "jobs that have not ended after so many seconds (or 30m, 2h) get notice")
        ->transform(Span(1))
        ->check(Positive())
        ->excludes(now);
    command->add_option("--reason", options->reason, "why, for whoever looks at `nodes`");
  }
  AddClusterOptions(*command, *options);
  command->callback([options, &chosen] { chosen.run = [options] { return Drain(*options); }; });
}

void AddDrains(CLI::App& app, Command& chosen) {
  AddDrain(app, chosen, true);
  AddDrain(app, chosen, false);
}

}  // namespace

std::string TableText(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}", row[i], widths[i] + 2);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::span<const CommandMaker> ClientCommands() {
  static constexpr std::array kMakers{CommandMaker{"submit", AddSubmit},
                                      CommandMaker{"status", AddStatus},
                                      CommandMaker{"logs", AddLogs},
                                      CommandMaker{"run", AddRun},
                                      CommandMaker{"wait", AddWait},
                                      CommandMaker{"attach", AddAttach},
                                      CommandMaker{"signal", AddSignal},
                                      CommandMaker{"cancel", AddCancel},
                                      CommandMaker{"hold release", AddHold},
                                      CommandMaker{"requeue", AddRequeue},
                                      CommandMaker{"update", AddUpdate},
                                      CommandMaker{"resize", AddResize},
                                      CommandMaker{"nodes", AddNodes},
                                      CommandMaker{"drain undrain", AddDrains},
                                      CommandMaker{"usage", AddUsage},
                                      CommandMaker{"audit", AddAudit},
                                      CommandMaker{"profiles", AddProfiles},
                                      CommandMaker{"config", AddConfig},
                                      CommandMaker{"login user node certs", AddIdentity}};
  return kMakers;
}

}  // namespace trainyard::cli
