// SPDX-License-Identifier: Apache-2.0
#include "policies/sia/job_choices.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "model/request/could_have.h"

namespace trainyard::policies {
namespace {

// The type that the training has run on most, the first of equal ones.
const KnownType& BestKnown(const KnownTraining& known) {
  return *std::max_element(
      known.types.begin(), known.types.end(),
      [](const KnownType& a, const KnownType& b) { return a.tried_gpus < b.tried_gpus; });
}

GpuRange RangeOf(const JobSpec& job) { return job.traits ? job.traits->range : GpuRange{}; }

// The numbers of GPUs that its profile knows, ascending.
std::vector<int> LevelsOf(const JobSpec& job, const ExecutionModel& rates) {
  const std::span<const int> levels = rates.Levels(job);
  return levels.empty() ? std::vector<int>{job.gpus}
                        : std::vector<int>(levels.begin(), levels.end());
}

// By the rates of its profile.
std::vector<JobChoice> ByRate(const JobSpec& job, const SiaNodes& nodes,
                              const ExecutionModel& rates,
                              std::span<const Configuration> configurations) {
  const std::vector<int> levels = LevelsOf(job, rates);
  std::vector<JobChoice> choices;
  for (const Configuration& configuration : configurations) {
    if (!std::binary_search(levels.begin(), levels.end(), configuration.gpus)) {
      continue;
    }
    const NodeKind& kind = nodes.kinds[configuration.kind];
    const double rate =
        rates.RateOn(job, configuration.gpus, nodes.classes.types().types()[kind.type]);
    if (rate > 0) {
      choices.push_back({.configuration = configuration, .worth = rate});
    }
  }
  return choices;
}

// The job's own numbers of GPUs, on as few nodes of each kind as can hold them.
std::vector<Configuration> OwnConfigurations(const JobSpec& job, const SiaNodes& nodes,
                                             const ExecutionModel& rates) {
  const std::vector<int> levels = LevelsOf(job, rates);
  std::vector<Configuration> own;
  for (std::size_t kind = 0; kind < nodes.kinds.size(); ++kind) {
    const int node_gpus = nodes.kinds[kind].node_gpus;
    for (const int level : levels) {
      if (level <= nodes.kinds[kind].gpus()) {
        own.push_back({.kind = kind, .nodes = (level + node_gpus - 1) / node_gpus, .gpus = level});
      }
    }
  }
  return own;
}

std::vector<JobChoice> ByGoodput(const JobSpec& job, const KnownTraining& known,
                                 const SiaNodes& nodes, const ExecutionModel& rates) {
  const GpuRange range = RangeOf(job);
  const int most = std::max(known.MostGpus(), std::min(range.least, kMostConfiguredGpus));
  std::vector<JobChoice> choices;
  for (const Configuration& configuration : nodes.configurations) {
    if (configuration.gpus > most) {
      continue;
    }
    const double goodput = EstimateOn(configuration, job, known, nodes, rates);
    if (goodput > 0) {
      const KnownType* const here = known.On(nodes.numbers[nodes.kinds[configuration.kind].type]);
      choices.push_back({.configuration = configuration,
                         .worth = goodput,
                         .untried = here == nullptr || configuration.gpus > here->tried_gpus});
    }
  }
  return choices;
}

}  // namespace

SiaNodes::SiaNodes(const Snapshot& snapshot)
    : cluster(*snapshot.cluster),
      classes(cluster),
      kinds(KindsOf(snapshot, classes)),
      configurations(ConfigurationsOf(kinds)) {
  for (const GpuType& type : classes.types().types()) {
    numbers.push_back(profile::NumberOfType(type.name));
  }
}

std::optional<int> SiaNodes::NodeGpusOf(std::int64_t number) const {
  std::optional<int> most;
  for (const NodeKind& kind : kinds) {
    if (numbers[kind.type] == number) {
      most = std::max(most.value_or(0), kind.node_gpus);
    }
  }
  return most;
}

int SiaNodes::TakenBy(const Configuration& configuration) const {
  const int node_gpus = kinds[configuration.kind].node_gpus;
  return configuration.nodes > 1 ? configuration.nodes * node_gpus : configuration.gpus;
}

double EstimateOn(const Configuration& configuration, const JobSpec& job,
                  const KnownTraining& known, const SiaNodes& nodes, const ExecutionModel& rates) {
  const NodeKind& kind = nodes.kinds[configuration.kind];
  const KnownType* const here = known.On(nodes.numbers[kind.type]);
  const KnownType& best = BestKnown(known);
  if (here != nullptr && (here->tried_gpus > 1 || best.tried_gpus <= 1 || here == &best)) {
    return known.ModelOn(*here).Best(configuration.nodes, configuration.gpus).value;
  }
  const profile::GoodputModel model = known.ModelOn(best);
  const int node_gpus = nodes.NodeGpusOf(best.number).value_or(kind.node_gpus);
  const int best_nodes = (configuration.gpus + node_gpus - 1) / node_gpus;
  const double there = model.Best(best_nodes, configuration.gpus).value;
  const std::vector<GpuType>& types = nodes.classes.types().types();
  double one_here = 0;
  double one_there = 0;
  if (here != nullptr) {
    one_here = known.ModelOn(*here).Best(1, 1).value;
    one_there = model.Best(1, 1).value;
  } else {
    const auto type = std::find(nodes.numbers.begin(), nodes.numbers.end(), best.number);
    one_here = rates.RateOn(job, 1, types[kind.type]);
    one_there =
        type == nodes.numbers.end()
            ? 0
            : rates.RateOn(job, 1, types[static_cast<std::size_t>(type - nodes.numbers.begin())]);
  }
  // A profile that knows nothing of one GPU says nothing of the quotient.
  return one_here > 0 && one_there > 0 ? there * (one_here / one_there) : there;
}

std::vector<JobChoice> ChoicesOf(const JobSpec& job, const KnownTraining& known,
                                 const SiaNodes& nodes, const ExecutionModel& rates) {
  std::vector<JobChoice> choices = known.types.empty()
                                       ? ByRate(job, nodes, rates, nodes.configurations)
                                       : ByGoodput(job, known, nodes, rates);
  const model::NodeClassSet accepted = nodes.classes.Accepted(job);
  const GpuRange range = RangeOf(job);
  const auto is_not_for_it = [&](const JobChoice& choice) {
    const NodeKind& kind = nodes.kinds[choice.configuration.kind];
    return (accepted >> kind.node_class & 1U) == 0 || kind.nodes.empty() ||
           !range.Holds(choice.configuration.gpus) ||
           !model::CouldHave(nodes.cluster, nodes.classes, job, choice.configuration.gpus,
                             nodes.classes.OfType(kind.type));
  };
  std::erase_if(choices, is_not_for_it);
  if (choices.empty()) {
    choices = ByRate(job, nodes, rates, OwnConfigurations(job, nodes, rates));
    std::erase_if(choices, is_not_for_it);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const JobChoice& choice : choices) {
    least = std::min(least, choice.worth);
  }
  for (JobChoice& choice : choices) {
    choice.worth /= least;
  }
  return choices;
}

}  // namespace trainyard::policies
