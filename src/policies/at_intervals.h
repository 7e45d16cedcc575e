// SPDX-License-Identifier: Apache-2.0
// For policies that allocate at intervals, and leave an allocation out where nothing is new.
#pragma once

#include <cstdint>

#include "base/fnv.h"
#include "trainyard/plan.h"
#include "trainyard/snapshot.h"
#include "trainyard/state.h"

namespace trainyard::policies {

// Another number where nodes, live jobs, what they ask for, hold or have reported are others. Ages
// and the service of jobs do not count.
[[nodiscard]] base::Fnv1a DigestOf(const Snapshot& snapshot);

// All jobs keep what they hold.
[[nodiscard]] Proposal ProposalToKeep(const JobTable& jobs);

struct LastAllocation {
  TimePoint next = TimePoint::min();  // allocation
  bool in_vain = false;               // nobody got GPUs
  // When it was worked out, of what, and the age of the youngest job then.
  TimePoint at{};
  std::uint64_t of = 0;
  Duration youngest{0};

  // Whether one of `digest` now would be the same: jobs are hardly older. Else, and where it may
  // not be left out, it is this one from now on.
  [[nodiscard]] bool Repeats(const Snapshot& snapshot, std::uint64_t digest, bool may_rest);

  void Serialize(StateStream& state) { state(next, in_vain, at, of, youngest); }
};

// In between jobs keep what they hold. `allocate()`: a Proposal, asked for when it is time.
template <typename Allocate>
[[nodiscard]] Proposal AtIntervals(const Snapshot& snapshot, Duration interval,
                                   LastAllocation& last, Allocate allocate) {
  if (snapshot.jobs->live().empty()) {
    return {};
  }
  if (snapshot.now < last.next) {
    Proposal proposal = ProposalToKeep(*snapshot.jobs);
    proposal.wake_at = last.next;
    return proposal;
  }
  last.next = snapshot.now + interval;
  Proposal proposal = allocate();
  // Where nobody gets GPUs time and again, time alone changes nothing.
  const bool in_vain = proposal.demands.empty();
  if (!in_vain || !last.in_vain) {
    proposal.wake_at = last.next;
  }
  last.in_vain = in_vain;
  return proposal;
}

}  // namespace trainyard::policies
