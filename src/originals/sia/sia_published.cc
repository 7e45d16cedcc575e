// SPDX-License-Identifier: Apache-2.0
// Sia (SOSP'23) as the simulator of its artifact runs it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/try.h"
#include "model/slices.h"
#include "originals/originals.h"
#include "originals/sia/placement_published.h"
#include "originals/sia/sia_published.h"
#include "originals/sia/utilities_published.h"
#include "policies/sia/assignment.h"
#include "policies/sia/job_choices.h"
#include "policies/sia/sia.h"

namespace trainyard::originals {
namespace {

constexpr int kNodeLimit = 20'000;  // of the search tree
constexpr double kTie = 1e-7;       // by how large a share equal costs are made to differ

constexpr std::array<OptionSpec, 4> kSiaPublishedOptions{{
    {"interval", OptionSpec::Kind::kNumber, "60", "seconds between allocations"},
    {"p", OptionSpec::Kind::kText, "-0.5", "power of utilities that are summed; not 0"},
    {"lambda", OptionSpec::Kind::kText, "1.1", "what a job without GPUs costs; below 0 for p > 0"},
    {"seed", OptionSpec::Kind::kNumber, "1",
     "of how ties are broken, anew in each round; 0: as the solver happens to"},
}};

// Between -1 and 1, another one for all other arguments (the finaliser of SplitMix64).
double Spread(std::uint64_t seed, TimePoint now, JobId job, std::size_t choice) {
  std::uint64_t mixed = seed;
  for (const std::uint64_t part : {static_cast<std::uint64_t>(Micros(now)),
                                   std::uint64_t{Index(job)}, std::uint64_t{choice}}) {
    mixed = mixed * 0x9E3779B97F4A7C15U + part + 1;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    mixed ^= mixed >> 31U;
  }
  return static_cast<double>(static_cast<std::int64_t>(mixed)) * 0x1p-63;
}

// One round.
class PublishedRound {
 public:
  PublishedRound(const Snapshot& snapshot, const policies::SiaSettings& settings,
                 std::uint64_t seed, const policies::SiaMemory& memory)
      : snapshot_(snapshot),
        seed_(seed),
        memory_(memory),
        program_{.power = settings.power, .unserved = settings.unserved},
        nodes_(snapshot) {
    problem_.unserved = settings.unserved;
    problem_.maximise = settings.power > 0;
    for (const policies::NodeKind& kind : nodes_.kinds) {
      problem_.capacity.push_back(kind.gpus());
    }
    for (const JobId id : snapshot.jobs->live()) {
      jobs_.push_back(snapshot.jobs->at(id));
      AddJob(jobs_.back());
    }
  }

  [[nodiscard]] const policies::AssignmentProblem& problem() const { return problem_; }
  [[nodiscard]] Proposal Take() const {
    const auto found = policies::SolveAssignment(problem_, kNodeLimit);
    Proposal proposal{.bounded = !found || !found->optimal};
    for (std::size_t kind = 0; found && kind < nodes_.kinds.size(); ++kind) {
      PlaceOn(kind, found->chosen, proposal.demands);
    }
    return proposal;
  }

 private:
  [[nodiscard]] std::vector<PublishedType> TypesOf(const JobSpec& job,
                                                   const policies::KnownTraining& known) const {
    std::vector<PublishedType> types;
    for (const policies::NodeKind& kind : nodes_.kinds) {
      PublishedType& type = types.emplace_back();
      type.node_gpus = kind.node_gpus;
      type.one_gpu = snapshot_.rates->RateOn(job, 1, nodes_.classes.types().types()[kind.type]);
      const policies::KnownType* const on = known.On(nodes_.numbers[kind.type]);
      if (on != nullptr) {
        type.limits = on->limits;
        type.most_batch = on->limits.most;
        if (job.batch_size > 0) {
          type.limits.most = job.batch_size;
        }
        type.times = on->times;
        type.tried_gpus = on->tried_gpus;
      }
    }
    return types;
  }

  void AddJob(const JobView& job) {
    const policies::SiaJobMemory& remembered = memory_.jobs.at(job.id);
    const std::vector<float> utilities = PublishedUtilities(
        nodes_.configurations, TypesOf(*job.spec, remembered.known), remembered.known.noise);
    const std::optional<std::size_t> held = HeldBy(job);
    const double factor =
        PublishedRestartFactor(Seconds(snapshot_.now - job.spec->submit),
                               std::max(remembered.restarts, 0), PublishedPenalty(job.spec->model));
    policies::AssignmentJob& made = problem_.jobs.emplace_back();
    for (std::size_t i = 0; i < utilities.size(); ++i) {
      const policies::Configuration& configuration = nodes_.configurations[i];
      const float worth =
          held && held != i ? utilities[i] * static_cast<float>(factor) : utilities[i];
      const double tie = seed_ == 0 ? 0 : kTie * Spread(seed_, snapshot_.now, job.id, i);
      made.choices.push_back({.kind = configuration.kind,
                              .takes = configuration.gpus,
                              .cost = PublishedCost(program_, worth) * (1 + tie)});
    }
    made.pinned = job.debt > Duration{0} ? held : std::nullopt;
  }

  [[nodiscard]] std::optional<std::size_t> HeldBy(const JobView& job) const {
    if (job.grant == nullptr) {
      return std::nullopt;
    }
    const std::size_t kind = KindOf(job.grant->slices.front().node);
    const auto found = std::find_if(nodes_.configurations.begin(), nodes_.configurations.end(),
                                    [&](const policies::Configuration& one) {
                                      return one.kind == kind && one.gpus == job.grant->gpus;
                                    });
    return found == nodes_.configurations.end()
               ? std::nullopt
               : std::optional<std::size_t>(found - nodes_.configurations.begin());
  }

  [[nodiscard]] std::size_t KindOf(NodeId node) const {
    const auto found = std::find_if(
        nodes_.kinds.begin(), nodes_.kinds.end(), [node](const policies::NodeKind& kind) {
          return std::binary_search(kind.nodes.begin(), kind.nodes.end(), node);
        });
    return static_cast<std::size_t>(found - nodes_.kinds.begin());
  }

  void PlaceOn(std::size_t kind, const std::vector<std::optional<std::size_t>>& chosen,
               std::vector<Demand>& demands) const {
    std::vector<std::size_t> served;
    std::vector<int> requests;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] && nodes_.configurations[*chosen[i]].kind == kind) {
        served.push_back(i);
        requests.push_back(nodes_.configurations[*chosen[i]].gpus);
      }
    }
    const policies::NodeKind& of = nodes_.kinds[kind];
    const std::vector<std::vector<int>> places =
        PlaceAsPublished(static_cast<int>(of.nodes.size()), of.node_gpus, requests);
    std::vector<std::uint64_t> free(of.nodes.size(), model::AllGpus(of.node_gpus));
    for (std::size_t i = 0; i < served.size(); ++i) {
      const JobView& job = jobs_[served[i]];
      Demand demand{.job = job.id, .gpus = static_cast<int>(places[i].size())};
      for (std::size_t gpu = 0; gpu < places[i].size();) {
        const auto node = static_cast<std::size_t>(places[i][gpu]);
        const auto count =
            static_cast<int>(std::count(places[i].begin(), places[i].end(), places[i][gpu]));
        const std::uint64_t gpus = model::LowestGpus(free[node], count);
        free[node] &= ~gpus;
        demand.slices.push_back({.node = of.nodes[node], .gpus = gpus});
        gpu += static_cast<std::size_t>(count);
      }
      // Elsewhere on the same type with as many on each node it goes on; on another type it begins
      // anew even with as many GPUs.
      demand.restart = job.grant != nullptr && KindOf(job.grant->slices.front().node) != kind;
      demands.push_back(std::move(demand));
    }
  }

  const Snapshot& snapshot_;
  const std::uint64_t seed_;
  const policies::SiaMemory& memory_;
  const PublishedProgram program_;
  const policies::SiaNodes nodes_;
  std::vector<JobView> jobs_;
  policies::AssignmentProblem problem_;
};

class SiaAsPublished final : public policies::Sia {
 public:
  SiaAsPublished(const policies::SiaSettings& settings, std::uint64_t seed)
      : Sia(settings), seed_(seed) {}
  [[nodiscard]] std::string_view name() const override { return "sia-published"; }

 private:
  [[nodiscard]] bool CountsWhatIsLeft() const override { return false; }
  [[nodiscard]] Proposal Allocate(const Snapshot& snapshot,
                                  policies::SiaMemory& last) const override {
    return PublishedRound(snapshot, settings(), seed_, last).Take();
  }
  // As many GPUs on as many nodes, in this order, are the same wherever they are.
  [[nodiscard]] bool IsRestart(std::span<const std::int64_t> before,
                               std::span<const std::int64_t> now) const override {
    bool same = before.size() == now.size();
    for (std::size_t i = 1; same && i < now.size(); i += 2) {
      same = before[i] == now[i];
    }
    return !same;
  }
  [[nodiscard]] bool MayRest() const override { return false; }

  const std::uint64_t seed_;
};

Result<Components> MakeSiaPublished(const Options& options, const ComponentContext& /*context*/) {
  ASSIGN_OR_RETURN(const policies::SiaSettings settings,
                   policies::SiaSettingsOf(options, "sia-published"));
  const double seed = options.Number("seed");
  if (seed > 1e15 || seed != std::floor(seed)) {
    return InvalidArgument("policy 'sia-published': seed must be a whole number from 0 to 1e15");
  }
  return Components{
      .policy = std::make_unique<SiaAsPublished>(settings, static_cast<std::uint64_t>(seed))};
}

}  // namespace

policies::AssignmentProblem ProblemAsPublished(const Snapshot& snapshot,
                                               const policies::SiaSettings& settings,
                                               const policies::SiaMemory& memory) {
  return PublishedRound(snapshot, settings, 0, memory).problem();
}

ComponentEntry SiaPublishedEntry() {
  return {.kind = ComponentKind::kPolicy,
          .name = "sia-published",
          .help = "sia as the simulator of its artifact runs it",
          .options = kSiaPublishedOptions,
          .make = MakeSiaPublished,
          .placement = "gandiva"};
}

}  // namespace trainyard::originals
