// SPDX-License-Identifier: Apache-2.0
// The exchangeable parts of a scheduler: admission, ordering or policy, grouping, placement,
// tuning (docs/adding-a-policy.md).
//
// One decision calls them in this order:
//
//   1. Selector::Choose, where there is one: which of several bundles decides.
//   2. Admission::Admit, if jobs have arrived that are not judged.
//   3. Ordering: Notify(kDue), BeginDecision, StandingOf of what may have moved; Grouping::Group,
//      where there is one, makes gangs of the jobs in their order. Or Policy::Decide.
//   4. Placement::Choose for each demand that needs GPUs, or Packer::Pack for all of them.
//   5. Tuning::Tune, where there is one.
//   6. The engine verifies the result and makes it true. Ordering: Notify(kSettled), StandingOf
//      again where traits say so, NextWake.
//
// A decision is due whenever something has happened to a job or a node (an arrival, an end, a
// failure, a resize), when an ordering or policy has asked for one, or at the instants that a
// preset sets.
//
// A component is a const object: the same snapshot and the same memory give the same answer, so
// that a run can be repeated, replayed and forked. It reads no clock, file or unseeded random
// number, and iterates ordered containers only. What it must remember lives in a Memory that the
// scheduler owns, serializes and passes in. Spans, pointers and references that a component is
// given are valid until it returns; what it returns it returns by value. Each scheduler calls its
// components from one thread, and the forks of an engine (Selector::Forecast) use the components of
// the engine, each fork with memories of its own.
//
// A component has no way to fail: what it cannot do it declares (Requires) or leaves out of its
// answer. An answer that breaks a REQUIRES that is checked ends the run with a message that names
// the component; what is not checked is marked so.
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
// passed it at every call and may cast it to its own type; no other component sees it. No component
// is told that a job has ended: entries by JobId stay, or are compared with JobTable::live().
class Memory {
 public:
  virtual ~Memory() = default;
  // Writes everything that later answers depend on, or reads it into a memory as NewMemory makes
  // it, from the bytes that a memory of the same component with the same options has written.
  // Snapshots of a live controller and forks of an engine go on with what was read: their answers
  // must be the same as if nothing had been written. A cache of computed results need not be
  // written. Bytes that make no sense: StateStream::Fail. Called now and then on a live cluster,
  // and at each forecast of a selector.
  virtual void Serialize(StateStream& state) = 0;
};

// What all kinds have in common. A component is made by its entry (ComponentEntry::make), owned by
// the run, and lives as long as the run.
class Component {
 public:
  virtual ~Component() = default;
  // As in the catalogue (ComponentEntry::name); outlives the component.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // An empty memory, owned by the caller. Null: the component remembers nothing, and is passed
  // null. Called whenever the component takes charge, in a fork and after a restart, too. Not
  // called for placements, tunings and selectors, which remember nothing.
  [[nodiscard]] virtual std::unique_ptr<Memory> NewMemory() const { return nullptr; }
};

// The gate in front of the queue: quotas, load limits. Judges a whole batch of arrivals. (A policy
// that plans may judge instead, with the admission `deadline`: May::admit.)
class Admission : public Component {
 public:
  // Verdicts on jobs of snapshot.unjudged. A job with kLater, or without a verdict, is asked for
  // again at the next decision; for that alone no decision is made. Called once in a decision, only
  // where jobs are unjudged. `snapshot` is that before these verdicts: gpus_asked counts the jobs
  // admitted before. At most one verdict for each job, none for others: anything else is an error.
  [[nodiscard]] virtual std::vector<Verdict> Admit(const Snapshot& snapshot,
                                                   Memory* memory) const = 0;
};

// Where one gang goes: demands are placed one by one. The scheduler keeps the trial packing; a
// placement only chooses among free GPUs, and remembers nothing. It is not asked for jobs that keep
// the GPUs that they hold.
class Placement : public Component {
 public:
  // The slices for the demand.gpus workers of `job` on these free GPUs, or nothing: the job then
  // waits, or others make room. Where demand.may_split, over more nodes than needed rather than
  // nothing. The answer is about `job`; `demand` says how many GPUs, may_split and, where a policy
  // states it, `preferred` (zero for orderings, whose demands leave demand.job unset, too).
  // REQUIRES: 1 <= demand.gpus <= free.total().
  // REQUIRES of the slices, checked: in ascending order of nodes, each node once, free GPUs only,
  // and exactly demand.gpus together. Their Slice::soft is not checked.
  // Called for each demand class that may find room, once for each GPU type that is tried, and
  // again while running jobs give way, so many times in one decision: aim at O(log nodes) by
  // FreeGpus::NodesWith.
  [[nodiscard]] virtual std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& job,
                                                     const Demand& demand) const = 0;
};

// What a Packer is asked. All of it is valid until Pack returns.
struct PackRequest {
  const FreeGpus& free;  // nothing is taken of the nodes that are up
  // In order of priority, or by size (Walk::largest_first), with Demand::preferred. Those of jobs
  // that run are among them: all are placed anew.
  std::span<const Demand> demands;
  const JobTable& jobs;  // what the jobs hold at present
  // So many of the first demands, and the free GPUs, are as they were at the last call with this
  // memory: their places may be kept without a look. 0: nothing is known.
  std::size_t same = 0;
};

// Places a whole list of demands anew, where the place of one gang changes what another one gets:
// ElasticFlow's groups of nodes (ASPLOS'23), Synergy's shares of CPUs and memory (OSDI'22). Jobs
// whose slices come out as they were are not touched. A packer has clusters of one GPU type only,
// and must keep jobs off JobTraits::avoided itself.
class Packer : public Component {
 public:
  // Sets the slices of each demand, with CPUs, memory and storage bandwidth; none where there is no
  // place, or for 0 GPUs. `slices`: as the last call with this memory has left them, or empty.
  // False: they are as the last call has left them.
  // REQUIRES afterwards, checked but for the order: slices.size() is the number of demands, each
  // list of slices is empty or a complete gang in node order, no GPU is given twice, and no node
  // gives more CPU or memory than it states.
  // Called once in a decision, with all demands: the packer alone decides how much is done anew.
  [[nodiscard]] virtual bool Pack(const PackRequest& ask, std::vector<Slices>& slices,
                                  Memory* memory) const = 0;
};

// Which clusters of several GPU types a policy can schedule. A run that does not fit is refused.
enum class TypeSupport : std::uint8_t {
  kAny,    // all: each job has the types that it accepts and that have a rate for it
  kAlike,  // those on all of whose types every job runs; rates are those of the slowest type
  kOne,    // none
};

// What an ordering or policy must be given beyond what every scheduler knows; a run that cannot
// give it (gpu_types, named_devices) is refused.
struct Requires {
  // JobView::work_left, time_left, total_time and expected_end, and JobTable::work_left. Without it
  // they say nothing, so that a policy cannot look by mistake at what it does not announce.
  bool work_left = false;
  TypeSupport gpu_types = TypeSupport::kAny;
  // The devices that users name (JobTraits::devices), loader profiles and the CPUs of all nodes.
  bool named_devices = false;
  // Where neither is required, users who state one at submission are told that it has no effect.
  bool priorities = false;  // JobSpec::priority
  bool queues = false;      // JobSpec::queue
};

// What the proposals of a policy may contain beyond demands for the requested numbers of GPUs.
// Orderings have none of it.
struct May {
  bool resize = false;     // other numbers of GPUs; every job must have a throughput profile
  bool share = false;      // GPUs that are not exclusive, Demand::sharing
  bool name_gpus = false;  // GPUs by name, Demand::slices (placement 'gandiva')
  // With name_gpus: a job that asks for more than GPUs (NodeRequest) is placed where that is met,
  // alone and on the types of the GPUs that are named, and so are those whose GPUs it has taken.
  // Who finds no place waits. Without it such jobs are refused.
  bool take_others = false;
  bool admit = false;  // verdicts on arrivals, Proposal::verdicts (admission 'deadline')
  // The GPUs of jobs within their stay, because the policy counts restart costs in its plan or
  // round. Policies that may do any of the above are taken to do so.
  bool ignore_stay = false;
  // Proposal::ends: a preset may take the ends of jobs from them.
  bool plan_ends = false;
};

// What a policy says of itself before it is asked.
struct PolicyTraits {
  Requires needs{};
  May may{};
};

// The general policy: proposes demands for all live jobs. For policies that choose GPU counts, plan
// ahead, share GPUs or judge arrivals; where jobs just get what they request in some order, an
// Ordering says the same with less work.
class Policy : public Component {
 public:
  // The same at every call; called often.
  [[nodiscard]] virtual PolicyTraits traits() const { return {}; }
  // Which jobs shall hold how many GPUs from now on, whatever they hold at present. The scheduler
  // places the demands in their order, passes over those that find no place, and makes launches,
  // preemptions, resizes and migrations of the difference. REQUIRES: see Proposal.
  //
  // Called once in each decision, so that it costs at least O(live jobs) per event; a policy that
  // wants to decide less often returns what jobs hold and sets Proposal::wake_at. What becomes of
  // the demands it sees at the next call. Jobs within their stay are put before the demands, unless
  // the policy may ignore stays (May).
  [[nodiscard]] virtual Proposal Decide(const Snapshot& snapshot, Memory* memory) const = 0;
};

// When the standing of a job changes; a union of the flags. A change that is not declared is not
// noticed: the key of a waiting job is taken when it begins to wait, and again at a declared move.
// All but kAlways cost O(log n) for each change, where n is the number of live jobs.
enum KeyMoves : unsigned {
  kNeverMoves = 0,
  kWhileServed = 1,   // key[0] changes at rate Standing::slope while the job holds GPUs
  kAtKnownTimes = 2,  // at Standing::moves_at
  kOnGrant = 4,       // when the job gains or loses GPUs, or another number of them
  kAlways = 8,        // at every decision: O(n log n) per event
};
// The smaller key goes first, compared component by component; components not given are 0. Of equal
// keys running jobs before waiting ones (sound mode), then the earlier arrival: the order is total
// whatever the keys are, so keys need no tie-breaker. Leave out what changes for all jobs alike,
// such as the present time.
using Key = std::array<double, 4>;

// Where a job stands in the order. Keys may be infinite; NaN ends the run with an error.
struct Standing {
  Key key{};
  // kWhileServed: change of key[0] per microsecond with GPUs held, restart costs included; key[1]
  // to key[3] stay. Running jobs of one slope keep their order among themselves and are kept in one
  // set, so use few different slopes. Example: -1, where the key is time left in microseconds.
  double slope = 0;
  // kAtKnownTimes: when the key changes next if the job's grant stays as it is; none: it does not.
  // REQUIRES: later than `now`, or decisions are made at the same instant for ever.
  std::optional<TimePoint> moves_at{};
  // With Misfit::kReserve: for how long from `now` on the job will hold its GPUs at most, or would
  // if it got them now, as far as is known; none: for ever, as far as is known. Asked at each
  // decision.
  std::optional<Duration> takes{};
  // Before all others whatever the keys, even before jobs within their stay (a guard against
  // starvation). Changes when keys do.
  bool first = false;
  // For keys that get worse while served or better while waiting, by which equal jobs take turns: a
  // running job is no victim before it has trained so long, its restart costs paid. Its quantum or
  // lease (Themis, NSDI'20, has leases; the policies of the tree take 600 s); at least ten times
  // the job's restart costs are taken, and 0 means these alone. None: the keys never move, or only
  // fall while served, so that an exchange is never undone. Read when the job gets GPUs
  // (docs/design/0005-preemption.md). Of no effect under presets that preempt as published.
  std::optional<Duration> stay{};
};

// What an ordering says of all jobs alike. The default: keys never move, running jobs give way to
// waiting ones of smaller key, and what does not fit is passed over.
struct OrderingTraits {
  unsigned moves = kNeverMoves;  // flags of KeyMoves
  Requires needs{};
  Walk walk{};  // unless the preset states another one
  // The scheduler decides at every Standing::moves_at while jobs wait, unless the ordering sets the
  // times itself (NextWake): rules of published programs whose check comes early or late. A key
  // that is overdue moves at the next instant, whatever causes it. Others leave it false.
  bool sets_wake = false;
  // With kAlways. False: while nothing happens to jobs and nodes, all keys stay as they are. The
  // end of a stay that no waiting job would use is then no reason to decide.
  bool moves_with_time = true;
};

// Why an ordering with a memory is told about a job. (An ordering without one has nothing to
// remember it in, and is not told of all of these.)
enum class JobEvent : std::uint8_t {
  // The job joins the order: it has been admitted. It may hold GPUs already where the ordering
  // takes charge of jobs that run (Selector). Told before its first standing is asked for.
  kArrived,
  // Its Standing::moves_at has come. Told at the start of a decision, in the order of these times,
  // then of arrival (where sets_wake: in the order in which jobs are visited).
  kDue,
  // With kOnGrant. After a decision, if the job's grant changed or it was due; told in the order of
  // the walk. Also at once when a failure or a resize takes its GPUs. Not at its end.
  kSettled,
};

// Most policies: an order of the live jobs, each asking for the GPUs it requested. The scheduler
// keeps the order up to date at O(log n) per event and makes a policy of it: it tries the waiting
// jobs from the best on, places their gangs, lets running jobs that rank below give way, and
// charges restarts (docs/adding-a-policy.md, "The walk"). A new ordering overrides name(), traits()
// and StandingOf(); the other functions are for those that remember something.
class Ordering : public Component {
 public:
  // The same at every call; called often.
  [[nodiscard]] virtual OrderingTraits traits() const = 0;
  // Where the job stands at `now`. Asked when the job joins the order, when traits().moves says
  // that the answer changes, and at other times: it must be the same then. It may depend on the
  // job, `now`, the options and the memory, and on nothing else. O(1) is expected: with kAlways it
  // is asked for every live job at every decision.
  [[nodiscard]] virtual Standing StandingOf(const JobView& job, TimePoint now,
                                            const Memory* memory) const = 0;
  // Changes the memory by what has happened to the job; called only for the events of JobEvent,
  // O(1) times for each job that changes. BeginDecision is the only other place where the memory
  // changes.
  virtual void Notify(JobEvent /*event*/, const JobView& /*job*/, TimePoint /*now*/,
                      Memory* /*memory*/) const {}
  // At the start of each decision, before jobs are compared: for keys that depend on other jobs,
  // which need kAlways. With other moves standings may have been asked for earlier in the decision
  // (of jobs admitted in it, or due), and are not asked for again. Must cope with jobs that the
  // memory does not know yet.
  virtual void BeginDecision(const Snapshot& /*snapshot*/, Memory* /*memory*/) const {}
  // Where traits().sets_wake, and only there: when to decide next if nothing happens, asked at the
  // end of each decision.
  [[nodiscard]] virtual std::optional<TimePoint> NextWake(const Snapshot& /*snapshot*/,
                                                          const Memory* /*memory*/) const {
    return std::nullopt;
  }
};

// A live job and its place in an order.
struct RankedJob {
  JobId id{};
  const JobSpec* spec = nullptr;  // never null
  const Grant* grant = nullptr;   // null: holds nothing
  double rank = 0;                // smaller first; for a Grouping its position, from 0
};

// Which jobs share GPUs with which (Muri, SIGCOMM'22). Beside an ordering, whose jobs it makes
// gangs of; it needs a Placement, no tuning, and the walk of the ordering itself.
class Grouping : public Component {
 public:
  // The gangs that shall run, in order of priority, with Demand::partners and kInterleaved where
  // they have several members. A job in none of them holds nothing from now on. `jobs`: all live
  // ones, by rank. `walk`: that of the ordering. Where it does not preempt, running jobs keep
  // running with the members of their group; where it is strict (Misfit::kStop), no job starts
  // before one of higher rank, unless on GPUs that are taken. REQUIRES, checked: as for the demands
  // of a Proposal. Called once in each decision.
  [[nodiscard]] virtual std::vector<Demand> Group(const Snapshot& snapshot,
                                                  std::span<const RankedJob> jobs, const Walk& walk,
                                                  Memory* memory) const = 0;
};

// What jobs get beside their GPUs once it is known which of them run where: CPUs, loader workers.
// A change of it restarts no job.
class Tuning : public Component {
 public:
  struct Tuned {
    JobId job{};
    const JobSpec* spec = nullptr;  // never null
    // Never null, not empty. What may be changed: Slice::soft and Slice::loader_workers.
    Slices* slices = nullptr;
    // The job runs there already, with what its slices say now. False: it is about to start there.
    bool settled = false;
  };
  // Sets the slices of `jobs`: all that will hold GPUs from now on, by JobId. Called once in each
  // decision, so that it must leave slices alone where nothing has changed. REQUIRES, unchecked:
  // what slices of one node get together is there (NodeSpec::capacity), and nodes and GPUs stay as
  // they are.
  virtual void Tune(const Snapshot& snapshot, std::span<Tuned> jobs) const = 0;
};

// Which of several bundles of ordering or policy, placement and admission is in charge, as the
// scheduler synthesizer of Blox (EuroSys'24) chooses. The candidates are named in Components; they
// may not be selectors, nor policies that share GPUs, name them or judge arrivals.
class Selector : public Component {
 public:
  struct Choice {
    // Its number, from 0, in the order of Candidates. Where it is another one than before, the
    // memories of its components begin afresh, with the jobs and grants that there are.
    std::size_t candidate = 0;
    // Of all candidates, for the output of the run; empty: it did not compare them.
    std::vector<double> scores;
    // Of all candidates, why the simulation failed, empty where it did not; or empty: none failed.
    std::vector<std::string> errors{};
  };
  // What a simulation from the present state, without further arrivals, comes to.
  struct Outlook {
    std::int64_t jobs = 0;  // that would end
    double mean_jct = 0;    // theirs, in seconds from their submit; 0: none
    std::string error{};    // why the simulation failed before its end; empty: it did not
  };
  // The outlook with the candidate in charge, until nothing happens any more or `horizon` from now
  // has passed. Failures to come are not known to it. Each call simulates anew: it costs as much as
  // a run of the jobs that are live. Valid until Choose returns. REQUIRES: candidate < candidates.
  using Forecast = std::function<Outlook(std::size_t candidate, std::optional<Duration> horizon)>;

  // The candidate that decides now; `candidates` is how many there are. Asked at each decision,
  // before arrivals are judged. REQUIRES, checked: Choice::candidate < candidates.
  [[nodiscard]] virtual Choice Choose(const Snapshot& snapshot, std::size_t candidates,
                                      const Forecast& forecast) const = 0;
};

}  // namespace trainyard
