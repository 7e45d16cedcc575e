// SPDX-License-Identifier: Apache-2.0
// Calls by which users change what becomes of a job that they have submitted.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "live/access/ignored.h"
#include "live/live_calls.h"
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
std::shared_ptr<JobSpec> Respecified(const JobSpec& before, const v1::JobRequest& wanted,
                                     JobTraits traits) {
  auto spec = std::make_shared<JobSpec>(before);
  spec->gpus = wanted.gpus();
  spec->traits =
      traits == JobTraits{} ? nullptr : std::make_shared<const JobTraits>(std::move(traits));
  spec->launch = wanted.SerializeAsString();
  return spec;
}

// Why a job that is not deferred is given nothing to wait for.
std::string TooLateToWait(const std::string& job, v1::JobState state) {
  return state == v1::WAITING
             ? fmt::format(
                   "job {0} may start already, and begin and dependency are heeded no "
                   "more; 'trainyard hold {0}' keeps it from starting",
                   job)
             : fmt::format(
                   "job {0} is {1}, and begin and dependency are heeded no more; "
                   "'trainyard requeue --hold {0}' stops and holds it",
                   job, StateText(state));
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
      if (number->job > before || !statuses_.MaySee(owner, JobAt(number->job - 1))) {
        return fmt::format("there is no earlier job {}, for which dependency '{}' waits", name,
                           text);
      }
      const LiveJob& job = state_.jobs[JobAt(number->job - 1)];
      const bool is_array = job.array && NumberOf(*job.array) == number->job;
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
  const bool begins_so = begin.has_value() == values.has_begin_s() &&
                         (!begin || IsClockError(Seconds(state_.now - *begin) + values.begin_s()));
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
    if (job.ending || !statuses_.IsDeferred(task)) {
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

void LiveCalls::AddHold(const v1::ClientRequest& from, JobId job, bool hold) {
  NoteChange(from, hold ? "held" : "released", {.job = job});
  add_({.kind = model::EventKind::kHeld, .at = state_.now, .job = job, .held = hold});
}

void LiveCalls::TakeHold(std::uint64_t call, const v1::ClientRequest& from) {
  const v1::HoldRequest& request = from.hold();
  const std::optional<JobId> job =
      FindLive(call, from, request.job(), request.hold() ? "held" : "released");
  if (!job) {
    return;
  }
  const v1::JobState state = statuses_.StateOf(*job);
  if (request.hold() && state != v1::WAITING && state != v1::SUBMITTED) {
    return Refuse(call, kFailedPrecondition,
                  fmt::format("job {0} is {1}; 'trainyard requeue --hold {0}' stops and holds it",
                              state_.jobs.TextOf(*job), StateText(state)));
  }
  AddHold(from, *job, request.hold());
  answers_.push_back([this, call, job] { AnswerWithJob(call, *job, v1::ClientRequest::kHold); });
}

void LiveCalls::TakeRequeue(std::uint64_t call, const v1::ClientRequest& from) {
  const v1::RequeueRequest& request = from.requeue();
  const std::optional<JobId> job = FindLive(call, from, request.job(), "requeued");
  if (!job) {
    return;
  }
  const v1::JobState state = statuses_.StateOf(*job);
  if (state != v1::RUNNING && state != v1::STARTING) {
    return Refuse(call, kFailedPrecondition,
                  fmt::format("job {0} is {1} and holds no GPUs to give back; 'trainyard hold {0}' "
                              "keeps a waiting job from starting",
                              state_.jobs.TextOf(*job), StateText(state)));
  }
  NoteChange(from, "requeued", {.job = *job});
  add_(
      {.kind = model::EventKind::kRequeued, .at = state_.now, .job = *job, .held = request.hold()});
  answers_.push_back([this, call, job] { AnswerWithJob(call, *job, v1::ClientRequest::kRequeue); });
}

// Whether the job may ask for that many GPUs instead; else the call is refused. A running one is
// resized, which is another thing.
bool LiveCalls::MayCountAnew(std::uint64_t call, JobId job, const v1::JobRequest& wanted) {
  const v1::JobState state = statuses_.StateOf(job);
  if (state != v1::WAITING && state != v1::SUBMITTED) {
    Refuse(call, kFailedPrecondition,
           fmt::format("job {0} is {1}; 'trainyard resize --gpus {2} {0}' changes the GPUs of a "
                       "running job",
                       state_.jobs.TextOf(job), StateText(state), wanted.gpus()));
    return false;
  }
  const std::variant<JobSpec, v1::CallError> judged = Judged(wanted);
  if (const auto* const refusal = std::get_if<v1::CallError>(&judged)) {
    Refuse(call, refusal->code(), refusal->message());
    return false;
  }
  return true;
}

void LiveCalls::TakeUpdate(std::uint64_t call, const v1::ClientRequest& from) {
  const v1::UpdateRequest& request = from.update();
  const std::optional<JobId> id = FindLive(call, from, request.job(), "updated");
  if (!id) {
    return;
  }
  for (const std::string& field : request.fields()) {
    if (std::find(kChangeable.begin(), kChangeable.end(), field) == kChangeable.end()) {
      return Refuse(call, kInvalidArgument,
                    "'" + field +
                        "' of a job cannot be updated; expected time, begin, dependency, priority, "
                        "name, queue or gpus");
    }
  }
  if ((Names(request, "begin") || Names(request, "dependency")) && !statuses_.IsDeferred(*id)) {
    return Refuse(call, kFailedPrecondition,
                  TooLateToWait(state_.jobs.TextOf(*id), statuses_.StateOf(*id)));
  }
  if (!WaitsAsItsArray(*id, request)) {
    return Refuse(call, kFailedPrecondition,
                  "begin and dependency are those of the whole array; expected job " +
                      std::to_string(NumberOf(*state_.jobs[*id].array)));
  }
  const LiveJob& job = state_.jobs[*id];
  v1::JobRequest wanted = WithValues(*job.request, request);
  if (wanted.name().empty()) {
    return Refuse(call, kInvalidArgument, "the name is empty; expected another one");
  }
  if (Names(request, "gpus") && !MayCountAnew(call, *id, wanted)) {
    return;
  }
  const Result<model::JobDraft> draft = DraftOf(wanted, state_.now, state_.cluster);
  if (!draft.ok()) {
    return Refuse(call, kInvalidArgument, draft.error().message);
  }
  if (std::string why = WhyNotAwaited(wanted, Index(*id)); !why.empty()) {
    return Refuse(call, kFailedPrecondition, std::move(why));
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
  const auto spec = Respecified(*job.spec, wanted, std::move(traits));
  spec->name = wanted.name();
  spec->queue = wanted.queue();
  spec->priority = draft.value().spec.priority;
  NoteChange(from, "updated", {.job = *id});
  UpdateTasks(*id, request, *spec);
  add_({.kind = model::EventKind::kUpdated, .at = state_.now, .job = *id, .spec = spec});
  if (Names(request, "gpus")) {  // policies are told of this apart
    add_({.kind = model::EventKind::kResize, .at = state_.now, .job = *id, .gpus = wanted.gpus()});
  }
  answers_.push_back([this, call, id, ignored = IgnoredOf(request, state_.options)] {
    v1::ClientReply reply;
    *reply.mutable_update()->mutable_status() = statuses_.StatusOf(*id);
    reply.mutable_update()->mutable_ignored()->Assign(ignored.begin(), ignored.end());
    output_.Reply(call, std::move(reply));
  });
}

}  // namespace trainyard::live
