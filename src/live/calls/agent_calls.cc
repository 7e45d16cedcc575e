// SPDX-License-Identifier: Apache-2.0
#include "live/calls/agent_calls.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "service/signals.h"

namespace trainyard::live {
namespace {

constexpr std::size_t kMostCommand = std::size_t{32} << 10;
constexpr std::size_t kMostEnvironment = std::size_t{256} << 10;
constexpr std::size_t kMostInput = std::size_t{16} << 10;

// Errors: the call is wrong, whatever the job.
Status CheckRequest(const v1::AttachRequest& request) {
  std::size_t size = request.term().size();
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  for (const std::string& word : request.command()) {
    size += word.size() + 1;
  }
  if (size > kMostCommand || request.input().size() > kMostInput) {
    return InvalidArgument("the command has more than 32 KiB, or the input more than 16 KiB");
  }
  if (std::any_of(request.command().begin(), request.command().end(), has_nul) ||
      (request.command_size() > 0 && request.command(0).empty()) || has_nul(request.term())) {
    return InvalidArgument(
        "the command is empty, or has a NUL; expected a program and its arguments");
  }
  std::size_t variables = 0;
  for (const v1::EnvironmentVariable& variable : request.environment()) {
    variables += variable.name().size() + variable.value().size() + 2;
    if (variable.name().empty() || has_nul(variable.name()) || has_nul(variable.value()) ||
        variable.name().find('=') != std::string::npos) {
      return InvalidArgument("a variable has no proper name, or a NUL; expected NAME=VALUE");
    }
  }
  if (variables > kMostEnvironment) {
    return InvalidArgument("the variables of the command have more than 256 KiB");
  }
  if (request.opens() && request.session().empty()) {
    return InvalidArgument("the session has no name; expected 32 hex digits");
  }
  return request.signal() == 0 ? Status() : service::CheckSignal(request.signal());
}

std::optional<v1::ClientReply> NoReplyYet() { return std::nullopt; }

}  // namespace

Result<Reply> AgentCalls::ReadLogs(const Call& call, const v1::LogsRequest& request) {
  ASSIGN_OR_RETURN(const JobId id, context_.Find(call, request.job(), service::Access::kRead));
  const Attempts::OfJob& attempts = state_.attempts[id];
  const std::uint32_t attempt =
      request.attempt() == 0 ? attempts.last_started() : request.attempt();
  if (attempt == 0 || attempt > attempts.last) {
    return FailedPrecondition("job " + state_.jobs.TextOf(id) +
                              (attempt == 0 ? " has not started: " + context_.StateAndReasonOf(id)
                                            : " has no attempt " + std::to_string(attempt)));
  }
  ASSIGN_OR_RETURN(const NodeId node, NodeOfRank(id, attempt, request.rank()));
  v1::ControllerMessage message;
  message.mutable_read_log()->set_call(call.number);
  message.mutable_read_log()->mutable_id()->set_job(request.job());
  message.mutable_read_log()->mutable_id()->set_attempt(attempt);
  *message.mutable_read_log()->mutable_request() = request;
  passed_on_[call.number] = {.node = node, .job = id};
  messages_.Send(node, std::move(message));
  return Reply(NoReplyYet);
}

Result<Reply> AgentCalls::Attach(const Call& call, v1::AttachRequest request) {
  RETURN_IF_ERROR(CheckRequest(request));
  ASSIGN_OR_RETURN(const JobId id, context_.Find(call, request.job(), service::Access::kEnter));
  if (state_.jobs[id].is_emulated()) {
    return FailedPrecondition("job " + state_.jobs.TextOf(id) +
                              " is emulated and has no processes; expected a job with a command");
  }
  const Attempts::OfJob& attempts = state_.attempts[id];
  const std::uint32_t attempt =
      request.attempt() == 0 ? attempts.last_started() : request.attempt();
  const v1::JobState state = context_.statuses().StateOf(id);
  if (attempt == 0 || attempt > attempts.last || (request.opens() && state != v1::RUNNING)) {
    return FailedPrecondition("job " + state_.jobs.TextOf(id) + " cannot be attached to: " +
                              context_.StateAndReasonOf(id) + "; expected a running job");
  }
  if (!request.node().empty()) {
    ASSIGN_OR_RETURN(const int rank, FirstRankOn(id, attempt, request.node()));
    request.set_rank(rank);
  }
  ASSIGN_OR_RETURN(const NodeId node, NodeOfRank(id, attempt, request.rank()));
  v1::ControllerMessage message;
  v1::AttachOrder& order = *message.mutable_attach();
  order.set_call(call.number);
  order.set_epoch(state_.options.epoch);
  order.mutable_id()->set_job(request.job());
  order.mutable_id()->set_attempt(attempt);
  *order.mutable_request() = std::move(request);
  passed_on_[call.number] = {.node = node, .job = id};
  if (!order.request().opens()) {
    messages_.Send(node, std::move(message));
    return Reply(NoReplyYet);
  }
  if (state_.options.attach_credential) {
    order.set_credential(state_.options.attach_credential(
        order, state_.jobs[id].request->launch().owner(), state_.cluster.nodes[Index(node)].name));
  }
  const std::string program =
      order.request().command_size() > 0 ? order.request().command(0) : std::string("a shell");
  context_.NoteChange(call, "attached to (" + program + ")", {.job = id});
  return Reply([this, node, message = std::move(message)] {
    messages_.Send(node, message);
    return NoReplyYet();
  });
}

// The node of the worker of that rank, be it over. Errors: there is no such worker, or the node's
// agent is away.
Result<NodeId> AgentCalls::NodeOfRank(JobId job, std::uint32_t attempt, int wanted) const {
  int rank = 0;
  for (const auto& [node, gpus] : state_.attempts[job].places[attempt - 1]) {
    rank += state_.jobs[job].WorkersWith(gpus);
    if (wanted < 0 || wanted >= rank) {
      continue;
    }
    if (!state_.nodes[node].connection) {
      return Unavailable("node '" + state_.cluster.nodes[Index(node)].name +
                         "', which has the worker, is away");
    }
    return node;
  }
  return InvalidArgument("job " + state_.jobs.TextOf(job) + " has no worker " +
                         std::to_string(wanted));
}

// Error: the attempt has no worker on the node.
Result<int> AgentCalls::FirstRankOn(JobId job, std::uint32_t attempt,
                                    const std::string& name) const {
  int rank = 0;
  for (const auto& [node, gpus] : state_.attempts[job].places[attempt - 1]) {
    if (state_.cluster.nodes[Index(node)].name == name) {
      return rank;
    }
    rank += state_.jobs[job].WorkersWith(gpus);
  }
  return InvalidArgument("job " + state_.jobs.TextOf(job) + " has no worker on node '" + name +
                         "'");
}

// The job of a call that was passed on to the node, whose answer has come; none: it was not.
std::optional<JobId> AgentCalls::TakeAwaited(std::uint64_t call, NodeId node) {
  const auto found = passed_on_.find(call);
  if (found == passed_on_.end() || found->second.node != node) {
    return std::nullopt;
  }
  const JobId job = found->second.job;
  passed_on_.erase(found);
  return job;
}

std::optional<v1::ClientReply> AgentCalls::TakeLogChunk(NodeId node, const v1::LogChunk& chunk) {
  const std::optional<JobId> job = TakeAwaited(chunk.call(), node);
  if (!job) {
    return std::nullopt;
  }
  v1::ClientReply reply;
  if (chunk.has_error()) {  // as of an attempt that has never been started
    *reply.mutable_error() = chunk.error();
    reply.mutable_error()->set_message(chunk.error().message() + "; " +
                                       context_.StateAndReasonOf(*job));
  } else {
    *reply.mutable_logs() = chunk.reply();
  }
  return reply;
}

std::optional<v1::ClientReply> AgentCalls::TakeAttachAnswer(NodeId node,
                                                            const v1::AttachAnswer& answer) {
  if (answer.epoch() != state_.options.epoch || !TakeAwaited(answer.call(), node)) {
    return std::nullopt;
  }
  v1::ClientReply reply;
  if (answer.has_error()) {
    *reply.mutable_error() = answer.error();
  } else {
    *reply.mutable_attach() = answer.reply();
  }
  return reply;
}

std::vector<std::uint64_t> AgentCalls::TakeCallsTo(NodeId node) {
  std::vector<std::uint64_t> calls;
  for (const auto& [call, passed_on] : passed_on_) {
    if (passed_on.node == node) {
      calls.push_back(call);
    }
  }
  for (const std::uint64_t call : calls) {
    passed_on_.erase(call);
  }
  return calls;
}

}  // namespace trainyard::live
