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

// Why a job waits. Kept per demand class (GPU count), not per job.
enum class WaitReason : std::uint8_t {
  kGpus,        // not enough free GPUs in the cluster
  kLocality,    // enough in sum, but not where one gang may lie
  kBehindHead,  // the policy serves strictly in order and an earlier job does not fit
  kNever,       // could not fit into the empty cluster
};

enum class Judgement : std::uint8_t { kAdmit, kReject, kLater };

struct Verdict {
  JobId job{};
  Judgement judgement = Judgement::kAdmit;
  std::string reason{};
};

// How a job comes to hold what it is given; each has a cost of its own.
enum class Change : std::uint8_t {
  kStart,    // first launch
  kRestart,  // launch from a checkpoint
  kResize,   // another number of GPUs
  kMigrate,  // the same number elsewhere
};

// One gang: `gpus` workers that start together, exactly that many or none.
struct Demand {
  JobId job{};
  int gpus = 0;
  // May be split over more nodes than it needs if the placement finds no better place: for plans
  // that must not fail on fragmentation.
  bool may_split = false;
  // Where the policy names the GPUs itself (Needs::own_slices): in node order, `gpus` of them.
  Slices slices{};
};

// What a job holds. `slices` is empty where the placement only counts GPUs.
struct Grant {
  int gpus = 0;
  Slices slices{};

  friend bool operator==(const Grant&, const Grant&) = default;
};

enum class Misfit : std::uint8_t {
  kSkip,  // later demands are still tried (backfill)
  kStop,  // strict order: nothing behind a misfit is tried
};

// How the engine goes through demands in priority order; see ARCHITECTURE.md, "The walk".
struct Walk {
  Misfit misfit = Misfit::kSkip;
  bool preempt = true;         // a demand may take the GPUs of running jobs that rank below it
  bool keep_running = true;    // running jobs keep their slices; false: all are placed anew
  bool count_first = false;    // select by counting GPUs, then place those selected
  bool largest_first = false;  // place in descending GPU count (and visit jobs in that order)
  bool former_rank = false;    // equal keys keep their order of last time: O(n) per event
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

// One line per demand class that got nothing.
struct Blocked {
  JobId first{};  // its best-ranked job
  int gpus = 0;
  WaitReason reason{};
};

}  // namespace trainyard
