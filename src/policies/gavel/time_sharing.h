// SPDX-License-Identifier: Apache-2.0
// Serves an allocation by rounds (Gavel, OSDI'20, section 5): who holds which GPUs so that in the
// long run each unit has its share of time on each type. A unit is owed the time that its share
// makes less what it has had; those that are owed most go first. Unlike the published rounds it
// keeps jobs where they are unless others are owed more than a change costs, never idles GPUs that
// somebody could use, and starts jobs as soon as GPUs come free.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "policies/gavel/allocation_problem.h"
#include "policies/gavel/problem_of.h"
#include "trainyard/component.h"
#include "trainyard/state.h"

namespace trainyard::policies {

// A job alone (first == second), or two on the same GPUs.
using SharingUnit = std::pair<JobId, JobId>;

struct TimeSharingMemory final : Memory {
  struct Claim {
    std::vector<double> shares;  // by type
    std::vector<double> owed;    // seconds, by type
    void Serialize(StateStream& state) { state(shares, owed); }
  };
  struct Place {
    std::size_t type = 0;
    Slices slices;
    TimePoint since{};  // it has been there
    void Serialize(StateStream& state) { state(type, slices, since); }
  };
  std::map<SharingUnit, Claim> claims;  // of the last allocation
  std::map<SharingUnit, Place> places;  // as last proposed
  std::vector<JobId> solved_for;        // ascending
  std::optional<std::uint64_t> node_changes;
  TimePoint last{};  // owed times are up to date as of then
  std::optional<TimePoint> round_end;

  // Finish-time fairness: what of a job's time is fair, as of the last allocation.
  struct FairTime {
    double time = 0;
    double work_left = 0;
    double rate = 0;
    void Serialize(StateStream& state) { state(time, work_left, rate); }
  };
  std::map<JobId, FairTime> fair;
  std::map<JobId, JobId> partners;  // Gandiva's packing: of both jobs of each pair

  void Serialize(StateStream& state) override {
    state(claims, places, solved_for, node_changes, last, round_end, fair, partners);
  }
};

class TimeSharing {
 public:
  TimeSharing(const Snapshot& snapshot, const ProblemOf& of, Duration round,
              TimeSharingMemory& memory);

  // Whether an allocation is due: a round is over, or nothing has ever been allocated, and the jobs
  // or the nodes have changed since the last one.
  [[nodiscard]] bool NeedsAllocation() const;
  // `allocation` of the problem.
  void Take(const Allocation& allocation);
  [[nodiscard]] Proposal Decide();

 private:
  struct Candidate {
    SharingUnit unit{};
    std::size_t type = 0;
    double rank = 0;        // seconds that it is owed, and what keeps it where it is
    bool has_share = true;  // false: it only fills GPUs that nobody with a share can use
    bool is_there = false;
    double rate = 0;  // of both jobs against each alone on its best type
    std::uint64_t arrival = 0;
  };

  [[nodiscard]] bool RoundIsOver() const;
  [[nodiscard]] std::size_t IndexOf(JobId job) const;
  [[nodiscard]] static std::vector<JobId> MembersOf(const SharingUnit& unit);
  void ForgetUnplaced();
  void CountTime();
  // The places of the units that still hold them.
  void KeepHolders();
  [[nodiscard]] bool Holds(const SharingUnit& unit, const TimeSharingMemory::Place& place) const;
  [[nodiscard]] std::vector<Candidate> Candidates(bool round_is_over) const;
  void AddCandidates(const SharingUnit& unit, const std::vector<double>& shares,
                     const std::vector<double>& owed, std::vector<Candidate>& candidates) const;
  [[nodiscard]] double WorthOf(const SharingUnit& unit, std::size_t type) const;
  // What a change of the unit costs its slowest job, in seconds.
  [[nodiscard]] double CostOf(const SharingUnit& unit) const;
  void Choose(const std::vector<Candidate>& candidates);
  // GPUs of the type that nobody has: of one node where one has enough, else of as few as possible.
  [[nodiscard]] std::optional<Slices> FindPlace(const SharingUnit& unit, std::size_t type) const;
  void Occupy(const Slices& slices, bool taken);
  [[nodiscard]] bool MayLie(JobId job, NodeId node) const;

  const Snapshot& snapshot_;
  const ProblemOf& of_;
  const Duration round_;
  TimeSharingMemory& memory_;
  std::map<JobId, std::size_t> index_;  // of the problem's jobs
  std::vector<std::uint64_t> free_;     // by node, GPUs as bits
  std::map<SharingUnit, TimeSharingMemory::Place> chosen_;
};

}  // namespace trainyard::policies
