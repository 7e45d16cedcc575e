// SPDX-License-Identifier: Apache-2.0
#include "scenario/known_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "base/try.h"
#include "io/file.h"
#include "loader/loader_execution.h"
#include "loader/measured_loader.h"
#include "model/node_classes.h"
#include "model/request/could_have.h"
#include "model/request/request_fit.h"
#include "profile/execution_model.h"
#include "profile/paired_model.h"
#include "profile/requested_model.h"
#include "profile/sensitivity.h"

namespace trainyard::scenario {
namespace {

// Jobs that are bound to a row by one model, the others by another.
class BoundOrOther final : public profile::ModelByJob {
 public:
  BoundOrOther(std::unique_ptr<ExecutionModel> bound, std::unique_ptr<ExecutionModel> others)
      : bound_(std::move(bound)), others_(std::move(others)) {}

 private:
  [[nodiscard]] const ExecutionModel& Of(const JobSpec& job) const override {
    return job.profile_row >= 0 ? *bound_ : *others_;
  }

  std::unique_ptr<ExecutionModel> bound_;
  std::unique_ptr<ExecutionModel> others_;
};

std::string TableText(const profile::ThroughputTable& table) {
  std::string text;
  for (const profile::ThroughputRow& row : table.rows()) {
    text += row.model + "," + std::to_string(row.batch_size);
    for (std::size_t i = 0; i < row.levels.size(); ++i) {
      text += "," + std::to_string(row.levels[i]) + ":" + std::to_string(row.rates[i]);
    }
    for (const profile::TypedRates& typed : row.by_type) {
      text += fmt::format(",{}={}", typed.gpu_type, fmt::join(typed.rates, ":"));
    }
    text += "\n";
  }
  for (const auto& [pair, rate] : table.pairs()) {
    text += fmt::format("{},{},{},{}={}:{}\n", pair.first, pair.second, pair.gpus, pair.gpu_type,
                        rate.first, rate.second);
  }
  return text;
}

std::string TableText(const profile::SensitivityTable& table) {
  std::string text;
  for (const profile::SensitivityProfile& row : table.profiles()) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", row.ratio, row.model, row.gpus,
                        row.best_cpus, row.best_memory_gb, row.best_storage_mbps, row.speedup,
                        row.iteration_seconds, fmt::join(row.grid.cpus, ";"),
                        fmt::join(row.grid.memory_gb, ";"), fmt::join(row.grid.values, ";"));
  }
  return text;
}

std::string TableText(const loader::LoaderProfiles& loader) {
  std::string text = loader.model().Write();
  for (const loader::ModelSize& size : loader.catalog().models()) {
    text += fmt::format("{},{},{},{},{},{},{}\n", size.name, size.params, size.dense_flops,
                        size.point_flops, size.depth_flops, size.linear_flops, size.flops);
  }
  return text;
}

std::string TableText(const profile::StageTable& table) {
  std::string text;
  for (const profile::StageRow& row : table.rows()) {
    text += fmt::format("{},{},{},{},{}\n", row.model, row.batch_size, row.gpus,
                        row.times.iteration, fmt::join(row.times.stages, ";"));
  }
  return text;
}

Status CheckLoaderJob(const loader::LoaderProfiles& loader, const JobSpec& job) {
  if (!job.iterations) {
    return InvalidArgument("it states no iterations; expected some");
  }
  return loader.Check(job);
}

// Where it names any.
Status CheckDevices(const JobSpec& job) {
  int devices = 0;
  for (const Slice& slice : loader::DevicesOf(job)) {
    devices += std::popcount(slice.gpus);
  }
  if (devices > 0 && devices != job.gpus) {
    return InvalidArgument(
        fmt::format("it names {} GPUs and asks for {}; expected --devices with "
                    "as many as it asks for",
                    devices, job.gpus));
  }
  return {};
}

// " of partition 'gpu'"; empty: its queue is no partition of some nodes.
std::string InItsPartition(const model::NodeClasses& classes, const JobSpec& job) {
  return classes.OpenTo(job.queue) == classes.all() ? "" : " of partition '" + job.queue + "'";
}

// Those that the job accepts and on which so many GPUs make it run.
model::NodeClassSet ClassesFor(const Assembly& parts, const model::NodeClasses& classes,
                               const JobSpec& job, int gpus) {
  model::NodeClassSet set = 0;
  model::ForEachOf(classes.Accepted(job), [&](std::size_t one) {
    const bool runs = parts.rates->RateOn(job, gpus, classes.TypeOf(one)) > 0;
    set |= model::NodeClassSet{runs} << one;
  });
  return set;
}

Status CheckRunsOnSome(const Assembly& parts, const model::NodeClasses& classes,
                       const JobSpec& job) {
  const model::NodeClassSet set = ClassesFor(parts, classes, job, job.gpus);
  if (set == 0) {
    return InvalidArgument(
        fmt::format("its model has no throughput on {} GPUs of {}; expected a "
                    "profile for one of the types that it accepts",
                    job.gpus, classes.NamesOf(classes.Accepted(job))));
  }
  if (classes.GpusOf(set) < job.gpus) {
    const std::string where = classes.types().several() ? classes.NamesOf(set) : "GPUs";
    return InvalidArgument(
        fmt::format("it asks for {} GPUs and runs on {}{}; expected at most the {} that there are",
                    job.gpus, where, InItsPartition(classes, job), classes.GpusOf(set)));
  }
  return {};
}

Status CheckRunsOnAll(const Assembly& parts, const model::NodeClasses& classes,
                      const JobSpec& job) {
  std::vector<int> counts{job.gpus};
  if (const std::span<const int> levels = parts.rates->Levels(job); !levels.empty()) {
    counts.clear();
    std::copy_if(levels.begin(), levels.end(), std::back_inserter(counts), [&job](int level) {
      return job.traits == nullptr || job.traits->range.Holds(level);
    });
  }
  for (const int gpus : counts) {
    const model::NodeClassSet lacking = classes.all() & ~ClassesFor(parts, classes, job, gpus);
    if (lacking != 0) {
      return InvalidArgument(fmt::format(
          "it does not run on {} GPUs of {}, but policy '{}' counts GPUs of all types alike; "
          "expected a job that runs on all, or another policy (srtf)",
          gpus, classes.NamesOf(lacking), parts.preset.policy.name));
    }
  }
  return {};
}

// To its profile, with iterations from the duration.
void BindThroughput(const profile::ThroughputTable& table, JobSpec& job) {
  job.profile_row = table.Find(job.model, job.batch_size);
  if (job.profile_row >= 0 && !job.iterations && job.duration) {
    const double rate = table.rows()[static_cast<std::size_t>(job.profile_row)].Rate(job.gpus);
    if (rate > 0) {
      job.iterations = Seconds(*job.duration) * rate;
    }
  }
}

// To the profile for the cluster's ratio of CPUs to GPUs, if there is one, with iterations from the
// duration or the other way round.
void BindSensitivity(const profile::SensitivityTable& table, const Cluster& cluster, JobSpec& job) {
  const profile::SensitivityProfile* profile =
      table.Find(job.model, profile::ProfiledRatio(table, cluster));
  if (profile == nullptr) {
    return;
  }
  job.profile_row = static_cast<std::int32_t>(profile - table.profiles().data());
  if (!job.iterations) {
    job.iterations = std::trunc(Seconds(*job.duration) / profile->iteration_seconds);
  } else if (!job.duration) {
    job.duration = FromSeconds(*job.iterations * profile->iteration_seconds);
  }
}

}  // namespace

Result<KnownModels> KnownModels::Read(const std::string& path, const Cluster& cluster) {
  KnownModels models;
  const auto take = [](auto read, auto& into) {
    if (!read.ok()) {
      return Status(read.error());
    }
    into = std::move(read).value();
    return Status();
  };
  Status status;
  if (profile::Applications::AreAt(path)) {
    status = take(profile::Applications::Read(path), models.applications);
  } else if (loader::LoaderProfiles::AreAt(path)) {
    status = take(loader::LoaderProfiles::Read(path), models.loader);
  } else if (profile::SensitivityTable::IsAt(path)) {
    status = take(profile::SensitivityTable::Read(path), models.sensitivity);
  } else if (profile::StageTable::IsAt(path) && !profile::ThroughputTable::IsAt(path)) {
    status = take(profile::StageTable::Read(path), models.stages);
  } else if (!path.empty()) {
    const model::GpuTypes types(cluster);
    std::vector<std::string> gpu_types;
    for (const GpuType& type : types.types()) {
      gpu_types.push_back(type.name);
    }
    status = take(profile::ThroughputTable::Read(path, gpu_types), models.throughput);
  }
  return status.ok() ? Result<KnownModels>(std::move(models)) : status.error();
}

void KnownModels::Bind(const Cluster& cluster, bool has_measured,
                       std::vector<JobSpec>& jobs) const {
  for (JobSpec& job : jobs) {
    if (job.gpus == 0) {
      continue;  // goes by its duration
    }
    if (applications) {
      job.profile_row = applications->Find(job.model);
    }
    if (sensitivity) {
      BindSensitivity(*sensitivity, cluster, job);
    }
    if (stages) {
      profile::BindStages(*stages, job);
    }
    if (loader && has_measured) {  // as on a live cluster: what is measured counts
      job.profile_row = loader->Check(job).ok() ? 0 : -1;
    }
    if (throughput) {
      BindThroughput(*throughput, job);
    }
  }
}

std::string KnownModels::Digest() const {
  constexpr std::size_t kEnough = 16;
  const std::string text = throughput    ? TableText(*throughput)
                           : sensitivity ? TableText(*sensitivity)
                           : loader      ? TableText(*loader)
                           : stages      ? TableText(*stages)
                                         : std::string();
  return text.empty() ? "none" : io::Sha256Hex(text).substr(0, kEnough);
}

Status NeedsStages(const Assembly& parts) {
  return InvalidArgument("grouping '" + parts.preset.grouping->name +
                         "' needs the stage times of jobs, which these profiles do not go with; "
                         "expected throughput profiles, or none");
}

namespace {

// Whether it asks for CPUs and memory alone, and no node states any.
bool HasNothingToHonour(const Cluster& cluster, NodeRequest request) {
  request.cpus = {};
  request.memory = {};
  return request == NodeRequest{} &&
         std::all_of(cluster.nodes.begin(), cluster.nodes.end(), [](const NodeSpec& node) {
           return node.capacity.milli_cpus == 0 && node.capacity.memory_mib == 0;
         });
}

// Error: where GPUs are counted, nothing is left of a node, and rules of a published program know
// of no such jobs.
Status CheckTakesCpuJobs(const Assembly& parts) {
  if (!parts.bundle().names_gpus()) {
    return InvalidArgument(fmt::format(
        "it asks for no GPUs, and placement '{}' counts GPUs without saying on which nodes they "
        "are; expected another, such as consolidated",
        parts.preset.placement.name));
  }
  return parts.preset.rules.TakeCpuJobs()
             ? Status()
             : InvalidArgument(
                   "it asks for no GPUs, and the preset has rules of a published program, which "
                   "knew no such jobs; expected --preset NAME of another, or the job left out");
}

// Errors: the parts cannot place it as it asks, or the cluster could never meet it.
Status CheckRequest(const Assembly& parts, const Cluster& cluster,
                    const model::NodeClasses& classes, const JobSpec& job) {
  if (job.gpus == 0) {
    RETURN_IF_ERROR(CheckTakesCpuJobs(parts));
  } else if (!job.traits || !job.traits->request) {
    return {};
  } else if (!parts.bundle().honours_requests() &&
             !HasNothingToHonour(cluster, *job.traits->request)) {
    return InvalidArgument(fmt::format(
        "it asks for more than GPUs (CPUs, memory, nodes or licences), and policy '{}' with "
        "placement '{}'{} gives GPUs without looking at that; expected a job that asks for GPUs "
        "alone, or another policy, such as srtf with placement consolidated",
        parts.preset.policy.name, parts.preset.placement.name,
        parts.preset.tuning ? " and tuning '" + parts.preset.tuning->name + "'" : ""));
  }
  return model::CanBeMet(cluster, job, model::NodesOf(cluster, classes, classes.Accepted(job)));
}

}  // namespace

Status CheckHasNodes(const Assembly& parts, const Cluster& cluster,
                     const model::NodeClasses& classes, const JobSpec& job) {
  if (classes.OpenTo(job.queue) == 0) {
    return InvalidArgument(
        fmt::format("partition '{}' has no nodes; expected another queue", job.queue));
  }
  if (classes.Accepted(job) == 0) {
    const std::string wrong =
        fmt::format("it accepts GPUs of type {}; expected one of cluster '{}'{}: {}",
                    model::TypesText(job.traits->gpu_types), cluster.name,
                    InItsPartition(classes, job), classes.NamesOf(classes.OpenTo(job.queue)));
    auto of_any_type = std::make_shared<JobTraits>(*job.traits);  // the rest is judged by itself
    of_any_type->gpu_types.clear();
    JobSpec rest = job;
    rest.traits = std::move(of_any_type);
    const Status met = CheckRequest(parts, cluster, classes, rest);
    return InvalidArgument(met.ok() ? wrong : wrong + "\n" + met.error().message);
  }
  RETURN_IF_ERROR(CheckRequest(parts, cluster, classes, job));
  if (!classes.several() || job.gpus == 0) {
    return {};
  }
  return parts.traits().needs.gpu_types == TypeSupport::kAlike
             ? CheckRunsOnAll(parts, classes, job)
             : CheckRunsOnSome(parts, classes, job);
}

Status BindLiveJob(const KnownModels& models, const Assembly& parts, const Cluster& cluster,
                   const model::NodeClasses& classes, JobSpec& job) {
  if (job.gpus == 0) {
    return CheckHasNodes(parts, cluster, classes, job);
  }
  if (models.sensitivity) {
    BindSensitivity(*models.sensitivity, cluster, job);
    if (job.profile_row >= 0 && *job.iterations < 1) {
      return InvalidArgument("it has no whole iteration; expected some");
    }
  }
  if (models.stages) {
    profile::BindStages(*models.stages, job);
  }
  if (models.loader) {
    Status known = CheckLoaderJob(*models.loader, job);
    if (!known.ok() && parts.divides_cores()) {
      return known;
    }
    if (known.ok()) {
      job.profile_row = 0;  // of a catalogue that finds models by their names
    }
  }
  const Status devices = CheckDevices(job);
  return devices.ok() ? CheckHasNodes(parts, cluster, classes, job) : devices;
}

Status CheckNamesGpus(const Assembly& parts) {
  if (!parts.bundle().names_gpus()) {
    return InvalidArgument("placement '" + parts.preset.placement.name +
                           "' names no GPUs, so that no job could be started; expected another");
  }
  for (const Assembly& candidate : parts.candidates) {
    RETURN_IF_ERROR(CheckNamesGpus(candidate));
  }
  return {};
}

Status MakeLiveRates(const KnownModels& models, const Cluster& cluster, Assembly& parts) {
  RETURN_IF_ERROR(CheckNamesGpus(parts));
  if (models.applications) {
    return InvalidArgument(
        "the profiles are measured trainings (apps), of which simulations are made; live jobs "
        "measure themselves: expected other profiles, or none");
  }
  if (parts.traits().may.resize && !models.throughput) {
    return InvalidArgument("policy '" + parts.preset.policy.name +
                           "' needs throughput profiles; expected --profiles");
  }
  if (parts.grouping.grouping && (models.sensitivity || models.loader)) {
    return NeedsStages(parts);
  }
  if (models.sensitivity) {
    const profile::SensitivityRules& rules = parts.preset.sensitivity;
    RETURN_IF_ERROR(profile::CheckRatio(*models.sensitivity, cluster, rules));
    parts.rates = std::make_unique<BoundOrOther>(
        profile::MakeSensitivityModel(*models.sensitivity, cluster, rules),
        profile::MakeMixedModel(nullptr, parts.preset.stages));
  } else if (models.loader) {
    const loader::WorkersFrom from =
        parts.divides_cores() ? loader::WorkersFrom::kGrant : loader::WorkersFrom::kRequest;
    parts.corrector = loader::RefinedBy(*models.loader, from);
    parts.rates =
        std::make_unique<BoundOrOther>(loader::MakeLoaderModel(*models.loader, from),
                                       profile::MakeMixedModel(nullptr, parts.preset.stages));
  } else {
    parts.rates = profile::MakeMixedModel(models.throughput ? &*models.throughput : nullptr,
                                          parts.preset.stages);
  }
  parts.rates = profile::OnTypesOf(cluster, std::move(parts.rates));
  if (parts.traits().may.resize) {
    parts.rates = profile::WithRequests(cluster, std::move(parts.rates));
  }
  if (parts.traits().may.share && models.throughput) {
    parts.rates = profile::WithPairs(*models.throughput, cluster, std::move(parts.rates));
  }
  parts.rates = profile::WithCpuJobs(std::move(parts.rates));
  return {};
}

std::shared_ptr<engine::Configuration> LiveConfiguration(const KnownModels& models,
                                                         const Assembly& parts,
                                                         const Cluster& cluster) {
  std::shared_ptr<engine::Configuration> configuration = parts.Configure(cluster);
  TakeLiveJobs(models, parts, *configuration);
  return configuration;
}

void TakeLiveJobs(const KnownModels& models, const Assembly& parts,
                  engine::Configuration& configuration) {
  configuration.profiles = models.throughput ? &*models.throughput : nullptr;
  configuration.bind = [&models, &parts,
                        cluster = std::make_shared<const Cluster>(configuration.cluster),
                        classes = model::NodeClasses(configuration.cluster)](JobSpec& job) {
    return BindLiveJob(models, parts, *cluster, classes, job);
  };
}

}  // namespace trainyard::scenario
