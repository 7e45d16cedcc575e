// SPDX-License-Identifier: Apache-2.0
#include "live/live_statuses.h"

#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <set>

#include "engine/engine.h"
#include "io/file.h"
#include "live/access/access.h"
#include "live/access/history.h"
#include "live/job_request.h"
#include "live/measured/measured_profiles.h"
#include "live/reasons/reasons.h"
#include "live/stage_metrics.h"

namespace trainyard::live {
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

std::string LiveStatuses::ReasonOf(JobId job, v1::JobState state) const {
  return Reasons(state_, engine_, CallOfOwner(state_, job), Reasons::Depth::kBrief).Of(job, state);
}

Duration LiveStatuses::RealTime(Duration of_the_engine) const {
  return Duration{static_cast<std::int64_t>(Micros(of_the_engine) / state_.options.time_scale)};
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
    // Its end may be on its way, or it has not been found yet that it has overrun.
    status.set_expected_end(options.UnixSeconds(std::max(record.forecast.done, state_.now)));
  }
  if (attempts.start_took) {
    status.set_start_took_s(Seconds(*attempts.start_took) / options.time_scale);
  }
  if (attempts.stop_took) {
    status.set_stop_took_s(Seconds(*attempts.stop_took) / options.time_scale);
  }
  const model::Progress progress = engine_.ProgressOf(id, state_.now);
  status.set_run_s(Seconds(RealTime(progress.run_time)));
  status.set_waited_s(Seconds(progress.waited));
  status.set_productive_s(Seconds(progress.productive_time));
  status.set_overhead_s(Seconds(progress.run_time - progress.productive_time));
  status.set_attained_service(static_cast<double>(progress.gpu_micros) / 1e6);
  status.set_useful_service(static_cast<double>(progress.useful_gpu_micros) / 1e6);
  status.set_overrun(record.phase.get() == model::JobPhase::kRunning && engine_.HasOverrun(id));
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

v1::JobStatus LiveStatuses::StatusOf(JobId job) const {
  Reasons reasons(state_, engine_, CallOfOwner(state_, job), Reasons::Depth::kFull);
  return StatusOf(job, reasons);
}

v1::JobStatus LiveStatuses::BriefStatusOf(JobId job) const {
  Reasons reasons(state_, engine_, CallOfOwner(state_, job), Reasons::Depth::kBrief);
  return StatusOf(job, reasons);
}

v1::JobStatus LiveStatuses::StatusOf(JobId id, Reasons& reasons) const {
  const LiveJob& job = state_.jobs[id];
  const model::JobRecord& record = RecordOf(id);
  v1::JobStatus status;
  status.set_job(state_.numbers.Of(id));
  *status.mutable_request() = *job.request;
  status.mutable_request()->mutable_launch()->clear_command();
  status.mutable_request()->mutable_launch()->clear_environment();
  status.mutable_request()->mutable_launch()->clear_client_token();
  status.mutable_request()->clear_submitted_as();
  status.set_state(StateOf(id));
  status.set_attempt(state_.attempts[id].last);
  PutGrants(record, id, status);
  PutTimes(record, id, status);
  PutProgress(id, status);
  status.set_reason(reasons.Of(id, status.state()));
  status.set_note(job.note);
  status.set_held(engine_.IsHeld(id));
  if (job.array) {
    status.set_array_job(state_.numbers.Of(*job.array));
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
  status.set_promised(state_.configuration->promises && record.spec->deadline &&
                      (phase == model::JobPhase::kWaiting || phase == model::JobPhase::kRunning));
  return status;
}

void LiveStatuses::PutHistory(JobId job, TimePoint from, v1::JobStatus& status) const {
  for (const JobEvent& known : state_.history.Of(job)) {
    if (known.at < from) {
      continue;
    }
    v1::JobEvent& event = *status.add_history();
    event.set_time(state_.options.UnixSeconds(known.at));
    event.set_what(known.what);
    event.set_by(known.by);
    event.set_before(known.before);
    event.set_after(known.after);
  }
}

template <typename Filter>
bool LiveStatuses::Fits(JobId id, const Filter& request) const {
  const LiveJob& job = state_.jobs[id];
  const auto fits = [](const auto& patterns, const std::string& text) {
    return patterns.empty() ||
           std::any_of(patterns.begin(), patterns.end(), [&text](const std::string& pattern) {
             return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
           });
  };
  return fits(request.names(), job.request->name()) && fits(request.users(), job.request->user()) &&
         fits(request.queues(), job.request->queue()) &&
         (request.states().empty() || std::find(request.states().begin(), request.states().end(),
                                                StateOf(id)) != request.states().end());
}

bool LiveStatuses::IsMeant(JobId id, const v1::JobsRequest& request) const {
  const LiveJob& job = state_.jobs[id];
  return (!request.live_only() || !job.ending) &&
         (request.array_job() == 0 ||
          (job.array && state_.numbers.Of(*job.array) == request.array_job())) &&
         Fits(id, request);
}

bool LiveStatuses::IsMeant(JobId id, const v1::Selection& selection) const {
  return !state_.jobs[id].ending && Fits(id, selection);
}

bool LiveStatuses::IsHeld(JobId job) const { return engine_.IsHeld(job); }

v1::JobStatus LiveStatuses::ChangedStatusOf(JobId job) const {
  v1::JobStatus status = BriefStatusOf(job);
  PutHistory(job, state_.now, status);
  return status;
}

bool LiveStatuses::MaySee(const v1::ClientRequest& from, JobId job) const {
  return live::MaySee(state_, from, job);
}

v1::ClientReply LiveStatuses::AnswerTo(const v1::ClientRequest& from) const {
  const v1::JobsRequest& request = from.jobs();
  v1::ClientReply reply;
  v1::JobsReply& jobs = *reply.mutable_jobs();
  jobs.set_now(state_.options.UnixSeconds(state_.now));
  Reasons reasons(state_, engine_, from, Reasons::Depth::kFull);
  for (const std::uint64_t number : request.jobs()) {
    const std::optional<JobId> id = state_.numbers.Find(number, state_.jobs.size());
    if (!id || !MaySee(from, *id)) {
      jobs.add_unknown(number);
      continue;
    }
    v1::JobStatus& job = *jobs.add_jobs();
    job = StatusOf(*id, reasons);
    if (request.history()) {
      PutHistory(*id, TimePoint{}, job);
    }
    const v1::JobRequest& asked = *state_.jobs[*id].request;
    if (MayTouch(from, asked, Touch::kRead)) {  // there may be secrets in it
      *job.mutable_command() = asked.launch().command();
    }
  }
  for (std::size_t i = 0; request.jobs().empty() && i < state_.jobs.size(); ++i) {
    if (IsMeant(JobAt(i), request) && MaySee(from, JobAt(i))) {
      *jobs.add_jobs() = StatusOf(JobAt(i), reasons);
    }
  }
  return reply;
}

// Without its jobs.
v1::NodeStatus LiveStatuses::StatusOfNode(NodeId id) const {
  const NodeSpec& spec = state_.cluster.nodes[Index(id)];
  const LiveNode& node = state_.leases[id];
  v1::NodeStatus status;
  status.set_node(spec.name);
  status.set_address(node.hello.address());
  status.set_up(node.alive);
  status.set_drained(node.drained);
  status.set_reason(node.drained ? state_.failures.WhyDrained(id) : std::string());
  status.set_changed_by(state_.changes.Of(id));
  status.set_gpus(spec.gpus);
  status.set_gpu_type(node.hello.gpu_type().empty() ? spec.gpu_type : node.hello.gpu_type());
  status.set_cpus(node.hello.cpus());
  status.set_memory_mib(node.hello.memory_mib());
  status.set_stated_milli_cpus(spec.capacity.milli_cpus);
  status.set_stated_memory_mib(spec.capacity.memory_mib);
  status.set_data_cache_mib(node.data.cache_mib());
  *status.mutable_data_sets() = node.data.held();
  status.set_silent(state_.leases.IsSilent(id, state_.now));
  status.set_last_heard(node.hello.node().empty() ? 0 : state_.options.UnixSeconds(node.heard));
  return status;
}

std::vector<v1::NodeStatus> LiveStatuses::OfNodes(const v1::ClientRequest& from) const {
  const std::size_t nodes = state_.leases.size();
  std::vector<v1::NodeStatus> statuses(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    statuses[i] = StatusOfNode(NodeAt(i));
  }
  std::vector<std::uint64_t> used(nodes, 0);
  std::set<JobId> holders = state_.attempts.present();
  holders.insert(state_.gates.holding().begin(), state_.gates.holding().end());
  for (const JobId job : holders) {
    for (const Slice& slice : RecordOf(job).grant.slices) {
      used[Index(slice.node)] |= slice.gpus;
      if (MaySee(from, job)) {
        statuses[Index(slice.node)].add_jobs(state_.numbers.Of(job));
      } else {
        statuses[Index(slice.node)].set_other_jobs(statuses[Index(slice.node)].other_jobs() + 1);
      }
    }
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    for (const Leaving& leaving : LeavingOn(state_, NodeAt(i))) {
      used[i] |= leaving.gpus;
      v1::LeavingAttempt& attempt = *statuses[i].add_leaving();
      const std::optional<JobId> job = state_.numbers.Find(leaving.job, state_.jobs.size());
      if (job && MaySee(from, *job)) {
        attempt.set_job(leaving.job);
      }
      AddGpus(leaving.gpus, *attempt.mutable_gpus());
      if (leaving.left_s) {
        attempt.set_left_s(*leaving.left_s);
      }
    }
    statuses[i].set_gpus_used(std::popcount(used[i]));
  }
  return statuses;
}

v1::ClientReply LiveStatuses::AnswerWithNodes(const v1::ClientRequest& from) const {
  v1::ClientReply reply;
  v1::NodesReply& nodes = *reply.mutable_nodes();
  for (v1::NodeStatus& status : OfNodes(from)) {
    if (status.gpus() > 0 || status.leaving_size() > 0) {  // otherwise it has been removed
      *nodes.add_nodes() = std::move(status);
    }
  }
  nodes.set_now(state_.options.UnixSeconds(state_.now));
  nodes.set_policy(state_.configuration->policy);
  nodes.set_epoch(state_.options.epoch);
  nodes.set_time_scale(state_.options.time_scale);
  return reply;
}

v1::ClientReply LiveStatuses::AnswerWithConfiguration() const {
  const engine::Configuration& present = *state_.configuration;
  v1::ClientReply reply;
  v1::ConfigurationReply& answer = *reply.mutable_configuration();
  answer.set_number(present.number);
  answer.set_author(present.author);
  answer.set_since(present.since);
  answer.set_text(present.text);
  answer.set_sha256(io::Sha256Hex(present.text));
  return reply;
}

v1::ClientReply LiveStatuses::AnswerWithProfiles() const {
  v1::ClientReply reply;
  *reply.mutable_profiles() = MeasuredProfiles(engine_, state_.configuration->profiles);
  return reply;
}

}  // namespace trainyard::live
