// SPDX-License-Identifier: Apache-2.0
#include "policies/gandiva/gandiva.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/try.h"
#include "policies/decision_policy.h"
#include "policies/policies.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 1> kGandivaOptions{{
    {"quantum", OptionSpec::Kind::kNumber, "60",
     "seconds after which jobs that share a set of nodes take turns"},
}};

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

// Divides the nodes by demand, jobs without a set included, but only takes nodes from a group if
// another one is below its share; every group has a right to one set. What is still free then goes
// where jobs take turns. Within a group as few jobs move as possible.
class Balance {
 public:
  Balance(NodePool& pool, GandivaMemory& memory) : pool_(pool), memory_(memory) {}

  void Strike() {
    Measure();
    for (auto& [gpus, claim] : claims_) {
      while (SetsOf(gpus) < claim.entitled && Obtain(gpus)) {
        (void)pool_.AddSet(gpus, memory_.groups[gpus]);
      }
    }
    while (const int gpus = MostCrowded()) {
      (void)pool_.AddSet(gpus, memory_.groups[gpus]);
    }
  }

  // Waiting jobs move from over-committed sets to those that have at least two fewer.
  static void Level(SizeGroup& group) {
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
    for (const PendingJob& job : memory_.pending) {
      claims_[job.gpus].jobs += 1;
    }
    std::erase_if(claims_, [this](const auto& claim) {
      return claim.second.jobs == 0 || pool_.NodesFor(claim.first) > memory_.up.size();
    });
    double total = 0;
    for (const auto& [gpus, claim] : claims_) {
      total += static_cast<double>(claim.jobs) * gpus;
    }
    for (auto& [gpus, claim] : claims_) {
      const std::size_t capacity = pool_.CapacityFor(gpus);
      const double share = static_cast<double>(claim.jobs) * gpus / total *
                           static_cast<double>(memory_.up.size()) /
                           static_cast<double>(pool_.NodesFor(gpus));
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
    return sets > claim.entitled ? (sets - claim.entitled) * pool_.NodesFor(gpus) : 0;
  }

  // Frees the nodes for one more set; false, and nothing is touched: there are too few to be had.
  bool Obtain(int gpus) {
    std::size_t to_be_had = memory_.free.size();
    for (const auto& [size, claim] : claims_) {
      to_be_had += Surplus(size, claim);
    }
    if (to_be_had < pool_.NodesFor(gpus)) {
      return false;
    }
    while (memory_.free.size() < pool_.NodesFor(gpus)) {
      const auto richest =
          std::max_element(claims_.begin(), claims_.end(), [this](const auto& a, const auto& b) {
            return Surplus(a.first, a.second) < Surplus(b.first, b.second);
          });
      GiveUpOne(memory_.groups.at(richest->first));
    }
    return true;
  }

  void GiveUpOne(SizeGroup& group) {
    const auto least = std::min_element(group.begin(), group.end(), LessLoaded);
    const std::vector<JobId> homeless = std::move(least->jobs);
    pool_.Free(*least);
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
      if (sets == 0 || sets >= claim.wanted || memory_.free.size() < pool_.NodesFor(gpus)) {
        continue;
      }
      const double crowd =
          static_cast<double>(claim.jobs) / static_cast<double>(sets * pool_.CapacityFor(gpus));
      if (crowd > most) {
        most = crowd;
        crowded = gpus;
      }
    }
    return crowded;
  }

  NodePool& pool_;
  GandivaMemory& memory_;
  std::map<int, Claim> claims_;  // by GPUs of a job
};

Result<Components> MakeGandiva(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const Duration quantum, QuantumOf(options, "gandiva"));
  return PolicyOf<GandivaDecision, GandivaMemory>(
      "gandiva",
      {.needs = {.gpu_types = TypeSupport::kOne}, .may = {.name_gpus = true, .take_others = true}},
      quantum);
}

}  // namespace

Result<Duration> QuantumOf(const Options& options, std::string_view policy) {
  constexpr double kShortest = 1;   // seconds
  constexpr double kLongest = 1e9;  // seconds
  const double quantum = options.Number("quantum");
  if (quantum < kShortest || quantum > kLongest) {
    return InvalidArgument("policy '" + std::string(policy) +
                           "': quantum must lie between 1 and 1e9 seconds");
  }
  return FromSeconds(quantum);
}

bool LessLoaded(const SharedNodes& a, const SharedNodes& b) { return a.joined < b.joined; }

void SortByLoad(SizeGroup& group) {
  if (!std::is_sorted(group.begin(), group.end(), LessLoaded)) {
    std::stable_sort(group.begin(), group.end(), LessLoaded);
  }
}

Proposal GandivaDecision::Take() {
  const std::vector<PendingJob> arrivals = Meet();
  CloseInterval();
  FollowNodes();
  PlaceAll(arrivals);
  memory_.nodes_freed = false;
  Adjust();
  return Propose();
}

// Jobs that are new, in order of arrival. Fills present_.
std::vector<PendingJob> GandivaDecision::Meet() {
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
  std::vector<PendingJob> arrivals;
  for (const JobId id : live) {
    if (!std::binary_search(known.begin(), known.end(), id) || Resized(id)) {
      arrivals.push_back({id, snapshot_.jobs->at(id).spec->gpus});
    }
  }
  memory_.live.assign(live.begin(), live.end());
  return arrivals;
}

bool GandivaDecision::Gone(JobId job) const {
  return !same_jobs_ &&
         (!std::binary_search(present_.begin(), present_.end(), job) || Resized(job));
}

// It leaves its set as if it had ended, and arrives anew.
bool GandivaDecision::Resized(JobId job) const {
  return std::find(snapshot_.resized.begin(), snapshot_.resized.end(), job) !=
         snapshot_.resized.end();
}

void GandivaDecision::FollowNodes() {
  if (memory_.node_changes != snapshot_.node_changes) {
    pool_.Follow(UsableNodes(snapshot_));
    memory_.node_changes = snapshot_.node_changes;
  }
}

bool GandivaDecision::SliceIsOver() const {
  return memory_.slice_end && snapshot_.now >= *memory_.slice_end;
}

std::optional<TimePoint> GandivaDecision::SliceEnd() const {
  return memory_.slice_end.value_or(snapshot_.now + quantum_);
}

// Jobs that have ended leave their sets, empty sets go. At the end of a slice those that ran go
// behind those that waited.
void GandivaDecision::CloseInterval() {
  const bool slice_is_over = SliceIsOver();
  if (slice_is_over) {
    memory_.slice_end.reset();
  }
  std::erase_if(memory_.pending, [this](const PendingJob& job) { return Gone(job.id); });
  for (auto& [gpus, group] : memory_.groups) {
    for (SharedNodes& set : group) {
      if (slice_is_over && set.over_committed()) {
        std::rotate(set.jobs.begin(), set.jobs.begin() + static_cast<std::ptrdiff_t>(set.capacity),
                    set.jobs.end());
      }
      std::erase_if(set.jobs, [this](JobId job) { return Gone(job); });
      NoteLeft(set);
      if (set.jobs.empty()) {
        pool_.Free(set);
      }
    }
    std::erase_if(group, [](const SharedNodes& set) { return set.jobs.empty(); });
  }
  std::erase_if(memory_.groups, [](const auto& group) { return group.second.empty(); });
}

bool GandivaDecision::Place(const PendingJob& job) {
  SizeGroup& group = memory_.groups[job.gpus];
  SharedNodes* tried = Tried(group);
  const bool has_room = tried != nullptr && HasRoom(*tried);
  if (!has_room && pool_.AddSet(job.gpus, group)) {
    tried = &group.back();
  } else if (!has_room) {
    tried = Tried(group);
  }
  if (tried == nullptr) {
    memory_.groups.erase(job.gpus);
    return false;
  }
  tried->Join(job.id);
  SortByLoad(group);
  return true;
}

SharedNodes* GandivaDecision::Tried(SizeGroup& group) {
  SortByLoad(group);
  return group.empty() ? nullptr : &group.front();
}

void GandivaDecision::PlaceAll(const std::vector<PendingJob>& arrivals) {
  memory_.pending.insert(memory_.pending.end(), arrivals.begin(), arrivals.end());
  RetryAll();
}

void GandivaDecision::RetryAll() {
  std::erase_if(memory_.pending, [this](const PendingJob& job) { return Place(job); });
}

void GandivaDecision::Adjust() {
  Balance(pool_, memory_).Strike();
  RetryAll();
  for (auto& [gpus, group] : memory_.groups) {
    Balance::Level(group);
  }
  memory_.nodes_freed = false;
}

std::size_t GandivaDecision::SeatsTaken() const {
  std::size_t taken = 0;
  for (const auto& [gpus, group] : memory_.groups) {
    for (const SharedNodes& set : group) {
      taken += std::min(set.capacity, set.load());
    }
  }
  return taken;
}

// Who stays in his seat names no GPUs.
void GandivaDecision::AskForSeats(const SharedNodes& set, int gpus,
                                  std::vector<Demand>& demands) const {
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

Proposal GandivaDecision::Propose() {
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
  } else {
    proposal.wake_at = memory_.slice_end = SliceEnd();
  }
  return proposal;
}

// Jobs that go on running stay where they are, the others take the first seats that are left.
void GandivaDecision::Seat(SharedNodes& set) {
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
Slices GandivaDecision::SlicesOf(const SharedNodes& set, std::size_t seat, int gpus) const {
  const int per_node = pool_.gpus_per_node();
  Slices slices;
  slices.reserve(pool_.NodesFor(gpus));
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

}  // namespace trainyard::policies
