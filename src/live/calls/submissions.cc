// SPDX-License-Identifier: Apache-2.0
#include "live/calls/submissions.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "base/try.h"
#include "live/calls/ignored_options.h"
#include "live/calls/start_forecast.h"
#include "live/jobs/job_request.h"
#include "model/conditions.h"

namespace trainyard::live {
namespace {

constexpr std::size_t kMaxToken = 256;

// Whose job it is, whatever the request says.
void SetOwner(const service::Principal& principal, v1::JobRequest& job) {
  job.mutable_launch()->clear_owner();
  if (!principal.caller()) {
    return;
  }
  *job.mutable_launch()->mutable_owner() = *principal.caller();
  if (job.user().empty()) {
    job.set_user(principal.caller()->user());
  }
}

}  // namespace

// How the request differs from that of the job; empty: not at all. What it leaves out was filled in
// when the job was submitted. A deadline that was given as a time of day is another number of
// seconds from now each time.
std::string Submissions::DifferenceFrom(JobId id, const v1::JobRequest& request) const {
  const LiveState& state = context_.state();
  v1::JobRequest before;  // as submitted, though it may have been resized
  CHECK(before.ParseFromString(state.jobs[id].spec->launch));
  if (const std::string submitted = before.submitted_as(); !submitted.empty()) {
    CHECK(before.ParseFromString(submitted));  // it has been updated since
  }
  v1::JobRequest now = request;
  now.mutable_launch()->set_client_token(before.launch().client_token());
  now.mutable_launch()->clear_owner();
  before.mutable_launch()->clear_owner();
  if (now.user().empty()) {
    now.set_user(before.user());
  }
  if (now.name().empty()) {
    now.set_name("job-" + std::to_string(state.numbers.Of(id)));
  }
  const std::vector<std::string_view> queues = base::Split(now.queue(), ",");
  if (now.queue().empty() ||
      std::find(queues.begin(), queues.end(), before.queue()) != queues.end()) {
    now.set_queue(before.queue());  // one of those that it names
  }
  if (!now.has_time_s() && before.has_time_s()) {
    now.set_time_s(before.time_s());
  }
  if (now.cpus().empty()) {
    now.set_cpus(before.cpus());
  }
  if (now.memory().empty()) {
    now.set_memory(before.memory());
  }
  const double later = Seconds(state.now - state.jobs[id].submitted);
  if (now.has_begin_s() && before.has_begin_s() &&
      IsClockError(state.options, later + now.begin_s() - before.begin_s())) {
    now.set_begin_s(before.begin_s());
  }
  if (now.has_deadline_s() && before.has_deadline_s() &&
      IsClockError(state.options, later + now.deadline_s() - before.deadline_s())) {
    now.set_deadline_s(before.deadline_s());
  }
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(before, now)) {
    return {};
  }
  constexpr std::size_t kEnough = 200;
  const std::size_t begin = differences.find(": ");
  differences.erase(0, begin == std::string::npos ? 0 : begin + 2);
  return differences.substr(0, std::min(differences.find('\n'), kEnough));
}

// Errors: the job that has the token is another user's, or another request.
Status Submissions::CheckSameJob(const Call& call, JobId known,
                                 const v1::SubmitRequest& request) const {
  const LiveState& state = context_.state();
  if (!call.principal.May(service::Access::kSee, *state.jobs[known].request)) {
    return PermissionDenied(call.principal.text() +
                            " may not use this token: another user's job has it; expected "
                            "another one");
  }
  if (const std::string other = DifferenceFrom(known, request.job()); !other.empty()) {
    return Error{ErrorCode::kAlreadyExists,
                 "the token '" + request.client_token() + "' is that of job " +
                     std::to_string(state.numbers.Of(known)) + ", which is another request (" +
                     other + "); expected the same one, or another token"};
  }
  return {};
}

// The job as the engine gets it; what it leaves out is filled in. Of several partitions
// ("short,gpu") it gets the first that takes it. Errors: those of the first.
Result<JobSpec> Submissions::SpecFor(v1::JobRequest& job) const {
  std::vector<std::string> queues{job.queue()};
  if (!context_.state().cluster.partitions.empty()) {
    if (const std::vector<std::string_view> named = base::Split(job.queue(), ","); !named.empty()) {
      queues.assign(named.begin(), named.end());
    }
  }
  std::optional<Error> refused;
  for (const std::string& queue : queues) {
    v1::JobRequest filled = job;
    filled.set_queue(queue);
    validation_.FillIn(filled);
    Result<JobSpec> spec = validation_.SpecOf(filled);
    if (spec.ok()) {
      job = std::move(filled);
      return spec;
    }
    refused = refused ? refused : spec.error();
  }
  return *refused;
}

// Error: there would be too many jobs.
Status Submissions::CheckLimit(std::size_t more) const {
  const std::size_t live = context_.state().jobs.live();
  const std::size_t most = context_.state().options.max_live_jobs;
  if (live + more <= most) {
    return {};
  }
  return Error{
      ErrorCode::kResourceExhausted,
      live >= most
          ? "there are " + std::to_string(live) + " jobs already, as many as the controller takes"
          : "it has " + std::to_string(more) + " tasks, and " + std::to_string(live) +
                " jobs have not ended; the controller takes " + std::to_string(most) + " in all"};
}

Result<Reply> Submissions::Submit(const Call& call, const v1::SubmitRequest& request) {
  LiveState& state = context_.state();
  if (request.client_token().size() > kMaxToken) {
    return InvalidArgument("the token has more than 256 bytes");
  }
  if (!call.principal.MayNameUser(request.job().user())) {
    return PermissionDenied(call.principal.text() + " may not submit as '" + request.job().user() +
                            "'; expected no --user, or an admin");
  }
  const std::optional<JobId> known =
      request.test_only() ? std::nullopt : state.jobs.WithToken(request.client_token());
  if (known) {
    RETURN_IF_ERROR(CheckSameJob(call, *known, request));
    return WithVerdict(call, *known, request.wait_for_verdict());
  }
  if (state.switches.closed.on) {
    const v1::Switches switches = MessageOf(state.switches, state.options);
    return FailedPrecondition(
        "the controller takes no jobs: " + TextOf(switches.closed(), "closed") +
        "; expected a submission after 'trainyard controller open'");
  }
  const JobId id = JobAt(state.jobs.size());
  v1::JobRequest job = request.job();
  job.mutable_launch()->set_client_token(request.client_token());
  SetOwner(call.principal, job);
  if (job.name().empty()) {
    job.set_name("job-" + std::to_string(state.numbers.Of(id)));
  }
  ASSIGN_OR_RETURN(JobSpec spec, SpecFor(job));
  const std::size_t count = model::CountOf(spec);
  RETURN_IF_ERROR(CheckLimit(count));
  if (request.test_only()) {
    return Test(job, spec);
  }
  const bool held = job.launch().hold();
  const bool array = !model::PartOf<JobTraits>(spec).array.empty();
  state.jobs.Announce(std::move(job));
  auto shared = std::make_shared<const JobSpec>(std::move(spec));
  if (array) {
    context_.Add(model::fact::ArraySubmitted{.job = id, .spec = std::move(shared)});
  } else {
    context_.Add(model::fact::Submitted{.job = id, .spec = std::move(shared)});
  }
  if (held) {
    std::vector<JobId> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back(JobAt(Index(id) + i));
    }
    changes_.Hold(call, jobs, true);
  }
  return WithVerdict(call, id, request.wait_for_verdict());
}

// What the submission would come to. There is no fact in it.
Reply Submissions::Test(const v1::JobRequest& job, const JobSpec& spec) const {
  const LiveState& state = context_.state();
  v1::ClientReply reply;
  v1::SubmitReply& submit = *reply.mutable_submit();
  submit.set_job(state.numbers.Of(JobAt(state.jobs.size())));
  v1::JobStatus& status = *submit.mutable_status();
  status.set_job(submit.job());
  status.set_state(v1::SUBMITTED);
  *status.mutable_request() = job;
  status.mutable_request()->mutable_launch()->clear_environment();
  for (std::string& sentence : IgnoredOf(job, state)) {
    submit.add_ignored(std::move(sentence));
  }
  const auto start = job.launch().hold()
                         ? std::nullopt
                         : StartOf(engine_, state.now, std::make_shared<const JobSpec>(spec));
  if (start) {
    submit.set_starts(state.options.UnixSeconds(start->at));
    for (const Slice& slice : start->grant.slices) {
      *submit.add_places() = GrantOf(slice, state.cluster);
    }
  }
  return [reply = std::move(reply)]() -> std::optional<v1::ClientReply> { return reply; };
}

Reply Submissions::WithVerdict(const Call& call, JobId job, bool wait) {
  return [this, number = call.number, job, wait]() -> std::optional<v1::ClientReply> {
    if (wait && context_.statuses().StateOf(job) == v1::SUBMITTED) {
      waiting_[job].push_back(number);
      return std::nullopt;
    }
    return ReplyWith(job);
  };
}

v1::ClientReply Submissions::ReplyWith(JobId job) const {
  const LiveState& state = context_.state();
  v1::ClientReply reply;
  v1::SubmitReply& submit = *reply.mutable_submit();
  submit.set_job(state.numbers.Of(job));
  *submit.mutable_status() = context_.statuses().BriefStatusOf(job);
  for (std::string& sentence : IgnoredOf(*state.jobs[job].request, state)) {
    submit.add_ignored(std::move(sentence));
  }
  return reply;
}

std::vector<std::uint64_t> Submissions::TakeWaitingFor(JobId job) {
  auto waiting = waiting_.extract(job);
  return waiting.empty() ? std::vector<std::uint64_t>() : std::move(waiting.mapped());
}

void Submissions::Drop(std::uint64_t call) {
  for (auto& [job, calls] : waiting_) {
    std::erase(calls, call);
  }
}

Result<Reply> Submissions::Resize(const Call& call, const v1::ResizeRequest& request) {
  LiveState& state = context_.state();
  ASSIGN_OR_RETURN(const JobId job, context_.Find(call, request.job(), service::Access::kChange));
  if (state.jobs[job].ending) {
    return FailedPrecondition("job " + state.jobs.TextOf(job) + " has ended and cannot be resized");
  }
  v1::JobRequest wanted = *state.jobs[job].request;
  const v1::JobState now = context_.statuses().StateOf(job);
  if (wanted.no_requeue() && now != v1::WAITING && now != v1::SUBMITTED) {
    return FailedPrecondition("job " + state.jobs.TextOf(job) +
                              " was submitted with --no-requeue and would have to start again; "
                              "expected a job that waits");
  }
  if (state.configuration->traits.may.name_gpus && wanted.devices_size() > 0) {
    return FailedPrecondition("job " + state.jobs.TextOf(job) +
                              " names its GPUs; expected one that does not, or the job submitted "
                              "anew with others");
  }
  if ((wanted.gpus() == 0) != (request.gpus() == 0)) {
    return FailedPrecondition("job " + state.jobs.TextOf(job) + " asks for " +
                              GpusText(wanted.gpus()) + "; expected it submitted anew " +
                              (wanted.gpus() == 0 ? "with GPUs" : "without GPUs"));
  }
  wanted.set_gpus(request.gpus());
  RETURN_IF_ERROR(validation_.SpecOf(wanted));
  if (state.jobs[job].request->gpus() != request.gpus()) {
    context_.NoteChange(call, "resized to " + GpusText(request.gpus()), {.job = job});
    context_.Add(model::fact::Resized{.job = job, .gpus = request.gpus()});
  }
  return Reply([this, job]() -> std::optional<v1::ClientReply> {
    v1::ClientReply reply;
    *reply.mutable_resize()->mutable_status() = context_.statuses().BriefStatusOf(job);
    return reply;
  });
}

}  // namespace trainyard::live
