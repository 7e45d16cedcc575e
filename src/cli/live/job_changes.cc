// SPDX-License-Identifier: Apache-2.0
// trainyard cancel, hold, release, requeue, update: what becomes of jobs that have been submitted.
#include "cli/live/job_changes.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/live/client_calls.h"
#include "cli/live/client_json.h"
#include "cli/live/job_selection.h"
#include "cli/live/status/array_lines.h"
#include "live/jobs/job_request.h"
#include "live/jobs/updatable_fields.h"
#include "requests/job_file.h"

namespace trainyard::cli {
namespace {

// Of update. --name and --queue select jobs.
std::string UpdateOption(const std::string& field) {
  return field == "name" || field == "queue" ? "--set-" + field : requests::OptionName(field);
}

struct ChangeOptions : ClusterOptions {
  const char* name = "";  // of the command
  const char* help = "";
  requests::JobSelection selection;
  bool hold = false;
  std::vector<std::pair<std::string, std::string>> values;  // of update
};

// Puts the call and gives its selection.
using PutCall = v1::Selection* (*)(const ChangeOptions& options, v1::ClientRequest& request);

v1::Selection* PutCancel(const ChangeOptions& /*options*/, v1::ClientRequest& request) {
  return request.mutable_cancel()->mutable_selection();
}
v1::Selection* PutHold(const ChangeOptions& options, v1::ClientRequest& request) {
  request.mutable_hold()->set_hold(options.hold);
  return request.mutable_hold()->mutable_selection();
}
v1::Selection* PutRequeue(const ChangeOptions& options, v1::ClientRequest& request) {
  request.mutable_requeue()->set_hold(options.hold);
  return request.mutable_requeue()->mutable_selection();
}
v1::Selection* PutUpdate(const ChangeOptions& options, v1::ClientRequest& request) {
  v1::UpdateRequest& update = *request.mutable_update();
  for (const auto& [key, text] : options.values) {
    update.add_fields(key);
    if (!text.empty()) {
      // It has been read before, without a mistake.
      static_cast<void>(requests::SetJobOption(key, text, *update.mutable_values()).ok());
    }
  }
  return update.mutable_selection();
}

// "; priority 0 -> 5, time 1h -> none": what an update has changed of the job.
std::string UpdatedText(const v1::JobStatus& job) {
  constexpr std::string_view kUpdated = "updated ";
  const auto value = [](const std::string& text) {
    return text.empty() ? std::string("none") : Printable(text);
  };
  std::string changes;
  for (const v1::JobEvent& event : job.history()) {
    if (event.what().starts_with(kUpdated)) {
      changes += fmt::format("{} {} {} -> {}", changes.empty() ? ";" : ",",
                             Printable(event.what().substr(kUpdated.size())), value(event.before()),
                             value(event.after()));
    }
  }
  return changes;
}

// By their numbers, tasks of an array by their indices. The controller has them as they left its
// queues.
std::vector<v1::JobStatus> InOrder(const v1::Changed& changed) {
  std::vector<v1::JobStatus> jobs(changed.jobs().begin(), changed.jobs().end());
  const auto key = [](const v1::JobStatus& job) {
    return job.has_array_job() ? std::pair(job.array_job(), job.array_index() + std::int64_t{1})
                               : std::pair(job.job(), std::int64_t{0});
  };
  std::stable_sort(
      jobs.begin(), jobs.end(),
      [&key](const v1::JobStatus& a, const v1::JobStatus& b) { return key(a) < key(b); });
  return jobs;
}

void PrintChanged(const std::vector<v1::JobStatus>& changed) {
  // Tasks of an array share a line only if the same has been changed of them.
  std::vector<std::pair<std::string, std::vector<const v1::JobStatus*>>> alike;
  std::map<std::string, std::size_t> places;
  for (const v1::JobStatus& job : changed) {
    const auto [at, is_new] = places.try_emplace(UpdatedText(job), alike.size());
    if (is_new) {
      alike.push_back({at->first, {}});
    }
    alike[at->second].second.push_back(&job);
  }
  for (const auto& [updated, jobs] : alike) {
    for (const JobLine& line : LinesOf(jobs)) {
      fmt::print("job {} is {}{}{}\n", TextOf(line), live::StateText(line.job->state()),
                 line.job->held() ? ", held" : "", updated);
    }
  }
}

Status ApplyTo(const ChangeOptions& options, PutCall put) {
  if (put == PutUpdate && options.values.empty()) {
    std::string expected;
    for (const live::UpdatableField& field : live::UpdatableFields()) {
      expected += (expected.empty() ? "" : " or ") + UpdateOption(std::string(field.name));
    }
    return InvalidArgument("nothing is to be updated; expected " + expected);
  }
  v1::ClientRequest request;
  ASSIGN_OR_RETURN(*put(options, request), requests::SelectionOf(options.selection));
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallTo(options, request));
  for (const std::string& sentence : reply.update().ignored()) {
    Tell(Printable(sentence));
  }
  const v1::Changed* const changed = live::ChangedOf(reply);
  if (changed == nullptr) {
    return Failed(
        "the controller's answer does not say what it has done; expected a controller of "
        "the same version");
  }
  const std::vector<v1::JobStatus> jobs = InOrder(*changed);
  if (options.json) {
    PrintJsonList(jobs);
  } else {
    PrintChanged(jobs);
  }
  return TellLeftOut(changed->left_out());
}

CLI::App* AddChange(CLI::App& app, Command& chosen, PutCall put,
                    const std::shared_ptr<ChangeOptions>& options) {
  CLI::App* command = app.add_subcommand(options->name, options->help);
  AddJobs(*command, options->selection);
  AddFilters(*command, options->selection);
  AddClusterOptions(*command, *options);
  command->callback(
      [options, &chosen, put] { chosen.run = [options, put] { return ApplyTo(*options, put); }; });
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
  AddChange(app, chosen, PutCancel, Named("cancel", "end jobs"));
}

void AddHold(CLI::App& app, Command& chosen) {
  const auto hold = Named("hold", "keep waiting jobs from starting; running ones go on");
  hold->hold = true;
  AddChange(app, chosen, PutHold, hold);
  AddChange(app, chosen, PutHold, Named("release", "let held jobs start again"));
}

void AddRequeue(CLI::App& app, Command& chosen) {
  const auto options = Named("requeue", "make running jobs give their GPUs back and wait again");
  AddChange(app, chosen, PutRequeue, options)
      ->add_flag("--hold", options->hold, "and keep them from starting until they are released");
}

void AddUpdate(CLI::App& app, Command& chosen) {
  const auto options =
      Named("update",
            "give jobs another time limit, begin, dependency, priority, name, queue, number of "
            "GPUs, or CPUs, memory, nodes and licences");
  CLI::App* command = AddChange(app, chosen, PutUpdate, options);
  for (const requests::JobOption& option : requests::JobOptions()) {
    const std::string key(option.key);
    if (live::UpdatableFieldOf(key) == nullptr) {
      continue;
    }
    if (option.type.empty()) {
      command
          ->add_option_function<bool>(
              UpdateOption(key),
              [options, key](bool flag) { options->values.emplace_back(key, flag ? "true" : ""); },
              std::string(option.help))
          ->type_name("true|false");
      continue;
    }
    command
        ->add_option_function<std::string>(
            UpdateOption(key),
            [options, key](const std::string& text) {
              v1::JobRequest checked;
              const Status status =
                  text.empty() ? Status() : requests::SetJobOption(key, text, checked);
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
