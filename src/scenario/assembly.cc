// SPDX-License-Identifier: Apache-2.0
#include "scenario/assembly.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/try.h"
#include "catalog/catalog.h"
#include "io/csv_reader.h"
#include "model/node_classes.h"
#include "world/forecast.h"

namespace trainyard::scenario {
namespace {

// Prior samples lie beside the profiles or where the path says: one number per line after a header.
Result<std::vector<double>> ReadSamples(const std::string& profiles, const std::string& name) {
  const std::filesystem::path beside = std::filesystem::path(profiles) / name;
  const bool there = !profiles.empty() && std::filesystem::exists(beside);
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(there ? beside.string() : name));
  std::vector<double> samples;
  RETURN_IF_ERROR(table.ForEach([&samples](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(const double sample, row.Number(0, 1));
    samples.push_back(sample);
    return {};
  }));
  if (samples.empty()) {
    return BadInput(table.path() + ": no samples; expected one per line after the header");
  }
  return samples;
}

Status MakeComponents(const std::string& profiles, const loader::LoaderProfiles* loader,
                      Assembly& parts) {
  const ComponentContext context{
      .read_samples = [&profiles](const std::string& name) { return ReadSamples(profiles, name); },
      .loader = loader};
  const auto make = [&](ComponentKind kind, const NamedOptions& named, Components& made) -> Status {
    ASSIGN_OR_RETURN(made, catalog::Make(kind, named, context));
    return {};
  };
  const ResolvedPreset& preset = parts.preset;
  RETURN_IF_ERROR(make(ComponentKind::kPolicy, preset.policy, parts.policy));
  RETURN_IF_ERROR(make(ComponentKind::kPlacement, preset.placement, parts.placement));
  RETURN_IF_ERROR(make(ComponentKind::kAdmission, preset.admission, parts.admission));
  if (preset.grouping) {
    RETURN_IF_ERROR(make(ComponentKind::kGrouping, *preset.grouping, parts.grouping));
  }
  if (preset.tuning) {
    RETURN_IF_ERROR(make(ComponentKind::kTuning, *preset.tuning, parts.tuning));
  }
  return {};
}

// Loader workers are bound by cores.
Status CheckCores(const Assembly& parts, const Cluster& cluster) {
  const std::string policy = parts.tuning.tuning ? "tuning '" + parts.preset.tuning->name + "'"
                                                 : "policy '" + parts.preset.policy.name + "'";
  for (const NodeSpec& node : cluster.nodes) {
    if (node.capacity.milli_cpus == 0) {
      return InvalidArgument(policy + " divides CPU cores, but cluster '" + cluster.name +
                             "' does not state those of node " + node.name +
                             "; expected a cluster file with cpus");
    }
  }
  return {};
}

// What cannot do with nodes of which some are not open to each job, or are faster for it than
// others; empty: nothing.
std::string WhatTakesAllForEqual(const Assembly& parts) {
  if (parts.bundle().traits().needs.gpu_types == TypeSupport::kOne) {
    return "policy '" + parts.preset.policy.name + "'";
  }
  if (!parts.bundle().names_gpus() || parts.placement.packer) {
    return "placement '" + parts.preset.placement.name + "'";
  }
  if (parts.divides_cores()) {
    return "tuning '" + parts.preset.tuning->name + "'";
  }
  return parts.preset.walk && parts.preset.walk->count_first
             ? "the preset with policy '" + parts.preset.policy.name + "'"
             : "";
}

// Errors: the parts cannot do with several GPU types, or with partitions.
Status CheckNodes(const Assembly& parts, const Cluster& cluster) {
  const model::GpuTypes types(cluster);
  std::string who = WhatTakesAllForEqual(parts);
  if (types.several() && !who.empty()) {
    return InvalidArgument(who + " takes all GPUs for equal, but cluster '" + cluster.name +
                           "' has " + types.NamesOf(types.all()) +
                           "; expected a cluster of one type, or another, such as policy srtf with "
                           "placement consolidated");
  }
  if (who.empty() && parts.bundle().ordering == nullptr) {
    who = "policy '" + parts.preset.policy.name + "'";
  } else if (who.empty() && parts.bundle().grouping != nullptr) {
    who = "grouping '" + parts.preset.grouping->name + "'";
  }
  const Partition* const some = who.empty() ? nullptr : model::FirstWithSomeNodes(cluster);
  return some == nullptr
             ? Status()
             : InvalidArgument(who + " plans as if each job could have every GPU, but partition '" +
                               some->name +
                               "' has only some of the nodes; expected partitions of all nodes, or "
                               "another, such as policy srtf with placement consolidated");
}

// A grouping makes gangs of the jobs of an ordering, one by one, and nobody else has a say in it.
Status CheckGrouping(const Assembly& parts) {
  if (!parts.grouping.grouping) {
    return {};
  }
  const std::string who = "grouping '" + parts.preset.grouping->name + "'";
  if (!parts.policy.ordering) {
    return InvalidArgument(who + " groups jobs that a policy puts in order, but policy '" +
                           parts.preset.policy.name +
                           "' plans or shares GPUs itself; expected an order, such as fifo, srtf, "
                           "las or tiresias");
  }
  if (!parts.placement.placement || parts.tuning.tuning) {
    return InvalidArgument(who +
                           " needs gangs that are placed one by one and have their nodes' CPUs as "
                           "they come; expected a placement such as consolidated, and no tuning");
  }
  if (parts.preset.walk) {
    return InvalidArgument(who + " does not go with the walk that the preset gives policy '" +
                           parts.preset.policy.name + "'; expected preset sound");
  }
  return {};
}

// Under other policies jobs would never end.
Status CheckPlannedEnds(const Assembly& parts) {
  if (parts.preset.rules.end.source != model::EndRule::Source::kPlanned ||
      parts.bundle().traits().may.plan_ends) {
    return {};
  }
  const std::string& name = parts.preset.policy.name;
  return InvalidArgument(
      "the preset takes the ends of jobs from the policy's plan, and policy '" + name +
      "' plans none; expected a policy of the published program (trainyard presets), or this "
      "policy without the preset");
}

// What the components expect of one another.
Status CheckTogether(const Assembly& parts, const Cluster& cluster) {
  const PolicyTraits traits = parts.bundle().traits();
  if (catalog::EntryOf(ComponentKind::kAdmission, parts.preset.admission.name).by_policy &&
      !traits.may.admit) {
    return InvalidArgument("admission '" + parts.preset.admission.name +
                           "' leaves the verdict to the policy, but policy '" +
                           parts.preset.policy.name +
                           "' does not judge arrivals; expected one that does (elasticflow), or "
                           "another admission");
  }
  const bool named_by_policy =
      catalog::EntryOf(ComponentKind::kPlacement, parts.preset.placement.name).by_policy;
  if (named_by_policy != traits.may.name_gpus) {
    return InvalidArgument(
        named_by_policy ? "placement '" + parts.preset.placement.name +
                              "' leaves the choice of GPUs to the policy, but policy '" +
                              parts.preset.policy.name +
                              "' does not name any; expected one that does, such as "
                              "gandiva, or another placement"
                        : "policy '" + parts.preset.policy.name +
                              "' names the GPUs itself; expected placement 'gandiva' instead of '" +
                              parts.preset.placement.name + "'");
  }
  if (parts.tuning.tuning && (traits.needs.named_devices || traits.may.resize ||
                              !(parts.placement.placement || named_by_policy))) {
    return InvalidArgument("tuning '" + parts.preset.tuning->name +
                           "' divides the cores of nodes among jobs of fixed size; expected a "
                           "policy and a placement that leave them alone, such as srtf and "
                           "consolidated");
  }
  if (!parts.bundle().names_gpus() && !cluster.changes.empty()) {
    return InvalidArgument(
        "placement 'count' names no GPUs, so it cannot be used with nodes that fail or change; "
        "expected another placement, or no failures and no changes of nodes");
  }
  RETURN_IF_ERROR(CheckPlannedEnds(parts));
  RETURN_IF_ERROR(CheckGrouping(parts));
  return CheckNodes(parts, cluster);
}

// One of those that a selector chooses among. What it is does not matter to the rules of the run,
// so it must not bring any.
Result<Assembly> MakeCandidate(const PresetRequest& names, const Cluster& cluster,
                               const std::string& profiles, const Assembly& parts) {
  Result<Assembly> candidate = AssembleComponents(names, cluster, profiles);
  if (!candidate.ok()) {
    return candidate;
  }
  const May may = candidate.value().traits().may;
  if (candidate.value().policy.selector || may.admit || may.name_gpus || may.share) {
    return InvalidArgument("policy '" + parts.preset.policy.name + "' cannot choose '" +
                           names.policy + "'; expected orderings such as fifo, srtf or las");
  }
  std::string& label = candidate.value().label;
  label = names.policy;
  for (const std::string& name : {names.admission, names.placement}) {
    label += name.empty() ? "" : " ";
    label += name;
  }
  return candidate;
}

// Every combination that the selector names, under the same preset.
Status MakeCandidates(const PresetRequest& names, const Cluster& cluster,
                      const std::string& profiles, Assembly& parts) {
  const Candidates& among = parts.policy.candidates;
  const auto or_given = [](std::vector<std::string> list, const std::string& given) {
    const bool none = list.empty() || (list.size() == 1 && list.front().empty());
    return none ? std::vector<std::string>{given} : list;
  };
  for (const std::string& policy : among.policies) {
    for (const std::string& admission : or_given(among.admissions, names.admission)) {
      for (const std::string& placement : or_given(among.placements, names.placement)) {
        ASSIGN_OR_RETURN(Assembly candidate, MakeCandidate({.preset = names.preset,
                                                            .policy = policy,
                                                            .placement = placement,
                                                            .admission = admission,
                                                            .tuning = names.tuning},
                                                           cluster, profiles, parts));
        parts.candidates.push_back(std::move(candidate));
      }
    }
  }
  return {};
}

}  // namespace

scheduler::Bundle Assembly::bundle() const {
  if (!candidates.empty()) {
    return candidates.front().bundle();
  }
  return {.ordering = policy.ordering.get(),
          .policy = policy.policy.get(),
          .placement = placement.placement.get(),
          .packer = placement.packer.get(),
          .admission = admission.admission.get(),
          .grouping = grouping.grouping.get(),
          .tuning = tuning.tuning.get(),
          .walk = preset.walk};
}

PolicyTraits Assembly::traits() const {
  if (candidates.empty()) {
    return bundle().traits();
  }
  PolicyTraits all;
  for (const Assembly& candidate : candidates) {
    const PolicyTraits traits = candidate.traits();
    all.may.resize |= traits.may.resize;
    all.needs.work_left |= traits.needs.work_left;
    all.needs.gpu_types = std::max(all.needs.gpu_types, traits.needs.gpu_types);
    all.needs.priorities |= traits.needs.priorities;
    all.needs.queues |= traits.needs.queues;
  }
  return all;
}

std::shared_ptr<engine::Configuration> Assembly::Configure(Cluster cluster) const {
  auto configuration = std::make_shared<engine::Configuration>(engine::Configuration{
      .rules = preset.rules,
      .cluster = std::move(cluster),
      .bundle = bundle(),
      .rates = rates.get(),
      .overheads = preset.overheads,
      .corrector = corrector,
      .policy = preset.policy.name,
      .traits = traits(),
      .promises = catalog::EntryOf(ComponentKind::kAdmission, preset.admission.name).by_policy});
  configuration->forks = forks.get();
  if (policy.selector) {
    configuration->selector = policy.selector.get();
    for (const Assembly& candidate : candidates) {
      configuration->candidates.push_back(candidate.bundle());
    }
  }
  return configuration;
}

Result<Assembly> AssembleComponents(const PresetRequest& names, const Cluster& cluster,
                                    const std::string& profiles,
                                    const loader::LoaderProfiles* loader) {
  ASSIGN_OR_RETURN(ResolvedPreset preset, ResolvePreset(names));
  Assembly parts{.preset = std::move(preset)};
  parts.forks = std::make_unique<world::SimulatedForks>();
  RETURN_IF_ERROR(MakeComponents(profiles, loader, parts));
  if (parts.policy.selector && parts.grouping.grouping) {
    return CheckGrouping(parts).error();
  }
  if (parts.policy.selector) {
    RETURN_IF_ERROR(MakeCandidates(names, cluster, profiles, parts));
    return parts;
  }
  RETURN_IF_ERROR(CheckTogether(parts, cluster));
  if (parts.tuning.tuning || parts.bundle().traits().needs.named_devices) {
    RETURN_IF_ERROR(CheckCores(parts, cluster));
  }
  return parts;
}

}  // namespace trainyard::scenario
