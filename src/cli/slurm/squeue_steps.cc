// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/squeue_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/try.h"
#include "cli/live/client_calls.h"
#include "cli/live/job_selection.h"
#include "cli/live/status/array_lines.h"
#include "cli/slurm/output_format.h"
#include "cli/slurm/slurm_commands.h"
#include "cli/slurm/slurm_facts.h"
#include "cli/slurm/slurm_filter.h"
#include "cli/slurm/slurm_steps.h"
#include "requests/job_selection.h"

namespace trainyard::cli {
namespace {

constexpr const char* kPlainFormat = "%.15i %.8j %.9P %.8u %.9M %N";

struct QueuedStep {
  const v1::JobStatus* job = nullptr;
  std::string partition;
  SlurmStep step;
  double now = 0;

  [[nodiscard]] std::string id() const {
    const JobLine line{.job = job,
                       .tasks = job->has_array_job() ? std::vector<std::int64_t>{job->array_index()}
                                                     : std::vector<std::int64_t>()};
    return TextOf(line) + "." + step.id;
  }
};

// By job; those of one by number, and its script behind them, as there.
double PlaceOf(const QueuedStep& row) {
  constexpr double kStepsOfJob = 1e6;
  const auto number = base::ToInteger<int>(row.step.id);
  return static_cast<double>(row.job->job()) * kStepsOfJob + number.value_or(kStepsOfJob - 1);
}

constexpr std::array kStepFields{
    OutputField<QueuedStep>{'A', "numtasks", "TASKS",
                            [](const QueuedStep& row) { return std::to_string(row.step.tasks); },
                            [](const QueuedStep& row) -> double { return row.step.tasks; }},
    OutputField<QueuedStep>{'b', "tres-per-step", "TRES_PER_NODE",
                            [](const QueuedStep& /*row*/) { return std::string("(null)"); }},
    OutputField<QueuedStep>{'i', "stepid", "STEPID", [](const QueuedStep& row) { return row.id(); },
                            PlaceOf},
    OutputField<QueuedStep>{0, "jobid", "JOB_ID",
                            [](const QueuedStep& row) { return std::to_string(row.job->job()); },
                            PlaceOf},
    OutputField<QueuedStep>{'j', "stepname", "NAME",
                            [](const QueuedStep& row) { return row.step.name; }},
    OutputField<QueuedStep>{'l', "timelimit", "TIME_LIMIT",
                            [](const QueuedStep& /*row*/) { return std::string("UNLIMITED"); }},
    OutputField<QueuedStep>{
        'M', "timeused", "TIME",
        [](const QueuedStep& row) { return SlurmSpan(row.step.ElapsedAt(row.now)); },
        [](const QueuedStep& row) { return row.step.ElapsedAt(row.now); }},
    OutputField<QueuedStep>{'N', "nodelist", "NODELIST",
                            [](const QueuedStep& row) { return row.step.node_list; }},
    OutputField<QueuedStep>{'P', "partition", "PARTITION",
                            [](const QueuedStep& row) { return Printable(row.partition); }},
    OutputField<QueuedStep>{'S', "starttime", "START_TIME",
                            [](const QueuedStep& row) { return SlurmStamp(row.step.started); },
                            [](const QueuedStep& row) { return row.step.started; }},
    OutputField<QueuedStep>{0, "stepstate", "STATE",
                            [](const QueuedStep& row) { return row.step.state; }},
    OutputField<QueuedStep>{
        'u', "username", "USER",
        [](const QueuedStep& row) { return Printable(row.job->request().user()); }},
};
constexpr std::span<const OutputField<QueuedStep>> kOfSteps{kStepFields};

Result<std::vector<OutputColumn<QueuedStep>>> ColumnsOfSteps(const SlurmWords& words) {
  if (const std::optional<std::string> names = words.Value("Format")) {
    return ColumnsOfNames(*names, kOfSteps, "job step");
  }
  return ColumnsOfFormat(words.Value("format").value_or(kPlainFormat), kOfSteps, "job step");
}

// "12.0", "12_3.batch" of --steps, or of the words behind the options, as there.
Result<std::vector<std::string>> NamedSteps(const SlurmWords& words) {
  std::vector<std::string> named = words.Items("steps");
  for (const std::string& word : words.rest) {
    for (const std::string_view item : base::Split(word, ",")) {
      named.emplace_back(item);
    }
  }
  std::erase(named, "");
  for (const std::string& name : named) {
    const std::size_t point = name.find('.');
    if (point == std::string::npos || !requests::ReadJobNumber(name.substr(0, point)).ok()) {
      return InvalidArgument(
          fmt::format("Invalid job_step id: {}; expected JOB.STEP, such as 12.0", name));
    }
  }
  return named;
}

Result<v1::JobsReply> JobsWithSteps(const SlurmWords& words, rpc::ClusterClient& client) {
  v1::JobsReply jobs;
  if (const std::vector<std::string> ids = words.Items("jobs"); !ids.empty()) {
    ASSIGN_OR_RETURN(const std::vector<v1::JobStatus> of_ids, JobsOfIds(client, ids, true));
    jobs.mutable_jobs()->Assign(of_ids.begin(), of_ids.end());
    jobs.set_now(static_cast<double>(std::time(nullptr)));
    return jobs;
  }
  v1::ClientRequest request = JobsCall({}, true);
  request.mutable_jobs()->set_steps(true);
  ASSIGN_OR_RETURN(v1::ClientReply reply, CallForJobs(client, std::move(request)));
  return std::move(*reply.mutable_jobs());
}

}  // namespace

Status ShowQueueOfSteps(const SlurmWords& words, rpc::ClusterClient& client) {
  ASSIGN_OR_RETURN(const SlurmFilter filter, SlurmFilter::Of("squeue", words));
  ASSIGN_OR_RETURN(const std::vector<OutputColumn<QueuedStep>> columns, ColumnsOfSteps(words));
  ASSIGN_OR_RETURN(const std::vector<std::string> named, NamedSteps(words));
  ASSIGN_OR_RETURN(const v1::JobsReply reply, JobsWithSteps(words, client));
  ASSIGN_OR_RETURN(const v1::NodesReply nodes, NodesOf(client));
  const std::string unnamed = DefaultPartition(nodes);
  std::vector<QueuedStep> rows;
  for (const v1::JobStatus& job : reply.jobs()) {
    const std::string& partition = PartitionOf(job, unnamed);
    if (!filter.Fits(job, partition)) {
      continue;
    }
    for (SlurmStep& step : SlurmStepsOf(job)) {
      QueuedStep row{
          .job = &job, .partition = partition, .step = std::move(step), .now = reply.now()};
      if (row.step.state == "RUNNING" &&
          (named.empty() || std::find(named.begin(), named.end(), row.id()) != named.end())) {
        rows.push_back(std::move(row));
      }
    }
  }
  RETURN_IF_ERROR(SortRows(rows, words.Value("sort").value_or("i"), kOfSteps));
  PrintRows<QueuedStep>(words, columns, rows);
  return {};
}

}  // namespace trainyard::cli
