// SPDX-License-Identifier: Apache-2.0
#include "live/calls/live_calls.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "live/calls/ignored_options.h"
#include "model/conditions.h"
#include "profile/execution_model.h"

namespace trainyard::live {
namespace {

constexpr std::size_t kMaxToken = 256;

// Whose job it is, whatever the request says.
void SetOwner(const v1::ClientRequest& from, v1::JobRequest& job) {
  job.mutable_launch()->clear_owner();
  if (!from.has_caller()) {
    return;
  }
  *job.mutable_launch()->mutable_owner() = from.caller();
  if (job.user().empty()) {
    job.set_user(from.caller().user());
  }
}

}  // namespace

v1::CallError ErrorOf(int code, std::string message) {
  v1::CallError error;
  error.set_code(code);
  error.set_message(std::move(message));
  return error;
}

v1::CallError ErrorOf(const Error& of_draft) {
  const bool is_wrong = of_draft.code == ErrorCode::kInvalidArgument;
  return ErrorOf(is_wrong ? kInvalidArgument : kFailedPrecondition, of_draft.message);
}

LiveCalls::LiveCalls(LiveState& state, ViewWriter& views, AgentMessages& orders, LiveOutput& output)
    : state_(state), views_(views), messages_(orders), output_(output) {}

void LiveCalls::Take(std::uint64_t call, const v1::ClientRequest& request) {
  using Kind = v1::ClientRequest::KindCase;
  if (state_.options.asks_who && !request.has_caller()) {
    return Refuse(call, kUnauthenticated, kNoCaller);
  }
  switch (request.kind_case()) {
    case Kind::kSubmit:
      return TakeSubmit(call, request);
    case Kind::kCancel:
    case Kind::kHold:
    case Kind::kRequeue:
    case Kind::kUpdate:
    case Kind::kSignal:
      return TakeChange(call, request);
    case Kind::kResize:
      return TakeResize(call, request);
    case Kind::kDrain:
      return TakeDrain(call, request);
    case Kind::kLogs:
      return TakeLogs(call, request);
    case Kind::kAttach:
      return TakeAttach(call, request);
    case Kind::kJobs:
    case Kind::kNodes:
    case Kind::kProfiles:
    case Kind::kConfiguration:
      return answers_.push_back([this, call, request] {
        const std::shared_ptr<const ClusterView> view = views_.Published();
        output_.Reply(call, Statuses(*view, state_.now).AnswerTo(request));
      });
    case Kind::KIND_NOT_SET:
      return Refuse(call, kInvalidArgument, "an empty request");
  }
}

void LiveCalls::Drop(std::uint64_t call) {
  passed_on_.erase(call);
  for (auto& [job, calls] : verdict_calls_) {
    std::erase(calls, call);
  }
}

void LiveCalls::Answer() {
  for (const std::function<void()>& answer : TakeAnswers()) {
    answer();
  }
}

void LiveCalls::Refuse(std::uint64_t call, int code, std::string message) {
  answers_.push_back([this, call, error = ErrorOf(code, std::move(message))] {
    v1::ClientReply reply;
    *reply.mutable_error() = error;
    output_.Reply(call, std::move(reply));
  });
}

// ----------------------------------------------------------------------------------------- submit

// Why no cluster with these profiles and this policy takes the job; empty: it does.
std::string LiveCalls::WhyNotTaken(const JobSpec& job) const {
  if (state_.configuration->traits.may.resize && profile::StatesStages(job)) {
    return "policy '" + state_.configuration->policy +
           "' chooses the number of GPUs by the model's profile, and stages say how fast the job "
           "is "
           "on one number only; expected it without stages";
  }
  // A job that states neither runs on the GPUs that it asks for.
  const bool elastic = job.iterations || (job.deadline && !job.best_effort);
  if (state_.configuration->traits.may.resize && job.profile_row < 0 && elastic) {
    return "policy '" + state_.configuration->policy +
           "' needs a job's iterations, and its model '" + job.model + "' with batch size " +
           std::to_string(job.batch_size) + " in the controller's profiles" +
           (job.iterations ? "" : "; a job without them has no deadline");
  }
  if (job.profile_row < 0) {
    return {};
  }
  const profile::ThroughputRow& row =
      state_.configuration->profiles->rows()[static_cast<std::size_t>(job.profile_row)];
  const GpuRange& range = model::PartOf<JobTraits>(job).range;
  if (state_.configuration->traits.may.resize ? !row.RunsWithin(range) : row.Rate(job.gpus) <= 0) {
    return "model '" + job.model + "' has no throughput on " +
           (state_.configuration->traits.may.resize ? profile::RangeText(range) + " GPUs"
                                                    : GpusText(job.gpus)) +
           " in the profiles";
  }
  return {};
}

// Why no agent that is there can run the job's container; empty: one can, or none is there.
std::string LiveCalls::WhyNotContained(const v1::JobRequest& job) const {
  bool is_there = false;
  for (std::size_t i = 0; job.launch().has_container() && i < state_.leases.size(); ++i) {
    const LiveNode& node = state_.leases[NodeAt(i)];
    if (node.connection && state_.leases.Accepts(job, NodeAt(i))) {
      is_there = true;
      if (!node.hello.isolates()) {
        return {};
      }
    }
  }
  return is_there ? "it names the container image '" + job.launch().container().image() +
                        "', and all nodes that it may run on start jobs by trainyard-launcher, "
                        "which gives them no further rights (no_new_privs), without which podman "
                        "starts nothing; expected no --container-image"
                  : "";
}

// The job as the engine gets it, or why it cannot be taken.
std::variant<JobSpec, v1::CallError> LiveCalls::Judged(const v1::JobRequest& job) const {
  Result<model::JobDraft> draft = DraftOf(job, state_.now, state_.cluster);
  return draft.ok() ? JudgedDraft(std::move(draft).value(), job)
                    : std::variant<JobSpec, v1::CallError>(ErrorOf(draft.error()));
}

std::variant<JobSpec, v1::CallError> LiveCalls::JudgedDraft(model::JobDraft draft,
                                                            const v1::JobRequest& job) const {
  if (const int all = state_.cluster.total_gpus(); job.gpus() > all) {
    return ErrorOf(kFailedPrecondition, "it asks for " + GpusText(job.gpus()) +
                                            "; the cluster has " + std::to_string(all));
  }
  if (const std::optional<DataSet>& data = draft.traits.data_set; data) {
    if (const DataSet* const known = state_.jobs.DataNamed(data->name);
        known != nullptr && *known != *data) {
      return ErrorOf(kFailedPrecondition, "data set '" + data->name + "' has " +
                                              std::to_string(known->mib) + " MiB in '" +
                                              known->home + "' for jobs that have not ended, and " +
                                              std::to_string(data->mib) + " MiB in '" + data->home +
                                              "' for this one; expected the same, or another name");
    }
  }
  if (std::string why = WhyNotContained(job); !why.empty()) {
    return ErrorOf(kFailedPrecondition, std::move(why));
  }
  if (std::string why = WhyNotAwaited(job, state_.jobs.size()); !why.empty()) {
    return ErrorOf(kFailedPrecondition, std::move(why));
  }
  JobSpec spec = std::move(draft).Take();
  state_.configuration->FindRow(spec);
  if (!spec.iterations && !spec.duration) {
    const std::optional<Duration> limit = model::PartOf<JobTraits>(spec).time_limit;
    spec.duration = limit.value_or(state_.options.default_duration);
  }
  if (std::string why = WhyNotTaken(spec); !why.empty()) {
    return ErrorOf(kFailedPrecondition, std::move(why));
  }
  if (const Status status = state_.configuration->Bind(spec); !status.ok()) {
    return ErrorOf(kFailedPrecondition, status.error().message);
  }
  if (!spec.duration && spec.profile_row < 0 && !profile::StatesStages(spec)) {
    spec.duration = state_.options.default_duration;
  }
  spec.launch = job.SerializeAsString();
  return spec;
}

void LiveCalls::TakeSubmit(std::uint64_t call, const v1::ClientRequest& from) {
  const v1::SubmitRequest& request = from.submit();
  if (request.client_token().size() > kMaxToken) {
    return Refuse(call, kInvalidArgument, "the token has more than 256 bytes");
  }
  if (!MayNameUser(from, request.job().user())) {
    return Refuse(call, kPermissionDenied,
                  CallerText(from) + " may not submit as '" + request.job().user() +
                      "'; expected no --user, or an admin");
  }
  if (const std::optional<JobId> known = state_.jobs.WithToken(request.client_token())) {
    if (!MayTouch(from, *state_.jobs[*known].request, Touch::kSee)) {
      return Refuse(call, kPermissionDenied,
                    CallerText(from) +
                        " may not use this token: another user's job has it; expected another one");
    }
    if (const std::string other = DifferenceFrom(*known, request.job()); !other.empty()) {
      return Refuse(call, kAlreadyExists,
                    "the token '" + request.client_token() + "' is that of job " +
                        std::to_string(state_.numbers.Of(*known)) + ", which is another request (" +
                        other + "); expected the same one, or another token");
    }
    return AnswerSubmit(call, *known, request.wait_for_verdict());
  }
  const JobId id = JobAt(state_.jobs.size());
  v1::JobRequest job = request.job();
  job.mutable_launch()->set_client_token(request.client_token());
  SetOwner(from, job);
  if (job.name().empty()) {
    job.set_name("job-" + std::to_string(state_.numbers.Of(id)));
  }
  std::variant<JobSpec, v1::CallError> judged = Judged(job);
  if (const auto* const refusal = std::get_if<v1::CallError>(&judged)) {
    return Refuse(call, refusal->code(), refusal->message());
  }
  JobSpec& spec = std::get<JobSpec>(judged);
  const std::size_t count = model::CountOf(spec);
  if (const std::size_t most = state_.options.max_live_jobs; state_.jobs.live() + count > most) {
    return Refuse(call, kResourceExhausted,
                  state_.jobs.live() >= most ? "there are " + std::to_string(state_.jobs.live()) +
                                                   " jobs already, as many as the controller takes"
                                             : "it has " + std::to_string(count) + " tasks, and " +
                                                   std::to_string(state_.jobs.live()) +
                                                   " jobs have not ended; the controller takes " +
                                                   std::to_string(most) + " in all");
  }
  const bool held = job.launch().hold();
  AddSubmit(id, std::move(job), std::move(spec));
  if (held) {
    std::vector<JobId> jobs;
    for (std::size_t i = 0; i < count; ++i) {
      jobs.push_back(JobAt(Index(id) + i));
    }
    AddHold(from, jobs, true);
  }
  AnswerSubmit(call, id, request.wait_for_verdict());
}

void LiveCalls::AddSubmit(JobId id, v1::JobRequest job, JobSpec spec) {
  const bool array = !model::PartOf<JobTraits>(spec).array.empty();
  state_.jobs.Announce(std::move(job));
  add_({.kind = array ? model::EventKind::kSubmitArray : model::EventKind::kSubmit,
        .at = state_.now,
        .job = id,
        .spec = std::make_shared<const JobSpec>(std::move(spec))});
}

bool IsClockError(const LiveOptions& options, double apart_s) {
  constexpr Duration kClocks = std::chrono::seconds(5);
  return std::abs(apart_s) <= Seconds(options.Scaled(kClocks));
}

// How the request differs from that of the job; empty: not at all. A deadline that was given as a
// time of day is another number of seconds from now each time.
std::string LiveCalls::DifferenceFrom(JobId id, const v1::JobRequest& request) const {
  v1::JobRequest before;  // as submitted, though it may have been resized
  CHECK(before.ParseFromString(state_.jobs[id].spec->launch));
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
    now.set_name("job-" + std::to_string(state_.numbers.Of(id)));
  }
  const double later = Seconds(state_.now - state_.jobs[id].submitted);
  if (now.has_begin_s() && before.has_begin_s() &&
      IsClockError(state_.options, later + now.begin_s() - before.begin_s())) {
    now.set_begin_s(before.begin_s());
  }
  if (now.has_deadline_s() && before.has_deadline_s() &&
      IsClockError(state_.options, later + now.deadline_s() - before.deadline_s())) {
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

void LiveCalls::AnswerSubmit(std::uint64_t call, JobId id, bool wait) {
  answers_.push_back([this, call, id, wait] {
    if (wait && views_.Now().StateOf(id) == v1::SUBMITTED) {
      verdict_calls_[id].push_back(call);
      return;
    }
    AnswerWithJob(call, id, v1::ClientRequest::kSubmit);
  });
}

void LiveCalls::AnswerVerdict(JobId id) {
  const auto waiting = verdict_calls_.extract(id);
  if (waiting.empty()) {
    return;
  }
  for (const std::uint64_t call : waiting.mapped()) {
    answers_.push_back([this, call, id] { AnswerWithJob(call, id, v1::ClientRequest::kSubmit); });
  }
}

void LiveCalls::AnswerWithJob(std::uint64_t call, JobId id, v1::ClientRequest::KindCase kind) {
  v1::ClientReply reply;
  switch (kind) {
    case v1::ClientRequest::kSubmit:
      reply.mutable_submit()->set_job(state_.numbers.Of(id));
      *reply.mutable_submit()->mutable_status() = views_.Now().BriefStatusOf(id);
      for (std::string& sentence : IgnoredOf(*state_.jobs[id].request, state_)) {
        reply.mutable_submit()->add_ignored(std::move(sentence));
      }
      break;
    default:
      *reply.mutable_resize()->mutable_status() = views_.Now().BriefStatusOf(id);
      break;
  }
  output_.Reply(call, std::move(reply));
}

// ------------------------------------------------------------------------------------ other calls

std::optional<JobId> LiveCalls::Find(std::uint64_t call, const v1::ClientRequest& from,
                                     std::uint64_t number, Touch touch) {
  const std::optional<JobId> job = state_.numbers.Find(number, known_jobs_);
  if (!job) {
    Refuse(call, kNotFound, "there is no job " + std::to_string(number));
    return std::nullopt;
  }
  if (!MayTouch(from, *state_.jobs[*job].request, touch)) {
    Refuse(call, kPermissionDenied,
           base::ReplaceAll(NotYours(from, touch).text, "{}", state_.jobs.TextOf(*job)));
    return std::nullopt;
  }
  return job;
}

std::optional<JobId> LiveCalls::FindLive(std::uint64_t call, const v1::ClientRequest& from,
                                         std::uint64_t number, std::string_view to) {
  const std::optional<JobId> job = Find(call, from, number, Touch::kChange);
  if (job && state_.jobs[*job].ending) {
    Refuse(call, kFailedPrecondition,
           "job " + state_.jobs.TextOf(*job) + " has ended and cannot be " + std::string(to));
    return std::nullopt;
  }
  return job;
}

void LiveCalls::NoteChange(const v1::ClientRequest& from, std::string_view what, ChangeNote note) {
  if (from.has_caller()) {
    note.text = std::string(what) + " by " + ChangerText(from) + note.text;
    add_(FactOf(std::move(note), state_.now));
  }
}

void LiveCalls::TakeResize(std::uint64_t call, const v1::ClientRequest& from) {
  const v1::ResizeRequest& request = from.resize();
  const std::optional<JobId> job = FindLive(call, from, request.job(), "resized");
  if (!job) {
    return;
  }
  v1::JobRequest wanted = *state_.jobs[*job].request;
  if (state_.configuration->traits.may.name_gpus && wanted.devices_size() > 0) {
    return Refuse(call, kFailedPrecondition,
                  "job " + state_.jobs.TextOf(*job) +
                      " names its GPUs; expected one that does not, or the job submitted anew with "
                      "others");
  }
  wanted.set_gpus(request.gpus());
  const std::variant<JobSpec, v1::CallError> judged = Judged(wanted);
  if (const auto* const refusal = std::get_if<v1::CallError>(&judged)) {
    return Refuse(call, refusal->code(), refusal->message());
  }
  if (state_.jobs[*job].request->gpus() != request.gpus()) {
    NoteChange(from, "resized to " + GpusText(request.gpus()), {.job = *job});
    add_(
        {.kind = model::EventKind::kResize, .at = state_.now, .job = *job, .gpus = request.gpus()});
  }
  answers_.push_back([this, call, job] { AnswerWithJob(call, *job, v1::ClientRequest::kResize); });
}

void LiveCalls::TakeDrain(std::uint64_t call, const v1::ClientRequest& from) {
  constexpr std::size_t kMostReason = 200;
  const v1::DrainRequest& request = from.drain();
  if (!MayDrain(from)) {
    return Refuse(
        call, kPermissionDenied,
        CallerText(from) + " may not drain or undrain nodes; expected an operator or an admin");
  }
  if (request.reason().size() > kMostReason) {
    return Refuse(call, kInvalidArgument,
                  "the reason has " + std::to_string(request.reason().size()) +
                      " bytes; expected at most " + std::to_string(kMostReason));
  }
  std::vector<std::string> names(request.nodes().begin(), request.nodes().end());
  if (!request.node().empty() || names.empty()) {
    names.insert(names.begin(), request.node());
  }
  std::vector<NodeId> nodes;
  std::vector<v1::LeftOut> left;
  for (const std::string& name : names) {
    if (const std::optional<NodeId> id = state_.leases.Named(name)) {
      nodes.push_back(*id);
      continue;
    }
    left.emplace_back().set_code(kNotFound);
    left.back().set_why("there is no node '" + name + "'");
  }
  if (nodes.empty()) {
    return Refuse(call, left.front().code(), left.front().why());
  }
  AddDrains(from, nodes);
  answers_.push_back([this, call, nodes, left] {
    v1::ClientReply reply;
    v1::DrainReply& drain = *reply.mutable_drain();
    const std::vector<v1::NodeStatus> all = views_.Now().OfNodes();
    for (const NodeId node : nodes) {
      *drain.add_nodes() = all[Index(node)];
    }
    *drain.mutable_status() = drain.nodes(0);
    drain.mutable_left_out()->Assign(left.begin(), left.end());
    output_.Reply(call, std::move(reply));
  });
}

// Undraining a node forgets its failures, also where the node was not drained.
void LiveCalls::AddDrains(const v1::ClientRequest& from, std::vector<NodeId> nodes) {
  const v1::DrainRequest& request = from.drain();
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::erase_if(nodes, [&](NodeId id) {
    return request.drain() == state_.leases[id].drained &&
           (request.drain() || !state_.failures.HasRecord(id));
  });
  if (nodes.empty()) {
    return;
  }
  NoteChange(from, request.drain() ? "drained" : "undrained",
             {.of_node = true,
              .node = nodes.front(),
              .text = " at " + base::UtcText(state_.options.UnixSeconds(state_.now)) +
                      (request.reason().empty() ? "" : ": " + request.reason()),
              .other_nodes = {nodes.begin() + 1, nodes.end()}});
  for (const NodeId id : nodes) {
    const LiveNode& node = state_.leases[id];
    add_({.kind =
              request.drain() ? model::EventKind::kNodeDrained : model::EventKind::kNodeUndrained,
          .at = state_.now,
          .node = id});
    const bool has_gpus =
        node.hello.gpus() == state_.cluster.nodes[Index(id)].gpus;  // as configured by now
    if (!request.drain() && node.connection && !node.available && has_gpus) {
      add_({.kind = model::EventKind::kNodeUp, .at = state_.now, .node = id});
    }
  }
}

// "it is waiting (as many GPUs are not free)"
std::string LiveCalls::StateAndReasonOf(JobId job) const {
  const v1::JobState state = views_.Now().StateOf(job);
  const std::string reason = views_.Now().ReasonOf(job, state);
  return "it is " + StateText(state) + (reason.empty() ? "" : " (" + reason + ")");
}

void LiveCalls::TakeLogs(std::uint64_t call, const v1::ClientRequest& from) {
  const v1::LogsRequest& request = from.logs();
  const std::optional<JobId> id = Find(call, from, request.job(), Touch::kRead);
  if (!id) {
    return;
  }
  const Attempts::OfJob& attempts = state_.attempts[*id];
  const std::uint32_t attempt =
      request.attempt() == 0 ? attempts.last_started() : request.attempt();
  if (attempt == 0 || attempt > attempts.last) {
    return Refuse(call, kFailedPrecondition,
                  "job " + state_.jobs.TextOf(*id) +
                      (attempt == 0 ? " has not started: " + StateAndReasonOf(*id)
                                    : " has no attempt " + std::to_string(attempt)));
  }
  if (const std::optional<NodeId> node = NodeOfRank(call, *id, attempt, request.rank())) {
    v1::ControllerMessage message;
    message.mutable_read_log()->set_call(call);
    message.mutable_read_log()->mutable_id()->set_job(request.job());
    message.mutable_read_log()->mutable_id()->set_attempt(attempt);
    *message.mutable_read_log()->mutable_request() = request;
    passed_on_[call] = {.node = *node, .job = *id};
    messages_.Send(*node, std::move(message));
  }
}

std::optional<NodeId> LiveCalls::NodeOfRank(std::uint64_t call, JobId job, std::uint32_t attempt,
                                            int wanted) {
  const bool per_gpu = state_.jobs[job].has_worker_per_gpu();
  int rank = 0;
  for (const auto& [node, gpus] : state_.attempts[job].places[attempt - 1]) {
    rank += per_gpu ? gpus : 1;
    if (wanted < 0 || wanted >= rank) {
      continue;
    }
    if (!state_.leases[node].connection) {
      Refuse(
          call, kUnavailable,
          "node '" + state_.cluster.nodes[Index(node)].name + "', which has the worker, is away");
      return std::nullopt;
    }
    return node;
  }
  Refuse(call, kInvalidArgument,
         "job " + state_.jobs.TextOf(job) + " has no worker " + std::to_string(wanted));
  return std::nullopt;
}

std::optional<JobId> LiveCalls::TakeAwaited(std::uint64_t call, NodeId node) {
  const auto found = passed_on_.find(call);
  if (found == passed_on_.end() || found->second.node != node) {
    return std::nullopt;
  }
  const JobId job = found->second.job;
  passed_on_.erase(found);
  return job;
}

void LiveCalls::TakeLogChunk(NodeId node, const v1::LogChunk& chunk) {
  const std::optional<JobId> job = TakeAwaited(chunk.call(), node);
  if (!job) {
    return;
  }
  v1::ClientReply reply;
  if (chunk.has_error()) {  // as of an attempt that has never been started
    *reply.mutable_error() = chunk.error();
    reply.mutable_error()->set_message(chunk.error().message() + "; " + StateAndReasonOf(*job));
  } else {
    *reply.mutable_logs() = chunk.reply();
  }
  output_.Reply(chunk.call(), std::move(reply));
}

void LiveCalls::DropNode(NodeId node) {
  for (auto at = passed_on_.begin(); at != passed_on_.end();) {
    if (at->second.node == node) {
      Refuse(at->first, kUnavailable, "the node that was asked has gone away");
      at = passed_on_.erase(at);
    } else {
      ++at;
    }
  }
}

}  // namespace trainyard::live
