// SPDX-License-Identifier: Apache-2.0
// Themis (NSDI'20): finish-time fairness. rho of a job is its time from submission to finish over
// what that would be with a fair share of the cluster all along. Jobs hold their GPUs for a lease;
// then an auction serves those with the worst rho first. A class, because src/originals derives the
// published forms.
#pragma once

#include <vector>

#include "trainyard/component_entry.h"
#include "trainyard/state.h"

namespace trainyard::policies {

// Of option `lease`: seconds to a duration. Errors: it is too long for `policy`.
[[nodiscard]] Result<Duration> LeaseOf(const Options& options, std::string_view policy);

// What the policy knows of a live job.
struct ThemisStanding {
  JobId id{};
  int gpus = 0;  // requested
  TimePoint submit{};
  double rate = 0;       // on the requested GPUs; 0: it cannot run now
  double work_left = 0;  // as of the last decision
  double share = 1;      // fair share of the request since the last decision
  double fair_time = 0;  // how long the work done so far takes on the fair shares of the past
  double rank = 0;       // as of the last auction; larger first

  void Serialize(StateStream& state) {
    state(id, gpus, submit, rate, work_left, share, fair_time, rank);
  }
};

struct ThemisMemory final : Memory {
  std::vector<ThemisStanding> jobs;  // in the order of the last auction, then of arrival
  std::vector<JobId> live;           // the same, as the engine visited them
  int gpus_up = 0;
  TimePoint last_event{};  // last decision at which a job came or had gone
  TimePoint lease_end{};

  void Serialize(StateStream& state) override { state(jobs, live, gpus_up, last_event, lease_end); }
};

// With a share x of its request the rho of a job is elapsed + ahead / x.
struct ThemisBid {
  double elapsed = 0;
  double ahead = 0;
};

// One decision.
class ThemisDecision {
 public:
  // `lease`: 0: every decision is an auction.
  ThemisDecision(Duration lease, const Snapshot& snapshot, ThemisMemory& memory);
  virtual ~ThemisDecision() = default;

  Proposal Take();

 protected:
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
  [[nodiscard]] const ThemisMemory& memory() const { return memory_; }
  [[nodiscard]] bool CanRun(const ThemisStanding& job) const;
  [[nodiscard]] ThemisBid BidOf(const ThemisStanding& job) const;
  // Those that all jobs that can run ask for.
  [[nodiscard]] int GpusAsked() const;

  // Orders `jobs` for this lease.
  virtual void Rank(std::vector<ThemisStanding>& jobs);
  // Work that counts as one unit of fair time on the full request.
  [[nodiscard]] virtual double Unit(const ThemisStanding& job) const { return job.rate; }
  [[nodiscard]] virtual TimePoint AgesAsOf() const { return snapshot_.now; }
  // Whether a gang for which the GPUs suffice is served; it then is.
  virtual bool Fits(int /*gpus*/) { return true; }

 private:
  [[nodiscard]] bool leases() const { return lease_ > Duration{0}; }
  [[nodiscard]] bool Runs(const ThemisStanding& job) const;
  bool Meet();
  [[nodiscard]] bool SameJobs() const;
  bool MeetJobs();
  [[nodiscard]] double WorkLeft(JobId job) const;
  void Account();
  bool Serve(bool auction, std::vector<Demand>& demands);

  const Duration lease_;
  const Snapshot& snapshot_;
  ThemisMemory& memory_;
  std::vector<ThemisStanding>& jobs_;
};

}  // namespace trainyard::policies
