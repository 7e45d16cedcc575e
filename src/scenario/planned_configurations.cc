// SPDX-License-Identifier: Apache-2.0
#include "scenario/planned_configurations.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "base/try.h"
#include "scenario/assembly.h"
#include "scenario/rates.h"

namespace trainyard::scenario {
namespace {

// What a configuration is made from, kept for as long as it lives.
struct Owned {
  std::shared_ptr<const Inputs> inputs;
  Assembly parts;
};

// Other throughput profiles in place of those of the inputs. How much work a job has stays as the
// first ones say.
Status TakeProfiles(const std::string& path, Inputs& inputs) {
  if (!inputs.models.throughput) {
    return InvalidArgument("the run has no throughput profiles to change; expected --profiles");
  }
  ASSIGN_OR_RETURN(inputs.models, KnownModels::Read(path, inputs.cluster));
  if (!inputs.models.throughput) {
    return InvalidArgument(path + " has no throughput profiles; expected some, as in the run");
  }
  inputs.paths.profiles = path;
  const auto trace = std::make_shared<trace::Trace>(*inputs.trace);
  for (JobSpec& job : trace->jobs) {
    job.profile_row = inputs.models.throughput->Find(job.model, job.batch_size);
  }
  inputs.trace = trace;
  inputs.jobs = std::shared_ptr<const std::vector<JobSpec>>(trace, &trace->jobs);
  return {};
}

// The inputs from the change on.
Result<std::shared_ptr<Inputs>> InputsAfter(const ConfigurationChange& change,
                                            const Inputs& before) {
  auto next = std::make_shared<Inputs>(before);
  next->changes.clear();  // one that follows them needs none of them
  if (change.partitions) {
    next->cluster.partitions = *change.partitions;
    next->partitions_since = change.at;
  }
  if (change.profiles) {
    RETURN_IF_ERROR(TakeProfiles(*change.profiles, *next));
  }
  return next;
}

}  // namespace

Status PlannedConfigurations::Plan(const Inputs& inputs, PresetRequest names) {
  SharedInputs present(std::shared_ptr<const void>(), &inputs);
  for (std::size_t i = 0; i < inputs.changes.size(); ++i) {
    const ConfigurationChange& change = inputs.changes[i];
    Result<std::shared_ptr<Inputs>> next = InputsAfter(change, *present);
    if (!next.ok()) {
      return BadInput(change.where + ": " + next.error().message);
    }
    next.value()->until = i + 1 < inputs.changes.size() ? inputs.changes[i + 1].at : kEndOfTime;
    present = std::move(next).value();
    if (change.profiles) {
      with_profiles_.emplace_back(change.at, present);
    }
    change.ApplyTo(names);
    if (const Status status = Add(change, present, names); !status.ok()) {
      return BadInput(change.where + ": " + status.error().message);
    }
  }
  return {};
}

Status PlannedConfigurations::Add(const ConfigurationChange& change, const SharedInputs& inputs,
                                  const PresetRequest& names) {
  ASSIGN_OR_RETURN(Assembly assembled, Assemble(*inputs, names));
  const auto owned = std::make_shared<const Owned>(Owned{inputs, std::move(assembled)});
  const model::EndRule& end = owned->parts.preset.rules.end;
  if (end.source != model::EndRule::Source::kPredicted || end.release_at_instant) {
    return InvalidArgument(
        "the preset's jobs end as their first policy plans; expected sound mode, or changes of "
        "nodes alone");
  }
  const std::shared_ptr<engine::Configuration> next = owned->parts.Configure(inputs->cluster);
  next->owner = owned;
  next->number = facts_.size() + 1;
  next->note = "change " + std::to_string(next->number);
  if (!with_profiles_.empty()) {
    next->profiles = &*inputs->models.throughput;
  }
  facts_.push_back({.at = change.at, .fact = model::fact::Configured{.note = next->note}});
  all_[next->note] = next;
  return {};
}

PlannedConfigurations::SharedJobs PlannedConfigurations::WithTheirRows(SharedJobs jobs) const {
  if (with_profiles_.empty()) {
    return jobs;
  }
  auto with_rows = std::make_shared<std::vector<JobSpec>>(*jobs);
  for (std::size_t i = 0; i < with_rows->size(); ++i) {
    JobSpec& job = (*with_rows)[i];
    for (const auto& [since, inputs] : with_profiles_) {
      job.profile_row =
          since <= job.known_from() ? (*inputs->jobs)[i].profile_row : job.profile_row;
    }
  }
  return with_rows;
}

Result<engine::SharedConfiguration> PlannedConfigurations::Read(
    std::string_view note, const engine::Configuration& /*present*/) const {
  const auto known = all_.find(note);
  return known == all_.end()
             ? Result<engine::SharedConfiguration>(Failed("no such configuration is planned"))
             : known->second;
}

}  // namespace trainyard::scenario
