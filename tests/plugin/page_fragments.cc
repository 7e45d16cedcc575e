// SPDX-License-Identifier: Apache-2.0
// The fragments that docs/adding-a-policy.md shows, as a plug-in, so that they compile and run.
// page_test compares them line by line, without the indentation.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "trainyard/free_gpus.h"
#include "trainyard/plugin.h"
#include "trainyard/state.h"

namespace trainyard {
namespace {

class Patience final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "patience"; }
  [[nodiscard]] OrderingTraits traits() const override {
    return {.moves = kAtKnownTimes, .walk = {.preempt = false}};
  }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint now,
                                    const Memory* /*memory*/) const override {
    if (job.waited >= patience_) {
      return {.key = {0}};
    }
    Standing standing{.key = {static_cast<double>(job.spec->gpus)}};
    if (job.grant == nullptr) {
      standing.moves_at = now + (patience_ - job.waited);
    }
    return standing;
  }

 private:
  const Duration patience_ = FromSeconds(3600);
};

struct Turns final : Memory {
  std::vector<double> turn;  // by JobId
  double next = 0;

  void ToTail(JobId job) {
    turn.resize(std::max(turn.size(), Index(job) + 1));
    turn[Index(job)] = next++;
  }
  void Serialize(StateStream& state) override { state(turn, next); }
};

class TakingTurns final : public Ordering {
 public:
  [[nodiscard]] std::string_view name() const override { return "turns"; }
  [[nodiscard]] std::unique_ptr<Memory> NewMemory() const override {
    return std::make_unique<Turns>();
  }
  [[nodiscard]] OrderingTraits traits() const override { return {.moves = kOnGrant}; }
  [[nodiscard]] Standing StandingOf(const JobView& job, TimePoint /*now*/,
                                    const Memory* memory) const override {
    const auto& turns = static_cast<const Turns&>(*memory);
    return {.key = {static_cast<double>(job.spec->gpus), turns.turn[Index(job.id)]},
            .stay = FromSeconds(600)};  // 0: none of its own
  }
  void Notify(JobEvent event, const JobView& job, TimePoint /*now*/,
              Memory* memory) const override {
    const bool stopped = event == JobEvent::kSettled && job.grant == nullptr;
    if (event == JobEvent::kArrived || stopped) {
      static_cast<Turns&>(*memory).ToTail(job.id);
    }
  }
};

// Even share: every job gets the same number of GPUs, cut to what its profile knows; what is left
// over goes to nobody.
class EvenShare final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const override { return "even-share"; }
  [[nodiscard]] PolicyTraits traits() const override { return {.may = {.resize = true}}; }

  [[nodiscard]] Proposal Decide(const Snapshot& snapshot, Memory* /*memory*/) const override {
    Proposal proposal{.walk = {.largest_first = true}};
    const std::span<const JobId> live = snapshot.jobs->live();
    const int jobs = static_cast<int>(live.size());
    const int share = jobs == 0 ? 0 : std::max(1, snapshot.gpus_up / jobs);
    for (const JobId id : live) {
      const JobView job = snapshot.jobs->at(id);
      const std::span<const int> levels = snapshot.rates->Levels(*job.spec);
      const auto above = std::upper_bound(levels.begin(), levels.end(), share);
      if (above != levels.begin()) {
        proposal.demands.push_back({.job = id, .gpus = *(above - 1)});
      }
    }
    return proposal;
  }
};

Result<Components> MakeEvenShare(const Options& /*options*/, const ComponentContext& /*context*/) {
  return Components{.policy = std::make_unique<EvenShare>()};
}

// Fullest node first: a gang goes to the node with the fewest free GPUs that can hold it, and is
// never split.
class FullestNode final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const override { return "fullest-node"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& free, const JobSpec& /*job*/,
                                             const Demand& demand) const override {
    if (demand.gpus > free.largest_node()) {
      return std::nullopt;
    }
    const int count = free.SmallestCount(demand.gpus);
    if (count == 0) {
      return std::nullopt;  // no node has room now
    }
    const NodeId node = *free.NodesWith(count).First();
    return Slices{{.node = node, .gpus = free.Lowest(node, demand.gpus)}};
  }
};

Result<Components> MakeFullestNode(const Options& /*options*/,
                                   const ComponentContext& /*context*/) {
  return Components{.placement = std::make_unique<FullestNode>()};
}

template <typename Component>
Result<Components> MakeOrdering(const Options& /*options*/, const ComponentContext& /*context*/) {
  return Components{.ordering = std::make_unique<Component>()};
}

}  // namespace

TRAINYARD_PLUGIN(
    {ComponentKind::kPolicy,
     "patience",
     "smallest gang first, with a patience",
     {},
     MakeOrdering<Patience>},
    {ComponentKind::kPolicy,
     "turns",
     "smallest gang first, taking turns",
     {},
     MakeOrdering<TakingTurns>},
    {ComponentKind::kPolicy, "even-share", "the same number of GPUs for all", {}, MakeEvenShare},
    {ComponentKind::kPlacement, "fullest-node", "the fullest node with room", {}, MakeFullestNode});

}  // namespace trainyard
