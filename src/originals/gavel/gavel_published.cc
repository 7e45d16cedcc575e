// SPDX-License-Identifier: Apache-2.0
// Gavel (OSDI'20) as its simulator runs it: rounds that last until their latest job has done its
// steps, counted in the program's own real numbers. The engine is told who holds which GPUs, when a
// round is over, and when jobs end.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "originals/gavel/gavel_mechanism.h"
#include "originals/gavel/gavel_policies.h"
#include "originals/originals.h"
#include "trainyard/state.h"

namespace trainyard::originals {
namespace {

constexpr std::array<OptionSpec, 3> kGavelOptions{{
    {"allocation", OptionSpec::Kind::kText, "max_min_fairness_perf",
     "the policy, by its name in the published program"},
    {"round", OptionSpec::Kind::kNumber, "360", "seconds: length of a round at most"},
    {"seed", OptionSpec::Kind::kNumber, "0", "of the random numbers of policy and rounds"},
}};
constexpr std::uint64_t kOrderSeed = 5;  // added to the seed for the order of the types

// The GPUs of the nodes that are up by type, types in alphabetical order.
class GavelCluster {
 public:
  explicit GavelCluster(const Snapshot& snapshot) {
    const Cluster& cluster = *snapshot.cluster;
    std::map<std::string, std::vector<std::size_t>> nodes;
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      nodes[cluster.nodes[i].gpu_type].push_back(i);
    }
    for (const auto& [name, of] : nodes) {
      types_.push_back({name, cluster.SpeedOf(name)});
      counts_.push_back(0);
      for (const std::size_t i : of) {
        for (int gpu = 0; gpu < cluster.nodes[i].gpus && snapshot.up(NodeAt(i)); ++gpu) {
          places_.emplace_back(NodeAt(i), gpu);
          ++counts_.back();
        }
      }
    }
  }

  [[nodiscard]] const std::vector<GpuType>& types() const { return types_; }
  [[nodiscard]] const std::vector<int>& counts() const { return counts_; }
  // `numbers`: ascending within the type.
  [[nodiscard]] Slices SlicesOf(const std::vector<int>& numbers) const {
    std::map<NodeId, std::uint64_t> by_node;
    for (const int number : numbers) {
      const auto& [node, gpu] = places_[static_cast<std::size_t>(number)];
      by_node[node] |= std::uint64_t{1} << static_cast<unsigned>(gpu);
    }
    Slices slices;
    for (const auto& [node, gpus] : by_node) {
      slices.push_back({.node = node, .gpus = gpus});
    }
    return slices;
  }
  // So many GPUs of the type, whichever.
  [[nodiscard]] Slices AnyOf(std::size_t type, int gpus) const {
    int first = 0;
    for (std::size_t j = 0; j < type; ++j) {
      first += counts_[j];
    }
    std::vector<int> numbers(static_cast<std::size_t>(std::min(gpus, counts_[type])));
    std::iota(numbers.begin(), numbers.end(), first);
    return SlicesOf(numbers);
  }

 private:
  std::vector<GpuType> types_;
  std::vector<int> counts_;
  std::vector<std::pair<NodeId, int>> places_;
};

// Jobs of one kind have the same model, number of GPUs and weight. The numbers of kinds, and what
// two of them do together.
struct GavelMemory final : Memory {
  GavelState state;
  std::vector<std::tuple<std::int32_t, int, double>> kinds;
  std::optional<std::uint64_t> node_changes;  // by which the GPUs are numbered

  void Serialize(StateStream& stream) override {
    state.Serialize(stream);
    stream(kinds, node_changes);
  }
};

class GavelDecision {
 public:
  GavelDecision(const GavelPolicy& policy, const Snapshot& snapshot, GavelMemory& memory)
      : snapshot_(snapshot),
        state_(memory.state),
        memory_(memory),
        cluster_(snapshot),
        pairs_([this](int kind, int other) { return PairOf(kind, other); }),
        mechanism_(policy.rules, cluster_.counts(), pairs_, policy.solve, memory.state) {}

  [[nodiscard]] Proposal Take() {
    if (memory_.node_changes != snapshot_.node_changes) {
      mechanism_.ForgetGpus();
      memory_.node_changes = snapshot_.node_changes;
      renumbered_ = true;
    }
    FindArrivals();
    while (MayTurn()) {
      renumbered_ = false;
      const double now = TurnsAt();
      mechanism_.Turn(now, ArrivedBy(now));
      turned_ = true;
    }
    return Say();
  }

 private:
  void FindArrivals() {
    live_.insert(snapshot_.jobs->live().begin(), snapshot_.jobs->live().end());
    std::set<int> ending;
    for (const GavelTask& task : state_.tasks) {
      for (const int number : mechanism_.EndingWith(task)) {
        ending.insert(number);
      }
    }
    std::vector<int> gone;
    for (const auto& [number, job] : state_.jobs) {
      if (!live_.contains(job.id) && !ending.contains(number)) {
        gone.push_back(number);
      }
    }
    for (const int number : gone) {
      state_.numbers.erase(state_.jobs.at(number).id);
      mechanism_.Leave(number);
    }
    for (const JobId id : snapshot_.jobs->live()) {
      if (!state_.numbers.contains(id)) {
        coming_.push_back(id);
      }
    }
    std::sort(coming_.begin(), coming_.end(), [this](JobId a, JobId b) {
      return snapshot_.jobs->at(a).arrival < snapshot_.jobs->at(b).arrival;
    });
  }
  [[nodiscard]] double ArrivalOf(JobId id) const {
    return Seconds(snapshot_.jobs->spec(id).submit);
  }
  // Nothing runs, and nothing can until the next solve may be made: the published program knows
  // whether a job is still to come, and solves at once where none is.
  [[nodiscard]] TimePoint NextSolve() const {
    constexpr double kBetween = GavelRules{}.between_resets;
    return TimePoint{} + CeilFromSeconds(state_.last_reset + kBetween);
  }
  [[nodiscard]] bool MayTurn() const {
    if (const std::optional<double> end = mechanism_.RoundEnd()) {
      return TimePoint{} + CeilFromSeconds(*end) <= snapshot_.now;
    }
    return !coming_.empty() || (renumbered_ && !state_.jobs.empty()) ||
           (!state_.jobs.empty() && state_.dirty && NextSolve() <= snapshot_.now);
  }
  [[nodiscard]] double TurnsAt() const {
    if (const std::optional<double> end = mechanism_.RoundEnd()) {
      return *end;
    }
    return coming_.empty() ? Seconds(snapshot_.now)
                           : std::max(state_.now, ArrivalOf(coming_.front()));
  }
  std::vector<GavelJob> ArrivedBy(double now) {
    std::vector<GavelJob> arrived;
    auto next = coming_.begin();
    for (; next != coming_.end() && ArrivalOf(*next) <= now; ++next) {
      const JobSpec& spec = snapshot_.jobs->spec(*next);
      GavelJob job{.id = *next,
                   .kind = KindOf(spec),
                   .gpus = spec.gpus,
                   .weight = WeightOf(spec),
                   .arrival = ArrivalOf(*next),
                   .steps_left = static_cast<std::int64_t>(snapshot_.rates->TotalWork(spec))};
      for (const GpuType& type : cluster_.types()) {
        job.rates.push_back(snapshot_.rates->RateOn(spec, spec.gpus, type));
      }
      arrived.push_back(std::move(job));
    }
    coming_.erase(coming_.begin(), next);
    return arrived;
  }

  [[nodiscard]] static double WeightOf(const JobSpec& spec) {
    return spec.priority > 0 ? spec.priority : 1;
  }
  [[nodiscard]] int KindOf(const JobSpec& spec) {
    const std::tuple kind{spec.profile_row, spec.gpus, WeightOf(spec)};
    const auto known = std::find(memory_.kinds.begin(), memory_.kinds.end(), kind);
    if (known != memory_.kinds.end()) {
      return static_cast<int>(known - memory_.kinds.begin());
    }
    memory_.kinds.push_back(kind);
    return static_cast<int>(memory_.kinds.size()) - 1;
  }
  [[nodiscard]] JobSpec SpecOf(int kind) const {
    const auto& [row, gpus, weight] = memory_.kinds[static_cast<std::size_t>(kind)];
    return {.gpus = gpus, .profile_row = row};
  }
  // REQUIRES: kind <= other.
  const policies::PairRates* PairOf(int kind, int other) {
    if (kind > other) {
      std::swap(kind, other);
    }
    const auto [at, is_new] = rates_.emplace(std::pair(kind, other), policies::PairRates{});
    policies::PairRates& pair = at->second;
    if (is_new) {
      pair = {.first = kind, .second = other};
      const JobSpec first = SpecOf(kind);
      const JobSpec second = SpecOf(other);
      for (std::size_t j = 0; j < cluster_.types().size(); ++j) {
        pair.first_rates.push_back(RateBeside(first, second, j));
        pair.second_rates.push_back(RateBeside(second, first, j));
      }
    }
    return &pair;
  }
  [[nodiscard]] double RateBeside(const JobSpec& job, const JobSpec& other,
                                  std::size_t type) const {
    const Grant grant{.gpus = job.gpus,
                      .slices = cluster_.AnyOf(type, job.gpus),
                      .sharing = Sharing::kCollocated};
    const std::array<const JobSpec*, 1> others{&other};
    return snapshot_.rates->RateUnder(job, grant, {.collocated = others});
  }

  void SayDemands(const GavelTask& task, Proposal& proposal) const {
    const bool alone = task.unit.first == task.unit.second;
    for (const int number : alone ? std::vector<int>{task.unit.first}
                                  : std::vector<int>{task.unit.first, task.unit.second}) {
      const GavelJob& job = state_.jobs.at(number);
      if (live_.contains(job.id)) {
        proposal.demands.push_back({.job = job.id,
                                    .gpus = job.gpus,
                                    .slices = cluster_.SlicesOf(task.gpus),
                                    .sharing = alone ? Sharing::kExclusive : Sharing::kCollocated});
      }
    }
  }
  void SayEnds(const GavelTask& task, Proposal& proposal) const {
    for (const int number : mechanism_.EndingWith(task)) {
      if (!live_.contains(state_.jobs.at(number).id)) {
        continue;
      }
      const TimePoint end = AtSeconds(task.finish);
      proposal.ends.push_back(
          {.job = state_.jobs.at(number).id, .registered = std::max(end, snapshot_.now)});
    }
  }

  [[nodiscard]] Proposal Say() const {
    Proposal proposal;
    for (const GavelTask& task : state_.tasks) {
      SayDemands(task, proposal);
      if (turned_) {
        SayEnds(task, proposal);
      }
    }
    if (const std::optional<double> end = mechanism_.RoundEnd()) {
      proposal.wake_at = TimePoint{} + CeilFromSeconds(*end);
    } else if (!state_.jobs.empty() && state_.dirty) {
      proposal.wake_at = NextSolve();
    }
    return proposal;
  }

  const Snapshot& snapshot_;
  GavelState& state_;
  GavelMemory& memory_;
  const GavelCluster cluster_;
  std::map<std::pair<int, int>, policies::PairRates> rates_;
  const GavelPairs pairs_;
  GavelMechanism mechanism_;
  std::set<JobId> live_;
  std::vector<JobId> coming_;  // that the mechanism does not know, in order of arrival
  bool turned_ = false;
  bool renumbered_ = false;  // a node has come or gone
};

class GavelPublished final : public Policy {
 public:
  GavelPublished(std::string_view allocation, double round, std::uint64_t seed)
      : allocation_(allocation), round_(round), seed_(seed) {}

  [[nodiscard]] std::string_view name() const override { return "gavel-published"; }
  [[nodiscard]] PolicyTraits traits() const override {
    const bool pairs = FindGavelPolicy(allocation_, {})->rules.pairs;
    return {.needs = {.priorities = true},
            .may = {.share = pairs, .name_gpus = true, .plan_ends = true}};
  }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    auto memory = std::make_unique<GavelMemory>();
    memory->state.orders.emplace(seed_ + kOrderSeed);
    memory->state.policy.random.emplace(seed_);
    return memory;
  }
  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* memory) const override {
    std::vector<std::string> types;
    const GavelCluster cluster(snapshot);
    for (const GpuType& type : cluster.types()) {
      types.push_back(type.name);
    }
    GavelPolicy policy = *FindGavelPolicy(allocation_, types);
    policy.rules.round = round_;
    return GavelDecision(policy, snapshot, static_cast<GavelMemory&>(*memory)).Take();
  }

 private:
  const std::string allocation_;
  const double round_;
  const std::uint64_t seed_;
};

Result<Components> MakeGavelPublished(const Options& options, const ComponentContext& /*context*/) {
  const std::string& allocation = options.Text("allocation");
  if (!FindGavelPolicy(allocation, {})) {
    std::string known;
    for (const std::string_view name : GavelPolicyNames()) {
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    return InvalidArgument("allocation '" + allocation +
                           "' of policy 'gavel-published'; expected one of " + known);
  }
  return Components{
      .policy = std::make_unique<GavelPublished>(
          allocation, options.Number("round"), static_cast<std::uint64_t>(options.Number("seed")))};
}

}  // namespace

ComponentEntry GavelPublishedEntry() {
  return {ComponentKind::kPolicy,
          "gavel-published",
          "Gavel's rounds by an allocation, as the published simulator runs them",
          kGavelOptions,
          MakeGavelPublished,
          {},
          "gandiva"};
}

}  // namespace trainyard::originals
