// SPDX-License-Identifier: Apache-2.0
#include "live/live_statuses.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/text.h"
#include "engine/engine.h"
#include "live/access/access.h"
#include "live/job_request.h"
#include "live/measured/measured_profiles.h"
#include "live/stage_metrics.h"
#include "model/job_fields.h"

namespace trainyard::live {
namespace {

// "n0, n3, n5 and 4 more"
std::string FirstNames(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (text.empty() ? "" : ", ") + names[i];
  }
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more"
                              : text;
}

}  // namespace

const model::JobRecord& LiveStatuses::RecordOf(JobId job) const {
  return engine_.records()[Index(job)];
}

v1::JobState LiveStatuses::StateOf(JobId id) const {
  const Attempts::OfJob& attempts = state_.attempts[id];
  const LiveAttempt* const wanted = attempts.wanted();
  const bool starting =
      wanted != nullptr &&
      std::any_of(wanted->parts.begin(), wanted->parts.end(), [](const Part& part) {
        return part.state == PartState::kQueued || part.state == PartState::kSent;
      });
  switch (RecordOf(id).phase.get()) {
    case model::JobPhase::kUnknown:
    case model::JobPhase::kArrived:
      return engine_.WhyDeferred(id) ? v1::WAITING : v1::SUBMITTED;
    case model::JobPhase::kWaiting:
      return attempts.list.empty() ? v1::WAITING : v1::STOPPING;
    case model::JobPhase::kRunning:
      if (state_.gates.holding().contains(id)) {
        return attempts.list.empty() ? v1::WAITING : v1::STOPPING;
      }
      return starting ? v1::STARTING : v1::RUNNING;
    case model::JobPhase::kCompleted:
      return v1::COMPLETED;
    case model::JobPhase::kRejected:
      return v1::REJECTED;
    case model::JobPhase::kCancelled:
      return v1::CANCELLED;
    case model::JobPhase::kFailed:
      return v1::FAILED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

bool LiveStatuses::IsDeferred(JobId job) const { return engine_.WhyDeferred(job).has_value(); }

// Why its user or its own terms keep the job back; empty: they do not.
std::string LiveStatuses::WhyDeferred(JobId id) const {
  const std::optional<engine::Deferral> deferral = engine_.WhyDeferred(id);
  if (engine_.IsHeld(id)) {
    const std::string changed = state_.changes.Of(id);
    return (changed.starts_with("held by ") ? changed : "held by its user") +
           "; 'trainyard release " + state_.jobs.TextOf(id) + "' lets it go on";
  }
  if (!deferral) {
    return {};
  }
  if (deferral->after) {
    return "waits for job " + state_.jobs.TextOf(*deferral->after) + ", by its dependency '" +
           model::PartOf<JobTraits>(*RecordOf(id).spec).dependency + "'";
  }
  if (deferral->begin && *deferral->begin > state_.now) {
    return "begins in " + RealTimeText(*deferral->begin - state_.now);
  }
  return deferral->at_once > 0
             ? "at most " + std::to_string(deferral->at_once) + " tasks of its array run at a time"
             : "not yet admitted";
}

// Where the policy serves in strict order: what the first waiting job is waiting for.
std::string LiveStatuses::WhyItWaits(JobId id) const {
  if (std::string why = WhyDeferred(id); !why.empty()) {
    return why;
  }
  const model::Blocked* const blocked = engine_.blocked(id);
  const bool behind = blocked != nullptr && blocked->reason == model::WaitReason::kBehindHead &&
                      !state_.gates.holding().contains(id) && state_.failures.WhyHeld(id).empty();
  if (!behind) {
    return WhyNotServed(id);
  }
  const auto all = engine_.blocked();
  const auto head = std::find_if(all.begin(), all.end(), [](const model::Blocked& other) {
    return other.reason != model::WaitReason::kBehindHead;
  });
  return head == all.end() ? "behind an earlier job"
                           : "behind job " + state_.jobs.TextOf(head->first) + ", which asks for " +
                                 GpusText(head->gpus) + ": " + WhyNotServed(head->first);
}

std::string LiveStatuses::WhyNotServed(JobId id) const {
  const model::JobRecord& record = RecordOf(id);
  if (state_.gates.holding().contains(id)) {
    return "holds " + std::to_string(record.grant.gpus) + " of " +
           std::to_string(record.spec->gpus) + " GPUs until it has them all";
  }
  if (const std::string held = state_.failures.WhyHeld(id); !held.empty()) {
    return held + (state_.failures.HasNoNodeLeft(id) ? NodesAway(*record.spec) : "");
  }
  const model::Blocked* const blocked = engine_.blocked(id);
  const std::string why = blocked == nullptr
                              ? "policy '" + state_.options.policy +
                                    "' gives it no GPUs at present" + NodesAway(*record.spec)
                              : WhyBlocked(id, *blocked);
  const std::string avoids = state_.failures.WhyAvoids(id);
  return why + (avoids.empty() ? "" : "; ") + avoids;
}

std::string LiveStatuses::WhyBlocked(JobId id, const model::Blocked& blocked) const {
  const JobSpec& spec = *RecordOf(id).spec;
  switch (blocked.reason) {
    case model::WaitReason::kGpus:
      return "not enough free GPUs" + NodesAway(spec);
    case model::WaitReason::kLocality:
      return "no place for " + GpusText(spec.gpus) + " together" + NodesAway(spec);
    case model::WaitReason::kBehindHead:
      return "behind an earlier job";
    case model::WaitReason::kNever:
      return "does not fit into the cluster" + NodesAway(spec);
  }
  return {};
}

// "; drained: n0; down: n2, n3": the nodes that are away and whose GPU type the job accepts.
std::string LiveStatuses::NodesAway(const JobSpec& job) const {
  std::vector<std::string> drained;
  std::vector<std::string> down;
  const auto is_for = [&job](const NodeSpec& node) {
    return !job.traits || job.traits->gpu_types.empty() ||
           std::find(job.traits->gpu_types.begin(), job.traits->gpu_types.end(), node.gpu_type) !=
               job.traits->gpu_types.end();
  };
  for (std::size_t i = 0; i < state_.leases.size(); ++i) {
    const LiveNode& node = state_.leases[NodeAt(i)];
    if ((node.drained || !node.alive) && is_for(state_.cluster.nodes[i])) {
      (node.drained ? drained : down).push_back(state_.cluster.nodes[i].name);
    }
  }
  return (drained.empty() ? "" : "; drained: " + FirstNames(drained)) +
         (down.empty() ? "" : "; down: " + FirstNames(down));
}

// Why a job with GPUs does not run, or may have stopped running; empty: nothing is known.
std::string LiveStatuses::WhyNotRunning(JobId job) const {
  const std::vector<LiveAttempt>& list = state_.attempts[job].list;
  if (list.empty()) {
    return {};
  }
  if (const std::vector<std::string> silent = NodesOf(list.back(), /*only_silent=*/true);
      !silent.empty()) {
    return "no word from " + FirstNames(silent);
  }
  if (list.size() > 1) {
    return "its earlier workers have not left yet";
  }
  const std::string other = WhoHasNotLeft(list.back());
  return other.empty() ? WhatItFetches(job) : other;
}

// The nodes on which the attempt may have processes, or those of them that say nothing.
std::vector<std::string> LiveStatuses::NodesOf(const LiveAttempt& attempt, bool only_silent) const {
  std::vector<std::string> names;
  for (const Part& part : attempt.parts) {
    if (part.state != PartState::kExited &&
        (!only_silent || state_.leases.IsSilent(part.node, state_.now))) {
      names.push_back(state_.cluster.nodes[Index(part.node)].name);
    }
  }
  return names;
}

// "job 28 has not left n1 yet": its processes may still be on GPUs that the attempt is to have;
// empty: nobody's are.
std::string LiveStatuses::WhoHasNotLeft(const LiveAttempt& attempt) const {
  for (const Part& part : attempt.parts) {
    if (part.state != PartState::kQueued) {
      continue;
    }
    for (const supervisor::AttemptKey& key : state_.gates.On(part.node, part.gpus)) {
      const LiveAttempt* const other = state_.attempts.Find(key);
      if (other == nullptr || !attempt.MayShareWith(*other)) {
        const JobId job = JobAt(key.first - 1);  // a stray's is perhaps one that is not known
        return "job " +
               (state_.jobs.has(job) ? state_.jobs.TextOf(job) : std::to_string(key.first)) +
               " has not left " + state_.cluster.nodes[Index(part.node)].name + " yet";
      }
    }
  }
  return {};
}

// "fetches data set imagenet onto n0, 40 %"; empty: all that is to be there is.
std::string LiveStatuses::WhatItFetches(JobId job) const {
  constexpr double kPercent = 100;
  std::string text;
  for (const Part& part : state_.attempts[job].list.back().parts) {
    if (part.state == PartState::kQueued && part.data == PartData::kFetching) {
      text += text.empty()
                  ? "fetches data set " + state_.jobs[job].request->data_set().name() + " onto "
                  : ", onto ";
      text += state_.cluster.nodes[Index(part.node)].name + ", " +
              std::to_string(static_cast<int>(part.fetched * kPercent)) + " %";
    }
  }
  return text;
}

std::string LiveStatuses::RealTimeText(Duration of_the_engine) const {
  return base::ShortDuration(Seconds(of_the_engine) / state_.options.time_scale);
}

// What is wrong with a job whose workers run; empty: nothing, as far as is known. Of a job that has
// never said how far it is nothing is.
std::string LiveStatuses::WhyNoProgress(JobId id) const {
  constexpr Duration kShortest = std::chrono::minutes(1);
  constexpr int kPatience = 3;  // times the longest step so far
  const LiveJob& job = state_.jobs[id];
  const LiveAttempt* const attempt = state_.attempts[id].wanted();
  if (attempt == nullptr) {
    return {};
  }
  for (const Part& part : attempt->parts) {
    if (!part.late.empty()) {
      return part.late;
    }
  }
  const double iterations = std::max(job.iterations_seen, job.iterations_saved);
  if (!attempt->has_run || job.is_emulated() || iterations <= 0) {
    return {};
  }
  const Duration without = state_.now - attempt->progressed.value_or(attempt->ran_from);
  return without < std::max(state_.options.Scaled(kShortest), job.longest_step * kPatience)
             ? ""
             : "no progress for " + RealTimeText(without) + " (iteration " +
                   std::to_string(std::llround(iterations)) + ")";
}

// Why a job that has lost its GPUs still has workers.
std::string LiveStatuses::WhyNotGone(JobId id) const {
  for (const LiveAttempt& attempt : state_.attempts[id].list) {
    if (attempt.told_to_stop && !attempt.is_over()) {
      const Duration since = state_.now - attempt.notice;
      const Duration grace = state_.GraceOf(state_.jobs[id]);
      const std::string within = base::ShortDuration(Seconds(grace));
      const std::string had = fmt::format("had notice {} ago", RealTimeText(since));
      if (since <= state_.options.Scaled(grace + state_.options.margin)) {
        return fmt::format("{}: it saves itself and leaves, or is killed after {}", had, within);
      }
      const std::vector<std::string> silent = NodesOf(attempt, /*only_silent=*/true);
      return silent.empty() ? fmt::format(
                                  "{} and has not left {} within {}; the agent's output "
                                  "there says why",
                                  had, FirstNames(NodesOf(attempt, false)), within)
                            : fmt::format("{}; no word from {}", had, FirstNames(silent));
    }
  }
  return {};
}

std::string LiveStatuses::ReasonOf(JobId id, v1::JobState state) const {
  const LiveJob& job = state_.jobs[id];
  switch (state) {
    case v1::SUBMITTED:
      return "not yet admitted";
    case v1::WAITING:
      return WhyItWaits(id);
    case v1::STARTING:
      if (state_.gates.queued().contains(id) && state_.failures.starts_from(state_.now)) {
        return "all starts wait: the same fault on several nodes: " +
               state_.failures.why_starts_wait();
      }
      return WhyNotRunning(id);
    case v1::RUNNING: {
      const std::string why = WhyNotRunning(id);
      return why.empty() ? WhyNoProgress(id) : why;
    }
    case v1::STOPPING:
      return WhyNotGone(id);
    case v1::FAILED:
      return job.reason.empty() ? "a worker ended with exit code " + std::to_string(job.exit_code)
                                : job.reason;
    default:
      return job.reason;
  }
}

// Real time with GPUs.
Duration LiveStatuses::RunTimeOf(const model::JobRecord& record) const {
  Duration time = record.progress.run_time;
  if (record.phase.get() == model::JobPhase::kRunning && record.grant.gpus > 0 &&
      record.grant.running) {
    time += std::max(Duration{0}, state_.now - record.progress.as_of);
  }
  return Duration{static_cast<std::int64_t>(Micros(time) / state_.options.time_scale)};
}

// None: the job has not ended, or its exit code is unknown. The journal does not hold the exit code
// of a cancelled job.
std::optional<int> LiveStatuses::ExitCodeOf(JobId id) const {
  const LiveJob& job = state_.jobs[id];
  switch (RecordOf(id).phase.get()) {
    case model::JobPhase::kCompleted:
      return job.exit_code;
    case model::JobPhase::kFailed:  // its own failure, or what it left with at its time limit
      return job.exit_code != 0 ? std::optional(job.exit_code) : job.left_with;
    case model::JobPhase::kCancelled:
      return job.left_with;
    default:
      return std::nullopt;
  }
}

// The times of the job's life, and how long its phases took.
void LiveStatuses::PutTimes(const model::JobRecord& record, JobId id, v1::JobStatus& status) const {
  const LiveOptions& options = state_.options;
  const LiveJob& job = state_.jobs[id];
  const Attempts::OfJob& attempts = state_.attempts[id];
  status.set_submitted(options.UnixSeconds(job.submitted));
  if (record.started) {
    status.set_started(options.UnixSeconds(record.first_start));
  }
  if (job.ended != kEndOfTime) {
    status.set_ended(options.UnixSeconds(job.ended));
  }
  if (record.spec->deadline) {
    status.set_deadline(options.UnixSeconds(*record.spec->deadline));
  }
  if (record.phase.get() == model::JobPhase::kRunning && record.forecast.done != kEndOfTime &&
      (job.request->has_duration_s() || job.counts_work())) {
    status.set_expected_end(options.UnixSeconds(record.forecast.done));
  }
  if (attempts.start_took) {
    status.set_start_took_s(Seconds(*attempts.start_took) / options.time_scale);
  }
  if (attempts.stop_took) {
    status.set_stop_took_s(Seconds(*attempts.stop_took) / options.time_scale);
  }
  status.set_run_s(Seconds(RunTimeOf(record)));
  status.set_waited_s(Seconds(record.progress.waited));
  status.set_productive_s(Seconds(record.progress.productive_time));
  status.set_overhead_s(Seconds(record.progress.run_time - record.progress.productive_time));
  status.set_attained_service(static_cast<double>(record.progress.gpu_micros) / 1e6);
  status.set_useful_service(static_cast<double>(record.progress.useful_gpu_micros) / 1e6);
}

// What it holds of each node.
void LiveStatuses::PutGrants(const model::JobRecord& record, JobId id,
                             v1::JobStatus& status) const {
  const LiveAttempt* const attempt = state_.attempts[id].wanted();
  const std::vector<Part> none;
  for (const Slice& slice : record.grant.slices) {
    v1::NodeGrant& grant = *status.add_grants();
    grant = GrantOf(slice, state_.cluster);
    for (const Part& part : attempt == nullptr ? none : attempt->parts) {
      if (part.node == slice.node) {
        *grant.mutable_share() = ShareOf(part);
      }
    }
  }
}

// How far it is, and how fast, as it says itself.
void LiveStatuses::PutProgress(JobId id, v1::JobStatus& status) const {
  const LiveJob& job = state_.jobs[id];
  const LiveAttempt* const attempt = state_.attempts[id].wanted();
  status.set_iterations_done(std::max(job.iterations_seen, job.iterations_saved));
  status.set_iterations_saved(job.iterations_saved);
  if (attempt != nullptr && attempt->progressed) {
    status.set_progressed(state_.options.UnixSeconds(*attempt->progressed));
  }
  for (const auto& [name, value] : state_.metrics.Of(id)) {
    v1::Metric& metric = *status.add_metrics();
    metric.set_name(name);
    metric.set_value(value);
  }
  if (const auto interleaving = InterleavingOf(
          state_.SpecsOf(attempt == nullptr ? std::vector<JobId>() : attempt->group));
      interleaving && !job.ending) {
    status.set_group_iteration_predicted_s(interleaving->seconds / state_.options.time_scale);
    if (job.group_iteration_s > 0) {
      status.set_group_iteration_measured_s(job.group_iteration_s);
    }
  }
}

v1::JobStatus LiveStatuses::StatusOf(JobId id) const {
  const LiveJob& job = state_.jobs[id];
  const model::JobRecord& record = RecordOf(id);
  v1::JobStatus status;
  status.set_job(NumberOf(id));
  *status.mutable_request() = *job.request;
  status.mutable_request()->mutable_launch()->clear_command();
  status.mutable_request()->mutable_launch()->clear_environment();
  status.mutable_request()->mutable_launch()->clear_client_token();
  status.set_state(StateOf(id));
  status.set_attempt(state_.attempts[id].last);
  PutGrants(record, id, status);
  PutTimes(record, id, status);
  PutProgress(id, status);
  status.set_reason(ReasonOf(id, status.state()));
  status.set_note(job.note);
  status.set_held(engine_.IsHeld(id));
  if (job.array) {
    status.set_array_job(NumberOf(*job.array));
    status.set_array_index(job.array_index);
  }
  status.set_changed_by(state_.changes.Of(id));
  if (const std::optional<TimePoint> until = state_.failures.HeldUntil(id)) {
    status.set_next_try(state_.options.UnixSeconds(*until));
  }
  if (job.last_failure) {
    status.set_last_failure(*job.last_failure);
  }
  if (const std::optional<int> code = ExitCodeOf(id)) {
    status.set_exit_code(*code);
  }
  status.set_preemptions(record.preemptions);
  status.set_resizes(record.resizes);
  status.set_migrations(record.migrations);
  status.set_failures(job.failures);
  const model::JobPhase phase = record.phase.get();
  status.set_promised(state_.options.promises && record.spec->deadline &&
                      (phase == model::JobPhase::kWaiting || phase == model::JobPhase::kRunning));
  return status;
}

bool LiveStatuses::IsMeant(JobId id, const v1::JobsRequest& request) const {
  const LiveJob& job = state_.jobs[id];
  const auto fits = [](const auto& patterns, const std::string& text) {
    return patterns.empty() ||
           std::any_of(patterns.begin(), patterns.end(), [&text](const std::string& pattern) {
             return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
           });
  };
  return (!request.live_only() || !job.ending) &&
         (request.array_job() == 0 || (job.array && NumberOf(*job.array) == request.array_job())) &&
         fits(request.names(), job.request->name()) && fits(request.users(), job.request->user()) &&
         fits(request.queues(), job.request->queue()) &&
         (request.states().empty() || std::find(request.states().begin(), request.states().end(),
                                                StateOf(id)) != request.states().end());
}

bool LiveStatuses::MaySee(const v1::ClientRequest& from, JobId job) const {
  return state_.options.shows_all_jobs || MayTouch(from, *state_.jobs[job].request, Touch::kSee);
}

v1::ClientReply LiveStatuses::AnswerTo(const v1::ClientRequest& from) const {
  const v1::JobsRequest& request = from.jobs();
  v1::ClientReply reply;
  v1::JobsReply& jobs = *reply.mutable_jobs();
  jobs.set_now(state_.options.UnixSeconds(state_.now));
  for (const std::uint64_t number : request.jobs()) {
    if (number == 0 || number > state_.jobs.size() || !MaySee(from, JobAt(number - 1))) {
      jobs.add_unknown(number);
      continue;
    }
    v1::JobStatus& job = *jobs.add_jobs();
    job = StatusOf(JobAt(number - 1));
    const v1::JobRequest& asked = *state_.jobs[JobAt(number - 1)].request;
    if (MayTouch(from, asked, Touch::kRead)) {  // there may be secrets in it
      *job.mutable_command() = asked.launch().command();
    }
  }
  for (std::size_t i = 0; request.jobs().empty() && i < state_.jobs.size(); ++i) {
    if (IsMeant(JobAt(i), request) && MaySee(from, JobAt(i))) {
      *jobs.add_jobs() = StatusOf(JobAt(i));
    }
  }
  return reply;
}

std::vector<v1::NodeStatus> LiveStatuses::OfNodes() const {
  const std::size_t nodes = state_.leases.size();
  std::vector<v1::NodeStatus> statuses(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    const NodeSpec& spec = state_.cluster.nodes[i];
    const LiveNode& node = state_.leases[NodeAt(i)];
    v1::NodeStatus& status = statuses[i];
    status.set_node(spec.name);
    status.set_address(node.hello.address());
    status.set_up(node.alive);
    status.set_drained(node.drained);
    status.set_reason(node.drained ? state_.failures.WhyDrained(NodeAt(i)) : std::string());
    status.set_changed_by(state_.changes.Of(NodeAt(i)));
    status.set_gpus(spec.gpus);
    status.set_gpu_type(node.hello.gpu_type().empty() ? spec.gpu_type : node.hello.gpu_type());
    status.set_cpus(node.hello.cpus());
    status.set_memory_mib(node.hello.memory_mib());
    status.set_data_cache_mib(node.data.cache_mib());
    *status.mutable_data_sets() = node.data.held();
    status.set_silent(state_.leases.IsSilent(NodeAt(i), state_.now));
    status.set_last_heard(node.hello.node().empty() ? 0 : state_.options.UnixSeconds(node.heard));
  }
  std::vector<std::uint64_t> used(nodes, 0);
  std::set<JobId> holders = state_.attempts.present();
  holders.insert(state_.gates.holding().begin(), state_.gates.holding().end());
  for (const JobId job : holders) {
    for (const Slice& slice : RecordOf(job).grant.slices) {
      used[Index(slice.node)] |= slice.gpus;
      statuses[Index(slice.node)].add_jobs(NumberOf(job));
    }
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    statuses[i].set_gpus_used(std::popcount(used[i]));
  }
  return statuses;
}

v1::ClientReply LiveStatuses::AnswerWithNodes() const {
  v1::ClientReply reply;
  v1::NodesReply& nodes = *reply.mutable_nodes();
  for (v1::NodeStatus& status : OfNodes()) {
    *nodes.add_nodes() = std::move(status);
  }
  nodes.set_now(state_.options.UnixSeconds(state_.now));
  nodes.set_policy(state_.options.policy);
  nodes.set_epoch(state_.options.epoch);
  nodes.set_time_scale(state_.options.time_scale);
  return reply;
}

v1::ClientReply LiveStatuses::AnswerWithProfiles(const profile::ThroughputTable* profiles) const {
  v1::ClientReply reply;
  *reply.mutable_profiles() = MeasuredProfiles(engine_, profiles);
  return reply;
}

}  // namespace trainyard::live
