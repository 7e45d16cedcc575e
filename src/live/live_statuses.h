// SPDX-License-Identifier: Apache-2.0
// What clients are told of jobs and nodes, as of the time of the call: their state, progress, and
// what has become of them. Reads the engine's records; changes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "live/live_state.h"
#include "profile/throughput_table.h"
#include "trainyard/live.pb.h"

namespace trainyard::engine {
class Engine;
}  // namespace trainyard::engine
namespace trainyard::model {
struct JobRecord;
}  // namespace trainyard::model

namespace trainyard::live {

class Reasons;  // reasons/reasons.h

class LiveStatuses {
 public:
  // Both must outlive it.
  LiveStatuses(const LiveState& state, const engine::Engine& engine)
      : state_(state), engine_(engine) {}

  // REQUIRES, of all: the engine knows the job.
  [[nodiscard]] v1::JobState StateOf(JobId job) const;
  // As its owner may see it; the brief one costs no look at other jobs (Reasons::Depth).
  [[nodiscard]] v1::JobStatus StatusOf(JobId job) const;
  [[nodiscard]] v1::JobStatus BriefStatusOf(JobId job) const;
  // The brief one, with what has been changed of the job at this time.
  [[nodiscard]] v1::JobStatus ChangedStatusOf(JobId job) const;
  // Why the job is in that state, in brief, for its owner; empty: there is nothing to say.
  [[nodiscard]] std::string ReasonOf(JobId job, v1::JobState state) const;
  // Whether its own terms or its user keep the job from being judged.
  [[nodiscard]] bool IsDeferred(JobId job) const;
  // By a user.
  [[nodiscard]] bool IsHeld(JobId job) const;
  // Whether it has not ended and the lists of the selection fit.
  [[nodiscard]] bool IsMeant(JobId job, const v1::Selection& selection) const;
  // Whether the caller may know of the job.
  [[nodiscard]] bool MaySee(const v1::ClientRequest& from, JobId job) const;
  // By NodeId, with the jobs that the caller may see.
  [[nodiscard]] std::vector<v1::NodeStatus> OfNodes(const v1::ClientRequest& from = {}) const;
  // To a question about jobs: those that the caller may see.
  [[nodiscard]] v1::ClientReply AnswerTo(const v1::ClientRequest& from) const;
  [[nodiscard]] v1::ClientReply AnswerWithNodes(const v1::ClientRequest& from) const;
  [[nodiscard]] v1::ClientReply AnswerWithProfiles() const;
  [[nodiscard]] v1::ClientReply AnswerWithConfiguration() const;

 private:
  [[nodiscard]] v1::JobStatus StatusOf(JobId job, Reasons& reasons) const;
  [[nodiscard]] bool IsMeant(JobId job, const v1::JobsRequest& request) const;
  [[nodiscard]] v1::NodeStatus StatusOfNode(NodeId id) const;
  template <typename Filter>
  [[nodiscard]] bool Fits(JobId job, const Filter& request) const;
  [[nodiscard]] Duration RealTime(Duration of_the_engine) const;
  [[nodiscard]] std::optional<int> ExitCodeOf(JobId job) const;
  // The events of that time and later.
  void PutHistory(JobId job, TimePoint from, v1::JobStatus& status) const;
  void PutTimes(const model::JobRecord& record, JobId job, v1::JobStatus& status) const;
  void PutGrants(const model::JobRecord& record, JobId job, v1::JobStatus& status) const;
  void PutProgress(JobId job, v1::JobStatus& status) const;
  [[nodiscard]] const model::JobRecord& RecordOf(JobId job) const;

  const LiveState& state_;
  const engine::Engine& engine_;
};

}  // namespace trainyard::live
