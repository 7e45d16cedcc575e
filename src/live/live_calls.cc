// SPDX-License-Identifier: Apache-2.0
// What clients ask for, and what they are told.
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

std::string GpusText(int gpus) { return std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"); }

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

// --------------------------------------------------------------------------------------- statuses

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
