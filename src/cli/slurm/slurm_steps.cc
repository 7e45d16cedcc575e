// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/slurm_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/live/client_calls.h"
#include "cli/slurm/slurm_facts.h"
#include "live/jobs/job_request.h"

namespace trainyard::cli {
namespace {

constexpr const char* kTerminated = "0:15";

bool Runs(const v1::JobStatus& job) {
  return job.state() == v1::RUNNING || job.state() == v1::STOPPING;
}

bool HasBeenStopped(const v1::JobStatus& job) {
  const std::string_view state = SlurmState(job);
  return state == "CANCELLED" || state == "TIMEOUT" || state == "NODE_FAIL";
}

SlurmStep BatchStepOf(const v1::JobStatus& job) {
  SlurmStep step{.id = "batch",
                 .name = "batch",
                 .state = std::string(SlurmState(job)),
                 .exit_code = SlurmExitCode(job),
                 .started = job.started()};
  if (!live::HasEnded(job.state())) {
    step.state = "RUNNING";
  } else if (HasBeenStopped(job)) {
    step.state = "CANCELLED";
    step.exit_code = kTerminated;
  }
  if (job.has_ended()) {
    step.ended = job.ended();
  }
  if (job.grants_size() > 0) {
    step.node_list = job.grants(0).node();
    step.cpus = SlurmCpusOn(job, step.node_list);
  } else {
    step.cpus = std::max(1, SlurmCpus(job) / SlurmNodeCount(job));
  }
  return step;
}

// One without an end has ended with its attempt, unless that runs still.
SlurmStep StartedStepOf(const v1::JobStatus& job, const v1::StepRecord& record) {
  SlurmStep step{.id = std::to_string(record.number()),
                 .name = Printable(record.name()),
                 .exit_code = SlurmExitText(record.exit_code()),
                 .started = record.started(),
                 .tasks = record.tasks(),
                 .cpus = record.cpus(),
                 .nodes = record.nodes(),
                 .node_list = Printable(record.node_list())};
  if (record.has_ended()) {
    const bool is_stopped = SignalOfExit(record.exit_code()) > 0 && HasBeenStopped(job);
    step.state = is_stopped ? "CANCELLED" : record.exit_code() == 0 ? "COMPLETED" : "FAILED";
    step.ended = record.ended();
  } else if (Runs(job)) {
    step.state = "RUNNING";
  } else {
    step.state = "CANCELLED";
    step.exit_code = kTerminated;
    step.ended = job.has_ended() ? job.ended() : record.started();
  }
  return step;
}

}  // namespace

std::vector<SlurmStep> SlurmStepsOf(const v1::JobStatus& job) {
  const v1::LaunchSpec& launch = job.request().launch();
  std::vector<SlurmStep> steps;
  if (!job.has_started() || !(Runs(job) || live::HasEnded(job.state())) || !launch.has_batch() ||
      launch.workers() != v1::LaunchSpec::ONCE) {
    return steps;
  }
  steps.push_back(BatchStepOf(job));
  for (const v1::StepRecord& record : job.steps()) {
    steps.push_back(StartedStepOf(job, record));
  }
  return steps;
}

int SignalOfExit(int code) {
  constexpr int kSignalled = 128;
  constexpr int kLastSignal = 64;
  return code > kSignalled && code <= kSignalled + kLastSignal ? code - kSignalled : 0;
}

std::string SlurmExitText(int code) {
  const int signal = SignalOfExit(code);
  return signal > 0 ? fmt::format("0:{}", signal) : fmt::format("{}:0", code);
}

}  // namespace trainyard::cli
