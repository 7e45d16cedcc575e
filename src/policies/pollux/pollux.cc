// SPDX-License-Identifier: Apache-2.0
#include "policies/pollux/pollux.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

#include "base/try.h"
#include "model/request/could_have.h"
#include "model/slices.h"
#include "policies/at_intervals.h"
#include "policies/policies.h"
#include "policies/pollux/keep_places.h"
#include "policies/rest_of_job.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 2> kPolluxOptions{{
    {"interval", OptionSpec::Kind::kNumber, "60",
     "seconds between allocations; in between jobs keep what they hold, and others wait"},
    {"seed", OptionSpec::Kind::kNumber, "1", "of the random numbers of the search"},
}};

// The search is bounded by counts, so that its result does not depend on the machine.
constexpr std::size_t kMostCells = 1 << 18;     // of a matrix: other jobs wait
constexpr std::size_t kMostKept = 1 << 26;      // cells of a population
constexpr std::size_t kMostWork = 200'000'000;  // cells of all matrices that are made
constexpr int kPatience = 15;
// By how large a share an allocation must be fitter than what jobs hold: equals do not take GPUs
// from one another.
constexpr double kLeastGain = 1e-3;

// Different for each seed and call (the finaliser of SplitMix64).
std::uint64_t StreamSeed(std::uint64_t seed, std::uint64_t call) {
  std::uint64_t mixed = seed * 0x9E3779B97F4A7C15U + call + 1;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31);
}

void FillRow(const Grant* grant, std::span<std::uint8_t> row) {
  if (grant == nullptr) {
    return;
  }
  for (const Slice& slice : grant->slices) {
    row[Index(slice.node)] = static_cast<std::uint8_t>(std::popcount(slice.gpus));
  }
}

// Counts the restarts of live jobs, and forgets the others.
void NoteHeld(std::span<const JobView> jobs, std::size_t nodes, PolluxMemory& memory) {
  std::map<JobId, HeldBefore> held;
  for (const JobView& job : jobs) {
    HeldBefore& now = held[job.id];
    if (const auto before = memory.held.find(job.id); before != memory.held.end()) {
      now = std::move(before->second);
    }
    std::vector<std::uint8_t> gpus;
    if (job.grant != nullptr) {
      gpus.resize(nodes);
      FillRow(job.grant, gpus);
    }
    now.restarts += !gpus.empty() && gpus != now.gpus ? 1 : 0;
    now.gpus = std::move(gpus);
  }
  memory.held = std::move(held);
  memory.goodput.Keep([&](JobId job) { return memory.held.contains(job); });
}

// GPUs that have not been named yet.
class FreeMasks {
 public:
  explicit FreeMasks(const Cluster& cluster) {
    free_.reserve(cluster.nodes.size());
    for (const NodeSpec& node : cluster.nodes) {
      free_.push_back(model::AllGpus(node.gpus));
    }
  }
  // The lowest of them among these, so many if there are.
  std::uint64_t Take(std::size_t node, std::uint64_t among, int count) {
    std::uint64_t taken = 0;
    for (among &= free_[node]; count > 0 && among != 0; --count, among &= among - 1) {
      taken |= among & -among;
    }
    free_[node] &= ~taken;
    return taken;
  }

 private:
  std::vector<std::uint64_t> free_;
};

using NamedGpus = std::map<std::size_t, std::uint64_t>;  // by node

// `named`: what the job keeps.
Demand NewDemand(JobId job, std::span<const std::uint8_t> row, NamedGpus named, FreeMasks& free) {
  Demand demand{.job = job};
  for (std::size_t node = 0; node < row.size(); ++node) {
    if (row[node] > 0) {
      std::uint64_t& gpus = named[node];
      gpus |= free.Take(node, ~std::uint64_t{0}, row[node] - std::popcount(gpus));
      demand.slices.push_back({.node = NodeAt(node), .gpus = gpus});
      demand.gpus += row[node];
    }
  }
  return demand;
}

// Names the GPUs: jobs that stay keep theirs, and the others as many as they may; beside these they
// take the lowest free ones.
std::vector<Demand> DemandsOf(std::span<const JobView> jobs, const AllocationMatrix& chosen,
                              const AllocationMatrix& base, const Cluster& cluster) {
  FreeMasks free(cluster);
  std::vector<NamedGpus> named(jobs.size());
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    if (jobs[job].grant != nullptr) {
      for (const Slice& slice : jobs[job].grant->slices) {
        const std::size_t node = Index(slice.node);
        named[job][node] = free.Take(node, slice.gpus, chosen.row(job)[node]);
      }
    }
  }
  std::vector<Demand> demands;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const std::span<const std::uint8_t> row = chosen.row(job);
    const Grant* const held = jobs[job].grant;
    const bool stays = held != nullptr && std::equal(row.begin(), row.end(), base.row(job).begin());
    Demand demand = stays ? Demand{.job = jobs[job].id, .gpus = held->gpus, .slices = held->slices}
                          : NewDemand(jobs[job].id, row, std::move(named[job]), free);
    if (demand.gpus > 0) {
      demands.push_back(std::move(demand));
    }
  }
  return demands;
}

bool Asks(const JobSpec& job) { return job.traits && job.traits->request; }

// Of a job with a request from the least number on that it could have with all that it asks for.
GpuRange RangeOf(const JobSpec& job, const Cluster& cluster, const model::NodeClasses& classes) {
  GpuRange range = job.traits ? job.traits->range : GpuRange{};
  if (Asks(job)) {
    int least = std::max(range.least, 1);
    while (least < job.gpus && !model::CouldHave(cluster, classes, job, least)) {
      ++least;
    }
    range.least = least;
  }
  return range;
}

// The numbers of GPUs that it could never have so.
void LeaveOut(const JobSpec& job, const Cluster& cluster, const model::NodeClasses& classes,
              SearchJob& made) {
  if (!Asks(job)) {
    return;
  }
  if (made.usable.empty()) {
    made.usable.resize(static_cast<std::size_t>(made.most_gpus));
    std::iota(made.usable.begin(), made.usable.end(), 1);
  }
  int usable = 0;
  for (std::size_t i = 0; i < made.usable.size(); ++i) {
    const int gpus = made.usable[i];
    usable = gpus > usable && model::CouldHave(cluster, classes, job, gpus) ? gpus : usable;
    made.usable[i] = usable;
  }
}

}  // namespace

void SeparateDistributed(AllocationMatrix& matrix) {
  std::vector<bool> taken(matrix.nodes());  // by a distributed job
  for (std::size_t job = 0; job < matrix.jobs(); ++job) {
    const std::span<std::uint8_t> row = matrix.row(job);
    std::size_t nodes = matrix.NodesOf(job);
    for (std::size_t node = 0; node < row.size() && nodes > 1; ++node) {
      if (row[node] > 0 && taken[node]) {
        row[node] = 0;
        --nodes;
      }
    }
    for (std::size_t node = 0; node < row.size() && nodes > 1; ++node) {
      if (row[node] > 0) {
        taken[node] = true;
      }
    }
  }
}

int Pollux::NodesOfShare(int gpus, const Cluster& cluster) const {
  const int largest = std::max(cluster.largest_node(), 1);
  return (gpus + largest - 1) / largest;
}

SearchJob Pollux::Unreported(const JobSpec& job, const Snapshot& snapshot,
                             const FairShare& share) const {
  return ByThroughput(job, *snapshot.rates, share);
}

// The share of its time in which the job would have trained, if it goes on being moved so often
// (section 4.2). One that has never run loses nothing.
double Pollux::IfMoved(const JobView& job, int restarts, const Snapshot& snapshot) const {
  if (restarts < 0) {
    return 1;
  }
  const int gpus = job.grant == nullptr ? job.spec->gpus : job.grant->gpus;
  const double cost = Seconds(snapshot.costs->Of(*job.spec, Change::kRestart, gpus));
  const double age = Seconds(snapshot.now - job.spec->submit);
  return age + cost > 0 ? std::max(age - restarts * cost, 0.0) / (age + cost) : 1;
}

std::vector<AllocationMatrix> Pollux::InitialOf(const PolluxMemory& last,
                                                std::span<const JobId> jobs,
                                                const AllocationMatrix& base) const {
  std::vector<AllocationMatrix> initial{base};
  std::map<JobId, std::size_t> rows;
  for (std::size_t row = 0; row < last.rows.size(); ++row) {
    rows[last.rows[row]] = row;
  }
  for (const AllocationMatrix& former : last.front) {
    AllocationMatrix& matrix = initial.emplace_back(base.jobs(), base.nodes());
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      if (const auto row = rows.find(jobs[job]); row != rows.end()) {
        const auto cells = former.row(row->second);
        std::copy(cells.begin(), cells.end(), matrix.row(job).begin());
      }
    }
  }
  return initial;
}

void Pollux::Complete(SearchProblem& problem) const { problem.separate = SeparateDistributed; }

AllocationMatrix Pollux::Chosen(const SearchProblem& problem, const SearchResult& found) const {
  if (found.objectives[found.best].unfitness >
      ObjectivesOf(problem, problem.base).unfitness * (1 + kLeastGain)) {
    AllocationMatrix held = problem.base;
    RandomStream unused(0);
    problem.Repair(held, unused);
    if (held == problem.base) {
      return held;
    }
  }
  return KeepPlaces(problem, found.front[found.best]);
}

SearchLimits Pollux::Limits() const { return {.patience = kPatience}; }

std::vector<JobView> Pollux::JobsInOrder(const Snapshot& snapshot) {
  std::vector<JobView> jobs;
  for (const JobId id : snapshot.jobs->live()) {
    jobs.push_back(snapshot.jobs->at(id));
  }
  std::sort(jobs.begin(), jobs.end(), [](const JobView& a, const JobView& b) {
    return std::tuple(a.gpu_seconds, a.spec->submit, a.id) <
           std::tuple(b.gpu_seconds, b.spec->submit, b.id);
  });
  // Those that run, and as many others as the bound allows.
  const std::size_t most = std::max<std::size_t>(
      kMostCells / std::max<std::size_t>(snapshot.cluster->nodes.size(), 1), 1);
  if (jobs.size() > most) {
    const auto running = static_cast<std::size_t>(std::count_if(
        jobs.begin(), jobs.end(), [](const JobView& job) { return job.grant != nullptr; }));
    std::size_t waiting = most > running ? most - running : 0;
    std::erase_if(jobs, [&](const JobView& job) {
      return job.grant == nullptr && (waiting == 0 || waiting-- == 0);
    });
  }
  return jobs;
}

SearchProblem Pollux::ProblemOf(std::span<const JobView> jobs, const Snapshot& snapshot,
                                PolluxMemory& last) const {
  const Cluster& cluster = *snapshot.cluster;
  SearchProblem problem{.base = AllocationMatrix(jobs.size(), cluster.nodes.size())};
  for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
    problem.capacity.push_back(
        snapshot.up(NodeAt(node)) ? static_cast<std::uint8_t>(cluster.nodes[node].gpus) : 0);
  }
  const auto live = static_cast<int>(snapshot.jobs->live().size());
  FairShare share{.gpus = std::max((snapshot.gpus_up + live - 1) / live, 1)};
  share.nodes = NodesOfShare(share.gpus, cluster);
  const model::NodeClasses classes(cluster);
  for (std::size_t row = 0; row < jobs.size(); ++row) {
    const JobView& job = jobs[row];
    const auto report = profile::GoodputReportIn(job.reported);
    problem.jobs.push_back(
        report
            ? last.goodput.ByGoodput(job.id, *report, RangeOf(*job.spec, cluster, classes), share)
            : Unreported(*job.spec, snapshot, share));
    LeaveOut(*job.spec, cluster, classes, problem.jobs.back());
    problem.jobs.back().if_moved = IfMoved(job, last.held.at(job.id).restarts, snapshot);
    FillRow(job.grant, problem.base.row(row));
    SearchJob& made = problem.jobs.back();
    made.held_speedup = made.Speedup(problem.base.row(row));
    made.rest = made.held_speedup > 0 ? RestOf(job, *snapshot.costs) : std::nullopt;
  }
  Complete(problem);
  return problem;
}

Proposal Pollux::Allocate(const Snapshot& snapshot, PolluxMemory& last) const {
  const std::vector<JobView> jobs = JobsInOrder(snapshot);
  NoteHeld(jobs, snapshot.cluster->nodes.size(), last);
  const SearchProblem problem = ProblemOf(jobs, snapshot, last);
  std::vector<JobId> rows;
  rows.reserve(jobs.size());
  for (const JobView& job : jobs) {
    rows.push_back(job.id);
  }
  SearchLimits limits = Limits();
  const std::size_t cells = problem.base.cells().size();
  limits.population = std::clamp<std::size_t>(kMostKept / cells, 4, limits.population);
  limits.generations =
      std::clamp(static_cast<int>(kMostWork / (cells * limits.population)), 2, limits.generations);
  std::erase_if(last.front, [&](const AllocationMatrix& former) {
    return former.nodes() != problem.base.nodes() || former.jobs() != last.rows.size();
  });
  RandomStream random(StreamSeed(settings_.seed, last.allocations++));
  SearchResult found =
      SearchAllocations(problem, InitialOf(last, rows, problem.base), limits, random);
  Proposal proposal{.demands =
                        DemandsOf(jobs, Chosen(problem, found), problem.base, *snapshot.cluster)};
  last.rows = std::move(rows);
  last.front = std::move(found.front);
  return proposal;
}

Proposal Pollux::Decide(const Snapshot& snapshot, Memory* memory) const {
  auto& last = static_cast<PolluxMemory&>(*memory);
  return AtIntervals(snapshot, settings_.interval, last.last, [&] {
    const bool may_rest = Limits().patience && last.allocations > 0;
    return last.last.Repeats(snapshot, DigestOf(snapshot).value(), may_rest)
               ? ProposalToKeep(*snapshot.jobs)
               : Allocate(snapshot, last);
  });
}

std::span<const OptionSpec> PolluxOptions() { return kPolluxOptions; }

Result<PolluxSettings> PolluxSettingsOf(const Options& options, std::string_view policy) {
  const double interval = options.Number("interval");
  if (!(interval >= 1) || interval > 1e9) {
    return InvalidArgument("policy '" + std::string(policy) +
                           "': interval must lie between 1 and 1e9 seconds");
  }
  const double seed = options.Number("seed");
  if (!(seed >= 0) || seed > 1e15 || seed != std::floor(seed)) {
    return InvalidArgument("policy '" + std::string(policy) +
                           "': seed must be a whole number from 0 to 1e15");
  }
  return PolluxSettings{.interval = FromSeconds(interval),
                        .seed = static_cast<std::uint64_t>(seed)};
}

namespace {

Result<Components> MakePollux(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const PolluxSettings settings, PolluxSettingsOf(options, "pollux"));
  return Components{.policy = std::make_unique<Pollux>(settings)};
}

}  // namespace

ComponentEntry PolluxEntry() {
  return {.kind = ComponentKind::kPolicy,
          .name = "pollux",
          .help = "GPUs and batches where trainings gain most: goodput, by a genetic search",
          .options = kPolluxOptions,
          .make = MakePollux,
          .placement = "gandiva"};
}

}  // namespace trainyard::policies
