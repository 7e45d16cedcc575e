// SPDX-License-Identifier: Apache-2.0
// What clients ask for: each call goes to the handler of its family, which finds the facts in it
// and says how it is answered. Owns the answers that wait until the journal holds what they say.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "live/attempts/agent_messages.h"
#include "live/calls/agent_calls.h"
#include "live/calls/call.h"
#include "live/calls/configuration_changes.h"
#include "live/calls/controller_switches.h"
#include "live/calls/job_changes.h"
#include "live/calls/node_changes.h"
#include "live/calls/submissions.h"
#include "live/calls/validation.h"

namespace trainyard::live {

class LiveCalls {
 public:
  using Answers = std::vector<std::function<void()>>;

  // All must outlive it.
  LiveCalls(LiveState& state, const engine::Engine& engine, ViewWriter& views,
            AgentMessages& messages, LiveOutput& output)
      : context_(state, views),
        configurations_(context_, engine),
        agents_(context_, messages),
        changes_(context_, validation_, messages),
        submissions_(context_, validation_, changes_, engine),
        output_(output) {}
  // Where facts go, before the first call.
  void SetFacts(AddFact add) { context_.SetFacts(std::move(add)); }

  // A new batch begins: clients may ask for the jobs of earlier ones.
  void Begin() {
    context_.Begin();
    changes_.Begin();
  }
  void Take(std::uint64_t call, const v1::ClientRequest& request);
  // The client waits no longer.
  void Drop(std::uint64_t call);
  void Refuse(std::uint64_t call, const Error& error);
  // An agent that no node of the cluster has wants to join: see ConfigurationChanges.
  [[nodiscard]] Status AdmitNode(const v1::Hello& hello) { return configurations_.Admit(hello); }
  // There is a verdict on the job, or there will be none.
  void AnswerVerdict(JobId job);
  // What the agent of a node answers to a call that was passed on to it.
  void TakeLogChunk(NodeId node, const v1::LogChunk& chunk);
  void TakeAttachAnswer(NodeId node, const v1::AttachAnswer& answer);
  // The node's agent has gone: its answers will not come.
  void DropNode(NodeId node);

  // The answers so far are given, or withheld by the caller.
  void Answer();
  [[nodiscard]] Answers TakeAnswers() { return std::exchange(answers_, {}); }
  void GiveBack(Answers answers) { answers_ = std::move(answers); }
  void DropAnswers() { answers_.clear(); }

 private:
  [[nodiscard]] Result<Reply> Handle(std::uint64_t call, const v1::ClientRequest& request);
  [[nodiscard]] Reply Read(const v1::ClientRequest& request);

  CallContext context_;
  ConfigurationChanges configurations_;
  Validation validation_{context_};
  AgentCalls agents_;
  JobChanges changes_;
  NodeChanges nodes_{context_};
  ControllerSwitches switches_{context_};
  Submissions submissions_;
  LiveOutput& output_;
  Answers answers_;
};

}  // namespace trainyard::live
