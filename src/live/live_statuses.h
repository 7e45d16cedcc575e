// SPDX-License-Identifier: Apache-2.0
// What clients are told of jobs and nodes: their state, and why jobs wait. Reads the engine's
// records, which nothing else in the live world does; changes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "live/live_state.h"
#include "model/blocked.h"
#include "profile/throughput_table.h"
#include "trainyard/live.pb.h"

namespace trainyard::engine {
class Engine;
}  // namespace trainyard::engine
namespace trainyard::model {
struct JobRecord;
}  // namespace trainyard::model

namespace trainyard::live {

class LiveStatuses {
 public:
  // Both must outlive it.
  LiveStatuses(const LiveState& state, const engine::Engine& engine)
      : state_(state), engine_(engine) {}

  // REQUIRES, of all: the engine knows the job.
  [[nodiscard]] v1::JobState StateOf(JobId job) const;
  [[nodiscard]] v1::JobStatus StatusOf(JobId job) const;
  // Why the job is in that state; empty: there is nothing to say.
  [[nodiscard]] std::string ReasonOf(JobId job, v1::JobState state) const;
  // Whether its own terms or its user keep the job from being judged.
  [[nodiscard]] bool IsDeferred(JobId job) const;
  // Whether the caller may know of the job.
  [[nodiscard]] bool MaySee(const v1::ClientRequest& from, JobId job) const;
  // By NodeId.
  [[nodiscard]] std::vector<v1::NodeStatus> OfNodes() const;
  // To a question about jobs: those that the caller may see.
  [[nodiscard]] v1::ClientReply AnswerTo(const v1::ClientRequest& from) const;
  [[nodiscard]] v1::ClientReply AnswerWithNodes() const;
  // `profiles`: of the controller; may be null.
  [[nodiscard]] v1::ClientReply AnswerWithProfiles(const profile::ThroughputTable* profiles) const;

 private:
  [[nodiscard]] std::string WhyItWaits(JobId job) const;
  [[nodiscard]] std::string WhyDeferred(JobId job) const;
  [[nodiscard]] bool IsMeant(JobId job, const v1::JobsRequest& request) const;
  [[nodiscard]] std::string WhyNotServed(JobId job) const;
  [[nodiscard]] std::string WhyBlocked(JobId job, const model::Blocked& blocked) const;
  [[nodiscard]] std::string WhyNotRunning(JobId job) const;
  [[nodiscard]] std::vector<std::string> NodesOf(const LiveAttempt& attempt,
                                                 bool only_silent) const;
  [[nodiscard]] std::string WhoHasNotLeft(const LiveAttempt& attempt) const;
  [[nodiscard]] std::string WhatItFetches(JobId job) const;
  [[nodiscard]] std::string WhyNoProgress(JobId job) const;
  [[nodiscard]] std::string WhyNotGone(JobId job) const;
  [[nodiscard]] std::string RealTimeText(Duration of_the_engine) const;
  [[nodiscard]] std::string NodesAway(const JobSpec& job) const;
  [[nodiscard]] Duration RunTimeOf(const model::JobRecord& record) const;
  [[nodiscard]] std::optional<int> ExitCodeOf(JobId job) const;
  void PutTimes(const model::JobRecord& record, JobId job, v1::JobStatus& status) const;
  void PutGrants(const model::JobRecord& record, JobId job, v1::JobStatus& status) const;
  void PutProgress(JobId job, v1::JobStatus& status) const;
  [[nodiscard]] const model::JobRecord& RecordOf(JobId job) const;

  const LiveState& state_;
  const engine::Engine& engine_;
};

}  // namespace trainyard::live
