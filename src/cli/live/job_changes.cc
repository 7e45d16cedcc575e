// SPDX-License-Identifier: Apache-2.0
// trainyard cancel, hold, release, requeue, update: what becomes of jobs that have been submitted.
#include "cli/live/job_changes.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/each_item.h"
#include "cli/live/job_file.h"
#include "cli/live/job_selection.h"

namespace trainyard::cli {
namespace {

struct ChangeOptions : ClusterOptions {
  const char* name = "";  // of the command
  const char* help = "";
  JobSelection selection;
  bool hold = false;
  std::vector<std::pair<std::string, std::string>> values;  // of update
};

// Which call it is, and the status in its answer.
struct JobChange {
  void (*put)(const ChangeOptions& options, std::uint64_t job, v1::ClientRequest& request);
  const v1::JobStatus& (*status)(const v1::ClientReply& reply);
  // Of the jobs that a filter or the number of an array stands for: those that are meant.
  bool (*is_meant)(const ChangeOptions& options, const v1::JobStatus& job);
};

bool IsAny(const ChangeOptions& /*options*/, const v1::JobStatus& /*job*/) { return true; }
bool IsHeldOrNot(const ChangeOptions& options, const v1::JobStatus& job) {
  return job.held() != options.hold &&
         (!options.hold || job.state() == v1::WAITING || job.state() == v1::SUBMITTED);
}
bool HoldsGpus(const ChangeOptions& /*options*/, const v1::JobStatus& job) {
  return job.state() == v1::RUNNING || job.state() == v1::STARTING;
}

void PutCancel(const ChangeOptions& /*options*/, std::uint64_t job, v1::ClientRequest& request) {
  request.mutable_cancel()->set_job(job);
}
void PutHold(const ChangeOptions& options, std::uint64_t job, v1::ClientRequest& request) {
  request.mutable_hold()->set_job(job);
  request.mutable_hold()->set_hold(options.hold);
}
void PutRequeue(const ChangeOptions& options, std::uint64_t job, v1::ClientRequest& request) {
  request.mutable_requeue()->set_job(job);
  request.mutable_requeue()->set_hold(options.hold);
}
void PutUpdate(const ChangeOptions& options, std::uint64_t job, v1::ClientRequest& request) {
  v1::UpdateRequest& update = *request.mutable_update();
  update.set_job(job);
  for (const auto& [key, text] : options.values) {
    update.add_fields(key);
    if (!text.empty()) {
      // It has been read before, without a mistake.
      static_cast<void>(SetJobOption(key, text, *update.mutable_values()).ok());
    }
  }
}

constexpr JobChange kCancel{
    PutCancel,
    [](const v1::ClientReply& reply) -> const v1::JobStatus& { return reply.cancel().status(); },
    IsAny};
constexpr JobChange kHold{
    PutHold,
    [](const v1::ClientReply& reply) -> const v1::JobStatus& { return reply.hold().status(); },
    IsHeldOrNot};
constexpr JobChange kRequeue{
    PutRequeue,
    [](const v1::ClientReply& reply) -> const v1::JobStatus& { return reply.requeue().status(); },
    HoldsGpus};
constexpr JobChange kUpdate{
    PutUpdate,
    [](const v1::ClientReply& reply) -> const v1::JobStatus& { return reply.update().status(); },
    IsAny};

Status ApplyTo(const ChangeOptions& options, const JobChange& change) {
  if (change.put == PutUpdate && options.values.empty()) {
    return InvalidArgument(
        "nothing is to be updated; expected --time, --begin, --dependency, --priority, --set-name, "
        "--set-queue or --gpus");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<rpc::ClusterClient> client, ConnectTo(options));
  ASSIGN_OR_RETURN(std::vector<v1::JobStatus> jobs, SelectJobs(*client, options.selection, true));
  if (jobs.size() != options.selection.jobs.size()) {
    std::erase_if(jobs, [&](const v1::JobStatus& job) { return !change.is_meant(options, job); });
  }
  std::set<std::string> told;
  return ForEach(
      *client, options.json, jobs,
      [&](const v1::JobStatus& job) {
        v1::ClientRequest request;
        change.put(options, job.job(), request);
        return request;
      },
      [&](const v1::ClientReply& reply) {
        const v1::JobStatus& status = change.status(reply);
        for (const std::string& sentence : reply.update().ignored()) {
          if (told.insert(sentence).second) {
            Tell(Printable(sentence));
          }
        }
        if (!options.json) {
          fmt::print("job {} is {}{}\n", JobText(status), live::StateText(status.state()),
                     status.held() ? ", held" : "");
        }
        return status;
      });
}

CLI::App* AddChange(CLI::App& app, Command& chosen, const JobChange& change,
                    const std::shared_ptr<ChangeOptions>& options) {
  CLI::App* command = app.add_subcommand(options->name, options->help);
  command->add_option("JOB", options->selection.jobs,
                      "ids of jobs; ARRAY_INDEX is a task of an array, ARRAY all its tasks");
  AddFilters(*command, options->selection);
  AddClusterOptions(*command, *options);
  command->callback([options, &chosen, &change] {
    chosen.run = [options, &change] { return ApplyTo(*options, change); };
  });
  return command;
}

std::shared_ptr<ChangeOptions> Named(const char* name, const char* help) {
  auto options = std::make_shared<ChangeOptions>();
  options->name = name;
  options->help = help;
  return options;
}

}  // namespace

void AddCancel(CLI::App& app, Command& chosen) {
  AddChange(app, chosen, kCancel, Named("cancel", "end jobs"));
}

void AddHold(CLI::App& app, Command& chosen) {
  const auto hold = Named("hold", "keep waiting jobs from starting");
  hold->hold = true;
  AddChange(app, chosen, kHold, hold);
  AddChange(app, chosen, kHold, Named("release", "let held jobs start again"));
}

void AddRequeue(CLI::App& app, Command& chosen) {
  const auto options = Named("requeue", "make running jobs give their GPUs back and wait again");
  AddChange(app, chosen, kRequeue, options)
      ->add_flag("--hold", options->hold, "and keep them from starting until they are released");
}

void AddUpdate(CLI::App& app, Command& chosen) {
  const auto options =
      Named("update",
            "give jobs another time limit, begin, dependency, priority, name, queue or "
            "number of GPUs");
  CLI::App* command = AddChange(app, chosen, kUpdate, options);
  for (const JobOption& option : JobOptions()) {
    const std::string key(option.key);
    constexpr std::array<std::string_view, 7> kKeys{"time", "begin", "dependency", "priority",
                                                    "name", "queue", "gpus"};
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      continue;
    }
    const bool is_filter = key == "name" || key == "queue";  // these select jobs
    command
        ->add_option_function<std::string>(
            is_filter ? "--set-" + key : OptionName(key),
            [options, key](const std::string& text) {
              v1::JobRequest checked;
              const Status status = text.empty() ? Status() : SetJobOption(key, text, checked);
              if (!status.ok()) {
                throw CLI::ValidationError(status.error().message);
              }
              options->values.emplace_back(key, text);
            },
            std::string(option.help) + (key == "gpus"   ? "; of jobs that wait"
                                        : key == "name" ? ""
                                                        : "; empty: none"))
        ->type_name(std::string(option.type));
  }
}

}  // namespace trainyard::cli
