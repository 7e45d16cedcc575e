// SPDX-License-Identifier: Apache-2.0
// What clients ask for; what they are told of jobs and nodes is in live_status.cc.
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <utility>

#include "live/live_world.h"
#include "profile/stage_model.h"
#include "supervisor/worker_environment.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxName = 256;
constexpr std::size_t kMaxCommand = std::size_t{64} << 10;
constexpr double kMaxSeconds = 1e9;  // some 30 years
constexpr double kMaxIterations = 1e15;
constexpr std::int64_t kMaxBatchSize = 1'000'000'000'000;
constexpr int kStages = 3;

v1::CallError ErrorOf(int code, std::string message) {
  v1::CallError error;
  error.set_code(code);
  error.set_message(std::move(message));
  return error;
}

bool IsName(const std::string& text) {
  return text.size() <= kMaxName && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 32 || c == 127;
         });
}

bool IsAmount(double value, double most) {
  return std::isfinite(value) && value > 0 && value <= most;
}

// A time that is not 0 when it is kept in microseconds.
bool IsTime(double seconds) {
  return IsAmount(seconds, kMaxSeconds) && FromSeconds(seconds) > Duration{0};
}

std::size_t SizeOf(const v1::LaunchSpec& launch) {
  std::size_t size = launch.working_directory().size();
  for (const std::string& word : launch.command()) {
    size += word.size() + 1;
  }
  for (const v1::EnvironmentVariable& variable : launch.environment()) {
    size += variable.name().size() + variable.value().size() + 2;
  }
  return size;
}

bool IsVariable(const v1::EnvironmentVariable& variable) {
  return !variable.name().empty() && variable.name().find('=') == std::string::npos &&
         variable.name().find('\0') == std::string::npos &&
         variable.value().find('\0') == std::string::npos;
}

// What is wrong with what the workers are to run; empty: nothing.
std::string Mistake(const v1::LaunchSpec& launch) {
  if (launch.command().empty() && launch.workers() != v1::LaunchSpec::EMULATED) {
    return "there is no command; expected one after '--'";
  }
  if (!launch.command().empty() && launch.command(0).empty()) {
    return "the command is empty";
  }
  if (SizeOf(launch) > kMaxCommand) {
    return "command and environment have more than 64 KiB";
  }
  if (!std::all_of(launch.environment().begin(), launch.environment().end(), IsVariable)) {
    return "an environment variable has no proper name or value; expected NAME=VALUE";
  }
  for (const v1::EnvironmentVariable& variable : launch.environment()) {
    if (IsReservedVariable(variable.name())) {
      return "the environment variable " + variable.name() +
             " is set by Trainyard itself; expected another name";
    }
  }
  if (launch.grace() < 0 || launch.max_restarts() < 0) {
    return "the grace period or the number of restarts is negative";
  }
  return {};
}

// What is wrong with the range of GPUs; empty: nothing. 0 is an end that is not stated.
std::string MistakeOfRange(const v1::JobRequest& job) {
  if (job.min_gpus() < 0 || job.max_gpus() < 0) {
    return "min_gpus or max_gpus is negative; expected 1 or more, or 0 where it is not stated";
  }
  if (job.min_gpus() > job.gpus()) {
    return "it asks for " + GpusText(job.gpus()) + " and for at least " +
           std::to_string(job.min_gpus()) + "; expected min_gpus <= gpus";
  }
  if (job.max_gpus() > 0 && job.max_gpus() < job.gpus()) {
    return "it asks for " + GpusText(job.gpus()) + " and for at most " +
           std::to_string(job.max_gpus()) + "; expected gpus <= max_gpus";
  }
  return {};
}

// What is wrong with the soft deadlines; empty: nothing.
std::string MistakeOfSoftDeadlines(const v1::JobRequest& job) {
  double before = 0;
  double worth = kMaxSeconds;
  for (const v1::SoftDeadline& deadline : job.soft_deadlines()) {
    if (!IsTime(deadline.after_s()) || deadline.after_s() < before ||
        !IsAmount(deadline.value(), worth)) {
      return "the soft deadlines are not in order; expected rising times, each worth more than 0 "
             "and not more than the one before";
    }
    before = deadline.after_s();
    worth = deadline.value();
  }
  if (job.soft_deadlines_size() > 0 && job.has_deadline_s() &&
      FromSeconds(job.deadline_s()) != FromSeconds(job.soft_deadlines(0).after_s())) {
    return "its deadline is not the first of its soft deadlines; expected the same time, or none "
           "beside soft deadlines";
  }
  return {};
}

// What is wrong with what only some policies ask for; empty: nothing.
std::string MistakeOfTraits(const v1::JobRequest& job) {
  constexpr int kMostLoaderWorkers = 1'000'000'000;
  if (job.loader_workers() < 0 || job.loader_workers() > kMostLoaderWorkers) {
    return "the number of loader workers is out of range; expected 0 to 1e9";
  }
  if (std::any_of(job.gpu_types().begin(), job.gpu_types().end(), [](const std::string& type) {
        return type.empty() || !IsName(type) || type.find('|') != std::string::npos;
      })) {
    return "a GPU type is empty or has control characters, a bar or more than 256 bytes";
  }
  const auto& stages = job.stages().stages_s();
  const auto is_none = [](double time) { return time == 0; };
  if (job.has_stages() &&
      (stages.size() != kStages || std::all_of(stages.begin(), stages.end(), is_none) ||
       !IsAmount(job.stages().iteration_s(), kMaxSeconds) ||
       !std::all_of(stages.begin(), stages.end(),
                    [&](double time) { return is_none(time) || IsAmount(time, kMaxSeconds); }))) {
    return "the stages are not the times of loading, GPU and network, with that of an iteration";
  }
  return MistakeOfSoftDeadlines(job);
}

// What is wrong with the text of a request, whatever the cluster; empty: nothing.
std::string Mistake(const v1::JobRequest& job) {
  const std::array<std::pair<const char*, const std::string*>, 4> names{{{"name", &job.name()},
                                                                         {"user", &job.user()},
                                                                         {"queue", &job.queue()},
                                                                         {"model", &job.model()}}};
  for (const auto& [what, name] : names) {
    if (!IsName(*name)) {
      return std::string("the ") + what + " has control characters or more than 256 bytes";
    }
  }
  if (job.gpus() < 1) {
    return "the number of GPUs is " + std::to_string(job.gpus()) + "; expected at least 1";
  }
  if (std::string mistake = MistakeOfRange(job); !mistake.empty()) {
    return mistake;
  }
  if (job.batch_size() < 0 || job.batch_size() > kMaxBatchSize) {
    return "the batch size is out of range; expected 1 to 1e12, or 0 where it is not stated";
  }
  if ((job.has_duration_s() && !IsTime(job.duration_s())) ||
      (job.has_deadline_s() && !IsTime(job.deadline_s()))) {
    return "a duration or deadline is out of range; expected 1e-6 to 1e9 seconds";
  }
  if (job.has_iterations() && !IsAmount(job.iterations(), kMaxIterations)) {
    return "the number of iterations is out of range; expected more than 0 and at most 1e15";
  }
  if (std::string mistake = MistakeOfTraits(job); !mistake.empty()) {
    return mistake;
  }
  return Mistake(job.launch());
}

std::string StateText(v1::JobState state) {
  std::string text = v1::JobState_Name(state);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// "A100|V100"
std::string TypesText(const v1::JobRequest& job) {
  std::string text;
  for (const std::string& type : job.gpu_types()) {
    text += (text.empty() ? "" : "|") + type;
  }
  return text;
}

}  // namespace

double LiveWorld::UnixSeconds(TimePoint time) const {
  return options_.unix_zero + Seconds(time) / options_.time_scale;
}

void LiveWorld::TakeCall(std::uint64_t call, const v1::ClientRequest& request) {
  using Kind = v1::ClientRequest::KindCase;
  switch (request.kind_case()) {
    case Kind::kSubmit:
      return TakeSubmit(call, request.submit());
    case Kind::kCancel:
      return TakeCancel(call, request.cancel());
    case Kind::kResize:
      return TakeResize(call, request.resize());
    case Kind::kDrain:
      return TakeDrain(call, request.drain());
    case Kind::kLogs:
      return TakeLogs(call, request.logs());
    case Kind::kJobs:
      return answers_.push_back([this, call, jobs = request.jobs()] { AnswerJobs(call, jobs); });
    case Kind::kNodes:
      return answers_.push_back([this, call] { AnswerNodes(call); });
    case Kind::KIND_NOT_SET:
      return Refuse(call, kInvalidArgument, "an empty request");
  }
}

void LiveWorld::Refuse(std::uint64_t call, int code, std::string message) {
  answers_.push_back([this, call, error = ErrorOf(code, std::move(message))] {
    v1::ClientReply reply;
    *reply.mutable_error() = error;
    output_.Reply(call, std::move(reply));
  });
}

// ----------------------------------------------------------------------------------------- submit

std::optional<v1::CallError> LiveWorld::Refusal(const v1::JobRequest& job) const {
  if (const std::string mistake = Mistake(job); !mistake.empty()) {
    return ErrorOf(kInvalidArgument, mistake);
  }
  if (const int all = cluster_.total_gpus(); job.gpus() > all) {
    return ErrorOf(kFailedPrecondition, "it asks for " + GpusText(job.gpus()) +
                                            "; the cluster has " + std::to_string(all));
  }
  const int row = profiles_ == nullptr ? -1 : profiles_->Find(job.model(), job.batch_size());
  if (options_.needs.elastic && job.has_stages()) {
    return ErrorOf(kFailedPrecondition,
                   "policy '" + options_.policy +
                       "' chooses the number of GPUs by the model's profile, and stages say how "
                       "fast the job is on one number only; expected it without stages");
  }
  if (options_.needs.elastic && (row < 0 || !job.has_iterations())) {
    return ErrorOf(kFailedPrecondition,
                   "policy '" + options_.policy + "' needs a job's iterations, and its model '" +
                       job.model() + "' with batch size " + std::to_string(job.batch_size()) +
                       " in the controller's profiles");
  }
  if (row >= 0 && job.has_iterations() && !options_.needs.elastic &&
      profiles_->rows()[static_cast<std::size_t>(row)].Rate(job.gpus()) <= 0) {
    return ErrorOf(kFailedPrecondition, "model '" + job.model() + "' has no throughput on " +
                                            GpusText(job.gpus()) + " in the profiles");
  }
  const GpuRange range{.least = job.min_gpus(), .most = job.max_gpus()};
  if (row >= 0 && options_.needs.elastic &&
      !profiles_->rows()[static_cast<std::size_t>(row)].RunsWithin(range)) {
    return ErrorOf(kFailedPrecondition, "model '" + job.model() + "' has no throughput on " +
                                            RangeText(range) + " GPUs in the profiles");
  }
  if (const auto spec = SpecOf(job); !spec.ok()) {
    return ErrorOf(kFailedPrecondition, spec.error().message);
  }
  if (live_jobs_ >= options_.max_live_jobs) {
    return ErrorOf(kResourceExhausted, "there are " + std::to_string(live_jobs_) +
                                           " jobs already, as many as the controller takes");
  }
  return std::nullopt;
}

// GPUs of this cluster by the names of their nodes, in node order.
Result<Slices> LiveWorld::DevicesOf(const v1::JobRequest& job) const {
  std::map<NodeId, std::uint64_t> gpus;
  for (const v1::NodeGrant& there : job.devices()) {
    const auto node = node_names_.find(there.node());
    if (node == node_names_.end()) {
      return InvalidArgument("it names GPUs of node '" + there.node() + "', which there is not");
    }
    for (const int gpu : there.gpus()) {
      if (gpu < 0 || gpu >= cluster_.nodes[Index(node->second)].gpus) {
        return InvalidArgument("it names GPU " + std::to_string(gpu) + " of node '" + there.node() +
                               "', which has " +
                               std::to_string(cluster_.nodes[Index(node->second)].gpus));
      }
      gpus[node->second] |= std::uint64_t{1} << gpu;
    }
  }
  Slices slices;
  for (const auto& [node, mask] : gpus) {
    slices.push_back({.node = node, .gpus = mask});
  }
  return slices;
}

// Null: it states none.
Result<std::shared_ptr<const JobTraits>> LiveWorld::TraitsOf(const v1::JobRequest& job) const {
  auto traits = std::make_shared<JobTraits>();
  if (job.has_stages()) {
    traits->stages = {.iteration = job.stages().iteration_s(),
                      .stages = {job.stages().stages_s().begin(), job.stages().stages_s().end()}};
  }
  if (!job.best_effort()) {
    for (const v1::SoftDeadline& deadline : job.soft_deadlines()) {
      traits->deadlines.push_back({now_ + FromSeconds(deadline.after_s()), deadline.value()});
    }
  }
  Result<Slices> devices = DevicesOf(job);
  if (!devices.ok()) {
    return devices.error();
  }
  traits->devices = std::move(devices).value();
  traits->loader_workers = job.loader_workers();
  const std::set<std::string> gpu_types(job.gpu_types().begin(), job.gpu_types().end());
  traits->gpu_types.assign(gpu_types.begin(), gpu_types.end());
  traits->range = {.least = job.min_gpus(), .most = job.max_gpus()};
  const bool any = !gpu_types.empty() || traits->range != GpuRange{} || traits->stages ||
                   !traits->deadlines.empty() || !traits->devices.empty() ||
                   traits->loader_workers > 0;
  return any ? std::shared_ptr<const JobTraits>(std::move(traits)) : nullptr;
}

Result<std::shared_ptr<const JobSpec>> LiveWorld::SpecOf(const v1::JobRequest& job) const {
  auto spec = std::make_shared<JobSpec>();
  spec->name = job.name();
  spec->user = job.user();
  spec->queue = job.queue();
  spec->model = job.model();
  spec->gpus = job.gpus();
  spec->batch_size = job.batch_size();
  spec->submit = now_;
  spec->best_effort = job.best_effort();
  if (job.has_iterations()) {
    spec->iterations = job.iterations();
    spec->profile_row = profiles_ == nullptr ? -1 : profiles_->Find(job.model(), job.batch_size());
  }
  if (job.has_duration_s() || !job.has_iterations()) {
    spec->duration =
        job.has_duration_s() ? FromSeconds(job.duration_s()) : options_.default_duration;
  }
  spec->priority = job.launch().priority();
  if (job.has_deadline_s() && !job.best_effort()) {
    spec->deadline = now_ + FromSeconds(job.deadline_s());
  }
  Result<std::shared_ptr<const JobTraits>> traits = TraitsOf(job);
  if (!traits.ok()) {
    return traits.error();
  }
  spec->traits = std::move(traits).value();
  if (spec->traits && !spec->traits->deadlines.empty()) {
    spec->deadline = spec->traits->deadlines.front().at;
  }
  if (const Status status = options_.bind ? options_.bind(*spec) : Status(); !status.ok()) {
    return status.error();
  }
  if (!spec->duration && spec->profile_row < 0 && !StatesStages(*spec)) {
    spec->duration = options_.default_duration;
  }
  spec->launch = job.SerializeAsString();
  return std::shared_ptr<const JobSpec>(std::move(spec));
}

void LiveWorld::TakeSubmit(std::uint64_t call, const v1::SubmitRequest& request) {
  if (request.client_token().size() > kMaxName) {
    return Refuse(call, kInvalidArgument, "the token has more than 256 bytes");
  }
  const auto known = tokens_.find(request.client_token());
  if (!request.client_token().empty() && known != tokens_.end()) {
    if (const std::string other = DifferenceFrom(known->second, request.job()); !other.empty()) {
      return Refuse(call, kAlreadyExists,
                    "the token '" + request.client_token() + "' is that of job " +
                        std::to_string(NumberOf(known->second)) + ", which is another request (" +
                        other + "); expected the same one, or another token");
    }
    return AnswerSubmit(call, known->second, request.wait_for_verdict());
  }
  if (const std::optional<v1::CallError> refusal = Refusal(request.job())) {
    return Refuse(call, refusal->code(), refusal->message());
  }
  const JobId id = JobAt(jobs_.size());
  v1::JobRequest job = request.job();
  job.mutable_launch()->set_client_token(request.client_token());
  if (job.name().empty()) {
    job.set_name("job-" + std::to_string(NumberOf(id)));
  }
  Add({.kind = EventKind::kSubmit, .at = now_, .job = id, .spec = SpecOf(job).value()});
  AnswerSubmit(call, id, request.wait_for_verdict());
}

// In what the request is another one than that of the job; empty: in nothing. A deadline that was
// given as a time of day is so many seconds from now each time.
std::string LiveWorld::DifferenceFrom(JobId id, const v1::JobRequest& request) const {
  constexpr Duration kClocks = std::chrono::seconds(5);
  v1::JobRequest before = *jobs_[Index(id)].request;
  if (Index(id) < engine_.records().size()) {  // as submitted, though it may have been resized
    static_cast<void>(before.ParseFromString(engine_.records()[Index(id)].spec->launch));
  }
  v1::JobRequest now = request;
  now.mutable_launch()->set_client_token(before.launch().client_token());
  if (now.name().empty()) {
    now.set_name("job-" + std::to_string(NumberOf(id)));
  }
  const auto deadline = [](const v1::JobRequest& job, TimePoint submitted) {
    return submitted + FromSeconds(job.deadline_s());
  };
  if (now.has_deadline_s() && before.has_deadline_s()) {
    const Duration apart = deadline(now, now_) - deadline(before, jobs_[Index(id)].submitted);
    if (std::max(apart, -apart) <= Scaled(kClocks)) {
      now.set_deadline_s(before.deadline_s());
    }
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

// What the job states in vain, as sentences.
std::vector<std::string> LiveWorld::Ignored(const v1::JobRequest& job) const {
  std::vector<std::string> ignored;
  const auto in_vain = [&](const std::string& what, const std::string& heeds) {
    ignored.push_back(what + " has no effect: policy '" + options_.policy + "' does not heed " +
                      heeds);
  };
  if (job.launch().priority() != 0 && !options_.needs.priorities) {
    in_vain("priority " + std::to_string(job.launch().priority()), "priorities");
  }
  if (!job.queue().empty() && !options_.needs.queues) {
    in_vain("queue '" + job.queue() + "'", "queues");
  }
  if (profiles_ != nullptr && !job.model().empty() && !profiles_->HasModel(job.model())) {
    ignored.push_back("model '" + job.model() +
                      "' is not in the controller's profiles: its throughput is not known");
  }
  if (job.devices_size() > 0 && !options_.needs.own_slices) {
    in_vain("the choice of devices", "it");
  }
  if (job.gpu_types_size() > 0 && !states_gpu_types_) {
    ignored.push_back("GPU types '" + TypesText(job) +
                      "' have no effect: no node of the cluster states its type");
  }
  return ignored;
}

void LiveWorld::AnswerSubmit(std::uint64_t call, JobId id, bool wait) {
  answers_.push_back([this, call, id, wait] {
    if (wait && StateOf(id) == v1::SUBMITTED) {
      verdict_calls_[call] = id;
      jobs_[Index(id)].verdict_calls.push_back(call);
      return;
    }
    AnswerWithJob(call, id, v1::ClientRequest::kSubmit);
  });
}

void LiveWorld::AnswerVerdict(JobId id) {
  for (const std::uint64_t call : std::exchange(jobs_[Index(id)].verdict_calls, {})) {
    verdict_calls_.erase(call);
    answers_.push_back([this, call, id] { AnswerWithJob(call, id, v1::ClientRequest::kSubmit); });
  }
}

void LiveWorld::AnswerWithJob(std::uint64_t call, JobId id, v1::ClientRequest::KindCase kind) {
  v1::ClientReply reply;
  switch (kind) {
    case v1::ClientRequest::kSubmit:
      reply.mutable_submit()->set_job(NumberOf(id));
      *reply.mutable_submit()->mutable_status() = StatusOf(id);
      for (std::string& sentence : Ignored(*jobs_[Index(id)].request)) {
        reply.mutable_submit()->add_ignored(std::move(sentence));
      }
      break;
    case v1::ClientRequest::kCancel:
      *reply.mutable_cancel()->mutable_status() = StatusOf(id);
      break;
    default:
      *reply.mutable_resize()->mutable_status() = StatusOf(id);
      break;
  }
  output_.Reply(call, std::move(reply));
}

// ------------------------------------------------------------------------------------ other calls

std::optional<JobId> LiveWorld::Find(std::uint64_t call, std::uint64_t number) {
  if (number == 0 || number > known_jobs_) {
    Refuse(call, kNotFound, "there is no job " + std::to_string(number));
    return std::nullopt;
  }
  return JobAt(number - 1);
}

std::optional<JobId> LiveWorld::FindLive(std::uint64_t call, std::uint64_t number,
                                         std::string_view to) {
  const std::optional<JobId> job = Find(call, number);
  if (job && jobs_[Index(*job)].ending) {
    Refuse(call, kFailedPrecondition,
           "job " + std::to_string(number) + " has ended and cannot be " + std::string(to));
    return std::nullopt;
  }
  return job;
}

void LiveWorld::TakeCancel(std::uint64_t call, const v1::CancelRequest& request) {
  if (const std::optional<JobId> job = FindLive(call, request.job(), "cancelled")) {
    Add({.kind = EventKind::kCancel, .at = now_, .job = *job});
    answers_.push_back(
        [this, call, job] { AnswerWithJob(call, *job, v1::ClientRequest::kCancel); });
  }
}

void LiveWorld::TakeResize(std::uint64_t call, const v1::ResizeRequest& request) {
  const std::optional<JobId> job = FindLive(call, request.job(), "resized");
  if (!job) {
    return;
  }
  v1::JobRequest wanted = *jobs_[Index(*job)].request;
  wanted.set_gpus(request.gpus());
  if (const std::optional<v1::CallError> refusal = Refusal(wanted)) {
    return Refuse(call, refusal->code(), refusal->message());
  }
  if (jobs_[Index(*job)].request->gpus() != request.gpus()) {
    Add({.kind = EventKind::kResize, .at = now_, .job = *job, .gpus = request.gpus()});
  }
  answers_.push_back([this, call, job] { AnswerWithJob(call, *job, v1::ClientRequest::kResize); });
}

void LiveWorld::TakeDrain(std::uint64_t call, const v1::DrainRequest& request) {
  const auto at = node_names_.find(request.node());
  if (at == node_names_.end()) {
    return Refuse(call, kNotFound, "there is no node '" + request.node() + "'");
  }
  const NodeId id = at->second;
  const Node& node = nodes_[Index(id)];
  // What an undrained node has failed is forgotten with its drain, and without one likewise.
  if (request.drain() != node.drained || (!request.drain() && failures_.HasRecord(id))) {
    const EventKind kind = request.drain() ? EventKind::kNodeDrained : EventKind::kNodeUndrained;
    Add({.kind = kind, .at = now_, .node = id});
    if (!request.drain() && node.connection && !node.available) {
      Add({.kind = EventKind::kNodeUp, .at = now_, .node = id});
    }
  }
  answers_.push_back([this, call, id] {
    v1::ClientReply reply;
    *reply.mutable_drain()->mutable_status() = std::move(NodeStatuses()[Index(id)]);
    output_.Reply(call, std::move(reply));
  });
}

// The last attempt that may have written anything; 0: none.
std::uint32_t LiveWorld::LastStarted(const LiveJob& job) {
  std::uint32_t number = job.last_attempt;
  if (!job.attempts.empty() && job.attempts.back().number == number &&
      std::all_of(job.attempts.back().parts.begin(), job.attempts.back().parts.end(),
                  [](const Part& part) { return part.state == PartState::kQueued; })) {
    --number;
  }
  while (number > 0 && job.places[number - 1].empty()) {
    --number;
  }
  return number;
}

void LiveWorld::TakeLogs(std::uint64_t call, const v1::LogsRequest& request) {
  const std::optional<JobId> id = Find(call, request.job());
  if (!id) {
    return;
  }
  const LiveJob& job = jobs_[Index(*id)];
  const std::uint32_t attempt = request.attempt() == 0 ? LastStarted(job) : request.attempt();
  if (attempt == 0 || attempt > job.last_attempt) {
    const v1::JobState state = StateOf(*id);
    const std::string reason = ReasonOf(*id, state);
    return Refuse(call, kFailedPrecondition,
                  "job " + std::to_string(request.job()) +
                      (attempt == 0 ? " has not started: it is " + StateText(state) +
                                          (reason.empty() ? "" : " (" + reason + ")")
                                    : " has no attempt " + std::to_string(attempt)));
  }
  const bool per_gpu = job.request->launch().workers() == v1::LaunchSpec::PER_GPU;
  int rank = 0;
  for (const auto& [node, gpus] : job.places[attempt - 1]) {
    rank += per_gpu ? gpus : 1;
    if (request.rank() < 0 || request.rank() >= rank) {
      continue;
    }
    if (!nodes_[Index(node)].connection) {
      return Refuse(call, kUnavailable,
                    "node '" + cluster_.nodes[Index(node)].name + "', which has the log, is away");
    }
    v1::ControllerMessage message;
    message.mutable_read_log()->set_call(call);
    message.mutable_read_log()->mutable_id()->set_job(request.job());
    message.mutable_read_log()->mutable_id()->set_attempt(attempt);
    *message.mutable_read_log()->mutable_request() = request;
    log_calls_[call] = node;
    return Send(node, std::move(message));
  }
  Refuse(
      call, kInvalidArgument,
      "job " + std::to_string(request.job()) + " has no worker " + std::to_string(request.rank()));
}

void LiveWorld::TakeLogChunk(const v1::LogChunk& chunk) {
  if (log_calls_.erase(chunk.call()) == 0) {
    return;
  }
  v1::ClientReply reply;
  if (chunk.has_error()) {
    *reply.mutable_error() = chunk.error();
  } else {
    *reply.mutable_logs() = chunk.reply();
  }
  output_.Reply(chunk.call(), std::move(reply));
}

// The answers of a node that has gone will not come.
void LiveWorld::ForgetLogCalls(NodeId node) {
  for (auto at = log_calls_.begin(); at != log_calls_.end();) {
    if (at->second == node) {
      Refuse(at->first, kUnavailable, "the node that has the log has gone away");
      at = log_calls_.erase(at);
    } else {
      ++at;
    }
  }
}

}  // namespace trainyard
