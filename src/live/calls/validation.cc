// SPDX-License-Identifier: Apache-2.0
#include "live/calls/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "model/conditions.h"
#include "model/node_classes.h"
#include "model/request/node_request.h"
#include "profile/execution_model.h"

namespace trainyard::live {

Status CheckProfiles(const JobSpec& job, const engine::Configuration& with) {
  if (job.gpus == 0) {
    return with.bundle.names_gpus() && with.rules.TakeCpuJobs()
               ? Status()
               : FailedPrecondition("policy '" + with.policy +
                                    "' takes no jobs without GPUs, as its placement counts GPUs or "
                                    "its rules are of a published program; expected another");
  }
  const bool may_resize = with.traits.may.resize;
  if (may_resize && profile::StatesStages(job)) {
    return FailedPrecondition(
        "policy '" + with.policy +
        "' chooses the number of GPUs by the model's profile, and stages say how fast the job is "
        "on one number only; expected it without stages");
  }
  // A job that states neither runs on the GPUs that it asks for.
  const bool elastic = job.iterations || (job.deadline && !job.best_effort);
  if (may_resize && job.profile_row < 0 && elastic) {
    return FailedPrecondition(
        "policy '" + with.policy + "' needs a job's iterations, and its model '" + job.model +
        "' with batch size " + std::to_string(job.batch_size) + " in the controller's profiles" +
        (job.iterations ? "" : "; a job without them has no deadline"));
  }
  if (model::PartOf<JobTraits>(job).request && !with.bundle.honours_requests()) {
    return FailedPrecondition(
        "policy '" + with.policy +
        "' gives GPUs without looking at CPUs, memory, nodes and licences; expected a job that "
        "asks for GPUs alone, or a policy such as srtf with placement consolidated");
  }
  if (job.profile_row < 0) {
    return {};
  }
  const profile::ThroughputRow& row =
      with.profiles->rows()[static_cast<std::size_t>(job.profile_row)];
  const GpuRange& range = model::PartOf<JobTraits>(job).range;
  if (may_resize ? !row.RunsWithin(range) : row.Rate(job.gpus) <= 0) {
    return FailedPrecondition(
        "model '" + job.model + "' has no throughput on " +
        (may_resize ? profile::RangeText(range) + " GPUs" : GpusText(job.gpus)) +
        " in the profiles");
  }
  return {};
}

Status CheckJobs(const LiveState& state, const engine::Configuration& next) {
  const auto check = [](JobSpec job, const engine::Configuration& with) {
    job.profile_row = -1;
    with.FindRow(job);
    return CheckProfiles(job, with);
  };
  for (std::size_t i = 0; i < state.jobs.size(); ++i) {
    const LiveJob& job = state.jobs[JobAt(i)];
    if (job.ending || !check(*job.spec, *state.configuration).ok()) {
      continue;
    }
    if (const Status status = check(*job.spec, next); !status.ok()) {
      return FailedPrecondition("job " + state.jobs.TextOf(JobAt(i)) + ": " +
                                status.error().message +
                                "; expected profiles and a policy with which it runs, or the job "
                                "cancelled before");
    }
  }
  return {};
}

// Error: no agent that is there can run the job's container.
Status Validation::CheckContainer(const v1::JobRequest& job) const {
  bool is_there = false;
  for (std::size_t i = 0; job.launch().has_container() && i < state_.nodes.size(); ++i) {
    const LiveNode& node = state_.nodes[NodeAt(i)];
    if (node.connection && state_.nodes.Accepts(job, NodeAt(i))) {
      is_there = true;
      if (!node.hello.isolates()) {
        return {};
      }
    }
  }
  if (!is_there) {
    return {};
  }
  return FailedPrecondition("it names the container image '" + job.launch().container().image() +
                            "', and all nodes that it may run on start jobs by "
                            "trainyard-launcher, which gives them no further rights "
                            "(no_new_privs), without which podman starts nothing; expected no "
                            "--container-image");
}

// Error: other jobs know the data set otherwise.
Status Validation::CheckDataSet(const JobTraits& traits) const {
  const std::optional<DataSet>& data = traits.data_set;
  const DataSet* const known = data ? state_.jobs.DataNamed(data->name) : nullptr;
  if (known == nullptr || *known == *data) {
    return {};
  }
  return FailedPrecondition("data set '" + data->name + "' has " + std::to_string(known->mib) +
                            " MiB in '" + known->home + "' for jobs that have not ended, and " +
                            std::to_string(data->mib) + " MiB in '" + data->home +
                            "' for this one; expected the same, or another name");
}

void Validation::FillIn(v1::JobRequest& job) const {
  const Partition* const partition = state_.cluster.PartitionOf(job.queue());
  if (partition == nullptr) {
    return;
  }
  FillInQueueAndTime(job);
  if (NodeRequest request = AsksOf(job); partition->FillIn(job.gpus(), request)) {
    job.set_cpus(request.cpus.milli > 0 ? model::TextOf(request.cpus) : "");
    job.set_memory(request.memory.mib > 0 ? model::TextOf(request.memory) : "");
  }
}

void Validation::FillInQueueAndTime(v1::JobRequest& job) const {
  const Partition* const partition = state_.cluster.PartitionOf(job.queue());
  if (partition == nullptr) {
    return;
  }
  job.set_queue(partition->name);
  if (!job.has_time_s() && partition->TimeIfNoneStated() > Duration{0}) {
    job.set_time_s(Seconds(partition->TimeIfNoneStated()));
  }
}

Status Validation::CheckPartition(JobSpec spec) const {
  const Status entered = model::EnterPartition(state_.cluster, spec);
  return entered.ok() ? entered : FailedPrecondition(entered.error().message);
}

Result<JobSpec> Validation::SpecOf(const v1::JobRequest& job) const {
  ASSIGN_OR_RETURN(model::JobDraft draft, DraftOf(job, state_.now, state_.cluster));
  return SpecOf(std::move(draft), job);
}

namespace {

// Whether jobs such as this one are placed as they ask, whatever else is wrong with it.
bool IsPlaced(const JobSpec& job, const engine::Configuration& with) {
  return job.gpus > 0 && (!model::PartOf<JobTraits>(job).request || with.bundle.honours_requests());
}

// What is wrong with a job, a line each, as far as one fault does not keep another from being seen.
class Faults {
 public:
  void Note(const Status& status) {
    if (status.ok()) {
      return;
    }
    for (const std::string_view line : base::Split(status.error().message, "\n")) {
      if (too_many_.empty() || !line.starts_with(too_many_)) {
        lines_ += (lines_.empty() ? "" : "\n") + std::string(line);
      }
    }
  }
  // More than the cluster has: nobody else needs to say so.
  void NoteTooMany(int gpus, int all) {
    const std::string asks = "it asks for " + GpusText(gpus);
    Note(FailedPrecondition(asks + "; the cluster has " + std::to_string(all)));
    too_many_ = asks;
  }
  [[nodiscard]] bool has_too_many() const { return !too_many_.empty(); }
  [[nodiscard]] Status status() const {
    return lines_.empty() ? Status() : FailedPrecondition(lines_);
  }

 private:
  std::string lines_;
  std::string too_many_;  // how lines begin that say it again
};

}  // namespace

Result<JobSpec> Validation::SpecOf(model::JobDraft draft, const v1::JobRequest& job) const {
  Faults faults;
  if (const int all = state_.cluster.total_gpus(); job.gpus() > all) {
    faults.NoteTooMany(job.gpus(), all);
  }
  faults.Note(CheckDataSet(draft.traits));
  faults.Note(CheckContainer(job));
  faults.Note(CheckDependency(job, state_.jobs.size()));
  JobSpec spec = std::move(draft).Take();
  faults.Note(CheckPartition(spec));
  state_.configuration->FindRow(spec);
  if (!spec.iterations && !spec.duration) {
    const std::optional<Duration> limit = model::PartOf<JobTraits>(spec).time_limit;
    spec.duration = limit.value_or(state_.options.default_duration);
  }
  const Status profiled = CheckProfiles(spec, *state_.configuration);
  if (!profiled.ok() && !faults.has_too_many()) {  // it may be for their number alone
    faults.Note(profiled);
  }
  const bool has_partition =
      state_.cluster.partitions.empty() || state_.cluster.PartitionOf(spec.queue) != nullptr;
  if (has_partition && (profiled.ok() || IsPlaced(spec, *state_.configuration))) {
    faults.Note(state_.configuration->Bind(spec));
  }
  RETURN_IF_ERROR(faults.status());
  if (!spec.duration && spec.profile_row < 0 && !profile::StatesStages(spec)) {
    spec.duration = state_.options.default_duration;
  }
  spec.launch = job.SerializeAsString();
  return spec;
}

Status Validation::CheckDependency(const v1::JobRequest& waiting, std::size_t before) const {
  const std::string& text = waiting.dependency();
  if (text.empty()) {
    return {};
  }
  // An owner may not learn of a job by waiting for it.
  const service::Principal owner = service::Principal::OwnerOf(waiting);
  const Result<model::Dependency> dependency = model::ParseDependency(text);
  if (!dependency.ok()) {
    return FailedPrecondition(dependency.error().message);
  }
  for (const model::Condition& condition : dependency.value().conditions) {
    for (const std::string& name : condition.jobs) {
      const std::optional<model::JobNumber> number = model::ParseJobNumber(name);
      if (!number) {
        return FailedPrecondition(fmt::format(
            "'{}' in dependency '{}' is no job; expected its number, or ARRAY_INDEX for a task of "
            "an array",
            name, text));
      }
      const std::optional<JobId> earlier = state_.numbers.Find(number->job, before);
      if (!earlier || !context_.statuses().MaySee(owner, *earlier)) {
        return FailedPrecondition(
            fmt::format("there is no earlier job {}, for which dependency '{}' waits", name, text));
      }
      const LiveJob& job = state_.jobs[*earlier];
      const bool is_array = job.array == earlier;
      const Result<model::ArrayTasks> tasks =
          model::ParseArray(model::PartOf<JobTraits>(*job.spec).array);
      if (number->task && !(is_array && tasks.ok() &&
                            std::binary_search(tasks.value().indices.begin(),
                                               tasks.value().indices.end(), *number->task))) {
        return FailedPrecondition(
            fmt::format("there is no task {}, for which dependency '{}' waits", name, text));
      }
    }
  }
  return {};
}

}  // namespace trainyard::live
