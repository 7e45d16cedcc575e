// SPDX-License-Identifier: Apache-2.0
#include "trace/terms.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "model/conditions.h"
#include "model/job_fields.h"

namespace trainyard::trace {
namespace {

const JobTraits& TraitsOf(const JobSpec& job) { return model::PartOf<JobTraits>(job); }

bool HasTerms(const JobSpec& job) {
  return job.traits && (!job.traits->array.empty() || !job.traits->dependency.empty());
}

// How a dependency of the engine names the job, and from when on it is there.
struct Target {
  std::string number;
  std::size_t row = 0;
};

// The rows of one trace, expanded.
class Terms {
 public:
  explicit Terms(Trace& trace) : trace_(trace) {}

  Status Resolve() {
    for (std::size_t i = 0; i < trace_.jobs.size(); ++i) {
      RETURN_IF_ERROR(Add(i));
    }
    for (std::size_t row = 0; row < jobs_.size(); ++row) {
      RETURN_IF_ERROR(ResolveDependency(row));
    }
    trace_.jobs = std::move(jobs_);
    trace_.lines = std::move(lines_);
    if (!trace_.waits.empty()) {
      trace_.waits = std::move(waits_);
    }
    return {};
  }

 private:
  [[nodiscard]] Error BadAt(std::int64_t line, const std::string& what) const {
    return BadInput(trace_.path + ":" + std::to_string(line) + ": " + what);
  }

  Status Add(std::size_t at) {
    JobSpec& job = trace_.jobs[at];
    const std::string number = std::to_string(jobs_.size() + 1);
    targets_[job.name] = {number, jobs_.size()};
    if (TraitsOf(job).array.empty()) {
      AddRow(at, job.name);
      return {};
    }
    const Result<model::ArrayTasks> tasks = model::ParseArray(job.traits->array);
    if (!tasks.ok()) {
      return BadAt(trace_.lines[at], tasks.error().message);
    }
    for (const std::int64_t index : tasks.value().indices) {
      const std::string suffix = "_" + std::to_string(index);
      targets_[job.name + suffix] = {number + suffix, jobs_.size()};
      AddRow(at, job.name + suffix);
    }
    return {};
  }

  void AddRow(std::size_t at, const std::string& name) {
    jobs_.push_back(trace_.jobs[at]);
    jobs_.back().name = name;
    lines_.push_back(trace_.lines[at]);
    if (!trace_.waits.empty()) {
      waits_.push_back(trace_.waits[at]);
    }
  }

  Status ResolveDependency(std::size_t row) {
    JobSpec& job = jobs_[row];
    if (TraitsOf(job).dependency.empty()) {
      return {};
    }
    if (row > 0 && lines_[row - 1] == lines_[row]) {  // tasks of one array
      job.traits = jobs_[row - 1].traits;
      return {};
    }
    Result<model::Dependency> dependency = model::ParseDependency(job.traits->dependency);
    if (!dependency.ok()) {
      return BadAt(lines_[row], dependency.error().message);
    }
    for (model::Condition& condition : dependency.value().conditions) {
      for (std::string& name : condition.jobs) {
        const auto target = targets_.find(name);
        if (target == targets_.end() || !IsEarlier(target->second.row, row)) {
          return BadAt(lines_[row], "dependency '" + job.traits->dependency + "' names job '" +
                                        name + "'; expected a job that is submitted earlier");
        }
        name = target->second.number;
      }
    }
    auto traits = std::make_shared<JobTraits>(*job.traits);
    traits->dependency = model::TextOf(dependency.value());
    job.traits = std::move(traits);
    return {};
  }

  [[nodiscard]] bool IsEarlier(std::size_t a, std::size_t b) const {
    return std::pair(jobs_[a].known_from(), a) < std::pair(jobs_[b].known_from(), b);
  }

  Trace& trace_;
  std::map<std::string, Target> targets_;  // of a name that is there twice: the last
  std::vector<JobSpec> jobs_;
  std::vector<std::int64_t> lines_;
  std::vector<std::optional<Duration>> waits_;
};

}  // namespace

Status ResolveTerms(Trace& trace) {
  return std::none_of(trace.jobs.begin(), trace.jobs.end(), HasTerms) ? Status()
                                                                      : Terms(trace).Resolve();
}

}  // namespace trainyard::trace
