// SPDX-License-Identifier: Apache-2.0
#include "live/attempts/agent_messages.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "live/attempts/slurm_variables.h"
#include "live/jobs/job_request.h"
#include "live/measured/stage_metrics.h"
#include "service/call_error.h"

namespace trainyard::live {
namespace {

constexpr int kFirstMasterPort = 20'000;
constexpr std::uint64_t kMasterPorts = 10'000;

v1::AttemptId IdOf(const LiveState& state, JobId job, std::uint32_t attempt) {
  v1::AttemptId id;
  id.set_job(state.numbers.Of(job));
  id.set_attempt(attempt);
  return id;
}

}  // namespace

void AgentMessages::Say(std::uint64_t connection, v1::ControllerMessage message) {
  message.set_epoch(state_.options.epoch);
  output_.Send(connection, std::move(message));
}

void AgentMessages::Send(NodeId node, v1::ControllerMessage message) {
  if (const std::optional<std::uint64_t> connection = state_.nodes[node].connection) {
    Say(*connection, std::move(message));
  }
}

void AgentMessages::Welcome(std::uint64_t connection) {
  v1::ControllerMessage message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_heartbeat(Milliseconds(state_.options.heartbeat));
  welcome.set_lease(Milliseconds(state_.options.lease));
  welcome.set_grace(Milliseconds(state_.options.grace));
  Say(connection, std::move(message));
}

void AgentMessages::AnswerTo(const v1::Heartbeat& heartbeat, std::uint64_t connection) {
  v1::ControllerMessage answer;
  answer.mutable_heartbeat()->set_number(heartbeat.number());
  Say(connection, std::move(answer));
}

void AgentMessages::Refuse(std::uint64_t connection, const std::string& why) {
  v1::ControllerMessage refusal;
  *refusal.mutable_refusal() = service::MessageOf({ErrorCode::kFailedPrecondition, why});
  Say(connection, std::move(refusal));
  output_.Close(connection);
}

void AgentMessages::Fetch(JobId id, const LiveAttempt& attempt, NodeId node) {
  v1::ControllerMessage message;
  *message.mutable_fetch()->mutable_id() = IdOf(state_, id, attempt.number);
  *message.mutable_fetch()->mutable_data_set() = state_.jobs[id].request->data_set();
  Send(node, std::move(message));
}

// The variables of Slurm of a batch script.
void AgentMessages::AddSlurmVariables(JobId id, const LiveAttempt& attempt, std::size_t index,
                                      v1::StartAttempt& start) const {
  constexpr std::int64_t kMilli = 1000;
  const LiveJob& job = state_.jobs[id];
  SlurmJob slurm{.number = state_.numbers.Of(id),
                 .attempt = attempt.number,
                 .name = start.job_name(),
                 .user = job.request->user(),
                 .queue = job.request->queue(),
                 .cluster = state_.cluster.name,
                 .address = start.master_address(),
                 .states_tasks = job.request->launch().batch().states_tasks(),
                 .places = {}};
  if (job.array) {
    slurm.task = SlurmTask{.array = state_.numbers.Of(*job.array),
                           .index = job.array_index,
                           .indices = model::PartOf<JobTraits>(*job.spec).array};
  }
  const v1::LaunchSpec::Batch& batch = job.request->launch().batch();
  const auto nodes = static_cast<int>(attempt.parts.size());
  const int tasks = batch.tasks() > 0 ? batch.tasks() : nodes;
  for (std::size_t i = 0; i < attempt.parts.size(); ++i) {
    const Part& part = attempt.parts[i];
    const v1::NodeShare share = ShareOf(part);
    const int even = tasks / nodes + (static_cast<int>(i) < tasks % nodes ? 1 : 0);
    google::protobuf::RepeatedField<std::int32_t> gpus;
    AddGpus(part.gpus, gpus);
    const auto cpus = static_cast<int>(share.milli_cpus() / kMilli);
    slurm.places.push_back(
        {.node = state_.cluster.nodes[Index(part.node)].name,
         .workers = !job.runs_once()             ? start.node_workers(static_cast<int>(i))
                    : batch.tasks_per_node() > 0 ? batch.tasks_per_node()
                                                 : even,
         .gpus = {gpus.begin(), gpus.end()},
         .cpus = share.milli_cpus() > 0 ? std::max(1, cpus) : state_.nodes[part.node].hello.cpus(),
         .memory_mib = share.memory_mib()});
  }
  for (const auto& [name, value] : SlurmVariables(slurm, index)) {
    v1::EnvironmentVariable& variable = *start.mutable_launch()->add_environment();
    variable.set_name(name);
    variable.set_value(value);
  }
}

namespace {

// How many workers the job has on that part of its attempt.
int WorkersOn(const LiveJob& job, const LiveAttempt& attempt, std::size_t part) {
  if (job.runs_once()) {
    return part == 0 ? 1 : 0;
  }
  return job.WorkersWith(std::popcount(attempt.parts[part].gpus));
}

// Of a task of an array.
void AddArrayVariables(const LiveJob& job, const model::JobNumbers& numbers,
                       v1::StartAttempt& start) {
  const auto add = [&start](const char* name, std::int64_t value) {
    v1::EnvironmentVariable& variable = *start.mutable_launch()->add_environment();
    variable.set_name(name);
    variable.set_value(std::to_string(value));
  };
  add("TRAINYARD_ARRAY_JOB_ID", static_cast<std::int64_t>(numbers.Of(*job.array)));
  add("TRAINYARD_ARRAY_TASK_ID", job.array_index);
}

}  // namespace

void AgentMessages::Start(JobId id, const LiveAttempt& attempt, std::size_t index) {
  const LiveJob& job = state_.jobs[id];
  const double scale = state_.options.time_scale;
  const Part& part = attempt.parts[index];
  v1::ControllerMessage message;
  v1::StartAttempt& start = *message.mutable_start();
  *start.mutable_id() = IdOf(state_, id, attempt.number);
  start.set_job_name(job.spec->name);
  *start.mutable_launch() = job.request->launch();
  if (job.array) {
    AddArrayVariables(job, state_.numbers, start);
  }
  if (!job.is_emulated() && !job.has_worker_per_gpu() && !job.runs_once()) {
    start.mutable_launch()->set_workers(v1::LaunchSpec::PER_NODE);
  }
  AddGpus(part.gpus, *start.mutable_gpus());
  int workers = 0;
  for (std::size_t i = 0; i < attempt.parts.size(); ++i) {
    if (i == index) {
      start.set_first_rank(workers);
    }
    const int there = WorkersOn(job, attempt, i);
    start.add_node_workers(there);
    start.add_node_gpus(std::popcount(attempt.parts[i].gpus));
    workers += there;
  }
  start.set_world_size(workers);
  start.set_node_rank(static_cast<int>(index));
  start.set_nodes(static_cast<int>(attempt.parts.size()));
  start.set_node(state_.cluster.nodes[Index(part.node)].name);
  start.set_master_address(state_.nodes[attempt.parts.front().node].hello.address());
  start.set_master_port(MasterPort(id, attempt.number));
  start.set_grace(Milliseconds(state_.options.GraceOf(*job.request)));
  start.set_iterations(job.counts_work() ? attempt.work : job.request->iterations());
  start.set_iterations_done(job.iterations_saved);
  start.set_rate(attempt.rate * scale);
  // What is fetched in truth is not played by emulated workers again.
  const bool was_fetched = part.data != PartData::kUnasked;
  start.set_restart_cost_s(Seconds(attempt.debt - (was_fetched ? attempt.fetch : Duration{0})) /
                           scale);
  *start.mutable_share() = ShareOf(part);
  if (job.request->has_data_set()) {
    *start.mutable_data_set() = job.request->data_set();
  }
  if (const auto interleaving = InterleavingOf(state_.SpecsOf(attempt.group))) {
    const auto place = std::find(attempt.group.begin(), attempt.group.end(), id);
    v1::Turns& turns = *start.mutable_turns();
    turns.set_position(
        interleaving->positions.at(static_cast<std::size_t>(place - attempt.group.begin())));
    turns.set_iteration_s(interleaving->seconds / scale);
  }
  start.set_user(start.launch().owner().user());
  if (state_.options.secret) {
    start.set_secret(state_.options.secret(start.id()));
  }
  if (job.request->launch().has_batch()) {
    AddSlurmVariables(id, attempt, index, start);
  }
  if (state_.options.credential && job.request->launch().workers() != v1::LaunchSpec::EMULATED) {
    start.set_credential(
        state_.options.credential(start, state_.cluster.nodes[Index(part.node)].name));
  }
  for (const supervisor::AttemptKey& other : state_.occupancy.On(part.node, part.gpus)) {
    v1::AttemptId& beside = *start.add_beside();
    beside.set_job(other.first);
    beside.set_attempt(other.second);
  }
  Send(part.node, std::move(message));
}

void AgentMessages::Tune(JobId id, const LiveAttempt& attempt) {
  for (const Part& part : attempt.parts) {
    if (part.state != PartState::kSent && part.state != PartState::kRunning) {
      continue;  // the order to start it will say all
    }
    v1::ControllerMessage message;
    v1::TuneAttempt& tune = *message.mutable_tune();
    *tune.mutable_id() = IdOf(state_, id, attempt.number);
    tune.set_order(NextOrder());
    *tune.mutable_share() = ShareOf(part);
    tune.set_rate(attempt.rate * state_.options.time_scale);
    Send(part.node, std::move(message));
  }
}

void AgentMessages::Stop(JobId id, const std::vector<Attempts::At>& parts) {
  for (const Attempts::At& part : parts) {
    v1::ControllerMessage message;
    *message.mutable_stop()->mutable_id() = IdOf(state_, id, part.attempt);
    message.mutable_stop()->set_grace(
        Milliseconds(state_.options.GraceOf(*state_.jobs[id].request)));
    Send(part.node, std::move(message));
  }
}

void AgentMessages::StopStray(NodeId node, const v1::AttemptId& id) {
  v1::ControllerMessage message;
  *message.mutable_stop()->mutable_id() = id;
  message.mutable_stop()->set_grace(Milliseconds(state_.options.grace));
  Send(node, std::move(message));
}

void AgentMessages::Forget(JobId job, const std::vector<Attempts::At>& parts) {
  for (const Attempts::At& part : parts) {
    Forget(part.node, IdOf(state_, job, part.attempt));
  }
}

void AgentMessages::SendForgets() {
  for (const auto& [node, attempt] : std::exchange(to_forget_, {})) {
    v1::ControllerMessage message;
    *message.mutable_forget()->mutable_id() = attempt;
    Send(node, std::move(message));
  }
}

// Rises over restarts, too: the clock may have been set back meanwhile.
std::int64_t AgentMessages::NextOrder() {
  constexpr unsigned kOrderBits = 40;
  return static_cast<std::int64_t>(state_.options.epoch << kOrderBits) + ++tunes_;
}

// Apart for the attempts of a cluster, and for clusters that share a machine.
int AgentMessages::MasterPort(JobId job, std::uint32_t attempt) const {
  const auto cluster = static_cast<std::uint64_t>(std::llround(state_.options.unix_zero * 1000));
  return kFirstMasterPort +
         static_cast<int>((cluster + state_.numbers.Of(job) * 61 + attempt) % kMasterPorts);
}

}  // namespace trainyard::live
