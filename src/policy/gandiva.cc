// SPDX-License-Identifier: Apache-2.0
// Gandiva (OSDI'18), as ElasticFlow's simulator has it: the nodes are divided among the job sizes
// into sets that each hold as many jobs as fit and any number that take turns; sets are added and
// dissolved as the demand of the sizes changes.
#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "policy/policies.h"
#include "trainyard/state.h"

namespace trainyard {
namespace {

constexpr double kShortestQuantum = 1;   // seconds
constexpr double kLongestQuantum = 1e9;  // seconds

constexpr std::array<OptionSpec, 4> kGandivaOptions{{
    {"quantum", OptionSpec::Kind::kNumber, "60",
     "seconds after which jobs that share a set of nodes take turns"},
    {"rotate", OptionSpec::Kind::kChoice, "quantum",
     "they take turns when a quantum is over, or only at decisions that happen to fall on a "
     "multiple of it",
     "quantum|multiples"},
    {"spare", OptionSpec::Kind::kNumber, "0",
     "places of a set that stay empty as long as there are free nodes"},
    {"groups", OptionSpec::Kind::kChoice, "balanced",
     "balanced: nodes change hands only if somebody needs them, few jobs move, all that wait are "
     "tried; published: by the formulas and in the orders of the published program",
     "balanced|published"},
}};

struct GandivaSettings {
  Duration quantum{};
  bool at_multiples = false;
  double spare = 0;
  bool published_groups = false;
};

// Nodes that jobs of one size share. The first `capacity` jobs run, the others wait for their turn.
struct SharedNodes {
  std::vector<NodeId> nodes;  // ascending
  std::size_t capacity = 0;
  std::vector<JobId> jobs;
  // Jobs that have joined since the set was made or dealt out anew; as published, those that have
  // ended still count.
  std::size_t joined = 0;
  std::vector<std::optional<JobId>> seats;  // by position on the nodes, as last proposed

  [[nodiscard]] std::size_t load() const { return jobs.size(); }
  [[nodiscard]] bool over_committed() const { return load() > capacity; }

  void Join(JobId job) {
    jobs.push_back(job);
    ++joined;
  }
  void Serialize(StateStream& state) { state(nodes, capacity, jobs, joined, seats); }
};

using Group = std::vector<SharedNodes>;  // all sets of one job size

struct Pending {
  JobId id{};
  int gpus = 0;

  void Serialize(StateStream& state) { state(id, gpus); }
};

struct Sets final : Memory {
  std::map<int, Group> groups;                // by GPUs of a job
  std::vector<SharedNodes> spare;             // given up: only their storage counts
  std::vector<Pending> pending;               // jobs without a set
  std::vector<NodeId> up;                     // nodes in use, ascending
  std::optional<std::uint64_t> node_changes;  // as of then
  std::vector<JobId> live;   // at the last decision: those in sets and those pending
  std::vector<NodeId> free;  // those in no set, ascending
  bool nodes_freed = false;  // since pending jobs were last tried
  std::optional<TimePoint> slice_end;

  // Without the storage of sets that were given up.
  void Serialize(StateStream& state) override {
    state(groups, pending, up, node_changes, live, free, nodes_freed, slice_end);
  }
};

// The nodes that are up, of those of the largest size; others are not used.
std::vector<NodeId> UsableNodes(const Snapshot& snapshot) {
  const Cluster& cluster = *snapshot.cluster;
  const int largest = cluster.largest_node();
  std::vector<NodeId> usable;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    if (snapshot.up(NodeAt(i)) && cluster.nodes[i].gpus == largest) {
      usable.push_back(NodeAt(i));
    }
  }
  return usable;
}

// ------------------------------------------------------------------- orders of the published form

bool LessLoaded(const SharedNodes& a, const SharedNodes& b) { return a.joined < b.joined; }

void SortByLoad(Group& group) {
  if (!std::is_sorted(group.begin(), group.end(), LessLoaded)) {
    std::stable_sort(group.begin(), group.end(), LessLoaded);
  }
}

// After a job has joined the first set, or a set has joined the group.
void OrderAfterJoin(Group& group) { SortByLoad(group); }

std::size_t JobsIn(const Group& group) {
  std::size_t jobs = 0;
  for (const SharedNodes& set : group) {
    jobs += set.load();
  }
  return jobs;
}

// In which the jobs of a group are dealt out anew: set by set. The sets are empty afterwards.
std::vector<JobId> TakeJobsToSpread(Group& group) {
  std::vector<JobId> jobs;
  jobs.reserve(JobsIn(group));
  for (SharedNodes& set : group) {
    jobs.insert(jobs.end(), set.jobs.begin(), set.jobs.end());
    set.jobs.clear();
    set.joined = 0;
  }
  return jobs;
}

// Each job joins the first set, which then goes behind those with fewer jobs: as OrderAfterJoin has
// it, but the sets themselves move only once, at the end.
void Deal(const std::vector<JobId>& jobs, Group& group) {
  if (jobs.empty()) {
    return;
  }
  std::vector<std::size_t> order(group.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto less_loaded = [&group](std::size_t a, std::size_t b) {
    return LessLoaded(group[a], group[b]);
  };
  auto job = jobs.begin();
  if (!std::is_sorted(order.begin() + 1, order.end(), less_loaded)) {
    group.front().Join(*job++);
    std::stable_sort(order.begin(), order.end(), less_loaded);
  }
  for (; job != jobs.end(); ++job) {
    const std::size_t first = order.front();
    group[first].Join(*job);
    const auto behind = std::lower_bound(order.begin() + 1, order.end(), first, less_loaded);
    *std::move(order.begin() + 1, behind, order.begin()) = first;
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t set = order[i];
    while (set < i) {  // it has changed places with another one
      set = order[set];
    }
    if (set != i) {
      std::swap(group[i], group[set]);
    }
  }
}

// The first set goes behind all others, and is the one to be tried.
SharedNodes& NextInTurn(Group& group) {
  std::rotate(group.begin(), group.begin() + 1, group.end());
  return group.back();
}

// -------------------------------------------------------------------------------------------------

// The nodes of the cluster and who holds them.
class Ground {
 public:
  Ground(const Snapshot& snapshot, Sets& memory)
      : gpus_per_node_(snapshot.cluster->largest_node()), memory_(memory) {}

  [[nodiscard]] int gpus_per_node() const { return gpus_per_node_; }
  [[nodiscard]] int gpus() const { return static_cast<int>(memory_.up.size()) * gpus_per_node_; }
  // Of a set for jobs of that size.
  [[nodiscard]] std::size_t NodesFor(int gpus) const {
    return static_cast<std::size_t>((gpus + gpus_per_node_ - 1) / gpus_per_node_);
  }
  [[nodiscard]] std::size_t CapacityFor(int gpus) const {
    return NodesFor(gpus) * static_cast<std::size_t>(gpus_per_node_) /
           static_cast<std::size_t>(gpus);
  }

  // Adds an empty set to the group of that size; false: there are not enough free nodes.
  bool AddSet(int gpus, Group& group) {
    const std::size_t count = NodesFor(gpus);
    if (memory_.free.size() < count) {
      return false;
    }
    SharedNodes& set = AddRecycled(group);
    set.capacity = CapacityFor(gpus);
    set.seats.resize(set.capacity);
    const auto end = memory_.free.begin() + static_cast<std::ptrdiff_t>(count);
    set.nodes.assign(memory_.free.begin(), end);
    memory_.free.erase(memory_.free.begin(), end);
    return true;
  }

  // Takes the set, which has no jobs then and is to be erased.
  void Free(SharedNodes& set) {
    for (const NodeId node : set.nodes) {
      memory_.free.insert(std::lower_bound(memory_.free.begin(), memory_.free.end(), node), node);
    }
    memory_.nodes_freed = true;
    memory_.spare.push_back(std::move(set));
  }

  // Sets on nodes that have gone are given up; their jobs must find another.
  void Follow(std::vector<NodeId> up) {
    if (up == memory_.up) {
      return;
    }
    const auto is_up = [&up](NodeId node) {
      return std::binary_search(up.begin(), up.end(), node);
    };
    std::vector<Pending> homeless;
    for (auto& [gpus, group] : memory_.groups) {
      const auto lost =
          std::stable_partition(group.begin(), group.end(), [&is_up](const SharedNodes& set) {
            return std::all_of(set.nodes.begin(), set.nodes.end(), is_up);
          });
      for (auto set = lost; set != group.end(); ++set) {
        for (const JobId job : set->jobs) {
          homeless.push_back({job, gpus});
        }
      }
      group.erase(lost, group.end());
    }
    memory_.pending.insert(memory_.pending.begin(), homeless.begin(), homeless.end());
    memory_.free = up;
    for (const auto& [gpus, group] : memory_.groups) {
      for (const SharedNodes& set : group) {
        std::erase_if(memory_.free, [&set](NodeId node) {
          return std::binary_search(set.nodes.begin(), set.nodes.end(), node);
        });
      }
    }
    memory_.up = std::move(up);
    memory_.nodes_freed = true;
  }

 private:
  // An empty set with the storage of one that was given up, if there is any.
  SharedNodes& AddRecycled(Group& group) {
    if (memory_.spare.empty()) {
      return group.emplace_back();
    }
    SharedNodes& set = group.emplace_back(std::move(memory_.spare.back()));
    memory_.spare.pop_back();
    set.jobs.clear();
    set.joined = 0;
    set.seats.clear();
    return set;
  }

  const int gpus_per_node_;
  Sets& memory_;
};

// Growth and shrinking by the published formulas. They count GPUs where sets are meant: what lacks
// for two jobs adds two sets, whatever their capacity. A group never gives up its last set.
class PublishedAdjustment {
 public:
  PublishedAdjustment(Ground& ground, Sets& memory) : ground_(ground), memory_(memory) {}

  void Make() {
    std::vector<std::pair<int, int>> demands;  // in GPUs, by those of a job
    demands.reserve(memory_.groups.size());
    int total = 0;
    for (const auto& [gpus, group] : memory_.groups) {
      demands.emplace_back(gpus, static_cast<int>(JobsIn(group)) * gpus);
      total += demands.back().second;
    }
    for (const auto& [gpus, demand] : demands) {
      Group& group = memory_.groups.at(gpus);
      if (group.empty() || total == 0) {
        continue;
      }
      const double share = std::floor(static_cast<double>(demand) / total * ground_.gpus());
      const int held =
          static_cast<int>(group.size() * ground_.NodesFor(gpus)) * ground_.gpus_per_node();
      const int missing = std::min(demand, static_cast<int>(share)) - held;
      if (missing > 0) {
        Grow(gpus, group, (missing + gpus - 1) / gpus);
      } else if (missing < 0) {
        Shrink(group, static_cast<std::size_t>((gpus - 1 - missing) / gpus));
      }
    }
  }

 private:
  // Where all sets asked for could be added and have one node each, the jobs stay where they are
  // and the new sets empty.
  void Grow(int gpus, Group& group, int count) {
    bool all_added = true;
    for (int i = 0; i < count && all_added; ++i) {
      all_added = ground_.AddSet(gpus, group);
    }
    if (!all_added || ground_.NodesFor(gpus) > 1) {
      Deal(TakeJobsToSpread(group), group);
    }
  }

  // The first sets go; one stays.
  void Shrink(Group& group, std::size_t count) {
    std::vector<JobId> homeless;
    homeless.reserve(JobsIn(group));
    const auto end = group.begin() + static_cast<std::ptrdiff_t>(std::min(count, group.size() - 1));
    for (auto set = group.begin(); set != end; ++set) {
      homeless.insert(homeless.end(), set->jobs.begin(), set->jobs.end());
      ground_.Free(*set);
    }
    group.erase(group.begin(), end);
    Deal(homeless, group);
  }

  Ground& ground_;
  Sets& memory_;
};

// Divides the nodes by demand, jobs without a set included, but only takes nodes from a group if
// another one is below its share; every group has a right to one set. What is still free then goes
// where jobs take turns. Within a group as few jobs move as possible.
class Balance {
 public:
  Balance(Ground& ground, Sets& memory) : ground_(ground), memory_(memory) {}

  void Strike() {
    Measure();
    for (auto& [gpus, claim] : claims_) {
      while (SetsOf(gpus) < claim.entitled && Obtain(gpus)) {
        (void)ground_.AddSet(gpus, memory_.groups[gpus]);
      }
    }
    while (const int gpus = MostCrowded()) {
      (void)ground_.AddSet(gpus, memory_.groups[gpus]);
    }
  }

  // Waiting jobs move from over-committed sets to those that have at least two fewer.
  static void Level(Group& group) {
    while (group.size() > 1) {
      const auto [least, most] = std::minmax_element(group.begin(), group.end(), LessLoaded);
      if (!most->over_committed() || most->load() < least->load() + 2) {
        return;
      }
      least->Join(most->jobs.back());
      most->jobs.pop_back();
      --most->joined;
    }
  }

 private:
  struct Claim {
    std::size_t jobs = 0;
    std::size_t wanted = 0;    // sets, so that nobody takes turns
    std::size_t entitled = 0;  // to so many sets; <= wanted
  };

  void Measure() {
    for (const auto& [gpus, group] : memory_.groups) {
      for (const SharedNodes& set : group) {
        claims_[gpus].jobs += set.load();
      }
    }
    for (const Pending& job : memory_.pending) {
      claims_[job.gpus].jobs += 1;
    }
    std::erase_if(claims_, [this](const auto& claim) {
      return claim.second.jobs == 0 || ground_.NodesFor(claim.first) > memory_.up.size();
    });
    double total = 0;
    for (const auto& [gpus, claim] : claims_) {
      total += static_cast<double>(claim.jobs) * gpus;
    }
    for (auto& [gpus, claim] : claims_) {
      const std::size_t capacity = ground_.CapacityFor(gpus);
      const double share = static_cast<double>(claim.jobs) * gpus / total *
                           static_cast<double>(memory_.up.size()) /
                           static_cast<double>(ground_.NodesFor(gpus));
      claim.wanted = (claim.jobs + capacity - 1) / capacity;
      claim.entitled =
          std::min(claim.wanted, std::max<std::size_t>(1, static_cast<std::size_t>(share)));
    }
  }

  [[nodiscard]] std::size_t SetsOf(int gpus) const {
    const auto group = memory_.groups.find(gpus);
    return group == memory_.groups.end() ? 0 : group->second.size();
  }
  // Nodes that the group holds beyond what it is entitled to.
  [[nodiscard]] std::size_t Surplus(int gpus, const Claim& claim) const {
    const std::size_t sets = SetsOf(gpus);
    return sets > claim.entitled ? (sets - claim.entitled) * ground_.NodesFor(gpus) : 0;
  }

  // Frees the nodes for one more set; false, and nothing is touched: there are too few to be had.
  bool Obtain(int gpus) {
    std::size_t to_be_had = memory_.free.size();
    for (const auto& [size, claim] : claims_) {
      to_be_had += Surplus(size, claim);
    }
    if (to_be_had < ground_.NodesFor(gpus)) {
      return false;
    }
    while (memory_.free.size() < ground_.NodesFor(gpus)) {
      const auto richest =
          std::max_element(claims_.begin(), claims_.end(), [this](const auto& a, const auto& b) {
            return Surplus(a.first, a.second) < Surplus(b.first, b.second);
          });
      GiveUpOne(memory_.groups.at(richest->first));
    }
    return true;
  }

  void GiveUpOne(Group& group) {
    const auto least = std::min_element(group.begin(), group.end(), LessLoaded);
    const std::vector<JobId> homeless = std::move(least->jobs);
    ground_.Free(*least);
    group.erase(least);
    for (const JobId job : homeless) {
      std::min_element(group.begin(), group.end(), LessLoaded)->Join(job);
    }
  }

  // The size with the most jobs for each place, of those that lack sets for which there are nodes.
  [[nodiscard]] int MostCrowded() const {
    int crowded = 0;
    double most = 0;
    for (const auto& [gpus, claim] : claims_) {
      const std::size_t sets = SetsOf(gpus);
      if (sets == 0 || sets >= claim.wanted || memory_.free.size() < ground_.NodesFor(gpus)) {
        continue;
      }
      const double crowd =
          static_cast<double>(claim.jobs) / static_cast<double>(sets * ground_.CapacityFor(gpus));
      if (crowd > most) {
        most = crowd;
        crowded = gpus;
      }
    }
    return crowded;
  }

  Ground& ground_;
  Sets& memory_;
  std::map<int, Claim> claims_;  // by GPUs of a job
};

class GandivaDecision {
 public:
  GandivaDecision(const GandivaSettings& settings, const Snapshot& snapshot, Sets& memory)
      : settings_(settings), snapshot_(snapshot), memory_(memory), ground_(snapshot, memory) {}

  Proposal Take() {
    const std::vector<Pending> arrivals = Meet();
    CloseInterval();
    FollowNodes();
    if (settings_.published_groups) {
      for (const Pending& job : arrivals) {
        if (!Place(job)) {
          memory_.pending.push_back(job);
        }
      }
      RetrySkipping();
    } else {
      memory_.pending.insert(memory_.pending.end(), arrivals.begin(), arrivals.end());
      RetryAll();
    }
    memory_.nodes_freed = false;
    Adjust();
    return Propose();
  }

 private:
  // Jobs that are new, in order of arrival. Fills present_.
  std::vector<Pending> Meet() {
    const std::span<const JobId> live = snapshot_.jobs->live();
    same_jobs_ = snapshot_.resized.empty() &&
                 std::equal(live.begin(), live.end(), memory_.live.begin(), memory_.live.end());
    if (same_jobs_) {
      return {};
    }
    present_.assign(live.begin(), live.end());
    std::sort(present_.begin(), present_.end());
    std::vector<JobId> known = std::move(memory_.live);
    std::sort(known.begin(), known.end());
    std::vector<Pending> arrivals;
    for (const JobId id : live) {
      if (!std::binary_search(known.begin(), known.end(), id) || Resized(id)) {
        arrivals.push_back({id, snapshot_.jobs->at(id).spec->gpus});
      }
    }
    memory_.live.assign(live.begin(), live.end());
    return arrivals;
  }

  [[nodiscard]] bool Gone(JobId job) const {
    return !same_jobs_ &&
           (!std::binary_search(present_.begin(), present_.end(), job) || Resized(job));
  }

  // It leaves its set as if it had ended, and arrives anew.
  [[nodiscard]] bool Resized(JobId job) const {
    return std::find(snapshot_.resized.begin(), snapshot_.resized.end(), job) !=
           snapshot_.resized.end();
  }

  void FollowNodes() {
    if (memory_.node_changes != snapshot_.node_changes) {
      ground_.Follow(UsableNodes(snapshot_));
      memory_.node_changes = snapshot_.node_changes;
    }
  }

  [[nodiscard]] bool SliceIsOver() const {
    if (settings_.at_multiples) {
      return snapshot_.now.time_since_epoch() % settings_.quantum == Duration{0};
    }
    return memory_.slice_end && snapshot_.now >= *memory_.slice_end;
  }

  // Jobs that have ended leave their sets, empty sets go. At the end of a slice those that ran go
  // behind those that waited.
  void CloseInterval() {
    const bool slice_is_over = SliceIsOver();
    if (slice_is_over) {
      memory_.slice_end.reset();
    }
    std::erase_if(memory_.pending, [this](const Pending& job) { return Gone(job.id); });
    for (auto& [gpus, group] : memory_.groups) {
      for (SharedNodes& set : group) {
        if (slice_is_over && set.over_committed()) {
          std::rotate(set.jobs.begin(),
                      set.jobs.begin() + static_cast<std::ptrdiff_t>(set.capacity), set.jobs.end());
        }
        std::erase_if(set.jobs, [this](JobId job) { return Gone(job); });
        if (!settings_.published_groups) {
          set.joined = set.jobs.size();
        }
        if (set.jobs.empty()) {
          ground_.Free(set);
        }
      }
      std::erase_if(group, [](const SharedNodes& set) { return set.jobs.empty(); });
    }
    std::erase_if(memory_.groups, [](const auto& group) { return group.second.empty(); });
  }

  // Whether the job has found a set: one with room, a new one, or one that is full already.
  bool Place(const Pending& job) {
    Group& group = memory_.groups[job.gpus];
    if (!settings_.published_groups) {
      SortByLoad(group);
    }
    SharedNodes* tried = Tried(group);
    const bool has_room =
        tried != nullptr && static_cast<double>(tried->joined) + 1 + settings_.spare <=
                                static_cast<double>(tried->capacity);
    if (!has_room && ground_.AddSet(job.gpus, group)) {
      tried = &group.back();
    } else if (!has_room) {
      tried = Tried(group);
    }
    if (tried == nullptr) {
      memory_.groups.erase(job.gpus);
      return false;
    }
    tried->Join(job.id);
    OrderAfterJoin(group);
    return true;
  }

  // Null: the group has no set.
  SharedNodes* Tried(Group& group) const {
    if (group.empty()) {
      return nullptr;
    }
    return settings_.published_groups ? &NextInTurn(group) : &group.front();
  }

  void RetryAll() {
    std::erase_if(memory_.pending, [this](const Pending& job) { return Place(job); });
  }

  // As published: the list is walked while jobs are taken out of it.
  void RetrySkipping() {
    std::vector<Pending>& pending = memory_.pending;
    for (std::size_t i = 0; memory_.nodes_freed && i < pending.size(); ++i) {
      if (Place(pending[i])) {
        pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  void Adjust() {
    if (settings_.published_groups) {
      PublishedAdjustment(ground_, memory_).Make();
      memory_.nodes_freed = false;  // what a group gives up is no reason to try the pending ones
      return;
    }
    Balance(ground_, memory_).Strike();
    RetryAll();
    for (auto& [gpus, group] : memory_.groups) {
      Balance::Level(group);
    }
    memory_.nodes_freed = false;
  }

  [[nodiscard]] std::size_t SeatsTaken() const {
    std::size_t taken = 0;
    for (const auto& [gpus, group] : memory_.groups) {
      for (const SharedNodes& set : group) {
        taken += std::min(set.capacity, set.load());
      }
    }
    return taken;
  }

  // Who stays in his seat names no GPUs.
  void AskForSeats(const SharedNodes& set, int gpus, std::vector<Demand>& demands) const {
    for (std::size_t seat = 0; seat < set.seats.size(); ++seat) {
      if (const std::optional<JobId> job = set.seats[seat]) {
        Demand& demand = demands.emplace_back();
        demand.job = *job;
        demand.gpus = gpus;
        if (newly_seated_[seat] || snapshot_.jobs->grant(*job).gpus != gpus) {
          demand.slices = SlicesOf(set, seat, gpus);
        }
      }
    }
  }

  Proposal Propose() {
    Proposal proposal;
    proposal.walk = {.keep_running = true};
    proposal.demands.reserve(SeatsTaken());
    bool over_committed = false;
    for (auto& [gpus, group] : memory_.groups) {
      for (SharedNodes& set : group) {
        Seat(set);
        AskForSeats(set, gpus, proposal.demands);
        for (std::size_t i = set.capacity; i < set.load(); ++i) {
          over_committed = true;
          if (!snapshot_.jobs->started(set.jobs[i])) {
            proposal.demands.push_back({.job = set.jobs[i], .gpus = 0});
          }
        }
      }
    }
    if (!over_committed) {
      memory_.slice_end.reset();
    } else if (!settings_.at_multiples) {
      memory_.slice_end = memory_.slice_end.value_or(snapshot_.now + settings_.quantum);
      proposal.wake_at = memory_.slice_end;
    }
    return proposal;
  }

  // Jobs that go on running stay where they are, the others take the first seats that are left.
  void Seat(SharedNodes& set) {
    newly_seated_.reset();
    const auto end =
        set.jobs.begin() + static_cast<std::ptrdiff_t>(std::min(set.capacity, set.load()));
    for (std::optional<JobId>& seat : set.seats) {
      if (seat && std::find(set.jobs.begin(), end, *seat) == end) {
        seat.reset();
      }
    }
    for (auto job = set.jobs.begin(); job != end; ++job) {
      if (std::find(set.seats.begin(), set.seats.end(), *job) == set.seats.end()) {
        const auto seat = std::find(set.seats.begin(), set.seats.end(), std::nullopt);
        *seat = *job;
        newly_seated_.set(static_cast<std::size_t>(seat - set.seats.begin()));
      }
    }
  }

  // The nodes of a set are one row of GPUs, a seat `gpus` of them.
  [[nodiscard]] Slices SlicesOf(const SharedNodes& set, std::size_t seat, int gpus) const {
    const int per_node = ground_.gpus_per_node();
    Slices slices;
    slices.reserve(ground_.NodesFor(gpus));
    int first = static_cast<int>(seat) * gpus;
    for (int left = gpus; left > 0;) {
      const int position = first % per_node;
      const int count = std::min(left, per_node - position);
      const std::uint64_t row = ~std::uint64_t{0} >> (kMaxGpusPerNode - count);
      slices.push_back(
          {.node = set.nodes[static_cast<std::size_t>(first / per_node)], .gpus = row << position});
      first += count;
      left -= count;
    }
    return slices;
  }

  const GandivaSettings& settings_;
  const Snapshot& snapshot_;
  Sets& memory_;
  Ground ground_;
  bool same_jobs_ = false;                     // as at the last decision
  std::vector<JobId> present_;                 // ascending; empty where they are the same
  std::bitset<kMaxGpusPerNode> newly_seated_;  // by seat, in the set at hand
};

class Gandiva final : public Policy {
 public:
  explicit Gandiva(const GandivaSettings& settings) : settings_(settings) {}

  [[nodiscard]] std::string_view name() const override { return "gandiva"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<Sets>();
  }
  [[nodiscard]] PolicyTraits traits() const override {
    return {.needs = {.gpu_types = TypeSupport::kOne}, .may = {.name_gpus = true}};
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    return GandivaDecision(settings_, snapshot, static_cast<Sets&>(*memory)).Take();
  }

 private:
  const GandivaSettings settings_;
};

Result<Components> MakeGandiva(const Options& options, const ComponentContext& /*context*/) {
  const double quantum = options.Number("quantum");
  if (quantum < kShortestQuantum || quantum > kLongestQuantum) {
    return InvalidArgument("policy 'gandiva': quantum must lie between 1 and 1e9 seconds");
  }
  return Components{.policy = std::make_unique<Gandiva>(GandivaSettings{
                        .quantum = FromSeconds(quantum),
                        .at_multiples = options.Text("rotate") == "multiples",
                        .spare = options.Number("spare"),
                        .published_groups = options.Text("groups") == "published"})};
}

}  // namespace

// Placement 'gandiva' has the shorter name.
ComponentEntry GandivaPolicyEntry() {
  return {ComponentKind::kPolicy,
          "gandiva",
          "sets of nodes by job size; jobs of a full set take turns",
          kGandivaOptions,
          MakeGandiva,
          {},
          "gandiva"};
}

}  // namespace trainyard
