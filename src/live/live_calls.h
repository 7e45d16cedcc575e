// SPDX-License-Identifier: Apache-2.0
// What clients ask for: finds the facts in it, and answers. Owns the answers that wait until the
// journal holds what they say, and the calls that wait for a verdict or for an agent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "live/access/access.h"
#include "live/job_request.h"
#include "live/live_state.h"
#include "live/live_statuses.h"
#include "live/orders.h"
#include "profile/throughput_table.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

class LiveCalls {
 public:
  using Answers = std::vector<std::function<void()>>;

  // All must outlive it; `profiles` may be null.
  LiveCalls(LiveState& state, const LiveStatuses& statuses,
            const profile::ThroughputTable* profiles, Orders& orders, LiveOutput& output);
  // Where facts go, before the first call.
  void SetFacts(AddFact add) { add_ = std::move(add); }

  // A new batch begins: clients may ask for the jobs of earlier ones.
  void Begin() { known_jobs_ = state_.jobs.size(); }
  void Take(std::uint64_t call, const v1::ClientRequest& request);
  // The client waits no longer.
  void Drop(std::uint64_t call);
  void Refuse(std::uint64_t call, int code, std::string message);
  // There is a verdict on the job, or there will be none.
  void AnswerVerdict(JobId job);
  void TakeLogChunk(const v1::LogChunk& chunk);
  // The node's agent has gone: its answers will not come.
  void DropNode(NodeId node);

  // The answers so far are given, or withheld by the caller.
  void Answer();
  [[nodiscard]] Answers TakeAnswers() { return std::exchange(answers_, {}); }
  void GiveBack(Answers answers) { answers_ = std::move(answers); }
  void DropAnswers() { answers_.clear(); }

 private:
  void TakeSubmit(std::uint64_t call, const v1::ClientRequest& from);
  void TakeCancel(std::uint64_t call, const v1::ClientRequest& from);
  void TakeResize(std::uint64_t call, const v1::ClientRequest& from);
  void TakeDrain(std::uint64_t call, const v1::ClientRequest& from);
  void TakeLogs(std::uint64_t call, const v1::ClientRequest& from);
  void TakeHold(std::uint64_t call, const v1::ClientRequest& from);
  void TakeRequeue(std::uint64_t call, const v1::ClientRequest& from);
  void TakeUpdate(std::uint64_t call, const v1::ClientRequest& from);
  void AnswerSubmit(std::uint64_t call, JobId job, bool wait);
  void AnswerWithJob(std::uint64_t call, JobId job, v1::ClientRequest::KindCase kind);
  [[nodiscard]] std::variant<JobSpec, v1::CallError> Judged(const v1::JobRequest& job) const;
  [[nodiscard]] std::string WhyNotTaken(const JobSpec& job) const;
  [[nodiscard]] std::string WhyNotAwaited(const std::string& dependency, std::size_t before) const;
  [[nodiscard]] bool WaitsAsItsArray(JobId task, const v1::UpdateRequest& request) const;
  void UpdateTasks(JobId first, const v1::UpdateRequest& request, const JobSpec& as);
  void AddSubmit(JobId id, v1::JobRequest job, JobSpec spec);
  // The job, if it is there and the caller may do that to it; else the call is refused.
  [[nodiscard]] std::optional<JobId> Find(std::uint64_t call, const v1::ClientRequest& from,
                                          std::uint64_t number, Touch touch);
  // To change one that has not ended.
  [[nodiscard]] std::optional<JobId> FindLive(std::uint64_t call, const v1::ClientRequest& from,
                                              std::uint64_t number, std::string_view to);
  // Who makes a change, for the journal.
  void NoteChange(const v1::ClientRequest& from, std::string_view what, ChangeNote note);
  [[nodiscard]] std::string DifferenceFrom(JobId job, const v1::JobRequest& request) const;
  [[nodiscard]] std::vector<std::string> Ignored(const v1::JobRequest& job) const;

  LiveState& state_;
  const LiveStatuses& statuses_;
  const profile::ThroughputTable* const profiles_;
  Orders& orders_;
  LiveOutput& output_;
  AddFact add_;

  std::size_t known_jobs_ = 0;  // those of earlier batches
  Answers answers_;
  std::map<JobId, std::vector<std::uint64_t>> verdict_calls_;
  std::map<std::uint64_t, NodeId> log_calls_;
};

}  // namespace trainyard::live
