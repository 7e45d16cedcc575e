// SPDX-License-Identifier: Apache-2.0
// What clients are told of jobs and nodes: how a view of the cluster stands at a time, their
// progress up to then, and what has become of them. Any thread may ask.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "live/view/cluster_view.h"
#include "service/principal.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

class Reasons;  // view/reasons.h

class Statuses {
 public:
  // The view must outlive it. `now` is the time of the question; an earlier one than the view's
  // counts as that.
  Statuses(const ClusterView& view, TimePoint now);

  // REQUIRES, of all: the view has the job.
  [[nodiscard]] v1::JobState StateOf(JobId job) const;
  // As its owner may see it; the brief one costs no look at other jobs (Reasons::Depth).
  [[nodiscard]] v1::JobStatus StatusOf(JobId job) const;
  [[nodiscard]] v1::JobStatus BriefStatusOf(JobId job) const;
  // The brief one, with what has been changed of the job at this time.
  [[nodiscard]] v1::JobStatus ChangedStatusOf(JobId job) const;
  // Why the job is in that state, in brief, for its owner; empty: there is nothing to say.
  [[nodiscard]] std::string ReasonOf(JobId job, v1::JobState state) const;
  // Whether its own terms or its user keep the job from being judged.
  [[nodiscard]] bool IsDeferred(JobId job) const { return view_.job(job).deferred; }
  // By a user.
  [[nodiscard]] bool IsHeld(JobId job) const { return view_.job(job).held; }
  // Whether it has not ended and the lists of the selection fit.
  [[nodiscard]] bool IsMeant(JobId job, const v1::Selection& selection) const;
  // Whether the caller may know of the job.
  [[nodiscard]] bool MaySee(const service::Principal& principal, JobId job) const;
  // By NodeId, with the jobs that the caller may see.
  [[nodiscard]] std::vector<v1::NodeStatus> OfNodes(const service::Principal& principal = {}) const;
  // What its caller may see. REQUIRES: the call is of the family kReading (service/calls.h).
  [[nodiscard]] v1::ClientReply AnswerTo(const v1::ClientRequest& request) const;

 private:
  [[nodiscard]] v1::ClientReply AnswerWithJobs(const service::Principal& principal,
                                               const v1::JobsRequest& request) const;
  // The jobs that are asked for by number.
  void PutNamed(const service::Principal& principal, const v1::JobsRequest& request,
                Reasons& reasons, v1::JobsReply& jobs) const;
  [[nodiscard]] v1::ClientReply AnswerWithNodes(const service::Principal& principal) const;
  [[nodiscard]] v1::ClientReply AnswerWithConfiguration(
      const v1::ConfigurationRequest& request) const;
  [[nodiscard]] Result<v1::AuditReply> Audit(const service::Principal& principal,
                                             const v1::AuditRequest& request) const;
  [[nodiscard]] Result<v1::UsageReply> UsageBy(const service::Principal& principal,
                                               const v1::UsageRequest& request) const;
  [[nodiscard]] std::uint64_t VersionOf(std::string_view version) const;
  [[nodiscard]] v1::JobStatus StatusOf(JobId job, Reasons& reasons) const;
  [[nodiscard]] bool IsMeant(JobId job, const v1::JobsRequest& request) const;
  [[nodiscard]] v1::NodeStatus StatusOfNode(NodeId id) const;
  template <typename Filter>
  [[nodiscard]] bool Fits(JobId job, const Filter& request) const;
  [[nodiscard]] Duration RealTime(Duration of_the_engine) const;
  [[nodiscard]] std::optional<int> ExitCodeOf(JobId job) const;
  // The events of that time and later.
  void PutHistory(JobId job, TimePoint from, v1::JobStatus& status) const;
  void PutTimes(JobId job, v1::JobStatus& status) const;
  void PutGrants(JobId job, v1::JobStatus& status) const;
  void PutUse(JobId job, v1::JobStatus& status) const;
  void PutSteps(JobId job, v1::JobStatus& status) const;
  void PutProgress(JobId job, v1::JobStatus& status) const;

  const ClusterView& view_;
  const LiveOptions& options_;
  const TimePoint now_;
};

}  // namespace trainyard::live
