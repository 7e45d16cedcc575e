// SPDX-License-Identifier: Apache-2.0
#include "cli/live/status/array_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "cli/live/job_selection.h"
#include "live/jobs/job_request.h"
#include "model/conditions.h"

namespace trainyard::cli {
namespace {

bool HasGpus(const v1::JobStatus& job) {
  return job.state() == v1::STARTING || job.state() == v1::RUNNING || job.state() == v1::STOPPING ||
         job.grants_size() > 0;
}

// What a table may show of a task, and an update can change for some tasks of an array alone.
std::string ShownTerms(const v1::JobRequest& request) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", request.name(), request.queue(), request.gpus(),
                     request.has_time_s() ? request.time_s() : -1.0, request.launch().priority());
}

}  // namespace

std::vector<JobLine> LinesOf(const std::vector<const v1::JobStatus*>& jobs) {
  std::vector<JobLine> lines;
  std::map<std::tuple<std::uint64_t, v1::JobState, bool, int, std::string>, std::size_t> groups;
  for (const v1::JobStatus* const job : jobs) {
    if (!job->has_array_job()) {
      lines.push_back({.job = job, .tasks = {}});
      continue;
    }
    const int exit_code = live::HasEnded(job->state()) ? job->exit_code() : 0;
    const auto [at, is_new] = groups.try_emplace(
        {job->array_job(), job->state(), job->held(), exit_code, ShownTerms(job->request())},
        lines.size());
    if (is_new || HasGpus(*job)) {
      lines.push_back({.job = job, .tasks = {job->array_index()}});
    } else {
      lines[at->second].tasks.push_back(job->array_index());
    }
  }
  for (JobLine& line : lines) {
    std::sort(line.tasks.begin(), line.tasks.end());
  }
  return lines;
}

std::string TextOf(const JobLine& line) {
  if (line.tasks.size() < 2) {
    return JobText(*line.job);
  }
  std::string at_once;
  if (!live::HasEnded(line.job->state())) {
    const Result<model::ArrayTasks> array = model::ParseArray(line.job->request().array());
    at_once =
        array.ok() && array.value().at_once > 0 ? fmt::format("%{}", array.value().at_once) : "";
  }
  return fmt::format("{}_[{}{}]", line.job->array_job(), model::RangesText(line.tasks), at_once);
}

std::string ReasonOf(const JobLine& line) {
  std::string reason = line.job->reason();
  const std::string first = "'trainyard release " + JobText(*line.job) + "'";
  const std::size_t at = reason.find(first);
  if (line.tasks.size() > 1 && at != std::string::npos) {
    reason.replace(at, first.size(), fmt::format("'trainyard release {}'", line.job->array_job()));
  }
  return reason;
}

}  // namespace trainyard::cli
