// SPDX-License-Identifier: Apache-2.0
// The table of jobs: a record for every job submitted so far, and which of them wait, run, are held
// back or are not judged yet. It alone moves jobs between these lists, and counts them.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "model/job_record.h"
#include "model/touched.h"

namespace trainyard::model {

class JobRecords {
 public:
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  // By JobId; jobs not yet submitted have phase kUnknown.
  [[nodiscard]] std::span<const JobRecord> records() const { return records_; }
  [[nodiscard]] const JobRecord& operator[](JobId job) const { return records_[Index(job)]; }
  // To read it without touching it, where the records are not const.
  [[nodiscard]] const JobRecord& At(JobId job) const { return records_[Index(job)]; }
  // For changing what concerns this job alone; the lists change through the methods below.
  [[nodiscard]] JobRecord& operator[](JobId job) {
    Touch(job);
    return records_[Index(job)];
  }
  // From now on `touched` is told of each job whose record or lists may change. Null: nobody is.
  // Must outlive the records.
  void Watch(TouchedIds<JobId>* touched) { touched_ = touched; }
  // What follows from the job's record elsewhere may have changed.
  void Touch(JobId job) const {
    if (touched_ != nullptr) {
      touched_->Add(job);
    }
  }
  // Of a job that may never have been submitted, too.
  [[nodiscard]] bool IsLive(JobId job) const {
    return Index(job) < records_.size() && records_[Index(job)].phase.live();
  }

  // Admitted jobs that have not ended, in the order of their admission, without those held back and
  // those finishing.
  [[nodiscard]] std::span<const JobId> live() const;
  // Jobs with GPUs, in no particular order; the finishing ones among them.
  [[nodiscard]] const std::vector<JobId>& running() const { return running_; }
  // Jobs without GPUs are in lists of their own, as no policy knows of them: those live ones that
  // are not held back or finishing, whether they run or wait; and those that run.
  [[nodiscard]] static bool IsCpuJob(const JobSpec& spec) { return spec.gpus == 0; }
  [[nodiscard]] bool IsCpuJob(JobId job) const {
    return has_had_cpu_jobs_ && IsCpuJob(*records_[Index(job)].spec);
  }
  [[nodiscard]] const std::set<JobId>& cpu_jobs() const { return cpu_jobs_; }
  [[nodiscard]] const std::set<JobId>& on_cpus() const { return on_cpus_; }
  // Whether there are any to decide about.
  [[nodiscard]] bool any_cpu_jobs() const {
    return has_had_cpu_jobs_ && (!cpu_jobs_.empty() || !cpu_finishing_.empty());
  }
  // All that run, ascending.
  [[nodiscard]] std::vector<JobId> AllRunning() const;
  // Live, but not to be scheduled.
  [[nodiscard]] const std::set<JobId>& held() const { return held_; }
  // Running, but not to be scheduled: they keep what they hold until they end. With GPUs, and
  // without.
  [[nodiscard]] const std::set<JobId>& finishing() const { return finishing_; }
  [[nodiscard]] const std::set<JobId>& cpu_finishing() const { return cpu_finishing_; }
  [[nodiscard]] bool IsFinishing(JobId job) const {
    return (!finishing_.empty() && finishing_.contains(job)) ||
           (!cpu_finishing_.empty() && cpu_finishing_.contains(job));
  }
  // Jobs that have arrived and are not judged, in the order of their arrival.
  [[nodiscard]] const std::vector<JobId>& unjudged() const { return unjudged_; }
  // With GPUs to come, the unjudged included; and without.
  [[nodiscard]] std::int64_t waiting() const { return waiting_; }
  [[nodiscard]] std::int64_t cpu_waiting() const {
    return cpu_live_ - static_cast<std::int64_t>(on_cpus_.size());
  }
  [[nodiscard]] std::int64_t started_live() const { return started_live_; }
  [[nodiscard]] std::int64_t gpus_asked() const { return gpus_asked_; }  // by live jobs

  // The job arrives: it waits to be judged, or, deferred, until it may be. Nobody judges a job
  // without GPUs: it is to be admitted at once, or when it is deferred no longer.
  JobRecord& Submit(JobId job, std::shared_ptr<const JobSpec> spec, bool deferred);
  // Arrived, and neither judged nor to be judged yet.
  [[nodiscard]] const std::set<JobId>& deferred() const { return deferred_; }
  // A deferred job is to be judged now, behind those that have arrived; an unjudged one is not yet.
  // O(unjudged).
  void Present(JobId job);
  void Defer(JobId job);
  // The job is admitted and waits for GPUs.
  void Admit(JobId job, TimePoint now);
  // The jobs that have been judged are not among the unjudged any more. O(unjudged).
  void RemoveJudged();
  // Another specification, perhaps with another number of GPUs.
  void Respecify(JobId job, std::shared_ptr<const JobSpec> spec);
  // What the job says of itself. False: it has ended.
  bool Report(JobId job, const std::vector<Metric>& metrics);
  // The job has its first GPUs at work. Nothing happens if it has had some before.
  void Start(JobId job, TimePoint now);
  // The job comes to hold GPUs, or holds none any more; its phase is the caller's.
  void Run(JobId job);
  void Stop(JobId job);
  // The job is held back, or not any more. REQUIRES: it is live and holds no GPUs. O(live).
  void Hold(JobId job);
  void Release(JobId job);
  // Takes the running job out of the policy's hands, or gives it back. O(live).
  void LeaveAlone(JobId job);
  void ReturnToPolicy(JobId job);
  // The job has ended so, or is rejected. It may still hold GPUs until Stop.
  void Leave(JobId job, JobPhase phase);

  // The record of one job; and all that follows from none: first all records, then Serialize, then,
  // where it was read, Resume.
  void SerializeJob(JobId job, StateStream& state);
  void Serialize(StateStream& state);
  // Whether all jobs that the lists name are there and live, and those that run lie on these nodes.
  [[nodiscard]] bool IsPossible(std::size_t nodes) const;
  // `finishing`: of the running jobs.
  void Resume(std::set<JobId> finishing);

 private:
  void ListCpuJobs();
  void TakeFromLive(JobId job, std::set<JobId>& to);
  void MakeLive(JobId job, std::set<JobId>& from);

  std::vector<JobRecord> records_;
  std::vector<JobId> running_;
  std::vector<std::uint32_t> running_place_;  // by JobId
  mutable std::vector<JobId> live_;           // may hold ended jobs, see live_stale_
  mutable bool live_stale_ = false;
  std::vector<JobId> unjudged_;
  std::set<JobId> held_;           // not in live_
  std::set<JobId> finishing_;      // in running_ and not in live_; not saved
  std::set<JobId> deferred_;       // not in unjudged_, and not among waiting_
  bool has_had_cpu_jobs_ = false;  // who has none pays for this flag alone; of these none is saved
  std::set<JobId> cpu_jobs_;       // not in live_
  std::set<JobId> on_cpus_;        // not in running_
  std::set<JobId> cpu_finishing_;
  std::int64_t cpu_live_ = 0;  // those held back or finishing included
  std::uint64_t arrivals_ = 0;
  std::int64_t waiting_ = 0;
  std::int64_t started_live_ = 0;
  std::int64_t gpus_asked_ = 0;
  TouchedIds<JobId>* touched_ = nullptr;
};

}  // namespace trainyard::model
