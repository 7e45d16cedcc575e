// SPDX-License-Identifier: Apache-2.0
// Why a job is in the state that it is in, for people: what it waits for, who is ahead of it, what
// keeps it from starting or leaving. Jobs that the asker may not see are not named.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "live/view/cluster_view.h"
#include "model/blocked.h"
#include "service/principal.h"
#include "trainyard/live.pb.h"

namespace trainyard::live {

// Whether the principal may know of the job.
[[nodiscard]] bool MaySee(const ClusterView& view, const service::Principal& principal, JobId job);

// "n0, n3, n5 and 4 more"
[[nodiscard]] std::string FirstNames(const std::vector<std::string>& names);

// The attempts of a node that have to go and may still have processes there.
struct Leaving {
  std::uint64_t job = 0;  // its number; of a stray one perhaps that of no job
  std::uint64_t gpus = 0;
  // Real seconds until it is killed, 0: that should have happened; none: it is not known.
  std::optional<double> left_s{};
};
[[nodiscard]] std::vector<Leaving> LeavingOn(const ClusterView& view, NodeId node, TimePoint now);

// For one answer, at one time: it keeps what it has looked up.
class Reasons {
 public:
  // kBrief: without free GPUs and the order of the jobs, which need a look at all of them.
  enum class Depth : std::uint8_t { kBrief, kFull };
  // The view must outlive it.
  Reasons(const ClusterView& view, TimePoint now, service::Principal asker, Depth depth);

  // Empty: there is nothing to say. REQUIRES: the engine knows the job.
  [[nodiscard]] std::string Of(JobId job, v1::JobState state);

 private:
  // GPUs on the nodes of some types and of a partition that jobs may be given now.
  struct Room {
    int free = 0;
    int all = 0;
    int most = 0;                         // free on one node
    std::optional<std::string> served{};  // which jobs have GPUs there
  };

  [[nodiscard]] std::string WhyItWaits(JobId job);
  [[nodiscard]] std::string WhyDeferred(JobId job) const;
  [[nodiscard]] std::string WhyPaused() const;
  [[nodiscard]] std::string WhyNotServed(JobId job, bool is_head);
  [[nodiscard]] std::string WhyBlocked(JobId job, const model::Blocked& blocked);
  [[nodiscard]] std::string WhyLeftOut(JobId job);
  [[nodiscard]] std::string WhyNotItsDevices(const JobSpec& job);
  [[nodiscard]] std::string NotEnough(const JobSpec& job);
  [[nodiscard]] std::string WhoIsAhead(JobId job);
  [[nodiscard]] const std::string& WhoIsServed(const JobSpec& job);
  [[nodiscard]] std::string HoldersText(const JobSpec& job) const;
  [[nodiscard]] std::string WhyNotRunning(JobId job) const;
  [[nodiscard]] std::string WhoHasNotLeft(const LiveAttempt& attempt) const;
  [[nodiscard]] std::string WhatItFetches(JobId job) const;
  [[nodiscard]] std::string WhyNoProgress(JobId job) const;
  [[nodiscard]] std::string WhyOverrun(JobId job) const;
  [[nodiscard]] std::string WhyNotGone(JobId job) const;
  [[nodiscard]] std::string NodesAway(const JobSpec& job) const;
  [[nodiscard]] std::vector<std::string> NodesOf(const LiveAttempt& attempt,
                                                 bool only_silent) const;

  [[nodiscard]] bool Sees(JobId job) const { return MaySee(view_, asker_, job); }
  [[nodiscard]] std::string NameOf(JobId job) const;
  [[nodiscard]] std::string RealTimeText(Duration of_the_engine) const;
  [[nodiscard]] const model::JobRecord& RecordOf(JobId job) const;
  [[nodiscard]] const std::vector<std::uint64_t>& used();
  [[nodiscard]] std::string WhenItHasToLeave(JobId job) const;
  [[nodiscard]] const model::NodeClasses& classes() const { return *view_.classes; }
  [[nodiscard]] bool MayLieOn(const JobSpec& job, NodeId node) const;
  [[nodiscard]] std::string GpusFor(const JobSpec& job, int count = 2) const;
  [[nodiscard]] Room& RoomFor(const JobSpec& job);
  [[nodiscard]] std::optional<std::size_t> PlaceOf(JobId job);

  const ClusterView& view_;
  const TimePoint now_;
  service::Principal asker_;
  const Depth depth_;
  std::optional<std::vector<std::uint64_t>> used_;  // by node: GPUs that jobs hold
  // By GPU types, by queue where there are partitions, and by what is asked of nodes.
  std::map<std::tuple<std::vector<std::string>, std::string, NodeRequest>, Room> rooms_;
  // The jobs that wait, by the policy's order; and by JobId: their places there, from 1.
  std::optional<std::vector<JobId>> order_;
  std::vector<std::uint32_t> places_;
};

}  // namespace trainyard::live
