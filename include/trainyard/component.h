// SPDX-License-Identifier: Apache-2.0
// The exchangeable parts of a scheduler: admission, ordering or policy, placement.
// A component is a const object: the same snapshot and the same memory give the same answer.
// What it must remember lives in a Memory that the engine owns, clones with a fork and passes in.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trainyard/free_gpus.h"
#include "trainyard/plan.h"
#include "trainyard/snapshot.h"
#include "trainyard/time.h"

namespace trainyard {

class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::unique_ptr<Memory> Clone() const = 0;
};

class Component {
 public:
  virtual ~Component() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Null: the component remembers nothing.
  [[nodiscard]] virtual std::unique_ptr<Memory> NewMemory() const { return nullptr; }
};

// The gate in front of the queue: quotas, load limits. Judges a whole batch of arrivals.
class Admission : public Component {
 public:
  // One verdict for each of snapshot.unjudged; kLater: asked again at the next instant.
  [[nodiscard]] virtual std::vector<Verdict> Admit(const Snapshot& snapshot,
                                                   Memory* memory) const = 0;
  // True: the policy judges arrivals itself (Needs::judges); Admit is not called.
  [[nodiscard]] virtual bool by_policy() const { return false; }
};

// Where a gang goes. The engine keeps the trial packing; a placement only chooses.
class Placement : public Component {
 public:
  // The slices for `gpus` workers of `job` on these free GPUs, or nothing. Slices are in node
  // order and hold exactly `gpus` GPUs together. REQUIRES: 1 <= gpus <= free.total().
  [[nodiscard]] virtual std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& job,
                                                     int gpus) const = 0;
  // For a demand that may be split, when Choose finds no place. REQUIRES: as Choose.
  [[nodiscard]] virtual std::optional<Slices> ChooseSplit(const FreeGpus& /*free*/,
                                                          const JobSpec& /*job*/,
                                                          int /*gpus*/) const {
    return std::nullopt;
  }
  // True: the policy names the GPUs itself (Needs::own_slices); Choose is not called.
  [[nodiscard]] virtual bool by_policy() const { return false; }
  // True: where nothing is kept, all demands are placed at once by PlaceAll instead of one by one.
  [[nodiscard]] virtual bool places_all() const { return false; }
  // The slices of each demand (none for 0 GPUs); nothing if they do not all fit.
  // REQUIRES: no GPU that is up is taken.
  [[nodiscard]] virtual std::optional<std::vector<Slices>> PlaceAll(
      const FreeGpus& /*free*/, std::span<const Demand> /*demands*/, Memory* /*memory*/) const {
    return std::nullopt;
  }
  // False: GPUs are counted cluster-wide and never named; Choose is not called.
  [[nodiscard]] virtual bool names_gpus() const { return true; }
};

// What a policy must be told; the run refuses a policy whose needs it cannot meet.
struct Needs {
  bool work_left = false;   // JobView::work_left, time_left and total_time
  bool judges = false;      // can judge arrivals itself (admission 'deadline'): Proposal::verdicts
  bool own_slices = false;  // names the GPUs of its demands (placement 'gandiva')
  bool elastic = false;     // sets GPU counts itself (the request is not a limit); needs profiles
};

// The general policy: proposes demands for all live jobs.
class Policy : public Component {
 public:
  [[nodiscard]] virtual Needs needs() const { return {}; }
  [[nodiscard]] virtual Proposal Decide(const Snapshot& snapshot, Memory* memory) const = 0;
};

// When the key of a job changes; a union of the flags.
enum KeyMoves : unsigned {
  kNeverMoves = 0,
  kWhileServed = 1,   // key[0] changes at rate Slope() while the job holds GPUs
  kAtKnownTimes = 2,  // at NextMove()
  kOnGrant = 4,       // when the job gains or loses GPUs
  kAlways = 8,        // at every decision: O(n log n) per event
};
// Smaller first, component by component; then the earlier arrival.
using Key = std::array<double, 4>;

// Why an ordering with a memory is told about a job.
enum class Occasion : std::uint8_t {
  kArrived,  // it joins the order
  kDue,      // its NextMove has come; told in the order of these times, then of arrival (if
             // sets_wake(): in the order the engine visits jobs)
  kSettled,  // after the walk, if its grant changed or it was due; told in the order of the walk
};

// Most policies: an order of the live jobs, each asking for the GPUs it requested. The engine keeps
// the order up to date at O(log n) per event and makes a policy of it (docs/adding-a-policy.md).
class Ordering : public Component {
 public:
  [[nodiscard]] virtual unsigned moves() const = 0;
  [[nodiscard]] virtual Key KeyOf(const JobView& job, const Memory* memory) const = 0;
  // kWhileServed: change of key[0] per microsecond with GPUs held, restart costs included.
  [[nodiscard]] virtual double Slope(const JobView& /*job*/) const { return 0; }
  // kAtKnownTimes: when the key changes next if the job's grant stays as it is.
  [[nodiscard]] virtual std::optional<TimePoint> NextMove(const JobView& /*job*/, TimePoint /*now*/,
                                                          const Memory* /*memory*/) const {
    return std::nullopt;
  }
  virtual void Tell(Occasion /*occasion*/, const JobView& /*job*/, TimePoint /*now*/,
                    Memory* /*memory*/) const {}
  // The engine decides at every NextMove while jobs wait, unless the ordering sets the times
  // itself: rules of published programs whose check comes early or late. A key that is overdue
  // moves at the next instant, whatever causes it.
  [[nodiscard]] virtual bool sets_wake() const { return false; }
  [[nodiscard]] virtual std::optional<TimePoint> NextWake(const Snapshot& /*snapshot*/,
                                                          const Memory* /*memory*/) const {
    return std::nullopt;
  }
  [[nodiscard]] virtual Needs needs() const { return {}; }
  [[nodiscard]] virtual Walk walk() const { return {}; }
};

}  // namespace trainyard
