// SPDX-License-Identifier: Apache-2.0
// trainyard submit: a job, or the apps of a workload file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/name_list.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "cli/live/client_submit.h"
#include "cli/numbers.h"
#include "cli/reading.h"
#include "cli/slurm/slurm_facts.h"
#include "daemon/clock.h"
#include "live/jobs/job_request.h"
#include "requests/job_file.h"
#include "requests/job_tasks.h"
#include "requests/slurm/batch_script.h"
#include "requests/workload_file.h"
#include "rpc/client.h"

namespace trainyard::cli {
namespace {

constexpr Duration kVerdictTimeout = std::chrono::minutes(10);

struct SubmitOptions : JobOptionValues {
  bool wait = false;
  std::string workload;
  std::string cluster_xml;
  bool at_once = false;
};

// 128 bits in hexadecimal.
std::string RandomToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) {
    token += fmt::format("{:08x}", random());
  }
  return token;
}

// Of the values that options state.
std::vector<std::string_view> KeysOf(const JobOptionValues& options) {
  std::vector<std::string_view> keys;
  for (const auto& [key, text] : options.settings) {
    keys.push_back(key);
  }
  return keys;
}

Status TakeOptions(const JobOptionValues& options, v1::JobRequest& job) {
  RETURN_IF_ERROR(requests::CheckTaskKeys(KeysOf(options)));
  for (const auto& [key, text] : options.settings) {
    RETURN_IF_ERROR(requests::SetJobOption(key, text, job));
  }
  if (job.launch().working_directory().empty()) {
    std::error_code code;
    job.mutable_launch()->set_working_directory(std::filesystem::current_path(code).string());
  }
  return {};
}

// What the command says beside a file and options, and what is left to say.
Status CompleteJob(const std::vector<std::string>& words, v1::JobRequest& job) {
  v1::LaunchSpec& launch = *job.mutable_launch();
  if (!words.empty()) {
    launch.mutable_command()->Assign(words.begin(), words.end());
  }
  if (launch.command().empty() && launch.workers() != v1::LaunchSpec::EMULATED) {
    return InvalidArgument("no command; expected it after the options: -- PROGRAM [ARGUMENT...]");
  }
  if (!launch.command().empty() && launch.workers() == v1::LaunchSpec::EMULATED) {
    return InvalidArgument(
        "--workers emulated runs no command; expected no command, or --workers per-gpu or "
        "per-node");
  }
  if (!job.has_gpus() && job.devices_size() > 0) {  // as many as it names
    for (const v1::NodeGrant& there : job.devices()) {
      job.set_gpus(job.gpus() + there.gpus_size());
    }
  }
  if (!job.has_gpus()) {
    return InvalidArgument(
        "--gpus is missing; expected a number of GPUs, MIN:MAX, or 0: it runs on CPUs alone");
  }
  if (job.user().empty()) {
    job.set_user(LoginName());
  }
  return requests::SettleTasks(job);
}

void TellWarnings(const requests::BatchScript& script) {
  for (const std::string& sentence : script.warnings()) {
    Tell(Printable(sentence));
  }
}

// How many workers the job has at most; none: that is not known before its GPUs or nodes are.
std::optional<int> MostWorkers(const v1::JobRequest& job) {
  const v1::LaunchSpec& launch = job.launch();
  if (launch.workers() == v1::LaunchSpec::ONCE) {
    return 1;
  }
  if (launch.tasks() > 0) {
    return launch.tasks();
  }
  if (launch.workers() != v1::LaunchSpec::PER_GPU || launch.launcher() != v1::LaunchSpec::PLAIN ||
      job.gpus() == 0) {
    return std::nullopt;
  }
  const bool may_have_more = job.max_gpus() > 0 || job.min_gpus() > 0 || !job.model().empty();
  return job.max_gpus() > 0 ? std::optional(job.max_gpus())
         : may_have_more    ? std::nullopt
                            : std::optional(job.gpus());
}

Status CheckRank(int rank, const v1::JobRequest& job) {
  const std::optional<int> most = MostWorkers(job);
  return most && rank >= *most
             ? InvalidArgument(fmt::format(
                   "--rank is {}, and the job has {} worker{}; expected 0{}", rank, *most,
                   *most == 1 ? "" : "s", *most == 1 ? "" : fmt::format(" to {}", *most - 1)))
             : Status();
}

// A job, and the script that says what it is, if one does.
struct Requested {
  v1::JobRequest job;
  std::optional<requests::BatchScript> script{};
};

Result<Requested> RequestedJob(const JobOptionValues& options,
                               const std::vector<std::string>& words) {
  Requested requested;
  v1::JobRequest& job = requested.job;
  if (!options.script.empty()) {
    ASSIGN_OR_RETURN(requested.script,
                     requests::BatchScript::Read(options.script, job, options.sbatch));
    RETURN_IF_ERROR(options.strict ? requested.script->CheckStrict() : Status());
  } else if (!options.file.empty()) {
    RETURN_IF_ERROR(requests::ReadJobFile(options.file, job));
  }
  RETURN_IF_ERROR(TakeOptions(options, job));
  if (requested.script) {
    requested.script->SetCommand(words, job);
    if (const Status complete = CompleteJob({}, job); !complete.ok()) {
      TellWarnings(*requested.script);  // a line that is not read may have what is missing
      return job.launch().has_batch()
                 ? complete.error()
                 : Error{.code = complete.error().code,
                         .message = fmt::format(
                             "{}. '{}' has no #SBATCH line at its head, so that it is a command "
                             "like others; 'sbatch {}' takes each script as Slurm does",
                             complete.error().message, options.script, options.script)};
    }
    return requested;
  }
  RETURN_IF_ERROR(CompleteJob(words, job));
  if (!job.array().empty() && options.input == v1::LaunchSpec::TERMINAL) {
    return InvalidArgument("--pty shows one job, and --array makes several; expected one of both");
  }
  RETURN_IF_ERROR(CheckRank(options.rank, job));
  // One input cannot be given to several.
  job.mutable_launch()->set_input(job.array().empty() ? options.input : v1::LaunchSpec::NOTHING);
  return requested;
}

Result<v1::JobRequest> RequestedApp(const SubmitOptions& options,
                                    const std::vector<std::string>& words,
                                    const requests::WorkloadApp& app) {
  v1::JobRequest job = app.request;
  RETURN_IF_ERROR(TakeOptions(options, job));
  RETURN_IF_ERROR(CompleteJob(words, job));
  RETURN_IF_ERROR(requests::FillPlaceholders(app.placeholders, *job.mutable_launch()));
  return job;
}

// What an accepted job may expect. Only a promise of the policy is one.
std::string Prospects(const v1::JobStatus& status) {
  if (status.promised()) {
    return ", will finish by " + LocalTime(status.deadline());
  }
  std::string text;
  if (status.has_expected_end()) {
    text = "; expected end " + LocalTime(status.expected_end());
  } else if (!status.reason().empty()) {
    text =
        fmt::format("; it is {}: {}", live::StateText(status.state()), Printable(status.reason()));
  }
  if (!status.has_deadline()) {
    return text;
  }
  const bool late = status.has_expected_end() && status.expected_end() > status.deadline();
  return text +
         (late ? ", after its deadline " : "; the policy promises nothing for its deadline ") +
         LocalTime(status.deadline());
}

Status ReportVerdict(const v1::JobStatus& status, bool json) {
  if (status.state() == v1::REJECTED) {
    return Failed(
        fmt::format("job {} declined: {}", status.job(),
                    status.reason().empty() ? "no reason given" : Printable(status.reason())));
  }
  if (status.state() == v1::CANCELLED) {
    return Failed(fmt::format("job {} was cancelled before it was judged", status.job()));
  }
  if (!json) {
    fmt::print(
        "job {} {}\n", status.job(),
        status.state() == v1::SUBMITTED ? "is not judged yet" : "accepted" + Prospects(status));
  }
  return {};
}

// How the job was read, and when it would start.
void PrintTest(const v1::SubmitReply& tested, const std::optional<requests::BatchScript>& script) {
  const v1::JobStatus& status = tested.status();
  const v1::JobRequest& job = status.request();
  const auto line = [](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      fmt::print("{:<10} {}\n", name, Printable(value));
    }
  };
  const auto or_any = [](const std::string& text) { return text.empty() ? "any" : text; };
  line("name", job.name());
  line("queue", job.queue());
  line("array", job.array());
  line("nodes", or_any(job.nodes()));
  line("tasks", std::to_string(SlurmTasks(status)));
  line("gpus", std::to_string(job.gpus()));
  line("gpu types", fmt::format("{}", fmt::join(job.gpu_types(), "|")));
  line("cpus", job.cpus());
  line("memory", job.memory());
  line("time", job.has_time_s() ? base::ShortDuration(job.time_s()) : "no limit");
  line("folder", job.launch().working_directory());
  line("output", script ? script->output() : "");
  line("starts", tested.has_starts() ? LocalTime(tested.starts()) : "not as far as is known");
  std::vector<std::string> nodes;
  for (const v1::NodeGrant& place : tested.places()) {
    nodes.push_back(place.node());
  }
  line("on", base::FoldNames(nodes));
  fmt::print("nothing has been submitted\n");
}

Status Submit(const SubmitOptions& options, const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  std::optional<requests::BatchScript> script;
  ASSIGN_OR_RETURN(const v1::SubmitReply submitted,
                   SendJob(options, words, options.wait, *client, &script));
  if (options.json) {
    PrintJson(submitted);
  } else if (options.test_only) {
    PrintTest(submitted, script);
  } else {
    fmt::print("job {} submitted{}\n", submitted.job(), submitted.status().held() ? ", held" : "");
    std::fflush(stdout);  // before what may be said on stderr
  }
  if (options.test_only) {
    return {};
  }
  const bool is_declined = submitted.status().state() == v1::REJECTED;
  return options.wait || is_declined ? ReportVerdict(submitted.status(), options.json) : Status();
}

// The file with the nodes of the controller; all its apps can be submitted as far as that can be
// said before.
Result<requests::WorkloadFile> CheckedWorkload(const SubmitOptions& options,
                                               const std::vector<std::string>& words,
                                               const v1::NodesReply& nodes) {
  ASSIGN_OR_RETURN(requests::WorkloadFile workload,
                   requests::ReadWorkloadFile(options.workload, options.cluster_xml, nodes));
  ReportReading(workload.trace);
  for (const requests::WorkloadApp& app : workload.apps) {
    RETURN_IF_ERROR(RequestedApp(options, words, app));
  }
  if (workload.states_addresses || !options.cluster_xml.empty()) {
    Tell(
        "masters and ports of the files are not used: Trainyard sets MASTER_ADDR and MASTER_PORT "
        "of each attempt itself");
  }
  return workload;
}

// Submits one app after the other, each when it arrives. Times are the scheduler's.
class WorkloadSubmission {
 public:
  WorkloadSubmission(const SubmitOptions& options, const std::vector<std::string>& words,
                     rpc::ClusterClient& client)
      : options_(options), words_(words), client_(client) {}

  // Ends with the first app that is refused.
  Status Submit(const requests::WorkloadFile& workload, double time_scale) {
    const daemon::LiveClock clock(daemon::LiveClock::UnixNow(), time_scale);
    for (const requests::WorkloadApp& app : workload.apps) {
      const std::string which = fmt::format("{} of {}", replies_.size() + 1, workload.apps.size());
      if (!options_.at_once) {
        AwaitArrival(app, which, clock);
      }
      if (Status submitted = SubmitApp(app, which); !submitted.ok()) {
        Tell(fmt::format("{} of {} apps are submitted", replies_.size(), workload.apps.size()));
        return submitted;
      }
    }
    return {};
  }
  [[nodiscard]] const std::vector<v1::SubmitReply>& replies() const { return replies_; }

 private:
  static void AwaitArrival(const requests::WorkloadApp& app, const std::string& which,
                           const daemon::LiveClock& clock) {
    const TimePoint arrival{app.arrival};
    if (const double wait = Seconds(arrival - clock.Now()); wait > 1) {
      Tell(fmt::format("app {}, {}, arrives in {}", which, Printable(app.request.name()),
                       base::ShortDuration(wait)));
    }
    std::this_thread::sleep_until(clock.RealTime(arrival));
  }

  Status SubmitApp(const requests::WorkloadApp& app, const std::string& which) {
    v1::ClientRequest request;
    v1::SubmitRequest& submit = *request.mutable_submit();
    ASSIGN_OR_RETURN(*submit.mutable_job(), RequestedApp(options_, words_, app));
    submit.set_client_token(fmt::format("{}-line{}", token_, app.line));
    const Result<v1::ClientReply> reply = client_.Call(request, kTimeout, kPatience);
    if (!reply.ok()) {  // what no controller would take is a mistake of the file
      return Error{
          .code = reply.error().code == ErrorCode::kInvalidArgument ? ErrorCode::kBadInput
                                                                    : ErrorCode::kFailed,
          .message = fmt::format("{}:{}: {}", options_.workload, app.line, reply.error().message)};
    }
    const v1::SubmitReply& submitted = reply.value().submit();
    for (const std::string& sentence : submitted.ignored()) {
      if (told_.insert(sentence).second) {
        Tell(Printable(sentence));
      }
    }
    replies_.push_back(submitted);
    if (!options_.json) {
      fmt::print("job {} submitted: {}, {} ({})\n", submitted.job(), Printable(submit.job().name()),
                 live::GpusText(submit.job().gpus()), which);
      std::fflush(stdout);
    }
    return {};
  }

  const SubmitOptions& options_;
  const std::vector<std::string>& words_;
  rpc::ClusterClient& client_;
  std::string token_ = options_.token.empty() ? RandomToken() : options_.token;
  std::set<std::string> told_;
  std::vector<v1::SubmitReply> replies_;
};

Status SubmitWorkload(const SubmitOptions& options, const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  v1::ClientRequest question;
  question.mutable_nodes();
  ASSIGN_OR_RETURN(const v1::ClientReply there, client->Call(question, kTimeout, kPatience));
  const v1::NodesReply& nodes = there.nodes();
  ASSIGN_OR_RETURN(const requests::WorkloadFile workload, CheckedWorkload(options, words, nodes));
  WorkloadSubmission submission(options, words, *client);
  Status status = submission.Submit(workload, nodes.time_scale() > 0 ? nodes.time_scale() : 1);
  if (options.json) {
    PrintJsonList(submission.replies());
  }
  return status;
}

}  // namespace

Result<v1::SubmitReply> SendJob(const JobOptionValues& options,
                                const std::vector<std::string>& words, bool wait,
                                rpc::ClusterClient& client,
                                std::optional<requests::BatchScript>* script) {
  v1::ClientRequest request;
  v1::SubmitRequest& submit = *request.mutable_submit();
  ASSIGN_OR_RETURN(Requested requested, RequestedJob(options, words));
  *submit.mutable_job() = std::move(requested.job);
  submit.set_client_token(options.token.empty() ? RandomToken() : options.token);
  submit.set_wait_for_verdict(wait);
  submit.set_test_only(options.test_only);
  Result<v1::ClientReply> called =
      client.Call(request, wait ? kVerdictTimeout : kTimeout, kPatience);
  if (requested.script) {
    TellWarnings(*requested.script);
  }
  if (!called.ok()) {
    return requested.script ? requested.script->AtLine(called.error(), KeysOf(options))
                            : called.error();
  }
  v1::ClientReply reply = std::move(called).value();
  for (const std::string& sentence : reply.submit().ignored()) {
    Tell(Printable(sentence));
  }
  if (script != nullptr) {
    *script = std::move(requested.script);
  }
  return std::move(*reply.mutable_submit());
}

void AddJobOptions(CLI::App& command, JobOptionValues& options) {
  for (const requests::JobOption& option : requests::JobOptions()) {
    const std::string name = requests::OptionName(option.key);
    const std::string help(option.help);
    if (option.type.empty()) {
      command.add_flag_callback(
          name, [&options, key = option.key] { options.settings.emplace_back(key, "true"); }, help);
      continue;
    }
    command
        .add_option_function<std::vector<std::string>>(
            name,
            [&options, key = option.key](const std::vector<std::string>& texts) {
              for (const std::string& text : texts) {
                options.settings.emplace_back(key, text);
              }
            },
            help)
        ->type_name(std::string(option.type))
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(option.key == "env" ? CLI::MultiOptionPolicy::TakeAll
                                                  : CLI::MultiOptionPolicy::Throw);
  }
  command.add_option("--file", options.file,
                     "JOB.toml or JOB.json with the same keys, '_' for '-', and 'command'; "
                     "options override it");
  command
      .add_option("--token", options.token,
                  "the same token gives the same job, however often it is sent")
      ->check(NotEmpty());
}

void AddSubmit(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SubmitOptions>();
  CLI::App* command = app.add_subcommand("submit", "give the cluster a job");
  command->footer(
      "The command follows the options: trainyard submit --gpus 2 -- PROGRAM [ARGUMENT...]\n"
      "A script with #SBATCH lines is submitted as it is: trainyard submit train.sh [-- "
      "ARGUMENT...]\n"
      "With --workload it may have {arch}, {depth}, {model}, {batch}, {workers}, {batch_per_gpu},\n"
      "{workers_per_gpu}, {world_size}, {end_iter}, {end_epoch}, {iterations}, {output} and\n"
      "{app}: what the file says of each app, and torchloader's folder for its output. {{ and }}\n"
      "are braces.\n");
  command->add_option(
      "SCRIPT", options->script,
      "script that begins with #!, with #SBATCH lines at its head; options override "
      "them");
  AddClusterOptions(*command, *options);
  AddJobOptions(*command, *options);
  command->get_option("--file")->excludes("SCRIPT");
  command->add_flag("--strict", options->strict, "refuse #SBATCH lines that have no effect here")
      ->needs("SCRIPT");
  command->add_flag("--wait", options->wait, "wait until the job is accepted or declined");
  command
      ->add_flag("--test-only", options->test_only,
                 "show how the job is read and when it would start, and submit nothing")
      ->excludes("--wait");
  command
      ->add_option("--workload", options->workload,
                   "torchloader workload: its apps are submitted, each at its arrival time from "
                   "now; options override what it says")
      ->type_name("FILE.csv")
      ->excludes("--file", "--wait", "--test-only", "SCRIPT");
  command
      ->add_option("--cluster-xml", options->cluster_xml,
                   "torchloader's dl_cluster_config.xml: which nodes its workers are (default: the "
                   "cluster's, in their order)")
      ->type_name("FILE.xml")
      ->needs("--workload");
  command->add_flag("--at-once", options->at_once, "do not wait for the arrival of the apps")
      ->needs("--workload");
  command->callback([options, &chosen] {
    chosen.run = [options, &chosen] {
      return options->workload.empty() ? Submit(*options, chosen.rest)
                                       : SubmitWorkload(*options, chosen.rest);
    };
  });
}

}  // namespace trainyard::cli
