// SPDX-License-Identifier: Apache-2.0
#include "live/calls/live_calls.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/try.h"
#include "service/call_error.h"
#include "service/calls.h"

namespace trainyard::live {
namespace {

template <typename... Case>
struct Cases : Case... {
  using Case::operator()...;
};
template <typename... Case>
Cases(Case...) -> Cases<Case...>;

}  // namespace

// To the handler of its family. A call without a case does not compile.
Result<Reply> LiveCalls::Handle(std::uint64_t number, const v1::ClientRequest& request) {
  const Call call{.number = number, .principal = service::Principal::Of(request)};
  RETURN_IF_ERROR(call.principal.CheckCaller(context_.state().options.asks_who));
  Result<Reply> reply = InvalidArgument("an empty request");
  const auto read = [&] { reply = Read(request); };
  const auto change = [&] { reply = changes_.Change(call, request); };
  service::VisitRequest(
      request,
      Cases{
          [&](const v1::SubmitRequest& asked) { reply = submissions_.Submit(call, asked); },
          [&](const v1::ResizeRequest& asked) { reply = submissions_.Resize(call, asked); },
          [&](const v1::CancelRequest& /*asked*/) { change(); },
          [&](const v1::HoldRequest& /*asked*/) { change(); },
          [&](const v1::RequeueRequest& /*asked*/) { change(); },
          [&](const v1::UpdateRequest& /*asked*/) { change(); },
          [&](const v1::SignalRequest& /*asked*/) { change(); },
          [&](const v1::DrainRequest& asked) { reply = nodes_.Drain(call, asked); },
          [&](const v1::SwitchesRequest& asked) { reply = switches_.Set(call, asked); },
          [&](const v1::ConfigureRequest& asked) {
            reply = configurations_.Configure(call, asked);
          },
          [&](const v1::LogsRequest& asked) { reply = agents_.ReadLogs(call, asked); },
          [&](const v1::AttachRequest& asked) { reply = agents_.Attach(call, asked); },
          [&](const v1::JobsRequest& /*asked*/) { read(); },
          [&](const v1::NodesRequest& /*asked*/) { read(); },
          [&](const v1::ProfilesRequest& /*asked*/) { read(); },
          [&](const v1::UsageRequest& /*asked*/) { read(); },
          [&](const v1::AuditRequest& /*asked*/) { read(); },
          [&](const v1::ConfigurationRequest& /*asked*/) { read(); },
      });
  return reply;
}

// From the view of after this batch.
Reply LiveCalls::Read(const v1::ClientRequest& request) {
  return [this, request]() -> std::optional<v1::ClientReply> {
    const std::shared_ptr<const ClusterView> view = context_.published();
    return Statuses(*view, context_.state().now).AnswerTo(request);
  };
}

void LiveCalls::Take(std::uint64_t call, const v1::ClientRequest& request) {
  Result<Reply> reply = Handle(call, request);
  if (!reply.ok()) {
    return Refuse(call, reply.error());
  }
  answers_.push_back([this, call, make = std::move(reply).value()] {
    if (std::optional<v1::ClientReply> made = make()) {
      output_.Reply(call, *std::move(made));
    }
  });
}

void LiveCalls::Drop(std::uint64_t call) {
  agents_.Drop(call);
  submissions_.Drop(call);
}

void LiveCalls::Refuse(std::uint64_t call, const Error& error) {
  answers_.push_back([this, call, error] {
    v1::ClientReply reply;
    *reply.mutable_error() = service::MessageOf(error);
    output_.Reply(call, std::move(reply));
  });
}

void LiveCalls::Answer() {
  for (const std::function<void()>& answer : TakeAnswers()) {
    answer();
  }
}

void LiveCalls::AnswerVerdict(JobId job) {
  for (const std::uint64_t call : submissions_.TakeWaitingFor(job)) {
    answers_.push_back([this, call, job] { output_.Reply(call, submissions_.ReplyWith(job)); });
  }
}

void LiveCalls::TakeLogChunk(NodeId node, const v1::LogChunk& chunk) {
  if (std::optional<v1::ClientReply> reply = agents_.TakeLogChunk(node, chunk)) {
    output_.Reply(chunk.call(), *std::move(reply));
  }
}

void LiveCalls::TakeAttachAnswer(NodeId node, const v1::AttachAnswer& answer) {
  if (std::optional<v1::ClientReply> reply = agents_.TakeAttachAnswer(node, answer)) {
    output_.Reply(answer.call(), *std::move(reply));
  }
}

void LiveCalls::DropNode(NodeId node) {
  for (const std::uint64_t call : agents_.TakeCallsTo(node)) {
    Refuse(call, Unavailable("the node that was asked has gone away"));
  }
}

}  // namespace trainyard::live
