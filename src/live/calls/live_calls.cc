// SPDX-License-Identifier: Apache-2.0
#include "live/calls/live_calls.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/try.h"
#include "service/call_error.h"
#include "service/calls.h"

namespace trainyard::live {

Result<Reply> LiveCalls::Handle(std::uint64_t number, const v1::ClientRequest& request) {
  using Family = service::CallFamily;
  const Call call{.number = number, .principal = service::Principal::Of(request)};
  RETURN_IF_ERROR(call.principal.CheckCaller(context_.state().options.asks_who));
  switch (service::FamilyOf(request.kind_case())) {
    case Family::kReading:
      return Read(request);
    case Family::kSubmission:
      return request.has_submit() ? submissions_.Submit(call, request.submit())
                                  : submissions_.Resize(call, request.resize());
    case Family::kJobChange:
      return changes_.Change(call, request);
    case Family::kNode:
      return nodes_.Drain(call, request.drain());
    case Family::kController:
      return request.has_switches() ? switches_.Set(call, request.switches())
                                    : configurations_.Configure(call, request.configure());
    case Family::kAgent:
      return request.has_logs() ? agents_.ReadLogs(call, request.logs())
                                : agents_.Attach(call, request.attach());
    case Family::kNone:
      break;
  }
  return InvalidArgument("an empty request");
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
