// SPDX-License-Identifier: Apache-2.0
// What clients are told of jobs and nodes: their state, and why jobs wait.
#include <algorithm>

#include "live/live_world.h"

namespace trainyard {
namespace {

// "n0, n3, n5 and 4 more"
std::string Few(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (text.empty() ? "" : ", ") + names[i];
  }
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more"
                              : text;
}

}  // namespace

v1::JobState LiveWorld::StateOf(JobId id) const {
  const LiveJob& job = jobs_[Index(id)];
  const bool starting =
      !job.attempts.empty() && !job.attempts.back().stopping &&
      std::any_of(job.attempts.back().parts.begin(), job.attempts.back().parts.end(),
                  [](const Part& part) {
                    return part.state == PartState::kQueued || part.state == PartState::kSent;
                  });
  switch (engine_.records()[Index(id)].phase.get()) {
    case JobPhase::kUnknown:
    case JobPhase::kArrived:
      return v1::SUBMITTED;
    case JobPhase::kWaiting:
      return job.attempts.empty() ? v1::WAITING : v1::STOPPING;
    case JobPhase::kRunning:
      if (holding_.contains(id)) {
        return job.attempts.empty() ? v1::WAITING : v1::STOPPING;
      }
      return starting ? v1::STARTING : v1::RUNNING;
    case JobPhase::kCompleted:
      return v1::COMPLETED;
    case JobPhase::kRejected:
      return v1::REJECTED;
    case JobPhase::kCancelled:
      return v1::CANCELLED;
    case JobPhase::kFailed:
      return v1::FAILED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

// Where the policy serves in strict order: what the first that waits is waiting for.
std::string LiveWorld::WhyItWaits(JobId id) const {
  const Blocked* const blocked = engine_.blocked(id);
  const bool behind = blocked != nullptr && blocked->reason == WaitReason::kBehindHead &&
                      !holding_.contains(id) && failures_.WhyHeld(id).empty();
  if (!behind) {
    return WhyItself(id);
  }
  const auto all = engine_.blocked();
  const auto head = std::find_if(all.begin(), all.end(), [](const Blocked& other) {
    return other.reason != WaitReason::kBehindHead;
  });
  return head == all.end()
             ? "behind an earlier job"
             : "behind job " + std::to_string(NumberOf(head->first)) + ", which asks for " +
                   GpusText(head->gpus) + ": " + WhyItself(head->first);
}

std::string LiveWorld::WhyItself(JobId id) const {
  const JobRecord& record = engine_.records()[Index(id)];
  if (holding_.contains(id)) {
    return "holds " + std::to_string(record.grant.gpus) + " of " +
           std::to_string(record.spec->gpus) + " GPUs until it has them all";
  }
  if (const std::string held = failures_.WhyHeld(id); !held.empty()) {
    return held + (failures_.HasNoNodeLeft(id) ? NodesAway(*record.spec) : "");
  }
  const Blocked* const blocked = engine_.blocked(id);
  const std::string why =
      blocked == nullptr
          ? "policy '" + options_.policy + "' gives it no GPUs at present" + NodesAway(*record.spec)
          : WhyBlocked(id, *blocked);
  const std::string avoids = failures_.WhyAvoids(id);
  return why + (avoids.empty() ? "" : "; ") + avoids;
}

std::string LiveWorld::WhyBlocked(JobId id, const Blocked& blocked) const {
  const JobSpec& spec = *engine_.records()[Index(id)].spec;
  switch (blocked.reason) {
    case WaitReason::kGpus:
      return "not enough free GPUs" + NodesAway(spec);
    case WaitReason::kLocality:
      return "no place for " + GpusText(spec.gpus) + " together" + NodesAway(spec);
    case WaitReason::kBehindHead:
      return "behind an earlier job";
    case WaitReason::kNever:
      return "does not fit into the cluster" + NodesAway(spec);
  }
  return {};
}

// "; drained: n0; down: n2, n3": those nodes that would else be the job's, too.
std::string LiveWorld::NodesAway(const JobSpec& job) const {
  std::vector<std::string> drained;
  std::vector<std::string> down;
  const auto is_for = [&job](const NodeSpec& node) {
    return !job.traits || job.traits->gpu_types.empty() ||
           std::find(job.traits->gpu_types.begin(), job.traits->gpu_types.end(), node.gpu_type) !=
               job.traits->gpu_types.end();
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if ((nodes_[i].drained || !nodes_[i].alive) && is_for(cluster_.nodes[i])) {
      (nodes_[i].drained ? drained : down).push_back(cluster_.nodes[i].name);
    }
  }
  return (drained.empty() ? "" : "; drained: " + Few(drained)) +
         (down.empty() ? "" : "; down: " + Few(down));
}

// Why a job with GPUs does not run on them, or may not run any more; empty: nothing is known.
std::string LiveWorld::WhyItHangs(const LiveJob& job) const {
  if (job.attempts.empty()) {
    return {};
  }
  std::vector<std::string> silent;
  for (const Part& part : job.attempts.back().parts) {
    if (part.state != PartState::kExited && IsSilent(nodes_[Index(part.node)])) {
      silent.push_back(cluster_.nodes[Index(part.node)].name);
    }
  }
  if (!silent.empty()) {
    return "no word from " + Few(silent);
  }
  return job.attempts.size() > 1 ? "its earlier workers have not left yet" : "";
}

// Up as long as its lease runs, but nobody hears of it.
bool LiveWorld::IsSilent(const Node& node) const {
  return node.alive && (!node.connection || now_ - node.heard > Scaled(2 * options_.heartbeat));
}

std::string LiveWorld::ReasonOf(JobId id, v1::JobState state) const {
  const LiveJob& job = jobs_[Index(id)];
  switch (state) {
    case v1::SUBMITTED:
      return "not yet admitted";
    case v1::WAITING:
      return WhyItWaits(id);
    case v1::STARTING:
      if (to_start_.contains(id) && failures_.starts_from(now_)) {
        return "all starts wait: the same fault on several nodes: " + failures_.why_starts_wait();
      }
      return WhyItHangs(job);
    case v1::RUNNING:
      return WhyItHangs(job);
    case v1::FAILED:
      return job.reason.empty() ? "a worker ended with exit code " + std::to_string(job.exit_code)
                                : job.reason;
    default:
      return job.reason;
  }
}

// Real time with GPUs.
Duration LiveWorld::RunTimeOf(JobId id) const {
  const JobRecord& record = engine_.records()[Index(id)];
  Duration time = record.progress.run_time;
  if (record.phase.get() == JobPhase::kRunning && record.grant.gpus > 0 && record.grant.running) {
    time += std::max(Duration{0}, now_ - record.progress.as_of);
  }
  return Duration{static_cast<std::int64_t>(Micros(time) / options_.time_scale)};
}

// None: it has not ended, or nobody knows. Of a cancelled job no journal says it.
std::optional<int> LiveWorld::ExitCodeOf(JobId id) const {
  const LiveJob& job = jobs_[Index(id)];
  switch (engine_.records()[Index(id)].phase.get()) {
    case JobPhase::kCompleted:
    case JobPhase::kFailed:
      return job.exit_code;
    case JobPhase::kCancelled:
      return job.left_with;
    default:
      return std::nullopt;
  }
}

v1::JobStatus LiveWorld::StatusOf(JobId id) const {
  const LiveJob& job = jobs_[Index(id)];
  const JobRecord& record = engine_.records()[Index(id)];
  v1::JobStatus status;
  status.set_job(NumberOf(id));
  *status.mutable_request() = *job.request;
  status.mutable_request()->mutable_launch()->clear_command();
  status.mutable_request()->mutable_launch()->clear_environment();
  status.set_state(StateOf(id));
  status.set_attempt(job.last_attempt);
  for (const Slice& slice : record.grant.slices) {
    v1::NodeGrant& grant = *status.add_grants();
    grant.set_node(cluster_.nodes[Index(slice.node)].name);
    for (int gpu = 0; gpu < kMaxGpusPerNode; ++gpu) {
      if ((slice.gpus >> gpu & 1) != 0) {
        grant.add_gpus(gpu);
      }
    }
  }
  status.set_submitted(UnixSeconds(job.submitted));
  if (record.started) {
    status.set_started(UnixSeconds(record.first_start));
  }
  if (job.ended != kEndOfTime) {
    status.set_ended(UnixSeconds(job.ended));
  }
  if (record.spec->deadline) {
    status.set_deadline(UnixSeconds(*record.spec->deadline));
  }
  if (record.phase.get() == JobPhase::kRunning && record.forecast.done != kEndOfTime &&
      (job.request->has_duration_s() || CountsWork(id))) {
    status.set_expected_end(UnixSeconds(record.forecast.done));
  }
  status.set_iterations_done(std::max(job.iterations_seen, job.iterations_saved));
  status.set_reason(ReasonOf(id, status.state()));
  if (const std::optional<int> code = ExitCodeOf(id)) {
    status.set_exit_code(*code);
  }
  status.set_preemptions(record.preemptions);
  status.set_resizes(record.resizes);
  status.set_migrations(record.migrations);
  status.set_failures(job.failures);
  if (job.start_took) {
    status.set_start_took_s(Seconds(*job.start_took) / options_.time_scale);
  }
  if (job.stop_took) {
    status.set_stop_took_s(Seconds(*job.stop_took) / options_.time_scale);
  }
  status.set_run_s(Seconds(RunTimeOf(id)));
  const JobPhase phase = record.phase.get();
  status.set_promised(options_.promises && record.spec->deadline &&
                      (phase == JobPhase::kWaiting || phase == JobPhase::kRunning));
  status.set_waited_s(Seconds(record.progress.waited));
  status.set_productive_s(Seconds(record.progress.productive_time));
  status.set_overhead_s(Seconds(record.progress.run_time - record.progress.productive_time));
  status.set_attained_service(static_cast<double>(record.progress.gpu_micros) / 1e6);
  status.set_useful_service(static_cast<double>(record.progress.useful_gpu_micros) / 1e6);
  return status;
}

void LiveWorld::AnswerJobs(std::uint64_t call, const v1::JobsRequest& request) {
  v1::ClientReply reply;
  v1::JobsReply& jobs = *reply.mutable_jobs();
  jobs.set_now(UnixSeconds(now_));
  for (const std::uint64_t number : request.jobs()) {
    if (number == 0 || number > jobs_.size()) {
      jobs.add_unknown(number);
      continue;
    }
    *jobs.add_jobs() = StatusOf(JobAt(number - 1));
  }
  for (std::size_t i = 0; request.jobs().empty() && i < jobs_.size(); ++i) {
    if (!request.live_only() || !jobs_[i].ending) {
      *jobs.add_jobs() = StatusOf(JobAt(i));
    }
  }
  output_.Reply(call, std::move(reply));
}

// By NodeId.
std::vector<v1::NodeStatus> LiveWorld::NodeStatuses() const {
  std::vector<v1::NodeStatus> statuses(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const NodeSpec& spec = cluster_.nodes[i];
    const Node& node = nodes_[i];
    v1::NodeStatus& status = statuses[i];
    status.set_node(spec.name);
    status.set_address(node.hello.address());
    status.set_up(node.alive);
    status.set_drained(node.drained);
    status.set_reason(node.drained ? failures_.WhyDrained(NodeAt(i)) : std::string());
    status.set_gpus(spec.gpus);
    status.set_gpu_type(node.hello.gpu_type().empty() ? spec.gpu_type : node.hello.gpu_type());
    status.set_cpus(node.hello.cpus());
    status.set_memory_mib(node.hello.memory_mib());
    status.set_silent(IsSilent(node));
    status.set_last_heard(node.hello.node().empty() ? 0 : UnixSeconds(node.heard));
  }
  std::vector<std::uint64_t> used(nodes_.size(), 0);
  std::set<JobId> holders = present_;
  holders.insert(holding_.begin(), holding_.end());
  for (const JobId job : holders) {
    for (const Slice& slice : engine_.records()[Index(job)].grant.slices) {
      used[Index(slice.node)] |= slice.gpus;
      statuses[Index(slice.node)].add_jobs(NumberOf(job));
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    statuses[i].set_gpus_used(std::popcount(used[i]));
  }
  return statuses;
}

void LiveWorld::AnswerNodes(std::uint64_t call) {
  v1::ClientReply reply;
  v1::NodesReply& nodes = *reply.mutable_nodes();
  for (v1::NodeStatus& status : NodeStatuses()) {
    *nodes.add_nodes() = std::move(status);
  }
  nodes.set_now(UnixSeconds(now_));
  nodes.set_policy(options_.policy);
  nodes.set_epoch(options_.epoch);
  nodes.set_time_scale(options_.time_scale);
  output_.Reply(call, std::move(reply));
}

}  // namespace trainyard
