// SPDX-License-Identifier: Apache-2.0
#include "scenario/inputs.h"

#include <fmt/format.h>
#include <filesystem>

#include <algorithm>

#include "base/try.h"
#include "io/file.h"
#include "loader/loader_execution.h"
#include "model/node_classes.h"
#include "profile/measured_file.h"
#include "trace/clusters/cluster_file.h"
#include "trace/terms.h"

namespace trainyard::scenario {
namespace {

// Formats that state no work for any job can be read and not be run, unless the jobs are measured
// trainings.
Status CheckWorkStated(const trace::Trace& trace, const std::string& profiles) {
  if (profile::Applications::AreAt(profiles)) {
    return {};
  }
  return CheckJobs(trace, [&](const JobSpec& job) -> WhatIsWrong {
    if (job.duration || job.iterations) {
      return std::nullopt;
    }
    return fmt::format(
        "job {} states no work, as no job of format {} does; expected a trace with durations or "
        "iterations, or the folder of measured trainings of its applications (--profiles){}",
        job.name, trace.format,
        profiles.empty()                     ? ""
        : !std::filesystem::exists(profiles) ? ", and there is no " + profiles
                                             : ", which " + profiles + " is not");
  });
}

// Each job into the partitions that there are when it comes.
Status EnterPartitions(const Cluster& cluster, std::span<const ConfigurationChange> changes,
                       trace::Trace& trace) {
  std::vector<const ConfigurationChange*> others;
  std::vector<Cluster> after;
  for (const ConfigurationChange& change : changes) {
    if (change.partitions) {
      others.push_back(&change);
      after.push_back({.nodes = {}, .partitions = *change.partitions, .changes = {}});
    }
  }
  std::size_t i = 0;
  return CheckJobs(trace, [&](const JobSpec& /*job*/) -> WhatIsWrong {
    JobSpec& job = trace.jobs[i++];
    const auto later = std::find_if(others.begin(), others.end(), [&](const auto* change) {
      return change->at > job.known_from();
    });
    const auto count = static_cast<std::size_t>(later - others.begin());
    const Status entered = model::EnterPartition(count == 0 ? cluster : after[count - 1], job);
    if (entered.ok()) {
      return std::nullopt;
    }
    const std::string where = count == 0 ? "" : " (partitions of " + others[count - 1]->where + ")";
    return fmt::format("job {}: {}{}", job.name, entered.error().message, where);
  });
}

}  // namespace

Status CheckJobs(const trace::Trace& trace,
                 const std::function<WhatIsWrong(const JobSpec& job)>& check) {
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    if (const WhatIsWrong wrong = check(trace.jobs[i])) {
      return BadInput(fmt::format("{}:{}: {}", trace.path, trace.lines[i], *wrong));
    }
  }
  return {};
}

Result<Inputs> ReadInputs(const InputPaths& paths) {
  ASSIGN_OR_RETURN(Cluster cluster, trace::ReadCluster(paths.cluster));
  std::vector<ConfigurationChange> changes;
  std::string changes_sha256;
  if (!paths.changes.empty()) {
    ASSIGN_OR_RETURN(const std::string text, io::ReadFile(paths.changes));
    ASSIGN_OR_RETURN(changes, ParseChanges(paths.changes, text, cluster));
    changes_sha256 = io::Sha256Hex(text);
  }
  ASSIGN_OR_RETURN(trace::Trace trace,
                   trace::ReadTrace(paths.trace, {.format = paths.format,
                                                  .skip_bad_rows = paths.skip_bad_rows,
                                                  .unit = paths.time_unit,
                                                  .procs_per_gpu = paths.procs_per_gpu,
                                                  .cpu_jobs = paths.cpu_jobs,
                                                  .node_requests = paths.node_requests,
                                                  .columns = paths.columns}));
  RETURN_IF_ERROR(CheckWorkStated(trace, paths.profiles));
  for (std::size_t i = 0; paths.at_once && i < trace.jobs.size(); ++i) {
    trace.jobs[i].submit = TimePoint{};
  }
  RETURN_IF_ERROR(EnterPartitions(cluster, changes, trace));
  RETURN_IF_ERROR(trace::ResolveTerms(trace));
  Inputs inputs{.paths = paths,
                .trace = std::make_shared<trace::Trace>(std::move(trace)),
                .jobs = nullptr,
                .cluster = std::move(cluster),
                .changes = std::move(changes),
                .changes_sha256 = std::move(changes_sha256),
                .models = {},
                .profiles_error = std::nullopt};
  inputs.jobs = std::shared_ptr<const std::vector<JobSpec>>(inputs.trace, &inputs.trace->jobs);
  if (!inputs.changes.empty()) {
    inputs.until = inputs.changes.front().at;
  }
  for (const ConfigurationChange& change : inputs.changes) {
    inputs.last_partitions = change.partitions ? change.at : inputs.last_partitions;
  }
  RETURN_IF_ERROR(trace::BindDevices(*inputs.trace, inputs.cluster));
  if (!paths.measured.empty()) {
    ASSIGN_OR_RETURN(inputs.measured, profile::ReadMeasured(paths.measured));
  }
  Result<KnownModels> models = KnownModels::Read(paths.profiles, inputs.cluster);
  if (!models.ok() && loader::LoaderProfiles::AreAt(paths.profiles)) {
    return models.error();
  }
  if (!models.ok()) {
    inputs.profiles_error = models.error();
    return inputs;
  }
  inputs.models = std::move(models).value();
  inputs.models.Bind(inputs.cluster, inputs.measured.has_value(), inputs.trace->jobs);
  return inputs;
}

}  // namespace trainyard::scenario
