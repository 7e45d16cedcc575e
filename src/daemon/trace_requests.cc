// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace_requests.h"

#include "base/check.h"
#include "live/jobs/job_request.h"
#include "model/conditions.h"

namespace trainyard::daemon {
namespace {

// Rows become the controller's numbers.
std::string WithNumbers(const std::string& text, std::span<const std::uint64_t> numbers) {
  Result<model::Dependency> dependency = model::ParseDependency(text);
  CHECK(dependency.ok());
  for (model::Condition& condition : dependency.value().conditions) {
    for (std::string& job : condition.jobs) {
      const std::optional<model::JobNumber> row = model::ParseJobNumber(job);
      CHECK(row && row->job <= numbers.size());
      job = std::to_string(numbers[row->job - 1]) +
            (row->task ? "_" + std::to_string(*row->task) : "");
    }
  }
  return model::TextOf(dependency.value());
}

}  // namespace

TraceRequests::TraceRequests(std::span<const JobSpec> jobs, const Cluster& cluster,
                             std::span<const std::string> command)
    : jobs_(jobs), cluster_(cluster), command_(command), counts_(jobs.size(), 0) {
  for (std::size_t row = 0; row < jobs.size(); row += counts_[row]) {
    counts_[row] = static_cast<std::uint32_t>(model::CountOf(jobs[row]));
  }
}

v1::JobRequest TraceRequests::Of(std::size_t row, std::span<const std::uint64_t> numbers) const {
  v1::JobRequest request = live::RequestOf(jobs_[row], cluster_, command_);
  if (!request.dependency().empty()) {
    request.set_dependency(WithNumbers(request.dependency(), numbers));
  }
  if (!request.array().empty()) {  // the row has the name of the first task
    const Result<model::ArrayTasks> tasks = model::ParseArray(request.array());
    CHECK(tasks.ok());
    const std::string suffix = "_" + std::to_string(tasks.value().indices.front());
    request.set_name(request.name().substr(0, request.name().size() - suffix.size()));
  }
  if (request.begin_s() <= 0) {
    request.clear_begin_s();
  }
  return request;
}

}  // namespace trainyard::daemon
