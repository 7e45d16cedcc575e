// SPDX-License-Identifier: Apache-2.0
#include "cli/live/job_selection.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <map>
#include <optional>

#include "base/name_list.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "model/conditions.h"

namespace trainyard::cli {
namespace {

// The tasks of the array.
Result<v1::JobsReply> TasksOf(rpc::ClusterClient& client, std::uint64_t array, bool live_only,
                              bool with_steps) {
  v1::ClientRequest request = JobsCall({}, live_only);
  request.mutable_jobs()->set_array_job(array);
  request.mutable_jobs()->set_steps(with_steps);
  ASSIGN_OR_RETURN(v1::ClientReply reply, CallForJobs(client, std::move(request)));
  return std::move(*reply.mutable_jobs());
}

Result<std::vector<v1::JobStatus>> SelectByNumber(rpc::ClusterClient& client,
                                                  const std::vector<std::string>& texts,
                                                  bool live_only, bool with_steps) {
  ASSIGN_OR_RETURN(const std::vector<std::uint64_t> numbers, JobNumbers(client, texts));
  v1::ClientRequest request = JobsCall(numbers, false);
  request.mutable_jobs()->set_steps(with_steps);
  ASSIGN_OR_RETURN(const v1::ClientReply reply, client.Call(request, kTimeout));
  std::vector<v1::JobStatus> jobs;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto known = std::find_if(
        reply.jobs().jobs().begin(), reply.jobs().jobs().end(),
        [number = numbers[i]](const v1::JobStatus& job) { return job.job() == number; });
    if (known == reply.jobs().jobs().end()) {
      jobs.emplace_back().set_job(numbers[i]);
    } else if (known->has_array_job() && known->array_job() == numbers[i] &&
               texts[i].find('_') == std::string::npos) {
      ASSIGN_OR_RETURN(const v1::JobsReply tasks,
                       TasksOf(client, numbers[i], live_only, with_steps));
      jobs.insert(jobs.end(), tasks.jobs().begin(), tasks.jobs().end());
    } else {
      jobs.push_back(*known);
    }
  }
  return jobs;
}

}  // namespace

CLI::Option* AddNames(CLI::App& command, const char* option, std::vector<std::string>& names,
                      const char* help) {
  return command.add_option_function<std::vector<std::string>>(
      option,
      [&names](const std::vector<std::string>& lists) {
        for (const std::string& list : lists) {
          const Result<std::vector<std::string>> all = base::ExpandNames(list);
          if (!all.ok()) {
            throw CLI::ValidationError(all.error().message);
          }
          names.insert(names.end(), all.value().begin(), all.value().end());
        }
      },
      help);
}

CLI::Option* AddJobs(CLI::App& command, requests::JobSelection& selection, const char* help) {
  return AddNames(command, "JOB", selection.jobs, help);
}

void AddFilters(CLI::App& command, requests::JobSelection& selection) {
  const auto add = [&command](const char* name, std::vector<std::string>& values,
                              const char* help) {
    command.add_option(name, values, help)->delimiter(',')->expected(1)->take_all();
  };
  add("--name", selection.names, "jobs with this name, or that fit a pattern such as 'bert-*'");
  add("--user", selection.users, "jobs of this user");
  add("--queue", selection.queues, "jobs of this queue");
  add("--state", selection.states, "jobs in this state: waiting, running, ...");
}

Status TellLeftOut(const google::protobuf::RepeatedPtrField<v1::LeftOut>& left_out) {
  Status first;
  for (const v1::LeftOut& left : left_out) {
    if (left.code() != 0 && first.ok()) {
      first = Failed(Printable(left.why()));
    } else if (left.code() != 0) {
      fmt::print(stderr, "{}\n", Printable(left.why()));
    } else {
      Tell(Printable(left.why()));
    }
  }
  return first;
}

std::string JobText(const v1::JobStatus& job) {
  return job.has_array_job() ? model::TextOf({.job = job.array_job(), .task = job.array_index()})
                             : model::TextOf({.job = job.job()});
}

Result<std::vector<std::uint64_t>> JobNumbers(rpc::ClusterClient& client,
                                              const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& text : texts) {  // before the controller is asked anything
    RETURN_IF_ERROR(requests::ReadJobNumber(text));
  }
  std::map<std::uint64_t, std::map<std::int64_t, std::uint64_t>> arrays;  // jobs by their index
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const model::JobNumber number, requests::ReadJobNumber(text));
    if (!number.task) {
      numbers.push_back(number.job);
      continue;
    }
    const auto [array, is_new] = arrays.try_emplace(number.job);
    if (is_new) {
      ASSIGN_OR_RETURN(const v1::JobsReply tasks, TasksOf(client, number.job, false, false));
      for (const v1::JobStatus& task : tasks.jobs()) {
        array->second.emplace(task.array_index(), task.job());
      }
    }
    const auto task = array->second.find(*number.task);
    if (task == array->second.end()) {
      return Failed(fmt::format("there is no task {}", text));
    }
    numbers.push_back(task->second);
  }
  return numbers;
}

Result<std::vector<v1::JobStatus>> SelectJobs(rpc::ClusterClient& client,
                                              const requests::JobSelection& selection,
                                              bool live_only, bool with_steps) {
  RETURN_IF_ERROR(requests::CheckOneOfBoth(selection));
  if (!selection.jobs.empty()) {
    return SelectByNumber(client, selection.jobs, live_only, with_steps);
  }
  ASSIGN_OR_RETURN(const v1::ClientRequest request, requests::FilterCall(selection, live_only));
  ASSIGN_OR_RETURN(const v1::ClientReply reply, CallForJobs(client, request));
  if (reply.jobs().jobs().empty()) {
    return Failed(live_only ? "no job that has not ended fits" : "no job fits");
  }
  return std::vector<v1::JobStatus>(reply.jobs().jobs().begin(), reply.jobs().jobs().end());
}

}  // namespace trainyard::cli
