// SPDX-License-Identifier: Apache-2.0
#include "daemon/live_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/try.h"
#include "daemon/clock.h"
#include "daemon/trace_requests.h"
#include "live/jobs/job_request.h"
#include "model/job_order.h"
#include "rpc/client.h"

namespace trainyard::daemon {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(10);
constexpr std::chrono::milliseconds kPause(200);

class Replay {
 public:
  Replay(const scenario::Inputs& inputs, const ReplayOptions& options)
      : inputs_(inputs),
        options_(options),
        client_(rpc::Connect(options.controller, [](const std::string& line) {
          std::fprintf(stderr, "trainyard: %s\n", line.c_str());
        })) {}

  Status CheckCluster();
  Status SubmitAll();
  Status AwaitAll(const scenario::RunRequest& request);
  void Collect(results::RunResult& run) const;

 private:
  [[nodiscard]] results::JobResult ResultOf(const JobSpec& spec, const v1::JobStatus& status) const;

  const scenario::Inputs& inputs_;
  const ReplayOptions& options_;
  std::unique_ptr<rpc::ClusterClient> client_;
  std::vector<std::uint64_t> numbers_;  // by row of the trace
  std::map<std::uint64_t, v1::JobStatus> statuses_;
  std::string policy_;
};

// "2 nodes with 8 GPUs, 1 node with 4 GPUs"; the most GPUs first.
std::string NodesText(const std::map<int, int, std::greater<>>& nodes) {
  const auto count = [](int number, const char* what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  std::string text;
  for (const auto& [gpus, number] : nodes) {
    text += (text.empty() ? "" : ", ") + count(number, "node") + " with " + count(gpus, "GPU");
  }
  return text;
}

// Times would be read by another scale than the cluster's, and what is written would be the result
// of another cluster. Nodes may have other names there.
Status Replay::CheckCluster() {
  v1::ClientRequest question;
  question.mutable_nodes();
  ASSIGN_OR_RETURN(const v1::ClientReply reply,
                   client_->Call(question, kTimeout, options_.patience));
  const v1::NodesReply& there = reply.nodes();
  if (there.time_scale() <= 0) {
    return Failed("the controller at " + options_.controller +
                  " does not say its time scale; expected a controller of the same version");
  }
  if (there.time_scale() != options_.time_scale) {
    return InvalidArgument(
        fmt::format("--time-scale is {}, and that of the controller at {} is {}; expected the same",
                    options_.time_scale, options_.controller, there.time_scale()));
  }
  std::map<int, int, std::greater<>> stated;
  std::map<int, int, std::greater<>> found;
  for (const NodeSpec& node : inputs_.cluster.nodes) {
    ++stated[node.gpus];
  }
  for (const v1::NodeStatus& node : there.nodes()) {
    ++found[node.gpus()];
  }
  return stated == found ? Status()
                         : Status(InvalidArgument(fmt::format(
                               "--cluster has {}, and that of the controller at {} {}; expected "
                               "the same",
                               NodesText(stated), options_.controller, NodesText(found))));
}

Status Replay::SubmitAll() {
  const std::vector<JobSpec>& jobs = *inputs_.jobs;
  numbers_.resize(jobs.size());
  const std::vector<std::uint32_t> order = model::SubmitOrder(jobs);
  std::random_device random;
  const std::string token = "replay-" + std::to_string(random()) + "-";
  const LiveClock clock(LiveClock::UnixNow(), options_.time_scale);
  const Duration first =
      order.empty() ? Duration{0} : jobs[order.front()].known_from().time_since_epoch();
  const TraceRequests requests(jobs, inputs_.cluster, options_.command);
  for (const std::size_t row : order) {
    if (requests.CountOf(row) == 0) {
      continue;
    }
    std::this_thread::sleep_until(clock.RealTime(jobs[row].known_from() - first));
    v1::ClientRequest request;
    *request.mutable_submit()->mutable_job() = requests.Of(row, numbers_);
    request.mutable_submit()->set_client_token(token + std::to_string(row));
    const Result<v1::ClientReply> reply = client_->Call(request, kTimeout, options_.patience);
    if (!reply.ok()) {  // what no controller would take is a mistake of the trace
      return Error{.code = reply.error().code == ErrorCode::kInvalidArgument ? ErrorCode::kBadInput
                                                                             : ErrorCode::kFailed,
                   .message = "job " + jobs[row].name + ": " + reply.error().message};
    }
    for (std::size_t i = 0; i < requests.CountOf(row); ++i) {
      numbers_[row + i] = reply.value().submit().job() + i;
    }
  }
  return {};
}

Status Replay::AwaitAll(const scenario::RunRequest& request) {
  while (statuses_.size() < numbers_.size()) {
    v1::ClientRequest question;
    for (const std::uint64_t number : numbers_) {
      if (!statuses_.contains(number)) {
        question.mutable_jobs()->add_jobs(number);
      }
    }
    ASSIGN_OR_RETURN(const v1::ClientReply reply,
                     client_->Call(question, kTimeout, options_.patience));
    if (const auto& unknown = reply.jobs().unknown(); !unknown.empty()) {
      return Failed("there is no job " + std::to_string(unknown.Get(0)) + " any more");
    }
    for (const v1::JobStatus& status : reply.jobs().jobs()) {
      if (live::HasEnded(status.state())) {
        statuses_[status.job()] = status;
      }
    }
    if (request.on_progress) {
      request.on_progress(statuses_.size(), numbers_.size());
    }
    if (statuses_.size() < numbers_.size()) {
      std::this_thread::sleep_for(kPause);
    }
  }
  v1::ClientRequest question;
  question.mutable_nodes();
  if (const auto reply = client_->Call(question, kTimeout, options_.patience); reply.ok()) {
    policy_ = reply.value().nodes().policy();
  }
  return {};
}

results::JobResult Replay::ResultOf(const JobSpec& spec, const v1::JobStatus& status) const {
  const auto after_submit = [&](double unix_seconds) {
    return spec.submit + FromSeconds((unix_seconds - status.submitted()) * options_.time_scale);
  };
  results::JobResult result{.spec = &spec};
  switch (status.state()) {
    case v1::COMPLETED:
      result.outcome = results::Outcome::kCompleted;
      break;
    case v1::REJECTED:
      result.outcome = results::Outcome::kRejected;
      break;
    case v1::CANCELLED:
      result.outcome = results::Outcome::kCancelled;
      break;
    default:
      result.outcome = results::Outcome::kFailed;
      break;
  }
  if (status.has_started()) {
    result.start = after_submit(status.started());
  }
  if (result.outcome == results::Outcome::kCompleted) {
    result.end = after_submit(status.ended());
    result.logged = result.end;
  }
  result.waited = FromSeconds(status.waited_s());
  result.productive = FromSeconds(status.productive_s());
  result.overhead = FromSeconds(status.overhead_s());
  result.attained_service = status.attained_service();
  result.useful_service = status.useful_service();
  result.preemptions = status.preemptions();
  result.migrations = status.migrations();
  result.resizes = status.resizes();
  return result;
}

void Replay::Collect(results::RunResult& run) const {
  run.policy = policy_;
  run.jobs_of_trace = inputs_.jobs;
  for (std::size_t row = 0; row < numbers_.size(); ++row) {
    run.jobs.push_back(ResultOf((*inputs_.jobs)[row], statuses_.at(numbers_[row])));
  }
}

}  // namespace

Result<results::RunResult> ReplayOnCluster(const scenario::Inputs& inputs,
                                           const scenario::RunRequest& request,
                                           const ReplayOptions& options) {
  Replay replay(inputs, options);
  RETURN_IF_ERROR(replay.CheckCluster());
  RETURN_IF_ERROR(replay.SubmitAll());
  RETURN_IF_ERROR(replay.AwaitAll(request));
  results::RunResult run;
  replay.Collect(run);
  run.label = request.label.empty() ? run.policy : request.label;
  run.trace_path = inputs.paths.trace;
  run.trace_sha256 = inputs.trace->sha256;
  run.cluster_name = inputs.cluster.name;
  run.nodes = static_cast<std::int64_t>(inputs.cluster.nodes.size());
  run.gpus = inputs.cluster.total_gpus();
  return run;
}

}  // namespace trainyard::daemon
