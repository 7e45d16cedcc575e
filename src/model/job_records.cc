// SPDX-License-Identifier: Apache-2.0
#include "model/job_records.h"

#include <algorithm>
#include <utility>

#include "model/conditions.h"

namespace trainyard::model {

std::span<const JobId> JobRecords::live() const {
  if (live_stale_) {
    std::erase_if(live_, [this](JobId job) { return !records_[Index(job)].phase.live(); });
    live_stale_ = false;
  }
  return live_;
}

JobRecord& JobRecords::Submit(JobId id, std::shared_ptr<const JobSpec> spec, bool deferred) {
  if (records_.size() <= Index(id)) {
    records_.resize(Index(id) + 1);
    running_place_.resize(records_.size(), 0);
  }
  JobRecord& job = (*this)[id];
  job.spec = std::move(spec);
  has_had_cpu_jobs_ = has_had_cpu_jobs_ || IsCpuJob(*job.spec);
  job.arrival = arrivals_++;
  job.phase.To(JobPhase::kArrived);
  if (deferred) {
    deferred_.insert(id);
  } else if (!IsCpuJob(id)) {
    unjudged_.push_back(id);
    ++waiting_;
  }
  return job;
}

void JobRecords::Present(JobId id) {
  deferred_.erase(id);
  (*this)[id].arrival = arrivals_++;
  if (IsCpuJob(id)) {
    return;
  }
  unjudged_.push_back(id);
  ++waiting_;
}

void JobRecords::Defer(JobId id) {
  Touch(id);
  std::erase(unjudged_, id);
  deferred_.insert(id);
  --waiting_;
}

void JobRecords::Admit(JobId id, TimePoint now) {
  JobRecord& job = (*this)[id];
  job.phase.To(JobPhase::kWaiting);
  job.idle_since = now;
  if (IsCpuJob(id)) {
    cpu_jobs_.insert(id);
    ++cpu_live_;
    return;
  }
  gpus_asked_ += job.spec->gpus;
  live_.push_back(id);
}

void JobRecords::RemoveJudged() {
  std::erase_if(unjudged_, [this](JobId job) {
    return records_[Index(job)].phase.get() != JobPhase::kArrived;
  });
}

void JobRecords::Respecify(JobId id, std::shared_ptr<const JobSpec> spec) {
  JobRecord& job = (*this)[id];
  if (job.phase.live()) {
    gpus_asked_ += spec->gpus - job.spec->gpus;
  }
  job.spec = std::move(spec);
}

bool JobRecords::Report(JobId id, const std::vector<Metric>& metrics) {
  JobRecord& job = (*this)[id];
  if (!job.phase.live()) {
    return false;
  }
  for (const Metric& metric : metrics) {
    const auto place = std::lower_bound(
        job.reported.begin(), job.reported.end(), metric.name,
        [](const Metric& known, const std::string& name) { return known.name < name; });
    if (place != job.reported.end() && place->name == metric.name) {
      place->value = metric.value;
    } else if (job.reported.size() < kMaxMetrics) {
      job.reported.insert(place, metric);
    }
  }
  return true;
}

void JobRecords::Start(JobId id, TimePoint now) {
  JobRecord& job = (*this)[id];
  if (!job.started) {
    job.started = true;
    job.started_late = job.idle_since < now;
    job.first_start = now;
    started_live_ += IsCpuJob(id) ? 0 : 1;
  }
}

void JobRecords::Run(JobId job) {
  Touch(job);
  if (IsCpuJob(job)) {
    on_cpus_.insert(job);
    return;
  }
  running_place_[Index(job)] = static_cast<std::uint32_t>(running_.size());
  running_.push_back(job);
  --waiting_;
}

void JobRecords::Stop(JobId job) {
  Touch(job);
  if (IsCpuJob(job)) {
    on_cpus_.erase(job);
    return;
  }
  const std::uint32_t place = running_place_[Index(job)];
  running_[place] = running_.back();
  running_place_[Index(running_[place])] = place;
  running_.pop_back();
  ++waiting_;
}

void JobRecords::Hold(JobId job) { TakeFromLive(job, held_); }
void JobRecords::Release(JobId job) { MakeLive(job, held_); }
void JobRecords::LeaveAlone(JobId job) {
  TakeFromLive(job, IsCpuJob(job) ? cpu_finishing_ : finishing_);
}
void JobRecords::ReturnToPolicy(JobId job) {
  MakeLive(job, IsCpuJob(job) ? cpu_finishing_ : finishing_);
}

void JobRecords::TakeFromLive(JobId job, std::set<JobId>& to) {
  Touch(job);
  to.insert(job);
  if (cpu_jobs_.erase(job) == 0) {
    std::erase(live_, job);
  }
}

// Where its arrival places it.
void JobRecords::MakeLive(JobId job, std::set<JobId>& from) {
  from.erase(job);
  if (IsCpuJob(job)) {
    cpu_jobs_.insert(job);
    return;
  }
  const std::uint64_t arrival = (*this)[job].arrival;
  live_.insert(std::find_if(live_.begin(), live_.end(),
                            [&](JobId other) { return records_[Index(other)].arrival > arrival; }),
               job);
}

void JobRecords::Leave(JobId id, JobPhase phase) {
  JobRecord& job = (*this)[id];
  if (IsCpuJob(id)) {
    cpu_live_ -= job.phase.live() ? 1 : 0;
    cpu_jobs_.erase(id);
    deferred_.erase(id);
    held_.erase(id);
    cpu_finishing_.erase(id);
    job.phase.To(phase);
    return;
  }
  if (job.phase.live()) {
    gpus_asked_ -= job.spec->gpus;
    live_stale_ = true;
  } else if (phase == JobPhase::kCancelled) {
    std::erase(unjudged_, id);
  }
  job.phase.To(phase);
  held_.erase(id);
  finishing_.erase(id);
  started_live_ -= job.started ? 1 : 0;
  waiting_ -= deferred_.erase(id) > 0 ? 0 : 1;
}

void JobRecords::SerializeJob(JobId job, StateStream& state) {
  if (records_.size() <= Index(job)) {
    records_.resize(Index(job) + 1);
  }
  state(records_[Index(job)]);
}

void JobRecords::Serialize(StateStream& state) {
  (void)live();  // removes the jobs that have ended
  state(running_, unjudged_, held_, arrivals_, waiting_, started_live_, gpus_asked_, live_);
  if (state.job_fields() > kFieldsBeforeConditions) {
    state(deferred_);
  }
  if (state.reading() && state.good()) {
    ListCpuJobs();
  }
}

// From their records, which say all of it.
void JobRecords::ListCpuJobs() {
  cpu_jobs_.clear();
  on_cpus_.clear();
  cpu_live_ = 0;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const JobRecord& job = records_[i];
    if (job.spec == nullptr || !IsCpuJob(*job.spec)) {
      continue;
    }
    has_had_cpu_jobs_ = true;
    if (!job.phase.live()) {
      continue;
    }
    ++cpu_live_;
    if (job.phase.get() == JobPhase::kRunning) {
      on_cpus_.insert(JobAt(i));
    }
    if (!held_.contains(JobAt(i))) {
      cpu_jobs_.insert(JobAt(i));
    }
  }
}

std::vector<JobId> JobRecords::AllRunning() const {
  std::vector<JobId> all(running_.begin(), running_.end());
  all.insert(all.end(), on_cpus_.begin(), on_cpus_.end());
  std::sort(all.begin(), all.end());
  return all;
}

bool JobRecords::IsPossible(std::size_t nodes) const {
  const auto is_live = [this](JobId job) { return IsLive(job); };
  const auto lies_on_nodes = [this, nodes](JobId job) {
    const Slices& slices = records_[Index(job)].grant.slices;
    return std::all_of(slices.begin(), slices.end(),
                       [nodes](const Slice& slice) { return Index(slice.node) < nodes; });
  };
  return std::all_of(live_.begin(), live_.end(), is_live) &&
         std::all_of(running_.begin(), running_.end(), is_live) &&
         std::all_of(running_.begin(), running_.end(), lies_on_nodes) &&
         std::all_of(on_cpus_.begin(), on_cpus_.end(), lies_on_nodes) &&
         std::all_of(held_.begin(), held_.end(), is_live) &&
         std::all_of(deferred_.begin(), deferred_.end(), [this](JobId job) {
           return Index(job) < records_.size() &&
                  records_[Index(job)].phase.get() == JobPhase::kArrived;
         });
}

void JobRecords::Resume(std::set<JobId> finishing) {
  finishing_ = std::move(finishing);
  cpu_finishing_.clear();
  for (auto job = finishing_.begin(); job != finishing_.end();) {
    if (!IsCpuJob(*job)) {
      ++job;
      continue;
    }
    cpu_jobs_.erase(*job);
    cpu_finishing_.insert(*job);
    job = finishing_.erase(job);
  }
  live_stale_ = false;
  running_place_.assign(records_.size(), 0);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    running_place_[Index(running_[i])] = static_cast<std::uint32_t>(i);
  }
}

}  // namespace trainyard::model
