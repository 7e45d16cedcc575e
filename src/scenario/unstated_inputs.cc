// SPDX-License-Identifier: Apache-2.0
#include "scenario/unstated_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

#include "base/try.h"
#include "catalog/catalog.h"
#include "model/node_classes.h"
#include "profile/execution_model.h"

namespace trainyard::scenario {
namespace {

// Errors: options that the component does not have.
Result<ComponentEntry::GoesBy> WhatItGoesBy(ComponentKind kind, const NamedOptions& named) {
  const ComponentEntry& entry = catalog::EntryOf(kind, named.name);
  if (entry.goes_by_with == nullptr) {
    return entry.goes_by;
  }
  ASSIGN_OR_RETURN(
      const Options options,
      Options::Make(entry.options, named, fmt::format("{} '{}'", base::NameOf(kind), named.name)));
  return entry.goes_by_with(options);
}

// Whether profiles tell the types apart.
bool HaveTypes(const Inputs& inputs) {
  const auto& throughput = inputs.models.throughput;
  if (throughput && std::any_of(throughput->rows().begin(), throughput->rows().end(),
                                [](const auto& row) { return !row.by_type.empty(); })) {
    return true;
  }
  const auto& applications = inputs.models.applications;
  return inputs.measured ||
         (applications && std::any_of(applications->all().begin(), applications->all().end(),
                                      [](const auto& one) { return one.has_types(); }));
}

// Whether the profile of the job has something of GPUs of that type; none: it does not tell types
// apart, or there is no profile.
std::optional<bool> RunsOn(const KnownModels& models, const JobSpec& job, std::string_view type) {
  if (models.applications) {
    const int at = models.applications->Find(job.model);
    const profile::Application* const application =
        at < 0 ? nullptr : &models.applications->all()[static_cast<std::size_t>(at)];
    return application == nullptr || !application->has_types()
               ? std::nullopt
               : std::optional(application->RunsOn(type));
  }
  if (!models.throughput || job.profile_row < 0) {
    return std::nullopt;
  }
  const auto& by_type =
      models.throughput->rows()[static_cast<std::size_t>(job.profile_row)].by_type;
  if (by_type.empty()) {
    return std::nullopt;
  }
  return std::any_of(by_type.begin(), by_type.end(), [type](const profile::TypedRates& rates) {
    return rates.gpu_type == type && std::any_of(rates.rates.begin(), rates.rates.end(),
                                                 [](double rate) { return rate > 0; });
  });
}

int GpusOf(const Cluster& cluster, std::string_view type) {
  int gpus = 0;
  for (const NodeSpec& node : cluster.nodes) {
    gpus += node.gpu_type == type ? node.gpus : 0;
  }
  return gpus;
}

// "a, b and 3 more".
std::string SomeOf(const std::set<std::string>& names) {
  constexpr std::size_t kMost = 4;
  const std::vector<std::string> first(
      names.begin(),
      std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min(kMost, names.size()))));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     names.size() > kMost ? fmt::format(" and {} more", names.size() - kMost) : "");
}

}  // namespace

Result<std::vector<std::string>> UnstatedInputs(const PresetRequest& names, const Inputs& inputs) {
  ASSIGN_OR_RETURN(const ResolvedPreset preset, ResolvePreset(names));
  const std::vector<JobSpec>& jobs = *inputs.jobs;
  const auto without = [&](bool (*states)(const JobSpec&)) {
    return jobs.size() - static_cast<std::size_t>(std::count_if(jobs.begin(), jobs.end(), states));
  };
  std::vector<std::string> unstated;
  const std::string policy = "policy '" + preset.policy.name + "'";
  ASSIGN_OR_RETURN(const ComponentEntry::GoesBy by,
                   WhatItGoesBy(ComponentKind::kPolicy, preset.policy));
  if (by.deadlines &&
      without([](const JobSpec& job) { return job.deadline.has_value(); }) == jobs.size()) {
    unstated.push_back(policy + " goes by deadlines, but no job states one: there is none to keep");
  }
  const std::size_t no_stages = without(profile::StatesStages);
  const bool groups =
      preset.grouping &&
      catalog::EntryOf(ComponentKind::kGrouping, preset.grouping->name).goes_by.stages;
  if ((groups || by.stages) && no_stages > 0) {
    unstated.push_back(fmt::format(
        "{} lets jobs share GPUs by the times of their stages, but {}: jobs without stage times "
        "run alone",
        groups ? "grouping '" + preset.grouping->name + "'" : policy,
        no_stages == jobs.size()
            ? "no job states them"
            : fmt::format("{} of {} jobs do not state them", no_stages, jobs.size())));
  }
  const model::GpuTypes types(inputs.cluster);
  if (by.gpu_types && types.several() && !HaveTypes(inputs)) {
    unstated.push_back(policy +
                       " goes by how fast jobs are on each type of GPU, but no profiles say it: "
                       "types differ by the `speed` of the cluster file alone (--profiles with a "
                       "column or file for each type: docs/formats/profiles.md)");
  }
  if (by.pairs && (!inputs.models.throughput || inputs.models.throughput->pairs().empty())) {
    unstated.push_back(policy +
                       " lets two jobs share GPUs where profiles say how fast both are, but they "
                       "do not: no jobs share (--profiles with a table in Gavel's form: "
                       "docs/formats/profiles.md)");
  }
  for (const std::string& type : by.named_types) {
    if (std::none_of(types.types().begin(), types.types().end(),
                     [&type](const GpuType& known) { return known.name == type; })) {
      unstated.push_back(
          fmt::format("{} names GPU type '{}', which no node has; the cluster has {}", policy, type,
                      types.NamesOf(types.all())));
    }
  }
  return unstated;
}

std::vector<std::string> TypesWithoutProfiles(const Inputs& inputs) {
  std::vector<std::string> sentences;
  const model::GpuTypes types(inputs.cluster);
  for (std::size_t i = 0; i < types.types().size(); ++i) {
    const std::string& type = types.types()[i].name;
    std::size_t wanting = 0;
    std::size_t lacking = 0;
    std::set<std::string> models;
    for (const JobSpec& job : *inputs.jobs) {
      const std::optional<bool> runs = RunsOn(inputs.models, job, type);
      if (!runs || (types.Accepted(job) >> i & 1U) == 0) {
        continue;
      }
      ++wanting;
      lacking += *runs ? 0 : 1;
      if (!*runs) {
        models.insert(job.model);
      }
    }
    if (lacking == 0) {
      continue;
    }
    const std::string name = type.empty() ? "without a type" : "of type '" + type + "'";
    sentences.push_back(
        lacking == wanting
            ? fmt::format("no job runs on the {} GPUs {}: the profiles lack this type",
                          GpusOf(inputs.cluster, type), name)
            : fmt::format("{} of {} jobs do not run on GPUs {}: the profiles lack it for {}",
                          lacking, wanting, name, SomeOf(models)));
  }
  return sentences;
}

}  // namespace trainyard::scenario
