// SPDX-License-Identifier: Apache-2.0
// Calls by which users change what becomes of jobs that they have submitted. All jobs of a call
// change at one time: one fact, or one for each job where these differ, in one entry of the
// journal.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "live/calls/ignored_options.h"
#include "live/calls/live_calls.h"
#include "live/calls/signals.h"
#include "model/conditions.h"
#include "model/job_fields.h"

namespace trainyard::live {
namespace {

constexpr std::array<std::string_view, 7> kChangeable{"time", "begin", "dependency", "priority",
                                                      "name", "queue", "gpus"};

constexpr double kLeastSeconds = 1e-6;

// What the job would ask for. Fields that are named and not stated are taken away.
v1::JobRequest WithValues(v1::JobRequest job, const v1::UpdateRequest& update) {
  const v1::JobRequest& values = update.values();
  if (Names(update, "time")) {
    job.clear_time_s();
    if (values.has_time_s()) {
      job.set_time_s(values.time_s());
    }
  }
  if (Names(update, "begin")) {
    job.clear_begin_s();
    if (values.has_begin_s()) {
      job.set_begin_s(values.begin_s());
    }
  }
  if (Names(update, "dependency")) {
    job.set_dependency(values.dependency());
  }
  if (Names(update, "name")) {
    job.set_name(values.name());
  }
  if (Names(update, "queue")) {
    job.set_queue(values.queue());
  }
  if (Names(update, "gpus")) {
    job.set_gpus(values.gpus());
    job.set_min_gpus(values.min_gpus());
    job.set_max_gpus(values.max_gpus());
  }
  if (Names(update, "priority")) {
    job.mutable_launch()->set_priority(values.launch().priority());
  }
  return job;
}

// As before, but with what the request says now, and these traits.
std::shared_ptr<JobSpec> Respecified(const JobSpec& before, v1::JobRequest wanted,
                                     JobTraits traits) {
  if (wanted.submitted_as().empty()) {  // for who submits it again with its token
    wanted.set_submitted_as(before.launch);
  }
  auto spec = std::make_shared<JobSpec>(before);
  spec->gpus = wanted.gpus();
  spec->traits =
      traits == JobTraits{} ? nullptr : std::make_shared<const JobTraits>(std::move(traits));
  spec->launch = wanted.SerializeAsString();
  return spec;
}

// Why a job that is not deferred is given nothing to wait for.
std::string TooLateToWait(v1::JobState state) {
  return state == v1::WAITING
             ? "job {} may start already, and begin and dependency can no longer be changed; "
               "'trainyard hold {}' keeps it from starting"
             : "job {} is " + StateText(state) +
                   ", and begin and dependency can no longer be changed; 'trainyard requeue --hold "
                   "{}' stops and holds it";
}

// What is wrong with the call, whatever its jobs; empty: nothing.
std::string MistakeOf(const v1::ClientRequest& from) {
  for (const std::string& field : from.update().fields()) {
    if (std::find(kChangeable.begin(), kChangeable.end(), field) == kChangeable.end()) {
      return "'" + field +
             "' of a job cannot be updated; expected time, begin, dependency, priority, name, "
             "queue or gpus";
    }
  }
  return from.has_signal() ? MistakeOfSignal(from.signal().signal()) : std::string();
}

Target TargetOf(const v1::ClientRequest& from) {
  const auto of = [](const auto& request) {
    return Target{.number = request.job(),
                  .selection = request.has_selection() ? &request.selection() : nullptr};
  };
  switch (from.kind_case()) {
    case v1::ClientRequest::kCancel:
      return of(from.cancel());
    case v1::ClientRequest::kHold:
      return of(from.hold());
    case v1::ClientRequest::kRequeue:
      return of(from.requeue());
    case v1::ClientRequest::kUpdate:
      return of(from.update());
    default:
      return of(from.signal());
  }
}

void PutChanged(v1::ClientRequest::KindCase kind, bool of_selection, v1::Changed changed,
                v1::ClientReply& reply) {
  const auto put = [&](auto& part) {
    if (of_selection) {
      *part.mutable_changed() = std::move(changed);
    } else {
      *part.mutable_status() = std::move(*changed.mutable_jobs(0));
    }
  };
  switch (kind) {
    case v1::ClientRequest::kCancel:
      return put(*reply.mutable_cancel());
    case v1::ClientRequest::kHold:
      return put(*reply.mutable_hold());
    case v1::ClientRequest::kRequeue:
      return put(*reply.mutable_requeue());
    case v1::ClientRequest::kUpdate:
      return put(*reply.mutable_update());
    default:
      return put(*reply.mutable_signal());
  }
}

// Why it is not held or released. `anew`: that has been asked for at this time already.
Refusal WhyNotHeld(const LiveState& state_of, const Statuses& statuses,
                   const v1::ClientRequest& from, JobId id, bool anew) {
  const v1::JobState state = statuses.StateOf(id);
  if (from.hold().hold()) {
    const bool waits = state == v1::WAITING || state == v1::SUBMITTED || state == v1::STOPPING;
    return waits ? Refusal{}
                 : Refusal{.code = kFailedPrecondition,
                           .text = "job {} is " + StateText(state) +
                                   " and goes on, not held; 'trainyard requeue --hold {}' stops "
                                   "and holds it"};
  }
  if (!statuses.IsHeld(id) && !anew) {
    return {.code = kFailedPrecondition, .text = "job {} is not held", .quiet = true};
  }
  const std::string holder = state_of.changes.HolderOf(id);
  return MayUndo(from, holder)
             ? Refusal{}
             : Refusal{.code = kPermissionDenied,
                       .text = CallerText(from) + " may not release job {}: it is held by " +
                               holder + "; expected an operator or an admin"};
}

// "cancelled": what the call would have the jobs be.
const char* AskedOf(const v1::ClientRequest& from) {
  switch (from.kind_case()) {
    case v1::ClientRequest::kCancel:
      return "cancelled";
    case v1::ClientRequest::kRequeue:
      return "requeued";
    case v1::ClientRequest::kUpdate:
      return "updated";
    case v1::ClientRequest::kSignal:
      return "sent a signal";
    default:
      return from.hold().hold() ? "held" : "released";
  }
}

Refusal WhyNotRequeued(v1::JobState state) {
  if (state == v1::RUNNING || state == v1::STARTING) {
    return {};
  }
  return {.code = kFailedPrecondition,
          .text = "job {} is " + StateText(state) +
                  " and holds no GPUs to give back; 'trainyard hold {}' keeps a waiting job from "
                  "starting"};
}

Refusal WhyNotSignalled(v1::JobState state, bool has_workers) {
  if (state == v1::RUNNING && has_workers) {
    return {};
  }
  return {.code = kFailedPrecondition,
          .text = "job {} is " + StateText(state) + " and has no workers to signal",
          .quiet = true};
}

// Why the call does nothing to the job, but for what is wrong with an update.
Refusal WhyNotChanged(const LiveState& state_of, const Statuses& statuses,
                      const v1::ClientRequest& from, JobId id, bool anew) {
  const v1::JobState state = statuses.StateOf(id);
  if (state_of.jobs[id].ending) {
    return {.code = kFailedPrecondition,
            .text = std::string("job {} has ended and cannot be ") + AskedOf(from)};
  }
  switch (from.kind_case()) {
    case v1::ClientRequest::kHold:
      return WhyNotHeld(state_of, statuses, from, id, anew);
    case v1::ClientRequest::kRequeue:
      return WhyNotRequeued(state);
    case v1::ClientRequest::kSignal:
      return WhyNotSignalled(state, state_of.attempts[id].wanted() != nullptr);
    default:
      return {};
  }
}

std::vector<JobId> OthersOf(const std::vector<JobId>& jobs) {
  return {jobs.begin() + 1, jobs.end()};
}

}  // namespace

std::string LiveCalls::WhyNotAwaited(const v1::JobRequest& waiting, std::size_t before) const {
  const std::string& text = waiting.dependency();
  if (text.empty()) {
    return {};
  }
  v1::ClientRequest owner;  // may not learn of a job by waiting for it
  if (waiting.launch().has_owner()) {
    *owner.mutable_caller() = waiting.launch().owner();
  }
  const Result<model::Dependency> dependency = model::ParseDependency(text);
  if (!dependency.ok()) {
    return dependency.error().message;
  }
  for (const model::Condition& condition : dependency.value().conditions) {
    for (const std::string& name : condition.jobs) {
      const std::optional<model::JobNumber> number = model::ParseJobNumber(name);
      if (!number) {
        return fmt::format(
            "'{}' in dependency '{}' is no job; expected its number, or ARRAY_INDEX for a task of "
            "an array",
            name, text);
      }
      const std::optional<JobId> earlier = state_.numbers.Find(number->job, before);
      if (!earlier || !views_.Now().MaySee(owner, *earlier)) {
        return fmt::format("there is no earlier job {}, for which dependency '{}' waits", name,
                           text);
      }
      const LiveJob& job = state_.jobs[*earlier];
      const bool is_array = job.array == earlier;
      const Result<model::ArrayTasks> tasks =
          model::ParseArray(model::PartOf<JobTraits>(*job.spec).array);
      if (number->task && !(is_array && tasks.ok() &&
                            std::binary_search(tasks.value().indices.begin(),
                                               tasks.value().indices.end(), *number->task))) {
        return fmt::format("there is no task {}, for which dependency '{}' waits", name, text);
      }
    }
  }
  return {};
}

// False: the job is a task of an array, though not the first, and would wait for something else.
bool LiveCalls::WaitsAsItsArray(JobId task, const v1::UpdateRequest& request) const {
  const LiveJob& job = state_.jobs[task];
  if (!job.array || *job.array == task) {
    return true;
  }
  const std::optional<TimePoint>& begin = model::PartOf<JobTraits>(*job.spec).begin;
  const v1::JobRequest& values = request.values();
  const bool begins_so =
      begin.has_value() == values.has_begin_s() &&
      (!begin || IsClockError(state_.options, Seconds(state_.now - *begin) + values.begin_s()));
  return (!Names(request, "begin") || begins_so) &&
         (!Names(request, "dependency") || job.request->dependency() == values.dependency());
}

// The tasks of the array that have not had their turn wait for what its first one waits for.
void LiveCalls::UpdateTasks(JobId first, const v1::UpdateRequest& request, const JobSpec& as) {
  if (!Names(request, "begin") && !Names(request, "dependency")) {
    return;
  }
  const JobTraits& terms = model::PartOf<JobTraits>(as);
  for (JobId task = JobAt(Index(first) + 1);
       state_.jobs.has(task) && state_.jobs[task].array == first; task = JobAt(Index(task) + 1)) {
    const LiveJob& job = state_.jobs[task];
    if (job.ending || !views_.Now().IsDeferred(task)) {
      continue;
    }
    v1::JobRequest wanted = *job.request;
    JobTraits traits = model::PartOf<JobTraits>(*job.spec);
    traits.begin = terms.begin;
    traits.dependency = terms.dependency;
    wanted.set_dependency(terms.dependency);
    wanted.clear_begin_s();
    if (terms.begin) {
      wanted.set_begin_s(std::max(kLeastSeconds, Seconds(*terms.begin - job.submitted)));
    }
    add_({.kind = model::EventKind::kUpdated,
          .at = state_.now,
          .job = task,
          .spec = Respecified(*job.spec, wanted, std::move(traits))});
  }
}

// --------------------------------------------------------------------------------------- changes

LiveCalls::Chosen LiveCalls::Choose(const v1::ClientRequest& from, Selected& selected) const {
  Chosen chosen;
  for (const JobId id : selected.jobs()) {
    if (from.has_cancel() && views_.Now().StateOf(id) == v1::CANCELLED) {
      chosen.as_wanted.push_back(id);  // the call is repeated
      continue;
    }
    Refusal why = WhyNotChanged(state_, views_.Now(), from, id, held_anew_.contains(id));
    if (why.text.empty() && from.has_update()) {
      const std::optional<JobId>& array = state_.jobs[id].array;
      const bool with_array = array && *array != id &&
                              std::binary_search(chosen.jobs.begin(), chosen.jobs.end(), *array);
      std::variant<Update, Refusal> update = UpdateOf(from.update(), id, with_array);
      if (auto* const refusal = std::get_if<Refusal>(&update)) {
        why = std::move(*refusal);
      } else {
        chosen.updates.push_back(std::move(std::get<Update>(update)));
      }
    }
    if (why.text.empty()) {
      chosen.jobs.push_back(id);
    } else {
      selected.Leave(id, std::move(why));
    }
  }
  return chosen;
}

void LiveCalls::TakeChange(std::uint64_t call, const v1::ClientRequest& from) {
  if (std::string mistake = MistakeOf(from); !mistake.empty()) {
    return Refuse(call, kInvalidArgument, std::move(mistake));
  }
  const Target target = TargetOf(from);
  Selected selected(state_, views_.Now(), from, target, known_jobs_);
  auto [jobs, as_wanted, updates] = Choose(from, selected);
  std::vector<v1::LeftOut> left = selected.LeftOut(jobs.empty() && as_wanted.empty());
  if (jobs.empty() && as_wanted.empty() && left.size() < 2) {
    return left.empty() ? Refuse(call, kNotFound, "no job that has not ended fits")
                        : Refuse(call, left.front().code(), left.front().why());
  }
  if (from.has_update()) {
    AddUpdates(from, updates);
  } else if (!jobs.empty()) {
    AddChange(from, jobs);
  }
  jobs.insert(jobs.end(), as_wanted.begin(), as_wanted.end());
  answers_.push_back([this, call, jobs = std::move(jobs), left = std::move(left),
                      kind = from.kind_case(), of_selection = target.selection != nullptr,
                      ignored = IgnoredOf(from.update(), *state_.configuration)] {
    v1::Changed changed;
    for (const JobId job : jobs) {
      *changed.add_jobs() = views_.Now().ChangedStatusOf(job);
    }
    changed.mutable_left_out()->Assign(left.begin(), left.end());
    v1::ClientReply reply;
    PutChanged(kind, of_selection, std::move(changed), reply);
    if (kind == v1::ClientRequest::kUpdate) {
      reply.mutable_update()->mutable_ignored()->Assign(ignored.begin(), ignored.end());
    }
    output_.Reply(call, std::move(reply));
  });
}

void LiveCalls::AddChange(const v1::ClientRequest& from, const std::vector<JobId>& jobs) {
  const auto add = [&](std::string_view what, model::EventKind kind, bool held) {
    NoteChange(from, what, {.job = jobs.front(), .other_jobs = OthersOf(jobs)});
    add_({.kind = kind,
          .at = state_.now,
          .job = jobs.front(),
          .others = OthersOf(jobs),
          .held = held});
  };
  switch (from.kind_case()) {
    case v1::ClientRequest::kCancel:
      return add("cancelled", model::EventKind::kCancel, false);
    case v1::ClientRequest::kHold:
      return AddHold(from, jobs, from.hold().hold());
    case v1::ClientRequest::kRequeue:
      held_anew_.insert(jobs.begin(), jobs.end());
      return add(from.requeue().hold() ? "requeued and held" : "requeued",
                 model::EventKind::kRequeued, from.requeue().hold());
    default:
      NoteChange(from, "sent " + SignalText(from.signal().signal()),
                 {.job = jobs.front(), .other_jobs = OthersOf(jobs)});
      for (const JobId job : jobs) {  // once that is in the journal
        const LiveAttempt& attempt = *state_.attempts[job].wanted();
        v1::ControllerMessage message;
        message.mutable_signal()->mutable_id()->set_job(state_.numbers.Of(job));
        message.mutable_signal()->mutable_id()->set_attempt(attempt.number);
        message.mutable_signal()->set_signal(from.signal().signal());
        answers_.push_back([this, nodes = attempt.nodes(), message = std::move(message)] {
          for (const NodeId node : nodes) {
            messages_.Send(node, message);
          }
        });
      }
      return;
  }
}

// Who may not release a job does not take its hold over either.
void LiveCalls::AddHold(const v1::ClientRequest& from, const std::vector<JobId>& jobs, bool hold) {
  std::vector<JobId> all = jobs;
  std::erase_if(all, [&](JobId job) {
    return hold && Index(job) < known_jobs_ && views_.Now().IsHeld(job) &&
           !MayUndo(from, state_.changes.HolderOf(job));
  });
  if (all.empty()) {
    return;
  }
  held_anew_.insert(all.begin(), all.end());
  NoteChange(from, hold ? "held" : "released", {.job = all.front(), .other_jobs = OthersOf(all)});
  add_({.kind = model::EventKind::kHeld,
        .at = state_.now,
        .job = all.front(),
        .others = OthersOf(all),
        .held = hold});
}

// ---------------------------------------------------------------------------------------- updates

// What the job would be. `with_array`: the first task of its array is updated, too.
std::variant<LiveCalls::Update, Refusal> LiveCalls::UpdateOf(const v1::UpdateRequest& request,
                                                             JobId id, bool with_array) const {
  const LiveJob& job = state_.jobs[id];
  const v1::JobState state = views_.Now().StateOf(id);
  const bool waits_anew = Names(request, "begin") || Names(request, "dependency");
  if (waits_anew && !views_.Now().IsDeferred(id)) {
    return Refusal{.code = kFailedPrecondition, .text = TooLateToWait(state)};
  }
  if (!with_array && !WaitsAsItsArray(id, request)) {
    return Refusal{.code = kFailedPrecondition,
                   .text = "begin and dependency are those of the whole array; expected job " +
                           std::to_string(state_.numbers.Of(*job.array))};
  }
  v1::JobRequest wanted = WithValues(*job.request, request);
  if (wanted.name().empty()) {
    return Refusal{.code = kInvalidArgument, .text = "the name is empty; expected another one"};
  }
  if (Names(request, "gpus") && state != v1::WAITING && state != v1::SUBMITTED) {
    return Refusal{.code = kFailedPrecondition,
                   .text = "job {} is " + StateText(state) + "; 'trainyard resize --gpus " +
                           std::to_string(wanted.gpus()) +
                           " {}' changes the GPUs of a running job"};
  }
  const Result<model::JobDraft> draft = DraftOf(wanted, state_.now, state_.cluster);
  if (!draft.ok()) {
    return Refusal{.code = ErrorOf(draft.error()).code(), .text = draft.error().message};
  }
  if (Names(request, "gpus")) {
    const std::variant<JobSpec, v1::CallError> judged = JudgedDraft(draft.value(), wanted);
    if (const auto* const refusal = std::get_if<v1::CallError>(&judged)) {
      return Refusal{.code = refusal->code(), .text = refusal->message()};
    }
  }
  if (std::string why = WhyNotAwaited(wanted, Index(id)); !why.empty()) {
    return Refusal{.code = kFailedPrecondition, .text = std::move(why)};
  }
  JobTraits traits = model::PartOf<JobTraits>(*job.spec);
  traits.time_limit = draft.value().traits.time_limit;
  traits.dependency = wanted.dependency();
  if (Names(request, "begin")) {  // the request counts from the submission
    traits.begin = draft.value().traits.begin;
    if (traits.begin) {
      wanted.set_begin_s(std::max(kLeastSeconds, Seconds(*traits.begin - job.submitted)));
    }
  }
  traits.range = draft.value().traits.range;
  auto spec = Respecified(*job.spec, wanted, std::move(traits));
  spec->name = wanted.name();
  spec->queue = wanted.queue();
  spec->priority = draft.value().spec.priority;
  return Update{.job = id, .spec = std::move(spec)};
}

// A fact for each job: each has a specification of its own.
void LiveCalls::AddUpdates(const v1::ClientRequest& from, const std::vector<Update>& updates) {
  if (updates.empty()) {
    return;
  }
  const v1::UpdateRequest& request = from.update();
  std::vector<JobId> jobs;
  jobs.reserve(updates.size());
  for (const Update& update : updates) {
    jobs.push_back(update.job);
  }
  NoteChange(from, "updated", {.job = jobs.front(), .other_jobs = OthersOf(jobs)});
  for (const Update& update : updates) {
    const std::optional<JobId>& array = state_.jobs[update.job].array;
    if (!array || *array == update.job) {
      UpdateTasks(update.job, request, *update.spec);
    }
    add_({.kind = model::EventKind::kUpdated,
          .at = state_.now,
          .job = update.job,
          .spec = update.spec});
    if (Names(request, "gpus")) {  // policies are told of this apart
      add_({.kind = model::EventKind::kResize,
            .at = state_.now,
            .job = update.job,
            .gpus = update.spec->gpus});
    }
  }
}

}  // namespace trainyard::live
