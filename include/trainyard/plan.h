// SPDX-License-Identifier: Apache-2.0
// What a component wants (Verdict, Demand, Proposal) and what the engine makes of it (Grant).
//
// A proposal is a desired state, never a list of commands: whoever asks for what a job holds
// already changes nothing. The scheduler places the demands, the engine verifies the result against
// its own books and makes launches, preemptions, resizes and migrations of the difference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainyard/ids.h"
#include "trainyard/resources.h"
#include "trainyard/time.h"

namespace trainyard {

// What is decided about a job that has arrived.
enum class Judgement : std::uint8_t {
  kAdmit,   // the job may hold GPUs from now on, in this decision already
  kReject,  // the job has ended; users see the reason
  kLater,   // the job stays unjudged, and is judged again at the next decision
};

struct Verdict {
  JobId job{};
  Judgement judgement = Judgement::kAdmit;
  std::string reason{};  // of a rejection, a sentence without a full stop; may be empty
};

// How a job comes to hold what it is given; each has a cost of its own (RestartCosts).
enum class Change : std::uint8_t {
  kStart,    // first launch
  kRestart,  // launch from a checkpoint
  kResize,   // another number of GPUs
  kMigrate,  // the same number elsewhere
};

// Whether others may use the same GPUs at the same time.
enum class Sharing : std::uint8_t {
  kExclusive,
  // Only the members of its group, whose stages take turns (Muri, SIGCOMM'22).
  kInterleaved,
  // Any job that is collocated, too (as AntMan, OSDI'20, does).
  kCollocated,
};

// One gang: `gpus` workers that start together, exactly that many or none. Orderings make no
// demands; of those that the scheduler makes for them a Placement sees `gpus` alone.
struct Demand {
  JobId job{};
  // JobSpec::gpus, or with May::resize any number >= 0. 0, for published programs: the job holds
  // nothing and counts as started (JobView::started). To let a job wait, leave out its demand.
  int gpus = 0;
  // May be split over more nodes than it needs if the placement finds no better place: for plans
  // that must not fail on fragmentation.
  bool may_split = false;
  // Where the policy names the GPUs (May::name_gpus): in node order, `gpus` of them; none: the job
  // keeps its GPUs.
  Slices slices{};
  // Other than exclusive: May::share. Collocated demands name their GPUs.
  Sharing sharing = Sharing::kExclusive;
  // kInterleaved: the others of its group, in stage order after `job`. One gang of GPUs for all;
  // they have no demands of their own.
  std::vector<JobId> partners{};
  // CPUs, memory and storage bandwidth for the whole gang, for a Packer. Zero: a Packer is given
  // ExecutionModel::Preferred instead, a Placement zero.
  Resources preferred{};
  // False: the job has its GPUs, perhaps fewer than it asked for, without making progress.
  bool running = true;
  // A new attempt even where it keeps its GPUs; charged, and counted as a preemption.
  bool restart = false;
  // Progress that the job is given when it starts, as running time: a rule of published programs.
  // The job may then end before it began.
  Duration credit{0};
};

// What a job holds. `slices` is empty where the placement only counts GPUs. A job without GPUs
// holds CPUs and memory (Slice::soft) of slices without GPUs; components are shown no such job.
struct Grant {
  int gpus = 0;
  Slices slices{};  // in node order; together they have `gpus` GPUs
  Sharing sharing = Sharing::kExclusive;
  std::vector<JobId> group{};  // kInterleaved: all members in stage order; empty: alone
  bool running = true;         // false: without making progress, see Demand

  // False: the job has nothing, and waits.
  [[nodiscard]] bool holds() const { return gpus > 0 || !slices.empty(); }
  friend bool operator==(const Grant&, const Grant&) = default;
};

// What a demand that finds no place means for those behind it.
enum class Misfit : std::uint8_t {
  kSkip,  // later demands are still tried (backfill)
  // Strict order: the nodes that a misfit may have are left to it by those behind it.
  kStop,
  // Orderings only; elsewhere as kStop. Backfilling: for the first misfit GPUs are reserved from
  // the time at which running jobs will have given back enough (Standing::takes), and those behind
  // it start where they do not delay it. So for the first misfit, or the first few
  // (Walk::reservations), of each set of nodes that jobs may have (GPU types, partitions).
  kReserve,
  // For presets only. Strict order; for a misfit running jobs make room, the last in the order
  // first, whether it helps or not (the walk of the simulator of Blox, EuroSys'24).
  kEvictTail,
};

// How the scheduler goes through demands in priority order; see docs/adding-a-policy.md, "The
// walk". An ordering states its walk once, in its traits; a preset may replace it. A policy states
// one with each proposal; there `misfit`, `keep_running` and `largest_first` count, and the rest is
// for orderings. A policy that names its GPUs and shares none needs no walk; where a packer places,
// `misfit` does not count either.
struct Walk {
  Misfit misfit = Misfit::kSkip;
  // Orderings: a demand may take the GPUs of running jobs that rank below it. False: a running job
  // keeps its GPUs to its end.
  bool preempt = true;
  // Running jobs that keep their number of GPUs keep their slices, and come before the other
  // demands of a policy. False, for presets only: all are placed anew at each decision.
  bool keep_running = true;
  // For presets only: select by counting GPUs, then place those selected.
  bool count_first = false;
  // With kReserve: those behind a misfit are tried in ascending order of Standing::takes, and not
  // in the order of their keys.
  bool shortest_first = false;
  // With kReserve: how many misfits have GPUs reserved, in the order of their keys, of each set of
  // nodes that jobs may have. >= 1. For the first a place is reserved; for the others a number of
  // GPUs, O(reservations) for each job behind them.
  int reservations = 1;
  // Place in descending GPU count, against fragmentation (and visit jobs in that order); those of
  // one count in the order of priority.
  bool largest_first = false;
  // For presets only: jobs of equal keys keep their order of last time, or are in that of their
  // submits and then of last time. O(live jobs) per decision.
  enum class FormerRank : std::uint8_t { kNo, kKeys, kSubmits };
  FormerRank former_rank = FormerRank::kNo;

  friend bool operator==(const Walk&, const Walk&) = default;
};

// When a job ends if its plan is followed. Counts only under rules that take ends from the plan (a
// preset's `by_plan`); elsewhere ends follow from the rates of the jobs, whatever is planned.
struct PlannedEnd {
  JobId job{};
  TimePoint registered{};  // restart costs of this decision come on top
  // When the work is done, where that is another time than the registered end. It is taken as it
  // is.
  std::optional<TimePoint> done{};
};

// The answer of a Policy: which jobs hold how many GPUs from now on. REQUIRES, checked at each
// decision: every job of `demands` (partners included) is live, or admitted by `verdicts`, and
// appears once there; jobs of `ends` are live. A breach ends the run with an error that names
// policy and job.
struct Proposal {
  // In priority order; a job that is left out holds nothing from now on. A demand for which there
  // is no place is passed over: the job holds nothing, and the policy sees so at its next decision.
  std::vector<Demand> demands;
  Walk walk{};
  // Decide again then, even if nothing happens; only this decision's counts. REQUIRES: later than
  // Snapshot::now, or the engine decides at the same instant for ever. None: at the next event.
  std::optional<TimePoint> wake_at;
  // With May::admit: one for each job of Snapshot::unjudged, no other. Otherwise empty.
  std::vector<Verdict> verdicts{};
  std::vector<PlannedEnd> ends{};  // if the policy plans ahead; jobs left out keep theirs
  // The demands come of a search that its bound has ended before an optimum was proven: the best
  // that was found by then. Runs count such decisions (summary.json: `bounded_decisions`).
  bool bounded = false;
};

}  // namespace trainyard
