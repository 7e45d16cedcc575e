// SPDX-License-Identifier: Apache-2.0
// What a component wants (Demand, Proposal) and what the engine makes of it (Grant, Blocked).
// A proposal is a desired state, never a list of commands: asking twice changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

enum class Judgement : std::uint8_t {
  kAdmit,   // the job may hold GPUs from now on
  kReject,  // the job has ended; users see the reason
  kLater,   // the job waits to be judged again
};

struct Verdict {
  JobId job{};
  Judgement judgement = Judgement::kAdmit;
  std::string reason{};  // of a rejection, a sentence without a full stop; may be empty
};

// How a job comes to hold what it is given; each has a cost of its own.
enum class Change : std::uint8_t {
  kStart,    // first launch
  kRestart,  // launch from a checkpoint
  kResize,   // another number of GPUs
  kMigrate,  // the same number elsewhere
};

// Whether others may use the same GPUs at the same time.
enum class Sharing : std::uint8_t {
  kExclusive,
  kInterleaved,  // only the members of its group, whose stages take turns (Muri)
  kCollocated,   // anybody who is collocated, too
};

// One gang: `gpus` workers that start together, exactly that many or none.
struct Demand {
  JobId job{};
  int gpus = 0;
  // May be split over more nodes than it needs if the placement finds no better place: for plans
  // that must not fail on fragmentation.
  bool may_split = false;
  // Where the policy names the GPUs (May::name_gpus): in node order; none: it keeps its GPUs.
  Slices slices{};
  // Other than exclusive: May::share. Collocated demands name their GPUs.
  Sharing sharing = Sharing::kExclusive;
  // kInterleaved: the others of its group, in stage order after `job`. One gang of GPUs for all.
  std::vector<JobId> partners{};
  // CPUs, memory and storage bandwidth for the whole gang; filled in for orderings.
  Resources preferred{};
  // False: keeps its GPUs, perhaps fewer than it asked for, without making progress.
  bool running = true;
  // A new attempt even where it keeps its GPUs; charged, and counted as a preemption.
  bool restart = false;
  // Progress that the job is given when it starts, as running time: a rule of published programs.
  // The job may then end before it began.
  Duration credit{0};
};

// What a job holds. `slices` is empty where the placement only counts GPUs.
struct Grant {
  int gpus = 0;
  Slices slices{};
  Sharing sharing = Sharing::kExclusive;
  std::vector<JobId> group{};  // kInterleaved: all members in stage order; empty: alone
  bool running = true;         // see Demand

  friend bool operator==(const Grant&, const Grant&) = default;
};

enum class Misfit : std::uint8_t {
  kSkip,  // later demands are still tried (backfill)
  kStop,  // strict order: nothing behind a misfit is tried
  // Strict order; for a misfit running jobs make room, the last in the order first, whether it
  // helps or not (the walk of the Blox simulator, reference 6).
  kEvictTail,
};

// How the engine goes through demands in priority order; see docs/adding-a-policy.md, "The walk".
struct Walk {
  Misfit misfit = Misfit::kSkip;
  bool preempt = true;         // a demand may take the GPUs of running jobs that rank below it
  bool keep_running = true;    // running jobs keep their slices; false: all are placed anew
  bool count_first = false;    // select by counting GPUs, then place those selected
  bool largest_first = false;  // place in descending GPU count (and visit jobs in that order)
  // Equal keys keep their order of last time, or of submits and then of last time: O(n) per event.
  enum class FormerRank : std::uint8_t { kNo, kKeys, kSubmits };
  FormerRank former_rank = FormerRank::kNo;

  friend bool operator==(const Walk&, const Walk&) = default;
};

// When a job ends if its plan is followed. `done` may be left out where the plan does not tell it
// from the registered end; restart costs of the decision come on top of `registered` only.
struct PlannedEnd {
  JobId job{};
  TimePoint registered{};
  std::optional<TimePoint> done{};
};

// REQUIRES: every job is live, or admitted by `verdicts`; a job appears at most once.
struct Proposal {
  std::vector<Demand> demands;  // in priority order; jobs left out hold nothing
  Walk walk{};
  std::optional<TimePoint> wake_at;  // decide again then, even if nothing happens
  std::vector<Verdict> verdicts{};   // if the policy judges arrivals: one for each unjudged job
  std::vector<PlannedEnd> ends{};    // if the policy plans ahead; jobs left out keep theirs
};

}  // namespace trainyard
