// SPDX-License-Identifier: Apache-2.0
#include "faults/pretended_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "faults/world.h"

namespace trainyard::faults {
namespace {

// torchrun gives up on those who do not come.
constexpr Duration kRendezvous = seconds(600);
// Seconds that workers need when all are there, however long the controller has seen starts take.
constexpr double kLongestRestart = 10;

}  // namespace

Starter StarterOf(const v1::LaunchSpec& launch) {
  return launch.workers() == v1::LaunchSpec::EMULATED    ? Starter::kEmulated
         : launch.launcher() == v1::LaunchSpec::TORCHRUN ? Starter::kTorchrun
         : launch.launcher() == v1::LaunchSpec::MPI      ? Starter::kMpi
                                                         : Starter::kPlain;
}

double RateOf(const v1::StartAttempt& start, double said) {
  constexpr double kSlowest = 0.05;
  return StarterOf(start.launch()) == Starter::kEmulated ? said : std::max(said, kSlowest);
}

// What is wrong with what the part's order says; empty: nothing.
std::string PretendedLaunches::WhyNotOf(const Launch& launch, const v1::StartAttempt& start) const {
  const v1::StartAttempt& other = launch.start;
  const auto& workers = start.node_workers();
  if (start.node_rank() < 0 || start.node_rank() >= start.nodes() ||
      workers.size() != start.nodes() ||
      start.first_rank() !=
          std::accumulate(workers.begin(), workers.begin() + start.node_rank(), 0) ||
      start.world_size() != std::accumulate(workers.begin(), workers.end(), 0)) {
    return "ranks that do not fit together";
  }
  if (other.master_address() != start.master_address() ||
      other.master_port() != start.master_port() || other.nodes() != start.nodes() ||
      !std::equal(workers.begin(), workers.end(), other.node_workers().begin(),
                  other.node_workers().end())) {
    return "another meeting than its other nodes";
  }
  const int own = start.launch().workers() == v1::LaunchSpec::PER_GPU ? start.gpus_size() : 1;
  return workers[start.node_rank()] == own ? "" : "another number of workers than it has";
}

void PretendedLaunches::Begin(int node, const v1::StartAttempt& start) {
  const AttemptKey key{start.id().job(), start.id().attempt()};
  Launch& launch = launches_[key];
  const std::string wrong = launch.parts.empty() ? "" : WhyNotOf(launch, start);
  launch.start = start;
  const bool meets_elsewhere =
      start.node_rank() == 0 && start.master_address() != world_.NameOf(node);
  if (!wrong.empty() || meets_elsewhere || launch.parts.contains(start.node_rank())) {
    world_.Violated(fmt::format("job {} on n{} is told of {}", key.first, node,
                                wrong.empty() ? "a rank or a meeting of another node" : wrong));
  }
  const int rank = start.node_rank();
  launch.parts[rank] = {.node = node};
  switch (StarterOf(start.launch())) {
    case Starter::kEmulated:
    case Starter::kPlain:
      return Arrive(key, rank);
    case Starter::kTorchrun:
      world_.After(kRendezvous, [this, key, rank] {
        Part& part = launches_[key].parts[rank];
        if (part.step == Step::kComes || part.step == Step::kMeets) {
          world_.FailForOthers(part.node, key);
        }
      });
      return world_.After(world_.Between(milliseconds(500), seconds(world_.Chance(0.2) ? 60 : 20)),
                          [this, key, rank] { Arrive(key, rank); });
    case Starter::kMpi:
      return world_.After(world_.Between(milliseconds(50), seconds(world_.Chance(0.3) ? 40 : 3)),
                          [this, key, rank] { Arrive(key, rank); });
  }
}

// The part is ready to meet the others; under torchrun and mpi that is at the first node.
void PretendedLaunches::Arrive(const AttemptKey& key, int rank) {
  Launch& launch = launches_[key];
  Part& part = launch.parts[rank];
  if (part.step != Step::kComes) {
    return;
  }
  const Starter starter = StarterOf(launch.start.launch());
  const auto head = launch.parts.find(0);
  const bool at_head = starter == Starter::kTorchrun || starter == Starter::kMpi;
  if (at_head && rank > 0 && (head == launch.parts.end() || head->second.step != Step::kMeets)) {
    part.asks = true;
    return;
  }
  part.step = Step::kMeets;
  for (const auto& [other, of] : launch.parts) {
    if (rank == 0 && of.asks) {
      world_.After(world_.Between(milliseconds(1), milliseconds(500)),
                   [this, key, other = other] { Arrive(key, other); });
    }
  }
  Meet(key, launch);
}

void PretendedLaunches::Meet(const AttemptKey& key, Launch& launch) {
  const auto meets = [](const auto& entry) { return entry.second.step == Step::kMeets; };
  if (std::count_if(launch.parts.begin(), launch.parts.end(), meets) < launch.start.nodes()) {
    return;
  }
  for (auto& [rank, part] : launch.parts) {
    part.step = Step::kWorks;
  }
  const v1::StartAttempt& start = launch.start;
  Gang& gang = world_.GangOf(start.id());
  if (gang.until) {
    return;
  }
  gang.since = world_.now();
  gang.done_before = world_.checkpoints()[key.first];
  gang.restart_cost_s = std::min(start.restart_cost_s(), kLongestRestart);
  if (gang.order < 0) {
    gang.rate = RateOf(start, start.rate());
  }
  const double left = std::max(0.0, start.iterations() - gang.done_before);
  world_.FinishIn(FromSeconds(gang.restart_cost_s + left / gang.rate), key);
}

// How soon the part of that rank fails after another has gone; none: it does not notice.
std::optional<Duration> PretendedLaunches::NoticesIn(const Launch& launch, int gone, Step was,
                                                     int rank) {
  const bool works = was == Step::kWorks;
  const bool met = launch.parts.at(rank).step >= Step::kMeets;
  switch (StarterOf(launch.start.launch())) {
    case Starter::kEmulated:
      return std::nullopt;
    case Starter::kPlain:  // some of them hang
      return works && world_.Chance(0.7)
                 ? std::optional(world_.Between(milliseconds(50), seconds(10)))
                 : std::nullopt;
    case Starter::kTorchrun:
      return (works || (gone == 0 && met)) && world_.Chance(0.9)
                 ? std::optional(world_.Between(milliseconds(50), seconds(10)))
                 : std::nullopt;
    case Starter::kMpi:  // mpirun notices, and its daemons go with it
      return met && was >= Step::kMeets && (gone == 0 || rank == 0)
                 ? std::optional(world_.Between(milliseconds(20), seconds(3)))
                 : std::nullopt;
  }
  return std::nullopt;
}

void PretendedLaunches::Leave(int node, const AttemptKey& key, bool done) {
  const auto at = launches_.find(key);
  if (at == launches_.end()) {
    return;
  }
  Launch& launch = at->second;
  for (auto& [gone, part] : launch.parts) {
    if (part.node != node || part.step == Step::kGone) {
      continue;
    }
    const Step was = std::exchange(part.step, Step::kGone);
    for (const auto& [rank, other] : launch.parts) {
      const std::optional<Duration> notices =
          done || other.step == Step::kGone ? std::nullopt : NoticesIn(launch, gone, was, rank);
      if (notices) {
        world_.After(*notices,
                     [this, key, where = other.node] { world_.FailForOthers(where, key); });
      }
    }
  }
}

std::optional<LaunchStep> PretendedLaunches::StepOf(int node, const AttemptKey& key) const {
  constexpr std::array<std::array<LaunchStep, 3>, kStarters - 1> kSteps{
      {{LaunchStep::kPlainMeets, LaunchStep::kPlainMeets, LaunchStep::kPlainWorks},
       {LaunchStep::kTorchrunComes, LaunchStep::kTorchrunMeets, LaunchStep::kTorchrunWorks},
       {LaunchStep::kMpiComes, LaunchStep::kMpiMeets, LaunchStep::kMpiWorks}}};
  const auto at = launches_.find(key);
  if (at == launches_.end()) {
    return std::nullopt;
  }
  const Starter starter = StarterOf(at->second.start.launch());
  for (const auto& [rank, part] : at->second.parts) {
    if (part.node == node && part.step != Step::kGone && starter != Starter::kEmulated) {
      return kSteps.at(static_cast<std::size_t>(starter) - 1)
          .at(static_cast<std::size_t>(part.step));
    }
  }
  return std::nullopt;
}

}  // namespace trainyard::faults
