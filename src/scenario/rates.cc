// SPDX-License-Identifier: Apache-2.0
#include "scenario/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "loader/loader_execution.h"
#include "loader/measured_loader.h"
#include "loader/reallocation.h"
#include "model/job_fields.h"
#include "model/node_classes.h"
#include "profile/execution_model.h"
#include "profile/goodput/training_model.h"
#include "profile/paired_model.h"
#include "profile/requested_model.h"
#include "profile/sensitivity.h"

namespace trainyard::scenario {
namespace {

// Those that come before another configuration does.
template <typename Check>
Status CheckJobsBefore(const Inputs& inputs, const Check& check) {
  return CheckJobs(*inputs.trace, [&](const JobSpec& job) {
    return job.known_from() < inputs.until ? check(job) : WhatIsWrong();
  });
}

// Jobs without GPUs need a duration, and nothing of what others do.
template <typename Check>
Status CheckKnownJobs(const Inputs& inputs, const Check& check) {
  return CheckJobsBefore(inputs, [&](const JobSpec& job) -> WhatIsWrong {
    return job.gpus > 0 ? check(job)
           : job.duration
               ? std::nullopt
               : WhatIsWrong(fmt::format(
                     "job {} asks for no GPUs and has no duration; expected one", job.name));
  });
}

WhatIsWrong NoIterations(const JobSpec& job) {
  return job.iterations
             ? std::nullopt
             : WhatIsWrong(fmt::format("job {} has no iterations; expected some", job.name));
}

// `passed_over`: jobs that need not be in the profiles.
Status CheckIterations(const Inputs& inputs, bool elastic, bool (*passed_over)(const JobSpec&)) {
  const profile::ThroughputTable& table = *inputs.models.throughput;
  return CheckKnownJobs(inputs, [&](const JobSpec& job) -> WhatIsWrong {
    if (passed_over(job)) {
      return std::nullopt;
    }
    if (job.profile_row < 0) {
      return fmt::format(
          "model '{}'{} is not in the profiles; expected one that {} has", job.model,
          table.HasModel(job.model) ? fmt::format(" with batch size {}", job.batch_size) : "",
          inputs.paths.profiles);
    }
    const profile::ThroughputRow& row = table.rows()[static_cast<std::size_t>(job.profile_row)];
    if (!elastic && row.Rate(job.gpus) <= 0) {
      return fmt::format(
          "job {} asks for {} GPUs, but model '{}' has no throughput on that many; expected a GPU "
          "count of its profile",
          job.name, job.gpus, job.model);
    }
    if (elastic && job.traits && !row.RunsWithin(job.traits->range)) {
      return fmt::format(
          "job {} may have {} GPUs, but model '{}' has no throughput there; expected a range with "
          "a GPU count of its profile",
          job.name, profile::RangeText(job.traits->range), job.model);
    }
    return NoIterations(job);
  });
}

Status CheckSensitivity(const Inputs& inputs, const profile::SensitivityRules& rules) {
  RETURN_IF_ERROR(profile::CheckRatio(*inputs.models.sensitivity, inputs.cluster, rules));
  return CheckKnownJobs(inputs, [&](const JobSpec& job) -> WhatIsWrong {
    if (job.profile_row < 0) {
      return fmt::format("model '{}' is not in the profiles; expected one that {} has", job.model,
                         inputs.paths.profiles);
    }
    return *job.iterations < 1
               ? WhatIsWrong(fmt::format("job {} has no whole iteration; expected some", job.name))
               : std::nullopt;
  });
}

Status CheckDurations(const Inputs& inputs, bool (*passed_over)(const JobSpec&)) {
  return CheckKnownJobs(inputs, [&](const JobSpec& job) -> WhatIsWrong {
    if (passed_over(job) || job.duration) {
      return std::nullopt;
    }
    return fmt::format("job {} has no duration; expected one, or profiles (--profiles)", job.name);
  });
}

Status CheckStages(const Inputs& inputs) {
  return CheckKnownJobs(inputs, [](const JobSpec& job) -> WhatIsWrong {
    if (profile::StatesStages(job)) {
      return std::nullopt;
    }
    return fmt::format("job {} has no stage times; expected some, as in traces of format muri",
                       job.name);
  });
}

// Whether jobs that share GPUs do so at the pace of profiles, which may know no pairs of jobs.
bool SharesByProfile(const Inputs& inputs, const Assembly& parts) {
  return parts.traits().may.share && inputs.models.throughput &&
         parts.preset.work != WorkUnit::kDuration;
}

// What a policy wants against what the preset counts.
Status CheckWork(const Inputs& inputs, const Assembly& parts, bool iterations) {
  const May may = parts.traits().may;
  const WorkUnit work = parts.preset.work;
  if (may.resize && !iterations) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' sets GPU counts, but the preset counts durations");
  }
  if (may.share && (work == WorkUnit::kIterations || work == WorkUnit::kDuration) &&
      (!SharesByProfile(inputs, parts) || inputs.models.throughput->pairs().empty())) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' lets jobs share GPUs, but the preset counts no stage times, and the "
                           "profiles have no pairs of jobs; expected other profiles (--profiles)");
  }
  return {};
}

Status MakeSensitiveRates(const Inputs& inputs, Assembly& parts) {
  if (inputs.profiles_error) {
    return *inputs.profiles_error;
  }
  if (!inputs.models.sensitivity) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' needs sensitivity profiles; expected --profiles DIR with "
                           "model_profiles.csv");
  }
  if (parts.traits().may.resize) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' sets GPU counts; expected throughput profiles, which have some");
  }
  RETURN_IF_ERROR(trace::CheckFits(*inputs.trace, inputs.cluster));
  RETURN_IF_ERROR(CheckSensitivity(inputs, parts.preset.sensitivity));
  parts.rates = profile::MakeSensitivityModel(*inputs.models.sensitivity, inputs.cluster,
                                              parts.preset.sensitivity);
  return {};
}

// A run of loader workers: every job has iterations and a known model.
Status CheckLoaderJobs(const Inputs& inputs) {
  return CheckKnownJobs(inputs, [&](const JobSpec& job) -> WhatIsWrong {
    const Status known = inputs.models.loader->Check(job);
    return !job.iterations || known.ok() ? NoIterations(job) : known.error().message;
  });
}

Status MakeLoaderRates(const Inputs& inputs, Assembly& parts) {
  if (!inputs.models.loader) {
    return InvalidArgument(
        "the preset counts what loader workers deliver; expected --profiles FILE with a model "
        "catalogue (columns model, params and flops)");
  }
  RETURN_IF_ERROR(CheckLoaderJobs(inputs));
  const loader::WorkersFrom from =
      parts.divides_cores() ? loader::WorkersFrom::kGrant : loader::WorkersFrom::kRequest;
  parts.corrector = loader::RefinedBy(*inputs.models.loader, from);
  parts.rates = loader::MakeLoaderModel(*inputs.models.loader, from);
  return trace::CheckFits(*inputs.trace, inputs.cluster);
}

// Jobs that are measured trainings.
Status MakeTrainingRates(const Inputs& inputs, Assembly& parts) {
  if (inputs.profiles_error) {
    return *inputs.profiles_error;
  }
  if (!inputs.models.applications) {
    return InvalidArgument(
        "the preset counts the progress of trainings; expected --profiles DIR with measured ones "
        "(apps/NAME/placements.csv and others)");
  }
  if (parts.traits().may.share || parts.grouping.grouping || !parts.bundle().names_gpus() ||
      inputs.cluster.checkpoint_interval > Duration{0}) {
    return InvalidArgument(
        "trainings were measured on nodes of their own, and lose no work: expected a policy that "
        "does not let jobs share GPUs, a placement that names GPUs, and a cluster without "
        "checkpoint_interval");
  }
  const profile::Applications& applications = *inputs.models.applications;
  const model::GpuTypes types(inputs.cluster);
  RETURN_IF_ERROR(CheckJobsBefore(inputs, [&](const JobSpec& job) -> WhatIsWrong {
    if (job.gpus == 0 || job.profile_row < 0) {
      return fmt::format(
          "job {} is no training of an application '{}' with GPUs; expected one of {}", job.name,
          job.model, inputs.paths.profiles);
    }
    const profile::Application& application =
        applications.all()[static_cast<std::size_t>(job.profile_row)];
    for (const GpuType& type : types.types()) {
      if (!application.RunsOn(type.name) || (application.has_types() && type.name.empty())) {
        return fmt::format(
            "job {} is a training of '{}', which was not measured on GPUs of {}; expected a "
            "cluster of types that {} has",
            job.name, job.model, type.name.empty() ? "no stated type" : "type '" + type.name + "'",
            inputs.paths.profiles);
      }
    }
    return std::nullopt;
  }));
  parts.rates = profile::MakeTrainingModel(applications, parts.preset.trainings);
  return parts.traits().may.resize ? Status() : trace::CheckFits(*inputs.trace, inputs.cluster);
}

Status MakeStagedRates(const Inputs& inputs, Assembly& parts) {
  parts.rates = profile::MakeStageModel(parts.preset.stages);
  const Status fits = trace::CheckFits(*inputs.trace, inputs.cluster);
  return fits.ok() ? CheckStages(inputs) : fits;
}

Status CheckProfiles(const Inputs& inputs, const Assembly& parts, bool iterations) {
  if (!iterations && !parts.traits().may.resize) {
    return {};
  }
  if (inputs.profiles_error) {
    return *inputs.profiles_error;
  }
  if (!inputs.models.throughput) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' needs throughput profiles; expected --profiles DIR");
  }
  return {};
}

// Iterations by throughput profiles, or durations; stages for jobs that state some.
Status MakePlainRates(const Inputs& inputs, Assembly& parts) {
  const bool elastic = parts.traits().may.resize;
  const WorkUnit work = parts.preset.work;
  const bool iterations =
      work == WorkUnit::kIterations ||
      (work == WorkUnit::kAuto && !inputs.paths.profiles.empty() && !inputs.models.stages);
  RETURN_IF_ERROR(CheckProfiles(inputs, parts, iterations));
  RETURN_IF_ERROR(CheckWork(inputs, parts, iterations));
  RETURN_IF_ERROR(elastic ? Status() : trace::CheckFits(*inputs.trace, inputs.cluster));
  const bool mixed = work == WorkUnit::kAuto && !elastic &&
                     std::any_of(inputs.jobs->begin(), inputs.jobs->end(), profile::StatesStages);
  const auto passed_over = mixed ? profile::StatesStages : [](const JobSpec&) { return false; };
  RETURN_IF_ERROR(iterations ? CheckIterations(inputs, elastic, passed_over)
                             : CheckDurations(inputs, passed_over));
  if (mixed) {
    parts.rates = profile::MakeMixedModel(iterations ? &*inputs.models.throughput : nullptr,
                                          parts.preset.stages);
    return {};
  }
  parts.rates = iterations ? profile::MakeProfileModel(*inputs.models.throughput)
                           : profile::MakeDurationModel(parts.preset.rate_factor);
  return {};
}

Status MakeModel(const Inputs& inputs, Assembly& parts) {
  const PolicyTraits traits = parts.traits();
  const WorkUnit work = parts.preset.work;
  if (work == WorkUnit::kTrainings || (work == WorkUnit::kAuto && inputs.models.applications)) {
    return MakeTrainingRates(inputs, parts);
  }
  const bool sensitive =
      work == WorkUnit::kSensitivity || (work == WorkUnit::kAuto && inputs.models.sensitivity);
  const bool loaded = work == WorkUnit::kLoader || traits.needs.named_devices ||
                      (work == WorkUnit::kAuto && inputs.models.loader && !traits.may.resize);
  if (parts.grouping.grouping && (sensitive || loaded)) {
    return NeedsStages(parts);
  }
  if (sensitive) {
    return MakeSensitiveRates(inputs, parts);
  }
  if (work == WorkUnit::kStages) {
    return MakeStagedRates(inputs, parts);
  }
  if (loaded) {
    return MakeLoaderRates(inputs, parts);
  }
  return MakePlainRates(inputs, parts);
}

// Where it matters on which nodes jobs are. They are in their partitions already; those that have
// come under other partitions, or that will see others, may find no nodes in these, and wait.
Status CheckAllHaveNodes(const Inputs& inputs, const Assembly& parts) {
  const model::NodeClasses classes(inputs.cluster);
  const bool counts_alike = parts.traits().needs.gpu_types == TypeSupport::kAlike;
  const bool others_come = inputs.last_partitions >= inputs.until;
  return CheckJobsBefore(inputs, [&](const JobSpec& job) -> WhatIsWrong {
    const JobTraits& traits = model::PartOf<JobTraits>(job);
    const bool asks = traits.request.has_value() || job.gpus == 0;
    if ((!classes.several() && traits.gpu_types.empty() && !asks) ||
        (!counts_alike && (others_come || job.known_from() < inputs.partitions_since))) {
      return std::nullopt;
    }
    const Status fits = CheckHasNodes(parts, inputs.cluster, classes, job);
    return fits.ok() ? std::nullopt
                     : WhatIsWrong(fmt::format("job {}: {}", job.name, fits.error().message));
  });
}

}  // namespace

Result<Assembly> Assemble(const Inputs& inputs, const PresetRequest& names) {
  ASSIGN_OR_RETURN(Assembly parts,
                   AssembleComponents(names, inputs.cluster, inputs.paths.profiles,
                                      inputs.models.loader ? &*inputs.models.loader : nullptr));
  RETURN_IF_ERROR(MakeModel(inputs, parts));
  parts.rates = profile::OnTypesOf(inputs.cluster, std::move(parts.rates));
  if (parts.traits().may.resize &&
      std::any_of(inputs.jobs->begin(), inputs.jobs->end(),
                  [](const JobSpec& job) { return job.traits && job.traits->request; })) {
    parts.rates = profile::WithRequests(inputs.cluster, std::move(parts.rates));
  }
  if (SharesByProfile(inputs, parts)) {
    parts.rates =
        profile::WithPairs(*inputs.models.throughput, inputs.cluster, std::move(parts.rates));
  }
  if (std::any_of(inputs.jobs->begin(), inputs.jobs->end(),
                  [](const JobSpec& job) { return job.gpus == 0; })) {
    parts.rates = profile::WithCpuJobs(std::move(parts.rates));
  }
  RETURN_IF_ERROR(CheckAllHaveNodes(inputs, parts));
  return parts;
}

}  // namespace trainyard::scenario
