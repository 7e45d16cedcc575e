// SPDX-License-Identifier: Apache-2.0
// Which jobs are interleaved with which (Muri, SIGCOMM'22): of the jobs in order of priority, as
// many as could run if all were grouped; then rounds of matching, by how busy a group keeps its
// resources, until all fit; then groups that are slower than their members one after another are
// split up again.
#pragma once

#include <span>
#include <vector>

#include "policies/node_room.h"
#include "solver/matching.h"
#include "trainyard/component.h"

namespace trainyard::policies {

struct GroupingRules {
  std::size_t largest = 4;  // jobs in a group
  bool matched = true;      // false: neighbours in the order of priority, without matching
  bool keep = true;         // of equally good groups the running ones
  bool split = true;        // groups that are slower than one job after another
  // split: groups run in the worst order of stages, and are judged as if it were the best.
  bool judge_by_best = false;
  bool strict = false;  // no job passes one that finds no place
};

// Jobs that run together, or one alone.
struct JobGroup {
  std::vector<const RankedJob*> members;
  double rank = 0;  // of its first

  [[nodiscard]] int gpus() const { return members.front()->spec->gpus; }
};

// The groups that run, by rank; they fit together into `room`. `jobs` are sorted by rank and
// outlive the groups. Jobs that do not state their stages stay alone.
//
// The matching says how many pairs which stage profiles form. Of the jobs of equal profile, pairs
// are made of jobs that run together (`keep`), then of jobs of one profile, then of the others,
// each time of jobs of higher rank first. `memo`: of the decisions before; it changes the speed and
// nothing else.
[[nodiscard]] std::vector<JobGroup> GroupJobs(const GroupingRules& rules, const Snapshot& snapshot,
                                              std::span<const RankedJob> jobs, NodeRoom room,
                                              solver::MatchingMemo& memo);

}  // namespace trainyard::policies
