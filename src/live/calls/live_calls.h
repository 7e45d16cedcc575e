// SPDX-License-Identifier: Apache-2.0
// What clients ask for: finds the facts in it, and answers. Owns the answers that wait until the
// journal holds what they say, and the calls that wait for a verdict or for an agent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "live/attempts/agent_messages.h"
#include "live/calls/access.h"
#include "live/calls/selection.h"
#include "live/jobs/job_request.h"
#include "live/live_state.h"
#include "live/view/view_writer.h"
#include "profile/throughput_table.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

// The error of an answer.
[[nodiscard]] v1::CallError ErrorOf(int code, std::string message);
[[nodiscard]] v1::CallError ErrorOf(const Error& of_draft);

// Tolerates clock error between retries: whether a client that says the same again may be so many
// seconds apart, which may be any number.
[[nodiscard]] bool IsClockError(const LiveOptions& options, double apart_s);

class LiveCalls {
 public:
  using Answers = std::vector<std::function<void()>>;

  // All must outlive it.
  LiveCalls(LiveState& state, ViewWriter& views, AgentMessages& orders, LiveOutput& output);
  // Where facts go, before the first call.
  void SetFacts(AddFact add) { add_ = std::move(add); }

  // A new batch begins: clients may ask for the jobs of earlier ones.
  void Begin() {
    known_jobs_ = state_.jobs.size();
    held_anew_.clear();
  }
  void Take(std::uint64_t call, const v1::ClientRequest& request);
  // The client waits no longer.
  void Drop(std::uint64_t call);
  void Refuse(std::uint64_t call, int code, std::string message);
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
  // What a job would be after an update.
  struct Update {
    JobId job{};
    std::shared_ptr<const JobSpec> spec;
  };

  void TakeSubmit(std::uint64_t call, const v1::ClientRequest& from);
  void TakeResize(std::uint64_t call, const v1::ClientRequest& from);
  void TakeDrain(std::uint64_t call, const v1::ClientRequest& from);
  void TakeLogs(std::uint64_t call, const v1::ClientRequest& from);
  void TakeAttach(std::uint64_t call, const v1::ClientRequest& from);
  // Calls that change what becomes of jobs (calls/job_changes.cc): all their jobs at one time.
  void TakeChange(std::uint64_t call, const v1::ClientRequest& from);
  // What the call does to each of the jobs; those to which it does nothing are left out.
  struct Chosen {
    std::vector<JobId> jobs;       // it changes them
    std::vector<JobId> as_wanted;  // already
    std::vector<Update> updates;   // of an update, in place of a change alike for all
  };
  [[nodiscard]] Chosen Choose(const v1::ClientRequest& from, Selected& selected) const;
  [[nodiscard]] std::variant<Update, Refusal> UpdateOf(const v1::UpdateRequest& request, JobId job,
                                                       bool with_array) const;
  void AddUpdates(const v1::ClientRequest& from, const std::vector<Update>& updates);
  void AddChange(const v1::ClientRequest& from, const std::vector<JobId>& jobs);
  void AddHold(const v1::ClientRequest& from, const std::vector<JobId>& jobs, bool hold);
  void AddDrains(const v1::ClientRequest& from, std::vector<NodeId> nodes);
  void AnswerSubmit(std::uint64_t call, JobId job, bool wait);
  void AnswerWithJob(std::uint64_t call, JobId job, v1::ClientRequest::KindCase kind);
  [[nodiscard]] std::variant<JobSpec, v1::CallError> Judged(const v1::JobRequest& job) const;
  [[nodiscard]] std::variant<JobSpec, v1::CallError> JudgedDraft(model::JobDraft draft,
                                                                 const v1::JobRequest& job) const;
  [[nodiscard]] std::string WhyNotTaken(const JobSpec& job) const;
  [[nodiscard]] std::string StateAndReasonOf(JobId job) const;
  [[nodiscard]] std::string WhyNotContained(const v1::JobRequest& job) const;
  // Why the job cannot wait for those that it names, which must be among the first `before` and
  // such as its owner may see; empty: it can.
  [[nodiscard]] std::string WhyNotAwaited(const v1::JobRequest& waiting, std::size_t before) const;
  [[nodiscard]] bool WaitsAsItsArray(JobId task, const v1::UpdateRequest& request) const;
  void UpdateTasks(JobId first, const v1::UpdateRequest& request, const JobSpec& as);
  void AddSubmit(JobId id, v1::JobRequest job, JobSpec spec);
  // The job, if it is there and the caller may do that to it; else the call is refused.
  [[nodiscard]] std::optional<JobId> Find(std::uint64_t call, const v1::ClientRequest& from,
                                          std::uint64_t number, Touch touch);
  // Where the worker of that rank is or was, if its node's agent is there; else the call is
  // refused.
  [[nodiscard]] std::optional<NodeId> NodeOfRank(std::uint64_t call, JobId job,
                                                 std::uint32_t attempt, int rank);
  // None: the attempt has no worker on a node of that name.
  [[nodiscard]] std::optional<int> FirstRankOn(JobId job, std::uint32_t attempt,
                                               const std::string& name) const;
  // The job of a call that was passed on to the node, whose answer has come; none: it was not.
  [[nodiscard]] std::optional<JobId> TakeAwaited(std::uint64_t call, NodeId node);
  // To change one that has not ended.
  [[nodiscard]] std::optional<JobId> FindLive(std::uint64_t call, const v1::ClientRequest& from,
                                              std::uint64_t number, std::string_view to);
  // Who makes a change, for the journal; the note's text comes behind that.
  void NoteChange(const v1::ClientRequest& from, std::string_view what, ChangeNote note);
  [[nodiscard]] std::string DifferenceFrom(JobId job, const v1::JobRequest& request) const;

  LiveState& state_;
  ViewWriter& views_;
  AgentMessages& messages_;
  LiveOutput& output_;
  AddFact add_;

  std::size_t known_jobs_ = 0;  // those of earlier batches
  std::set<JobId> held_anew_;   // or released, in this batch
  Answers answers_;
  std::map<JobId, std::vector<std::uint64_t>> verdict_calls_;
  struct PassedOn {
    NodeId node{};
    JobId job{};
  };
  std::map<std::uint64_t, PassedOn> passed_on_;  // calls that agents are to answer
};

}  // namespace trainyard::live
