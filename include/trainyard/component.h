// SPDX-License-Identifier: Apache-2.0
// The exchangeable parts of a scheduler: admission, ordering or policy, grouping, placement,
// tuning (docs/adding-a-policy.md).
//
// A component is a const object: the same snapshot and the same memory give the same answer, so
// that a run can be repeated, replayed and forked. It reads no clock, file or unseeded random
// number, and iterates ordered containers only. What it must remember lives in a Memory that the
// scheduler owns, serializes and passes in. Spans, pointers and references that a component is
// given are valid until it returns. Each scheduler calls its components from one thread.
//
// A component has no way to fail: what it cannot do it declares (Requires) or leaves out of its
// answer. An answer that breaks a REQUIRES ends the run with a message that names the component.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/free_gpus.h"
#include "trainyard/plan.h"
#include "trainyard/snapshot.h"
#include "trainyard/time.h"

namespace trainyard {

class StateStream;  // trainyard/state.h

// What a component remembers from one decision to the next. A component that has made one is
// passed it at every call and may cast it to its own type; no other component sees it.
class Memory {
 public:
  virtual ~Memory() = default;
  // Writes everything that later answers depend on, or reads it into a memory as NewMemory makes
  // it, from the bytes that a memory of the same component with the same options has written.
  // Snapshots of a live controller and forks of an engine go on with what was read. A cache of
  // computed results need not be written.
  virtual void Serialize(StateStream& state) = 0;
};

class Component {
 public:
  virtual ~Component() = default;
  // As in the catalogue; outlives the component.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // An empty memory, owned by the caller. Null: the component remembers nothing, and is passed
  // null.
  [[nodiscard]] virtual std::unique_ptr<Memory> NewMemory() const { return nullptr; }
};

// The gate in front of the queue: quotas, load limits. Judges a whole batch of arrivals.
class Admission : public Component {
 public:
  // A verdict for jobs of snapshot.unjudged, at most one each; with kLater, or without a verdict,
  // it is asked again at the next instant. Called only where jobs are unjudged.
  [[nodiscard]] virtual std::vector<Verdict> Admit(const Snapshot& snapshot,
                                                   Memory* memory) const = 0;
};

// Where one gang goes: demands are placed one by one. The scheduler keeps the trial packing; a
// placement only chooses among free GPUs, and remembers nothing.
class Placement : public Component {
 public:
  // The slices for the demand.gpus workers of `job` on these free GPUs, or nothing: in node order,
  // and holding exactly that many GPUs together. Where demand.may_split, over more nodes than
  // needed rather than nothing. May be called many times in one decision: aim at O(log nodes) by
  // FreeGpus::NodesWith. REQUIRES: 1 <= demand.gpus <= free.total().
  [[nodiscard]] virtual std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& job,
                                                     const Demand& demand) const = 0;
};

// What a Packer is asked.
struct PackRequest {
  const FreeGpus& free;             // nothing is taken of the nodes that are up
  std::span<const Demand> demands;  // in order of priority
  const JobTable& jobs;
  // So many of the first demands, and the free GPUs, are as they were at the last call with this
  // memory.
  std::size_t same = 0;
};

// Places a whole list of demands anew, where the place of one gang changes what another one gets:
// ElasticFlow's groups of nodes, Synergy's shares of CPUs and memory.
class Packer : public Component {
 public:
  // Sets the slices of each demand, with CPUs, memory and storage bandwidth; none where there is no
  // place, or for 0 GPUs. `slices`: as the last call with this memory has left them, or empty.
  // False: they are as the last call has left them.
  [[nodiscard]] virtual bool Pack(const PackRequest& ask, std::vector<Slices>& slices,
                                  Memory* memory) const = 0;
};

// Which clusters of several GPU types a policy can schedule.
enum class TypeSupport : std::uint8_t {
  kAny,    // all: each job has the types that it accepts and that have a rate for it
  kAlike,  // those on all of whose types every job runs; rates are those of the slowest type
  kOne,    // none
};

// What an ordering or policy must be given; a run that cannot give it is refused.
struct Requires {
  bool work_left = false;  // JobView::work_left, time_left and total_time
  TypeSupport gpu_types = TypeSupport::kAny;
  // The devices that users name (JobTraits::devices), loader profiles and the CPUs of all nodes.
  bool named_devices = false;
  // Where neither is required, users who state one at submission are told that it has no effect.
  bool priorities = false;  // JobSpec::priority
  bool queues = false;      // JobSpec::queue
};

// What the proposals of a policy may contain beyond demands for the requested numbers of GPUs.
struct May {
  bool resize = false;     // other numbers of GPUs; every job must have a throughput profile
  bool share = false;      // GPUs that are not exclusive, Demand::sharing
  bool name_gpus = false;  // GPUs by name, Demand::slices (placement 'gandiva')
  bool admit = false;      // verdicts on arrivals, Proposal::verdicts (admission 'deadline')
  // The GPUs of jobs within their stay, because the policy counts restart costs in its plan or
  // round. Policies that may do any of the above are taken to do so.
  bool ignore_stay = false;
};

struct PolicyTraits {
  Requires needs{};
  May may{};
};

// The general policy: proposes demands for all live jobs.
class Policy : public Component {
 public:
  // The same at every call.
  [[nodiscard]] virtual PolicyTraits traits() const { return {}; }
  // Who shall hold how many GPUs from now on, whatever they hold at present. The scheduler places
  // the demands in their order, passes over those that find no place, and makes launches,
  // preemptions, resizes and migrations of the difference.
  [[nodiscard]] virtual Proposal Decide(const Snapshot& snapshot, Memory* memory) const = 0;
};

// When the standing of a job changes; a union of the flags.
enum KeyMoves : unsigned {
  kNeverMoves = 0,
  kWhileServed = 1,   // key[0] changes at rate Standing::slope while the job holds GPUs
  kAtKnownTimes = 2,  // at Standing::moves_at
  kOnGrant = 4,       // when the job gains or loses GPUs
  kAlways = 8,        // at every decision: O(n log n) per event
};
// Smaller first, component by component; of equal keys running jobs before waiting ones (sound
// mode), then the earlier arrival.
using Key = std::array<double, 4>;

// Where a job stands in the order. Keys may be infinite, but not NaN.
struct Standing {
  Key key{};
  // kWhileServed: change of key[0] per microsecond with GPUs held, restart costs included.
  double slope = 0;
  // kAtKnownTimes: when the key changes next if the job's grant stays as it is.
  std::optional<TimePoint> moves_at{};
  // Before all others whatever the keys, even before jobs within their stay (a guard against
  // starvation). Changes when keys do.
  bool first = false;
  // For keys that get worse while served or better while waiting, by which equal jobs take turns: a
  // running job is no victim before it has trained so long, its restart costs paid. Its quantum or
  // lease; 0: it has none, and ten times the restart costs are taken. None: the keys never move, or
  // only fall while served, so that an exchange is never undone.
  std::optional<Duration> stay{};
};

// What an ordering says of all jobs alike.
struct OrderingTraits {
  unsigned moves = kNeverMoves;
  Requires needs{};
  Walk walk{};
  // The scheduler decides at every Standing::moves_at while jobs wait, unless the ordering sets the
  // times itself (NextWake): rules of published programs whose check comes early or late. A key
  // that is overdue moves at the next instant, whatever causes it.
  bool sets_wake = false;
};

// Why an ordering with a memory is told about a job.
enum class JobEvent : std::uint8_t {
  kArrived,  // it joins the order
  kDue,      // its Standing::moves_at has come; told in the order of these times, then of arrival
             // (where sets_wake: in the order in which jobs are visited)
  kSettled,  // after the walk, if its grant changed or it was due; told in the order of the walk
};

// Most policies: an order of the live jobs, each asking for the GPUs it requested. The scheduler
// keeps the order up to date at O(log n) per event and makes a policy of it
// (docs/adding-a-policy.md).
class Ordering : public Component {
 public:
  // The same at every call.
  [[nodiscard]] virtual OrderingTraits traits() const = 0;
  // Asked when the job joins the order and when traits().moves says that the answer changes. By
  // value: it may depend on the job, `now`, the options and the memory, and on nothing else.
  [[nodiscard]] virtual Standing StandingOf(const JobView& job, TimePoint now,
                                            const Memory* memory) const = 0;
  // Where the memory changes, with BeginDecision. O(1) calls per job that changes.
  virtual void Notify(JobEvent /*event*/, const JobView& /*job*/, TimePoint /*now*/,
                      Memory* /*memory*/) const {}
  // At the start of each decision, before standings are asked for: for keys that depend on other
  // jobs.
  virtual void BeginDecision(const Snapshot& /*snapshot*/, Memory* /*memory*/) const {}
  // Where traits().sets_wake.
  [[nodiscard]] virtual std::optional<TimePoint> NextWake(const Snapshot& /*snapshot*/,
                                                          const Memory* /*memory*/) const {
    return std::nullopt;
  }
};

// A live job and its place in an order.
struct RankedJob {
  JobId id{};
  const JobSpec* spec = nullptr;
  const Grant* grant = nullptr;  // null: holds nothing
  double rank = 0;               // smaller first
};

// Who shares GPUs with whom. Beside an ordering, whose jobs it makes gangs of.
class Grouping : public Component {
 public:
  // The gangs that shall run, in order of priority. `jobs`: all live ones, by rank. `walk`: that of
  // the ordering. Where it does not preempt, running jobs keep running with the members of their
  // group; where it is strict (Misfit::kStop), no job starts before one of higher rank, unless on
  // GPUs that are taken.
  [[nodiscard]] virtual std::vector<Demand> Group(const Snapshot& snapshot,
                                                  std::span<const RankedJob> jobs, const Walk& walk,
                                                  Memory* memory) const = 0;
};

// What jobs get beside their GPUs once it is known who runs where: CPUs, loader workers. A change
// of it restarts nobody.
class Tuning : public Component {
 public:
  struct Tuned {
    JobId job{};
    const JobSpec* spec = nullptr;
    Slices* slices = nullptr;  // what may be changed: Slice::soft and Slice::loader_workers
    bool settled = false;      // it runs there with what they say now
  };
  // Sets the slices of `jobs`: all that will hold GPUs from now on, by JobId. What slices of one
  // node get together must be there (NodeSpec::capacity).
  virtual void Tune(const Snapshot& snapshot, std::span<Tuned> jobs) const = 0;
};

// Which of several bundles of ordering or policy, placement and admission is in charge.
class Selector : public Component {
 public:
  struct Choice {
    std::size_t candidate = 0;
    std::vector<double> scores;  // of all candidates; empty: it did not compare them
  };
  // What a simulation from the present state, without further arrivals, comes to.
  struct Outlook {
    std::int64_t jobs = 0;  // that would end
    double mean_jct = 0;    // theirs, in seconds from their submit; 0: none
  };
  // With the candidate in charge, until nothing happens any more or `horizon` has passed. Each call
  // simulates anew.
  using Forecast = std::function<Outlook(std::size_t candidate, std::optional<Duration> horizon)>;

  // The one of `candidates`, by number, that decides now. Asked at each decision, before arrivals
  // are judged.
  [[nodiscard]] virtual Choice Choose(const Snapshot& snapshot, std::size_t candidates,
                                      const Forecast& forecast) const = 0;
};

}  // namespace trainyard
