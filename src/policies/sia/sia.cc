// SPDX-License-Identifier: Apache-2.0
#include "policies/sia/sia.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/text.h"
#include "base/try.h"
#include "policies/at_intervals.h"
#include "policies/policies.h"
#include "policies/rest_of_job.h"
#include "policies/sia/assignment.h"
#include "policies/sia/job_choices.h"
#include "policies/sia/node_places.h"

namespace trainyard::policies {
namespace {

constexpr std::array<OptionSpec, 3> kSiaOptions{{
    {"interval", OptionSpec::Kind::kNumber, "60",
     "seconds between allocations; in between jobs keep what they hold, and others wait"},
    {"p", OptionSpec::Kind::kText, "-0.5",
     "power of utilities that are summed; the smaller, the fairer; not 0"},
    {"lambda", OptionSpec::Kind::kText, "1.1",
     "what a job without GPUs costs, of which its worst configuration costs 1; below 0 for p > 0"},
}};

// A decision is bounded by counts, so that its result does not depend on the machine.
constexpr std::size_t kMostColumns = 20'000;  // of the program: other waiting jobs wait on
constexpr int kNodeLimit = 500;               // of the search tree
// By how large a share another configuration must be worth more than the one that a job has.
constexpr double kLeastGain = 0.01;
// Between choices that cost the same.
constexpr double kTie = 1e-6;

// The job as the program sees it.
struct Candidate {
  JobView view;
  std::vector<JobChoice> choices;
  std::optional<std::size_t> held;  // of the choices
};

std::vector<std::int64_t> ShapeOf(const Grant* grant) {
  std::vector<std::int64_t> shape;
  if (grant != nullptr) {
    for (const Slice& slice : grant->slices) {
      shape.push_back(static_cast<std::int64_t>(Index(slice.node)));
      shape.push_back(std::popcount(slice.gpus));
    }
  }
  return shape;
}

// The configuration of a grant on nodes that are up; none: it is none.
std::optional<Configuration> ConfigurationOf(const Grant& grant, const SiaNodes& nodes) {
  if (grant.slices.empty()) {
    return std::nullopt;
  }
  for (std::size_t kind = 0; kind < nodes.kinds.size(); ++kind) {
    const std::vector<NodeId>& of = nodes.kinds[kind].nodes;
    if (std::all_of(grant.slices.begin(), grant.slices.end(), [&of](const Slice& slice) {
          return std::binary_search(of.begin(), of.end(), slice.node);
        })) {
      return Configuration{
          .kind = kind, .nodes = static_cast<int>(grant.slices.size()), .gpus = grant.gpus};
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> Find(std::span<const JobChoice> choices,
                                const Configuration& configuration) {
  const auto found = std::find_if(choices.begin(), choices.end(), [&](const JobChoice& choice) {
    return choice.configuration == configuration;
  });
  return found == choices.end() ? std::nullopt : std::optional(found - choices.begin());
}

// Those that run, and of the others as many as the bound allows, the earliest first.
std::vector<JobView> JobsWithinBound(const Snapshot& snapshot, std::size_t configurations) {
  std::vector<JobView> jobs;
  std::size_t running = 0;
  for (const JobId id : snapshot.jobs->live()) {
    jobs.push_back(snapshot.jobs->at(id));
    running += jobs.back().grant != nullptr ? 1 : 0;
  }
  const std::size_t most = kMostColumns / std::max<std::size_t>(configurations, 1);
  std::size_t waiting = most > running ? most - running : 0;
  std::erase_if(jobs, [&waiting](const JobView& job) {
    return job.grant == nullptr && (waiting == 0 || waiting-- == 0);
  });
  return jobs;
}

// One allocation.
class SiaAllocation {
 public:
  SiaAllocation(const Snapshot& snapshot, const SiaSettings& settings, const SiaMemory& memory)
      : snapshot_(snapshot), settings_(settings), memory_(memory), nodes_(snapshot) {
    for (const JobView& view : JobsWithinBound(snapshot, nodes_.configurations.size())) {
      AddCandidate(view);
    }
    for (const NodeKind& kind : nodes_.kinds) {
      problem_.capacity.push_back(kind.gpus());
    }
    problem_.unserved = settings.unserved;
    problem_.maximise = settings.power > 0;
    for (const Candidate& candidate : candidates_) {
      problem_.jobs.push_back(ProgramJobOf(candidate));
    }
  }

  [[nodiscard]] Proposal Take() const {
    Proposal proposal;
    const std::vector<std::optional<std::size_t>> chosen = Chosen(proposal.bounded);
    std::vector<std::size_t> served;
    std::vector<ConfiguredJob> placed;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (chosen[i]) {
        served.push_back(i);
        placed.push_back({.configuration = candidates_[i].choices[*chosen[i]].configuration,
                          .held = chosen[i] == candidates_[i].held
                                      ? candidates_[i].view.grant->slices
                                      : Slices{}});
      }
    }
    NodePlaces places(snapshot_.cluster->nodes.size(), nodes_.kinds, placed);
    for (std::size_t i = 0; i < served.size(); ++i) {
      if (places.of(i).empty()) {
        PlaceOtherwise(served[i], i, places);
      }
      int gpus = 0;
      for (const Slice& slice : places.of(i)) {
        gpus += std::popcount(slice.gpus);
      }
      if (gpus > 0) {
        proposal.demands.push_back(
            {.job = candidates_[served[i]].view.id, .gpus = gpus, .slices = places.of(i)});
      }
    }
    return proposal;
  }

 private:
  void AddCandidate(const JobView& view) {
    Candidate candidate{.view = view};
    candidate.choices =
        ChoicesOf(*view.spec, memory_.jobs.at(view.id).known, nodes_, *snapshot_.rates);
    if (view.grant != nullptr) {
      if (const auto held = ConfigurationOf(*view.grant, nodes_)) {
        candidate.held = Find(candidate.choices, *held);
        // A job that is still starting keeps what it has, whatever that is worth.
        if (!candidate.held && view.debt > Duration{0}) {
          candidate.held = candidate.choices.size();
          candidate.choices.push_back({.configuration = *held, .worth = 1});
        }
      }
    }
    if (!candidate.choices.empty()) {
      candidates_.push_back(std::move(candidate));
    }
  }

  // The share of its time in which the job would have trained, if it goes on being moved so often;
  // and what another configuration must be worth more.
  [[nodiscard]] double IfMoved(const JobView& job) const {
    const double cost = Seconds(snapshot_.costs->Of(*job.spec, Change::kRestart, job.grant->gpus));
    const double age = Seconds(snapshot_.now - job.spec->submit);
    const int restarts = std::max(memory_.jobs.at(job.id).restarts, 0);
    const double trained = age + cost > 0 ? std::max(age - restarts * cost, 0.0) / (age + cost) : 1;
    return std::min(age < cost ? 1 : trained, 1 / (1 + kLeastGain));
  }

  [[nodiscard]] AssignmentJob ProgramJobOf(const Candidate& candidate) const {
    const JobView& view = candidate.view;
    const double factor = view.grant != nullptr ? IfMoved(view) : 1;
    // What it has may be worth nothing that is known.
    const double held_worth = candidate.held ? candidate.choices[*candidate.held].worth : 0;
    const std::optional<RestOfJob> rest =
        held_worth > 0 ? RestOf(view, *snapshot_.costs) : std::nullopt;
    AssignmentJob job;
    job.choices.reserve(candidate.choices.size());
    for (std::size_t i = 0; i < candidate.choices.size(); ++i) {
      const JobChoice& choice = candidate.choices[i];
      // Never quite nothing, of which there is no negative power.
      constexpr double kLeast = 1e-6;
      const double often = choice.worth * factor;
      const double moved = rest ? std::min(often, rest->Worth(choice.worth, held_worth)) : often;
      const double worth = candidate.held == i ? choice.worth : std::max(moved, kLeast);
      const double rank = choice.untried ? 0 : candidate.held == i ? 1 : 2 + static_cast<double>(i);
      job.choices.push_back(
          {.kind = choice.configuration.kind,
           .takes = nodes_.TakenBy(choice.configuration),
           .cost = std::pow(worth, settings_.power) + (settings_.power > 0 ? -kTie : kTie) * rank});
    }
    if (view.debt > Duration{0}) {
      job.pinned = candidate.held;
    }
    return job;
  }

  // The optimum; or where the search has not found it within its bound, what is best of what it has
  // found and of what jobs hold.
  [[nodiscard]] std::vector<std::optional<std::size_t>> Chosen(bool& bounded) const {
    std::vector<std::optional<std::size_t>> kept;
    kept.reserve(candidates_.size());
    for (const Candidate& candidate : candidates_) {
      kept.push_back(candidate.held);
    }
    std::optional<Assignment> found = SolveAssignment(problem_, kNodeLimit);
    bounded = !found || !found->optimal;
    if (!found) {
      return kept;
    }
    const double better = ObjectiveOf(problem_, kept) - found->objective;
    return Fits(problem_, kept) && (problem_.maximise ? better > 0 : better < 0) ? kept
                                                                                 : found->chosen;
  }

  // In the cheapest of its other configurations that has room.
  void PlaceOtherwise(std::size_t candidate, std::size_t place, NodePlaces& places) const {
    const std::vector<JobChoice>& choices = candidates_[candidate].choices;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&choices](std::size_t a, std::size_t b) {
      return choices[a].worth > choices[b].worth;
    });
    (void)std::any_of(order.begin(), order.end(), [&](std::size_t i) {
      return places.PlaceAs(place, choices[i].configuration);
    });
  }

  const Snapshot& snapshot_;
  const SiaSettings& settings_;
  const SiaMemory& memory_;
  const SiaNodes nodes_;
  std::vector<Candidate> candidates_;
  AssignmentProblem problem_;
};

}  // namespace

Proposal Sia::Allocate(const Snapshot& snapshot, SiaMemory& last) const {
  return SiaAllocation(snapshot, settings_, last).Take();
}

bool Sia::IsRestart(std::span<const std::int64_t> before, std::span<const std::int64_t> now) const {
  return !std::equal(before.begin(), before.end(), now.begin(), now.end());
}

void Sia::Note(const Snapshot& snapshot, SiaMemory& memory) const {
  std::map<JobId, SiaJobMemory> jobs;
  for (const JobId id : snapshot.jobs->live()) {
    const JobView view = snapshot.jobs->at(id);
    SiaJobMemory& job = jobs[id];
    if (const auto before = memory.jobs.find(id); before != memory.jobs.end()) {
      job = std::move(before->second);
    }
    std::vector<std::int64_t> shape = ShapeOf(view.grant);
    if (!shape.empty()) {
      const std::int64_t type = profile::NumberOfType(
          snapshot.cluster->nodes[static_cast<std::size_t>(shape.front())].gpu_type);
      job.restarts += job.shape.empty() || job.type != type || IsRestart(job.shape, shape) ? 1 : 0;
      job.type = type;
    }
    job.shape = std::move(shape);
    job.known.Note(view.reported, job.type);
  }
  memory.jobs = std::move(jobs);
}

Proposal Sia::Decide(const Snapshot& snapshot, Memory* memory) const {
  auto& last = static_cast<SiaMemory&>(*memory);
  return AtIntervals(snapshot, settings_.interval, last.last, [&] {
    Note(snapshot, last);
    base::Fnv1a now = DigestOf(snapshot);
    for (const auto& [id, job] : last.jobs) {
      // Who may not be moved yet.
      now.Add(std::uint64_t{snapshot.jobs->at(id).debt > Duration{0} ? 2U : 1U});
    }
    return last.last.Repeats(snapshot, now.value(), MayRest()) ? ProposalToKeep(*snapshot.jobs)
                                                               : Allocate(snapshot, last);
  });
}

std::span<const OptionSpec> SiaOptions() { return kSiaOptions; }

Result<SiaSettings> SiaSettingsOf(const Options& options, std::string_view policy) {
  const std::string begin = "policy '" + std::string(policy) + "': ";
  const double interval = options.Number("interval");
  if (!(interval >= 1) || interval > 1e9) {
    return InvalidArgument(begin + "interval must lie between 1 and 1e9 seconds");
  }
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  const double power = base::ToNumber(options.Text("p")).value_or(kNoNumber);
  if (!(std::abs(power) >= 0.01) || std::abs(power) > 10) {
    return InvalidArgument(begin + "p must lie between -10 and -0.01, or 0.01 and 10");
  }
  const double unserved = base::ToNumber(options.Text("lambda")).value_or(kNoNumber);
  if ((power < 0) != (unserved > 0) || !(std::abs(unserved) <= 1e6)) {
    return InvalidArgument(begin +
                           "lambda must be above 0 for p < 0, below 0 for p > 0, and within 1e6");
  }
  return SiaSettings{.interval = FromSeconds(interval), .power = power, .unserved = unserved};
}

namespace {

Result<Components> MakeSia(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const SiaSettings settings, SiaSettingsOf(options, "sia"));
  return Components{.policy = std::make_unique<Sia>(settings)};
}

}  // namespace

ComponentEntry SiaEntry() {
  return {.kind = ComponentKind::kPolicy,
          .name = "sia",
          .help = "GPUs of the types where trainings gain most: goodput, by an integer program",
          .options = kSiaOptions,
          .make = MakeSia,
          .placement = "gandiva"};
}

}  // namespace trainyard::policies
