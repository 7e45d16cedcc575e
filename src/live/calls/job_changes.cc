// SPDX-License-Identifier: Apache-2.0
#include "live/calls/job_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/try.h"
#include "live/calls/ignored_options.h"
#include "live/jobs/job_request.h"
#include "live/jobs/updatable_fields.h"
#include "model/job_fields.h"
#include "service/call_error.h"
#include "service/calls.h"
#include "service/signals.h"

namespace trainyard::live {
namespace {

constexpr double kLeastSeconds = 1e-6;

// What the job would ask for. Fields that are named and not stated are taken away.
v1::JobRequest WithValues(v1::JobRequest job, const v1::UpdateRequest& update) {
  for (const UpdatableField& field : UpdatableFields()) {
    if (Names(update, field.name)) {
      field.set(update.values(), job);
    }
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

// All that is wrong with it, which has a line each.
Error InOneLine(Error error) {
  for (std::size_t at = error.message.find('\n'); at != std::string::npos;
       at = error.message.find('\n', at)) {
    error.message.replace(at, 1, "; ");
  }
  return error;
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

// Whether it is of what the job asks for beside GPUs.
bool NamesRequest(const v1::UpdateRequest& request) {
  bool names = false;
  model::ForEachJobField<model::IsInRequests>(
      [&]<typename Owner, typename T>(const model::JobField<Owner, T>& field) {
        names = names || (std::is_same_v<Owner, NodeRequest> && Names(request, field.info.name));
      });
  return names;
}

// Errors: the call is wrong, whatever its jobs.
Status CheckRequest(const v1::ClientRequest& request) {
  for (const std::string& field : request.update().fields()) {
    if (UpdatableFieldOf(field) == nullptr) {
      return InvalidArgument("'" + field + "' of a job cannot be updated; expected " +
                             UpdatableNames());
    }
  }
  return request.has_signal() ? service::CheckSignal(request.signal().signal()) : Status();
}

Target TargetOf(const v1::ClientRequest& request) {
  Target target;
  service::VisitRequest(request, [&](const auto& part) {
    if constexpr (requires { part.selection(); }) {
      target.number = part.job();
      target.selection = part.has_selection() ? &part.selection() : nullptr;
    }
  });
  return target;
}

v1::ClientReply ReplyWith(v1::ClientRequest::KindCase kind, bool of_selection,
                          v1::Changed changed) {
  v1::ClientReply reply;
  service::MakeReply(kind, reply, [&](auto& part) {
    if constexpr (requires { part.mutable_changed(); }) {
      if (of_selection) {
        *part.mutable_changed() = std::move(changed);
      } else {
        *part.mutable_status() = std::move(*changed.mutable_jobs(0));
      }
    }
  });
  return reply;
}

// "cancelled": what the call would have the jobs be.
const char* AskedOf(const v1::ClientRequest& request) {
  switch (request.kind_case()) {
    case v1::ClientRequest::kCancel:
      return "cancelled";
    case v1::ClientRequest::kHold:
      return request.hold().hold() ? "held" : "released";
    case v1::ClientRequest::kRequeue:
      return "requeued";
    case v1::ClientRequest::kUpdate:
      return "updated";
    case v1::ClientRequest::kSignal:
      return "sent a signal";
    default:
      break;
  }
  CHECK(service::FamilyOf(request.kind_case()) == service::CallFamily::kJobChange);
  return "changed";
}

std::optional<Refusal> CheckRequeue(v1::JobState state, const v1::JobRequest& job) {
  if (job.no_requeue()) {
    return Refusal{FailedPrecondition(
        "job {} was submitted with --no-requeue and does not start again; 'trainyard cancel {}' "
        "ends it")};
  }
  if (state == v1::RUNNING || state == v1::STARTING) {
    return std::nullopt;
  }
  return Refusal{FailedPrecondition("job {} is " + StateText(state) +
                                    " and holds no GPUs to give back; 'trainyard hold {}' keeps a "
                                    "waiting job from starting")};
}

std::optional<Refusal> CheckSignalled(v1::JobState state, bool has_workers) {
  if (state == v1::RUNNING && has_workers) {
    return std::nullopt;
  }
  return Refusal{.error = FailedPrecondition("job {} is " + StateText(state) +
                                             " and has no workers to signal"),
                 .quiet = true};
}

std::vector<JobId> OthersOf(const std::vector<JobId>& jobs) {
  return {jobs.begin() + 1, jobs.end()};
}

}  // namespace

// --------------------------------------------------------------------------------------- changes

// Why it is not held or released.
std::optional<Refusal> JobChanges::CheckHold(const Call& call, bool hold, JobId id) const {
  const v1::JobState state = context_.statuses().StateOf(id);
  if (hold) {
    if (state == v1::WAITING || state == v1::SUBMITTED || state == v1::STOPPING) {
      return std::nullopt;
    }
    return Refusal{FailedPrecondition("job {} is " + StateText(state) +
                                      " and goes on, not held; 'trainyard requeue --hold {}' stops "
                                      "and holds it")};
  }
  if (!context_.statuses().IsHeld(id) && !held_anew_.contains(id)) {
    return Refusal{.error = FailedPrecondition("job {} is not held"), .quiet = true};
  }
  const std::string holder = state_.changes.HolderOf(id);
  if (call.principal.MayUndo(holder)) {
    return std::nullopt;
  }
  return Refusal{PermissionDenied(call.principal.text() +
                                  " may not release job {}: it is held by " + holder +
                                  "; expected an operator or an admin")};
}

// Why the call does nothing to the job, but for what is wrong with an update.
std::optional<Refusal> JobChanges::CheckChange(const Call& call, const v1::ClientRequest& request,
                                               JobId id) const {
  if (state_.jobs[id].ending) {
    return Refusal{
        FailedPrecondition(std::string("job {} has ended and cannot be ") + AskedOf(request))};
  }
  const v1::JobState state = context_.statuses().StateOf(id);
  switch (request.kind_case()) {
    case v1::ClientRequest::kHold:
      return CheckHold(call, request.hold().hold(), id);
    case v1::ClientRequest::kRequeue:
      return CheckRequeue(state, *state_.jobs[id].request);
    case v1::ClientRequest::kSignal:
      return CheckSignalled(state, state_.attempts[id].wanted() != nullptr);
    default:
      return std::nullopt;
  }
}

JobChanges::Chosen JobChanges::Choose(const Call& call, const v1::ClientRequest& request,
                                      Selected& selected) const {
  Chosen chosen;
  for (const JobId id : selected.jobs()) {
    if (request.has_cancel() && context_.statuses().StateOf(id) == v1::CANCELLED) {
      chosen.as_wanted.push_back(id);  // the call is repeated
      continue;
    }
    std::optional<Refusal> why = CheckChange(call, request, id);
    if (!why && request.has_update()) {
      const std::optional<JobId>& array = state_.jobs[id].array;
      const bool with_array = array && *array != id &&
                              std::binary_search(chosen.jobs.begin(), chosen.jobs.end(), *array);
      Result<Update> update = UpdateOf(request.update(), id, with_array);
      if (update.ok()) {
        chosen.updates.push_back(std::move(update).value());
      } else {
        why = Refusal{InOneLine(update.error())};
      }
    }
    if (why) {
      selected.Leave(id, *std::move(why));
    } else {
      chosen.jobs.push_back(id);
    }
  }
  return chosen;
}

Result<Reply> JobChanges::Change(const Call& call, const v1::ClientRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  const Target target = TargetOf(request);
  Selected selected(context_, call, target);
  auto [jobs, as_wanted, updates] = Choose(call, request, selected);
  std::vector<v1::LeftOut> left = selected.LeftOut(jobs.empty() && as_wanted.empty());
  if (jobs.empty() && as_wanted.empty() && left.size() < 2) {
    return left.empty() ? NotFound("no job that has not ended fits")
                        : Error{service::CodeOf(left.front().code()), left.front().why()};
  }
  AfterFacts after;
  if (request.has_update()) {
    AddUpdates(call, request.update(), updates);
  } else if (!jobs.empty()) {
    after = AddChange(call, request, jobs);
  }
  jobs.insert(jobs.end(), as_wanted.begin(), as_wanted.end());
  return Reply([this, after = std::move(after), jobs = std::move(jobs), left = std::move(left),
                kind = request.kind_case(), of_selection = target.selection != nullptr,
                ignored = IgnoredOf(request.update(),
                                    *state_.configuration)]() -> std::optional<v1::ClientReply> {
    if (after) {
      after();
    }
    v1::Changed changed;
    for (const JobId job : jobs) {
      *changed.add_jobs() = context_.statuses().ChangedStatusOf(job);
    }
    changed.mutable_left_out()->Assign(left.begin(), left.end());
    v1::ClientReply reply = ReplyWith(kind, of_selection, std::move(changed));
    if (reply.has_update()) {
      reply.mutable_update()->mutable_ignored()->Assign(ignored.begin(), ignored.end());
    }
    return reply;
  });
}

// One fact, alike for all the jobs.
template <model::fact::OfSeveral T>
void JobChanges::AddFactOf(const Call& call, std::string_view what, const std::vector<JobId>& jobs,
                           T fact) {
  context_.NoteChange(call, what, {.job = jobs.front(), .other_jobs = OthersOf(jobs)});
  fact.job = jobs.front();
  fact.others = OthersOf(jobs);
  context_.Add(std::move(fact));
}

JobChanges::AfterFacts JobChanges::AddChange(const Call& call, const v1::ClientRequest& request,
                                             const std::vector<JobId>& jobs) {
  switch (request.kind_case()) {
    case v1::ClientRequest::kCancel:
      AddFactOf(call, "cancelled", jobs, model::fact::Cancelled{});
      return {};
    case v1::ClientRequest::kHold:
      Hold(call, jobs, request.hold().hold());
      return {};
    case v1::ClientRequest::kRequeue:
      held_anew_.insert(jobs.begin(), jobs.end());
      AddFactOf(call, request.requeue().hold() ? "requeued and held" : "requeued", jobs,
                model::fact::Requeued{.held = request.requeue().hold()});
      return {};
    default:
      CHECK(request.has_signal());
      return Signal(call, request.signal().signal(), jobs);
  }
}

// The note is the only fact: the decision heeds no signals.
JobChanges::AfterFacts JobChanges::Signal(const Call& call, int signal,
                                          const std::vector<JobId>& jobs) {
  context_.NoteChange(call, "sent " + service::SignalText(signal),
                      {.job = jobs.front(), .other_jobs = OthersOf(jobs)});
  std::vector<std::pair<std::vector<NodeId>, v1::ControllerMessage>> messages;
  for (const JobId job : jobs) {
    const LiveAttempt& attempt = *state_.attempts[job].wanted();
    auto& [nodes, message] = messages.emplace_back(attempt.nodes(), v1::ControllerMessage());
    message.mutable_signal()->mutable_id()->set_job(state_.numbers.Of(job));
    message.mutable_signal()->mutable_id()->set_attempt(attempt.number);
    message.mutable_signal()->set_signal(signal);
  }
  return [this, messages = std::move(messages)] {
    for (const auto& [nodes, message] : messages) {
      for (const NodeId node : nodes) {
        messages_.Send(node, message);
      }
    }
  };
}

void JobChanges::Hold(const Call& call, const std::vector<JobId>& jobs, bool hold) {
  std::vector<JobId> all = jobs;
  std::erase_if(all, [&](JobId job) {
    return hold && Index(job) < context_.known_jobs() && context_.statuses().IsHeld(job) &&
           !call.principal.MayUndo(state_.changes.HolderOf(job));
  });
  if (all.empty()) {
    return;
  }
  held_anew_.insert(all.begin(), all.end());
  AddFactOf(call, hold ? "held" : "released", all, model::fact::Held{.held = hold});
}

// ---------------------------------------------------------------------------------------- updates

// False: the job is a task of an array, though not the first, and would wait for something else.
bool JobChanges::WaitsAsItsArray(JobId task, const v1::UpdateRequest& request) const {
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
void JobChanges::UpdateTasks(JobId first, const v1::UpdateRequest& request, const JobSpec& as) {
  if (!Names(request, "begin") && !Names(request, "dependency")) {
    return;
  }
  const JobTraits& terms = model::PartOf<JobTraits>(as);
  for (JobId task = JobAt(Index(first) + 1);
       state_.jobs.has(task) && state_.jobs[task].array == first; task = JobAt(Index(task) + 1)) {
    const LiveJob& job = state_.jobs[task];
    if (job.ending || !context_.statuses().IsDeferred(task)) {
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
    context_.Add(model::fact::Updated{.job = task,
                                      .spec = Respecified(*job.spec, wanted, std::move(traits))});
  }
}

// Errors: the job can wait for nothing else than it does.
Status JobChanges::CheckWaiting(const v1::UpdateRequest& request, JobId id, bool with_array) const {
  const bool waits_anew = Names(request, "begin") || Names(request, "dependency");
  if (waits_anew && !context_.statuses().IsDeferred(id)) {
    return FailedPrecondition(TooLateToWait(context_.statuses().StateOf(id)));
  }
  if (!with_array && !WaitsAsItsArray(id, request)) {
    return FailedPrecondition("begin and dependency are those of the whole array; expected job " +
                              std::to_string(state_.numbers.Of(*state_.jobs[id].array)));
  }
  return {};
}

// What the job would be. `with_array`: the first task of its array is updated, too.
Result<JobChanges::Update> JobChanges::UpdateOf(const v1::UpdateRequest& request, JobId id,
                                                bool with_array) const {
  const LiveJob& job = state_.jobs[id];
  const v1::JobState state = context_.statuses().StateOf(id);
  RETURN_IF_ERROR(CheckWaiting(request, id, with_array));
  v1::JobRequest wanted = WithValues(*job.request, request);
  if (wanted.name().empty()) {
    return InvalidArgument("the name is empty; expected another one");
  }
  if ((job.request->gpus() == 0) != (wanted.gpus() == 0)) {
    return FailedPrecondition("job {} asks for " + GpusText(job.request->gpus()) +
                              "; expected it submitted anew " +
                              (wanted.gpus() == 0 ? "without GPUs" : "with GPUs"));
  }
  if (Names(request, "gpus") && state != v1::WAITING && state != v1::SUBMITTED) {
    return FailedPrecondition("job {} is " + StateText(state) + "; 'trainyard resize --gpus " +
                              std::to_string(wanted.gpus()) +
                              " {}' changes the GPUs of a running job");
  }
  const bool asks_anew = NamesRequest(request);
  if (asks_anew && state != v1::WAITING && state != v1::SUBMITTED) {
    return FailedPrecondition("job {} is " + StateText(state) +
                              " and has been given what it asked for; expected a job that waits");
  }
  if (Names(request, "queue") || Names(request, "time")) {
    validation_.FillInQueueAndTime(wanted);
  }
  if (!state_.cluster.partitions.empty() && wanted.queue() != job.request->queue() &&
      state != v1::WAITING && state != v1::SUBMITTED) {
    return FailedPrecondition("job {} is " + StateText(state) +
                              ", and another partition has other nodes; expected a job that waits");
  }
  ASSIGN_OR_RETURN(const model::JobDraft draft, DraftOf(wanted, state_.now, state_.cluster));
  if (Names(request, "queue") || Names(request, "time")) {
    RETURN_IF_ERROR(validation_.CheckPartition(model::JobDraft(draft).Take()));
  }
  if (Names(request, "gpus") || asks_anew) {
    RETURN_IF_ERROR(validation_.SpecOf(draft, wanted));
  }
  RETURN_IF_ERROR(validation_.CheckDependency(wanted, Index(id)));
  JobTraits traits = model::PartOf<JobTraits>(*job.spec);
  traits.time_limit = draft.traits.time_limit;
  traits.dependency = wanted.dependency();
  if (Names(request, "begin")) {  // the request counts from the submission
    traits.begin = draft.traits.begin;
    if (traits.begin) {
      wanted.set_begin_s(std::max(kLeastSeconds, Seconds(*traits.begin - job.submitted)));
    }
  }
  traits.range = draft.traits.range;
  traits.request = draft.request == NodeRequest{} ? std::nullopt : std::optional(draft.request);
  auto spec = Respecified(*job.spec, wanted, std::move(traits));
  spec->name = wanted.name();
  spec->queue = wanted.queue();
  spec->priority = draft.spec.priority;
  return Update{.job = id, .spec = std::move(spec)};
}

// A fact for each job: each has a specification of its own.
void JobChanges::AddUpdates(const Call& call, const v1::UpdateRequest& request,
                            const std::vector<Update>& updates) {
  if (updates.empty()) {
    return;
  }
  std::vector<JobId> jobs;
  jobs.reserve(updates.size());
  for (const Update& update : updates) {
    jobs.push_back(update.job);
  }
  context_.NoteChange(call, "updated", {.job = jobs.front(), .other_jobs = OthersOf(jobs)});
  for (const Update& update : updates) {
    const std::optional<JobId>& array = state_.jobs[update.job].array;
    if (!array || *array == update.job) {
      UpdateTasks(update.job, request, *update.spec);
    }
    context_.Add(model::fact::Updated{.job = update.job, .spec = update.spec});
    if (Names(request, "gpus")) {  // policies are told of this apart
      context_.Add(model::fact::Resized{.job = update.job, .gpus = update.spec->gpus});
    }
  }
}

}  // namespace trainyard::live
