// SPDX-License-Identifier: Apache-2.0
#include "live/view/statuses.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "io/file.h"
#include "live/history/audit_trail.h"
#include "live/history/history.h"
#include "live/jobs/job_request.h"
#include "live/measured/stage_metrics.h"
#include "live/view/reasons.h"
#include "live/view/slurm_reason.h"
#include "live/view/usage_sums.h"
#include "model/node_classes.h"
#include "model/request/node_request.h"
#include "service/call_error.h"
#include "service/calls.h"

namespace trainyard::live {
Statuses::Statuses(const ClusterView& view, TimePoint now)
    : view_(view), options_(*view.options), now_(std::max(now, view.now)) {}

v1::JobState Statuses::StateOf(JobId id) const {
  const JobEntry& job = view_.job(id);
  const LiveAttempt* const wanted = job.attempts.wanted();
  const bool starting =
      wanted != nullptr &&
      std::any_of(wanted->parts.begin(), wanted->parts.end(), [](const Part& part) {
        return part.state == PartState::kQueued || part.state == PartState::kSent;
      });
  switch (job.record.phase.get()) {
    case model::JobPhase::kUnknown:
    case model::JobPhase::kArrived:
      return job.deferred ? v1::WAITING : v1::SUBMITTED;
    case model::JobPhase::kWaiting:
      return job.attempts.list.empty() ? v1::WAITING : v1::STOPPING;
    case model::JobPhase::kRunning:
      if (job.holding) {
        return job.attempts.list.empty() ? v1::WAITING : v1::STOPPING;
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

std::string Statuses::ReasonOf(JobId job, v1::JobState state) const {
  return Reasons(view_, now_, service::Principal::OwnerOf(*view_.job(job).live.request),
                 Reasons::Depth::kBrief)
      .Of(job, state);
}

Duration Statuses::RealTime(Duration of_the_engine) const {
  return Duration{static_cast<std::int64_t>(Micros(of_the_engine) / options_.time_scale)};
}

// None: the job has not ended, or its exit code is unknown. The journal does not hold the exit code
// of a cancelled job.
std::optional<int> Statuses::ExitCodeOf(JobId id) const {
  const LiveJob& job = view_.job(id).live;
  switch (view_.job(id).record.phase.get()) {
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
void Statuses::PutTimes(JobId id, v1::JobStatus& status) const {
  const JobEntry& entry = view_.job(id);
  const model::JobRecord& record = entry.record;
  const LiveJob& job = entry.live;
  status.set_submitted(options_.UnixSeconds(job.submitted));
  if (record.started) {
    status.set_started(options_.UnixSeconds(record.first_start));
  }
  if (job.ended != kEndOfTime) {
    status.set_ended(options_.UnixSeconds(job.ended));
  }
  if (record.spec->deadline) {
    status.set_deadline(options_.UnixSeconds(*record.spec->deadline));
  }
  if (record.phase.get() == model::JobPhase::kRunning && record.forecast.done != kEndOfTime &&
      (job.request->has_duration_s() || job.counts_work())) {
    // Its end may be on its way, or it has not been found yet that it has overrun.
    status.set_expected_end(options_.UnixSeconds(std::max(record.forecast.done, now_)));
  }
  if (entry.attempts.start_took) {
    status.set_start_took_s(Seconds(*entry.attempts.start_took) / options_.time_scale);
  }
  if (entry.attempts.stop_took) {
    status.set_stop_took_s(Seconds(*entry.attempts.stop_took) / options_.time_scale);
  }
  const model::Progress progress = view_.ProgressOf(id, now_);
  status.set_run_s(Seconds(RealTime(progress.run_time)));
  status.set_waited_s(Seconds(progress.waited));
  status.set_productive_s(Seconds(progress.productive_time));
  status.set_overhead_s(Seconds(progress.run_time - progress.productive_time));
  status.set_attained_service(static_cast<double>(progress.gpu_micros) / 1e6);
  status.set_useful_service(static_cast<double>(progress.useful_gpu_micros) / 1e6);
  status.set_overrun(record.phase.get() == model::JobPhase::kRunning && entry.overrun);
}

// What it holds of each node.
void Statuses::PutGrants(JobId id, v1::JobStatus& status) const {
  const JobEntry& entry = view_.job(id);
  const LiveAttempt* const attempt = entry.attempts.wanted();
  const std::vector<Part> none;
  for (const Slice& slice : entry.record.grant.slices) {
    v1::NodeGrant& grant = *status.add_grants();
    grant = GrantOf(slice, view_.cluster());
    for (const Part& part : attempt == nullptr ? none : attempt->parts) {
      if (part.node == slice.node) {
        *grant.mutable_share() = ShareOf(part);
      }
    }
  }
}

// How far it is, and how fast, as it says itself.
void Statuses::PutProgress(JobId id, v1::JobStatus& status) const {
  const JobEntry& entry = view_.job(id);
  const LiveJob& job = entry.live;
  const LiveAttempt* const attempt = entry.attempts.wanted();
  status.set_iterations_done(std::max(job.iterations_seen, job.iterations_saved));
  status.set_iterations_saved(job.iterations_saved);
  if (attempt != nullptr && attempt->progressed) {
    status.set_progressed(options_.UnixSeconds(*attempt->progressed));
  }
  for (const auto& [name, value] : entry.metrics) {
    v1::Metric& metric = *status.add_metrics();
    metric.set_name(name);
    metric.set_value(value);
  }
  std::vector<const JobSpec*> group;
  for (const JobId other : attempt == nullptr ? std::vector<JobId>() : attempt->group) {
    group.push_back(view_.job(other).live.spec.get());
  }
  if (const auto interleaving = InterleavingOf(group); interleaving && !job.ending) {
    status.set_group_iteration_predicted_s(interleaving->seconds / options_.time_scale);
    if (job.group_iteration_s > 0) {
      status.set_group_iteration_measured_s(job.group_iteration_s);
    }
  }
}

// What it has been given beside GPUs, and has used.
void Statuses::PutUse(JobId id, v1::JobStatus& status) const {
  const JobEntry& entry = view_.job(id);
  if (entry.use == nullptr && entry.attempts.list.empty()) {
    return;
  }
  JobUse use = CopyOf(entry.use);
  for (const LiveAttempt& attempt : entry.attempts.list) {
    for (const Part& part : attempt.parts) {
      if (!(part.use == ProcessUse{})) {
        use.Count(UseNoteOf(id, attempt.number, part));
      }
    }
  }
  if (use.used == ProcessUse{}) {
    return;
  }
  if (entry.usage != nullptr) {
    Usage::ForEachPart(*entry.usage, now_, options_,
                       [&use](std::int64_t /*day*/, const UsageKey& /*key*/,
                              const UsageTimes& times) { use.cpus_given += times.cpus; });
  }
  v1::JobUse& told = *status.mutable_use();
  constexpr double kMicros = 1e6;
  constexpr std::int64_t kMib = std::int64_t{1} << 20;
  told.set_cpu_s_given(Seconds(RealTime(use.cpus_given)));
  told.set_cpu_s(static_cast<double>(use.used.cpu_micros) / kMicros);
  told.set_peak_memory(use.used.peak_memory);
  told.set_memory_given(use.peak_memory_mib * kMib);
  told.set_peak_node(view_.cluster().nodes[Index(use.peak_node)].name);
}

void Statuses::PutSteps(JobId id, v1::JobStatus& status) const {
  const JobEntry& job = view_.job(id);
  if (job.steps == nullptr) {
    return;
  }
  const bool is_former = job.steps->attempt < job.attempts.last;
  for (const JobStep& step : job.steps->steps) {
    if (step.ended > 0 || !is_former) {  // else it has ended with its attempt, nobody knows when
      *status.add_steps() = RecordOf(step);
    }
  }
}

v1::JobStatus Statuses::StatusOf(JobId job) const {
  Reasons reasons(view_, now_, service::Principal::OwnerOf(*view_.job(job).live.request),
                  Reasons::Depth::kFull);
  return StatusOf(job, reasons);
}

v1::JobStatus Statuses::BriefStatusOf(JobId job) const {
  Reasons reasons(view_, now_, service::Principal::OwnerOf(*view_.job(job).live.request),
                  Reasons::Depth::kBrief);
  return StatusOf(job, reasons);
}

v1::JobStatus Statuses::StatusOf(JobId id, Reasons& reasons) const {
  const JobEntry& entry = view_.job(id);
  const LiveJob& job = entry.live;
  const model::JobRecord& record = entry.record;
  v1::JobStatus status;
  status.set_job(view_.numbers->Of(id));
  *status.mutable_request() = *job.request;
  status.mutable_request()->mutable_launch()->clear_command();
  status.mutable_request()->mutable_launch()->clear_environment();
  status.mutable_request()->mutable_launch()->clear_client_token();
  status.mutable_request()->clear_submitted_as();
  if (job.request->launch().has_batch()) {
    status.mutable_request()->mutable_launch()->mutable_batch()->clear_script();
  }
  status.set_state(StateOf(id));
  status.set_attempt(entry.attempts.last);
  PutGrants(id, status);
  PutTimes(id, status);
  PutProgress(id, status);
  PutUse(id, status);
  status.set_reason(reasons.Of(id, status.state()));
  status.set_reason_code(std::string(SlurmReasonOf(view_, now_, id, status.state())));
  status.set_note(job.note);
  status.set_held(entry.held);
  if (job.array) {
    status.set_array_job(view_.numbers->Of(*job.array));
    status.set_array_index(job.array_index);
  }
  status.set_changed_by(entry.changed_by);
  if (entry.failures.held_until) {
    status.set_next_try(options_.UnixSeconds(*entry.failures.held_until));
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
  status.set_promised(view_.configuration->promises && record.spec->deadline &&
                      (phase == model::JobPhase::kWaiting || phase == model::JobPhase::kRunning));
  return status;
}

void Statuses::PutHistory(JobId job, TimePoint from, v1::JobStatus& status) const {
  const History::Events history = view_.job(job).history;
  for (const JobEvent& known : history == nullptr ? std::vector<JobEvent>() : *history) {
    if (known.at < from) {
      continue;
    }
    v1::JobEvent& event = *status.add_history();
    event.set_time(options_.UnixSeconds(known.at));
    event.set_what(known.what);
    event.set_by(known.by);
    event.set_before(known.before);
    event.set_after(known.after);
  }
}

template <typename Filter>
bool Statuses::Fits(JobId id, const Filter& request) const {
  const LiveJob& job = view_.job(id).live;
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

bool Statuses::IsMeant(JobId id, const v1::JobsRequest& request) const {
  const LiveJob& job = view_.job(id).live;
  return (!request.live_only() || !job.ending) &&
         (request.array_job() == 0 ||
          (job.array && view_.numbers->Of(*job.array) == request.array_job())) &&
         Fits(id, request);
}

bool Statuses::IsMeant(JobId id, const v1::Selection& selection) const {
  return !view_.job(id).live.ending && Fits(id, selection);
}

v1::JobStatus Statuses::ChangedStatusOf(JobId job) const {
  v1::JobStatus status = BriefStatusOf(job);
  PutHistory(job, now_, status);
  return status;
}

bool Statuses::MaySee(const service::Principal& principal, JobId job) const {
  return live::MaySee(view_, principal, job);
}

void Statuses::PutNamed(const service::Principal& principal, const v1::JobsRequest& request,
                        Reasons& reasons, v1::JobsReply& jobs) const {
  const std::uint64_t since = VersionOf(request.since());
  for (const std::uint64_t number : request.jobs()) {
    const std::optional<JobId> id = view_.Find(number);
    if (!id || !MaySee(principal, *id)) {
      jobs.add_unknown(number);
      continue;
    }
    if (view_.job(*id).changed <= since) {
      continue;
    }
    v1::JobStatus& job = *jobs.add_jobs();
    job = StatusOf(*id, reasons);
    if (request.history()) {
      PutHistory(*id, TimePoint{}, job);
    }
    if (request.steps()) {
      PutSteps(*id, job);
    }
    const v1::JobRequest& asked = *view_.job(*id).live.request;
    if (principal.May(service::Access::kRead, asked)) {  // there may be secrets in it
      const std::vector<std::string> words = CommandOf(asked.launch());
      job.mutable_command()->Assign(words.begin(), words.end());
    }
  }
}

v1::ClientReply Statuses::AnswerWithJobs(const service::Principal& principal,
                                         const v1::JobsRequest& request) const {
  v1::ClientReply reply;
  v1::JobsReply& jobs = *reply.mutable_jobs();
  jobs.set_now(options_.UnixSeconds(now_));
  Reasons reasons(view_, now_, principal, Reasons::Depth::kFull);
  PutNamed(principal, request, reasons, jobs);
  jobs.set_version(fmt::format("{}-{}", options_.epoch, view_.number));
  if (!request.jobs().empty()) {
    return reply;
  }
  const std::uint64_t since = VersionOf(request.since());
  const std::optional<JobId> after = view_.Find(request.after());
  constexpr int kMostStepsOfPage = 20'000;
  int steps = 0;
  for (std::size_t i = after ? Index(*after) + 1 : 0;
       (i = view_.jobs.NextSince(i, since)) < view_.jobs.size(); ++i) {
    const JobId id = JobAt(i);
    if (view_.job(id).changed <= since || !IsMeant(id, request) || !MaySee(principal, id)) {
      continue;
    }
    const bool is_full =
        jobs.jobs_size() == static_cast<int>(request.limit()) || steps >= kMostStepsOfPage;
    if (request.limit() > 0 && is_full) {
      jobs.set_next(jobs.jobs().rbegin()->job());
      return reply;
    }
    v1::JobStatus& job = *jobs.add_jobs();
    job = StatusOf(id, reasons);
    if (request.steps()) {
      PutSteps(id, job);
      steps += job.steps_size();
    }
  }
  return reply;
}

// The number of the view on which an answer of that version rests; 0: it is none of this
// controller's.
std::uint64_t Statuses::VersionOf(std::string_view version) const {
  const std::size_t dash = version.find('-');
  const auto epoch = base::ToInteger<std::uint64_t>(version.substr(0, dash));
  return dash != std::string_view::npos && epoch == options_.epoch
             ? base::ToInteger<std::uint64_t>(version.substr(dash + 1)).value_or(0)
             : 0;
}

// Without its jobs.
v1::NodeStatus Statuses::StatusOfNode(NodeId id) const {
  const NodeSpec& spec = view_.cluster().nodes[Index(id)];
  const NodeEntry& node = view_.node(id);
  const v1::Hello& hello = node.reported->hello;
  v1::NodeStatus status;
  status.set_node(spec.name);
  status.set_address(hello.address());
  status.set_up(node.alive);
  status.set_drained(node.drained);
  status.set_agent_gpus(node.connected && hello.gpus() != spec.gpus ? hello.gpus() : 0);
  status.set_finishing(node.finish_until.has_value());
  status.set_finish_until(node.finish_until.value_or(kEndOfTime) == kEndOfTime
                              ? 0
                              : options_.UnixSeconds(*node.finish_until));
  status.set_reason(node.drained ? node.why_drained : std::string());
  status.set_changed_by(node.changed_by);
  status.set_gpus(spec.gpus);
  *status.mutable_labels() = {spec.labels.begin(), spec.labels.end()};
  status.set_gpu_type(hello.gpu_type().empty() ? spec.gpu_type : hello.gpu_type());
  status.set_cpus(hello.cpus());
  status.set_memory_mib(hello.memory_mib());
  status.set_stated_milli_cpus(spec.capacity.milli_cpus);
  status.set_stated_memory_mib(spec.capacity.memory_mib);
  status.set_data_cache_mib(node.reported->data.cache_mib());
  *status.mutable_data_sets() = node.reported->data.held();
  status.set_silent(view_.IsSilent(id, now_));
  status.set_last_heard(hello.node().empty() ? 0 : options_.UnixSeconds(node.heard));
  return status;
}

namespace {

// `statuses`: by NodeId.
void NamePartitions(const ClusterView& view, std::vector<v1::NodeStatus>& statuses) {
  const model::NodeClasses& classes = *view.classes;
  for (const Partition& partition : view.cluster().partitions) {
    const model::NodeClassSet open = classes.OpenTo(partition.name);
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      if (classes.Has(open, NodeAt(i))) {
        statuses[i].add_partitions(partition.name);
      }
    }
  }
}

v1::PartitionStatus MessageOf(const Partition& partition) {
  v1::PartitionStatus status;
  status.set_name(partition.name);
  status.set_is_default(partition.is_default);
  status.set_max_gpus(partition.most_gpus);
  status.set_max_time_s(Seconds(partition.longest));
  status.set_default_time_s(Seconds(partition.default_time));
  if (partition.default_cpus.milli > 0) {
    status.set_default_cpus(model::TextOf(partition.default_cpus));
  }
  if (partition.default_memory.mib > 0) {
    status.set_default_memory(model::TextOf(partition.default_memory));
  }
  return status;
}

}  // namespace

std::vector<v1::NodeStatus> Statuses::OfNodes(const service::Principal& principal) const {
  const std::size_t nodes = view_.nodes.size();
  std::vector<v1::NodeStatus> statuses(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    statuses[i] = StatusOfNode(NodeAt(i));
  }
  std::vector<std::uint64_t> used(nodes, 0);
  for (const JobId job : *view_.holders) {
    for (const Slice& slice : view_.job(job).record.grant.slices) {
      used[Index(slice.node)] |= slice.gpus;
      if (MaySee(principal, job)) {
        statuses[Index(slice.node)].add_jobs(view_.numbers->Of(job));
      } else {
        statuses[Index(slice.node)].set_other_jobs(statuses[Index(slice.node)].other_jobs() + 1);
      }
    }
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    for (const Leaving& leaving : LeavingOn(view_, NodeAt(i), now_)) {
      used[i] |= leaving.gpus;
      v1::LeavingAttempt& attempt = *statuses[i].add_leaving();
      const std::optional<JobId> job = view_.Find(leaving.job);
      if (job && MaySee(principal, *job)) {
        attempt.set_job(leaving.job);
      }
      AddGpus(leaving.gpus, *attempt.mutable_gpus());
      if (leaving.left_s) {
        attempt.set_left_s(*leaving.left_s);
      }
    }
    statuses[i].set_gpus_used(std::popcount(used[i]));
  }
  NamePartitions(view_, statuses);
  return statuses;
}

v1::ClientReply Statuses::AnswerWithNodes(const service::Principal& principal) const {
  v1::ClientReply reply;
  v1::NodesReply& nodes = *reply.mutable_nodes();
  for (v1::NodeStatus& status : OfNodes(principal)) {
    if (status.gpus() > 0 || status.leaving_size() > 0) {  // otherwise it has been removed
      *nodes.add_nodes() = std::move(status);
    }
  }
  nodes.set_now(options_.UnixSeconds(now_));
  nodes.set_policy(view_.configuration->policy);
  nodes.set_epoch(options_.epoch);
  nodes.set_time_scale(options_.time_scale);
  *nodes.mutable_switches() = MessageOf(view_.switches, options_);
  for (const Partition& partition : view_.cluster().partitions) {
    *nodes.add_partitions() = MessageOf(partition);
  }
  return reply;
}

v1::ClientReply Statuses::AnswerWithConfiguration(const v1::ConfigurationRequest& request) const {
  const engine::Configuration& present = *view_.configuration;
  const PastConfiguration* const past =
      request.has_number() ? view_.configurations->Find(request.number()) : nullptr;
  v1::ClientReply reply;
  if (request.has_number() && past == nullptr && request.number() != present.number) {
    *reply.mutable_error() =
        service::MessageOf({ErrorCode::kNotFound,
                            fmt::format("there is no configuration {}; expected one of 'trainyard "
                                        "config history', which has the last {}",
                                        request.number(), ConfigurationHistory::kMost)});
    return reply;
  }
  v1::ConfigurationReply& answer = *reply.mutable_configuration();
  answer.set_number(past != nullptr ? past->number : present.number);
  answer.set_author(past != nullptr ? past->author : present.author);
  answer.set_since(past != nullptr ? past->since : present.since);
  answer.set_text(past != nullptr ? past->text : present.text);
  answer.set_sha256(io::Sha256Hex(answer.text()));
  const auto add = [&answer](const auto& one) {
    v1::PastConfiguration& added = *answer.add_history();
    added.set_number(one.number);
    added.set_author(one.author);
    added.set_since(one.since);
    added.set_changes(one.changes);
  };
  if (request.history()) {
    for (const PastConfiguration& one : view_.configurations->all()) {
      add(one);
    }
    if (view_.configurations->all().empty()) {
      add(present);
    }
  }
  return reply;
}

// Users see their own, operators all.
Result<v1::UsageReply> Statuses::UsageBy(const service::Principal& principal,
                                         const v1::UsageRequest& request) const {
  HeldUntil all{.days = *view_.usage, .until = now_, .options = options_};
  for (const JobId job : *view_.holders) {
    if (const Holding* const held = view_.job(job).usage.get()) {
      all.held.push_back(held);
    }
  }
  const bool sees_all = !principal.caller() || principal.MayOperate();
  return SumUsage(all, request,
                  sees_all ? std::nullopt : std::optional(principal.caller()->user()));
}

Result<v1::AuditReply> Statuses::Audit(const service::Principal& principal,
                                       const v1::AuditRequest& request) const {
  if (!principal.MayOperate()) {
    return Error{
        ErrorCode::kPermissionDenied,
        principal.text() + " may not see who has done what; expected an operator or an admin"};
  }
  if (options_.audit == nullptr) {
    return Error{ErrorCode::kFailedPrecondition, "this controller keeps no audit trail"};
  }
  return options_.audit->Read(request);
}

v1::ClientReply Statuses::AnswerTo(const v1::ClientRequest& request) const {
  CHECK(service::FamilyOf(request.kind_case()) == service::CallFamily::kReading);
  const service::Principal principal = service::Principal::Of(request);
  v1::ClientReply reply;
  if (const Status status = principal.CheckCaller(options_.asks_who); !status.ok()) {
    *reply.mutable_error() = service::MessageOf(status.error());
    return reply;
  }
  if (request.has_jobs()) {
    return AnswerWithJobs(principal, request.jobs());
  }
  if (request.has_nodes()) {
    return AnswerWithNodes(principal);
  }
  if (request.has_configuration()) {
    return AnswerWithConfiguration(request.configuration());
  }
  if (request.has_usage()) {
    Result<v1::UsageReply> usage = UsageBy(principal, request.usage());
    if (usage.ok()) {
      *reply.mutable_usage() = std::move(usage).value();
    } else {
      *reply.mutable_error() = service::MessageOf(usage.error());
    }
    return reply;
  }
  if (request.has_audit()) {
    Result<v1::AuditReply> audit = Audit(principal, request.audit());
    if (audit.ok()) {
      *reply.mutable_audit() = std::move(audit).value();
    } else {
      *reply.mutable_error() = service::MessageOf(audit.error());
    }
    return reply;
  }
  if (request.has_profiles()) {
    *reply.mutable_profiles() = *view_.profiles;
    return reply;
  }
  *reply.mutable_error() =
      service::MessageOf({ErrorCode::kInvalidArgument, "the controller does not know such a call"});
  return reply;
}

}  // namespace trainyard::live
