// SPDX-License-Identifier: Apache-2.0
// Calls that reach into a running job: sessions beside its workers, and signals.
#include <algorithm>
#include <utility>

#include "live/calls/live_calls.h"
#include "live/calls/signals.h"

namespace trainyard::live {
namespace {

constexpr std::size_t kMostCommand = std::size_t{32} << 10;
constexpr std::size_t kMostInput = std::size_t{16} << 10;

// What is wrong with the call, whatever the job; empty: nothing.
std::string AttachMistakeOf(const v1::AttachRequest& request) {
  std::size_t size = request.term().size();
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  for (const std::string& word : request.command()) {
    size += word.size() + 1;
  }
  if (size > kMostCommand || request.input().size() > kMostInput) {
    return "the command has more than 32 KiB, or the input more than 16 KiB";
  }
  if (std::any_of(request.command().begin(), request.command().end(), has_nul) ||
      (request.command_size() > 0 && request.command(0).empty()) || has_nul(request.term())) {
    return "the command is empty, or has a NUL; expected a program and its arguments";
  }
  if (request.opens() && request.session().empty()) {
    return "the session has no name; expected 32 hex digits";
  }
  return request.signal() == 0 ? std::string() : MistakeOfSignal(request.signal());
}

}  // namespace

// The opening of a session is in the journal, with its caller; session traffic is not journaled.
void LiveCalls::TakeAttach(std::uint64_t call, const v1::ClientRequest& from) {
  v1::AttachRequest request = from.attach();
  if (std::string mistake = AttachMistakeOf(request); !mistake.empty()) {
    return Refuse(call, kInvalidArgument, std::move(mistake));
  }
  const std::optional<JobId> id = Find(call, from, request.job(), Touch::kEnter);
  if (!id) {
    return;
  }
  if (state_.jobs[*id].is_emulated()) {
    return Refuse(call, kFailedPrecondition,
                  "job " + state_.jobs.TextOf(*id) +
                      " is emulated and has no processes; expected a job with a command");
  }
  const Attempts::OfJob& attempts = state_.attempts[*id];
  const std::uint32_t attempt =
      request.attempt() == 0 ? attempts.last_started() : request.attempt();
  const v1::JobState state = views_.Now().StateOf(*id);
  if (attempt == 0 || attempt > attempts.last || (request.opens() && state != v1::RUNNING)) {
    return Refuse(call, kFailedPrecondition,
                  "job " + state_.jobs.TextOf(*id) + " cannot be attached to: " +
                      StateAndReasonOf(*id) + "; expected a running job");
  }
  if (!request.node().empty()) {
    const std::optional<int> rank = FirstRankOn(*id, attempt, request.node());
    if (!rank) {
      return Refuse(
          call, kInvalidArgument,
          "job " + state_.jobs.TextOf(*id) + " has no worker on node '" + request.node() + "'");
    }
    request.set_rank(*rank);
  }
  const std::optional<NodeId> node = NodeOfRank(call, *id, attempt, request.rank());
  if (!node) {
    return;
  }
  v1::ControllerMessage message;
  v1::AttachOrder& order = *message.mutable_attach();
  order.set_call(call);
  order.set_epoch(state_.options.epoch);
  order.mutable_id()->set_job(request.job());
  order.mutable_id()->set_attempt(attempt);
  *order.mutable_request() = std::move(request);
  passed_on_[call] = {.node = *node, .job = *id};
  if (!order.request().opens()) {
    return messages_.Send(*node, std::move(message));
  }
  if (state_.options.attach_credential) {
    order.set_credential(
        state_.options.attach_credential(order, state_.jobs[*id].request->launch().owner(),
                                         state_.cluster.nodes[Index(*node)].name));
  }
  const std::string program =
      order.request().command_size() > 0 ? order.request().command(0) : std::string("a shell");
  NoteChange(from, "attached to (" + program + ")", {.job = *id});
  answers_.push_back(
      [this, node, message = std::move(message)] { messages_.Send(*node, message); });
}

std::optional<int> LiveCalls::FirstRankOn(JobId job, std::uint32_t attempt,
                                          const std::string& name) const {
  int rank = 0;
  for (const auto& [node, gpus] : state_.attempts[job].places[attempt - 1]) {
    if (state_.cluster.nodes[Index(node)].name == name) {
      return rank;
    }
    rank += state_.jobs[job].has_worker_per_gpu() ? gpus : 1;
  }
  return std::nullopt;
}

void LiveCalls::TakeAttachAnswer(NodeId node, const v1::AttachAnswer& answer) {
  if (answer.epoch() != state_.options.epoch || !TakeAwaited(answer.call(), node)) {
    return;
  }
  v1::ClientReply reply;
  if (answer.has_error()) {
    *reply.mutable_error() = answer.error();
  } else {
    *reply.mutable_attach() = answer.reply();
  }
  output_.Reply(answer.call(), std::move(reply));
}

}  // namespace trainyard::live
