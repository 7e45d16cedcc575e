// SPDX-License-Identifier: Apache-2.0
#include "scenario/assembly.h"

#include <filesystem>

#include "admission/catalog.h"
#include "io/csv_reader.h"
#include "placement/catalog.h"

namespace trainyard {
namespace {

// Prior samples lie beside the profiles or where the path says: one number per line after a header.
Result<std::vector<double>> ReadSamples(const std::string& profiles, const std::string& name) {
  const std::filesystem::path beside = std::filesystem::path(profiles) / name;
  const bool there = !profiles.empty() && std::filesystem::exists(beside);
  const Result<CsvTable> table = CsvTable::Open(there ? beside.string() : name);
  if (!table.ok()) {
    return table.error();
  }
  std::vector<double> samples;
  const Status status = table.value().ForEach([&samples](const CsvRow& row) -> Status {
    const Result<double> sample = row.Number(0, 1);
    if (!sample.ok()) {
      return sample.error();
    }
    samples.push_back(sample.value());
    return {};
  });
  if (!status.ok()) {
    return status.error();
  }
  if (samples.empty()) {
    return BadInput(table.value().path() + ": no samples; expected one per line after the header");
  }
  return samples;
}

Status MakeComponents(const std::string& profiles, Assembly& parts) {
  const PolicyContext context{
      .read_samples = [&profiles](const std::string& name) { return ReadSamples(profiles, name); }};
  Result<PolicyComponent> policy = MakePolicy(parts.preset.policy, context);
  if (!policy.ok()) {
    return policy.error();
  }
  Result<std::unique_ptr<Placement>> placement = MakePlacement(parts.preset.placement);
  if (!placement.ok()) {
    return placement.error();
  }
  Result<std::unique_ptr<Admission>> admission = MakeAdmission(parts.preset.admission);
  if (!admission.ok()) {
    return admission.error();
  }
  parts.policy = std::move(policy).value();
  parts.placement = std::move(placement).value();
  parts.admission = std::move(admission).value();
  return {};
}

// What the components expect of one another.
Status CheckTogether(const Assembly& parts, const Cluster& cluster) {
  const Needs needs = parts.bundle().needs();
  if (parts.admission->by_policy() && !needs.judges) {
    return InvalidArgument("admission '" + std::string(parts.admission->name()) +
                           "' leaves the verdict to the policy, but policy '" +
                           parts.preset.policy.name +
                           "' does not judge arrivals; expected one that does (elasticflow), or "
                           "another admission");
  }
  if (parts.placement->by_policy() != needs.own_slices) {
    return InvalidArgument(
        parts.placement->by_policy()
            ? "placement '" + std::string(parts.placement->name()) +
                  "' leaves the choice of GPUs to the policy, but policy '" +
                  parts.preset.policy.name +
                  "' does not name any; expected policy 'gandiva', or "
                  "another placement"
            : "policy '" + parts.preset.policy.name +
                  "' names the GPUs itself; expected placement 'gandiva' instead of '" +
                  std::string(parts.placement->name()) + "'");
  }
  if (!parts.placement->names_gpus() && !cluster.changes.empty()) {
    return InvalidArgument(
        "placement 'count' names no GPUs, so it cannot be used with node "
        "failures; expected another placement or a cluster without failures");
  }
  return {};
}

}  // namespace

Bundle Assembly::bundle() const {
  return {.ordering = policy.ordering.get(),
          .policy = policy.policy.get(),
          .placement = placement.get(),
          .admission = admission.get(),
          .walk = preset.walk};
}

Result<Assembly> AssembleComponents(const PresetRequest& names, const Cluster& cluster,
                                    const std::string& profiles) {
  Result<ResolvedPreset> preset = ResolvePreset(names);
  if (!preset.ok()) {
    return preset.error();
  }
  Assembly parts{.preset = std::move(preset).value()};
  if (Status status = MakeComponents(profiles, parts); !status.ok()) {
    return status.error();
  }
  if (Status status = CheckTogether(parts, cluster); !status.ok()) {
    return status.error();
  }
  return parts;
}

}  // namespace trainyard
