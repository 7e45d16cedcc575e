// SPDX-License-Identifier: Apache-2.0
// When a job may be judged at all, and when it has to end: its time to begin, the jobs that have to
// end first, how many tasks of its array may run at a time, its user's hold, and its time limit.
// Jobs that state none of these cost nothing here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/books/namesakes.h"
#include "model/conditions.h"
#include "model/job_numbers.h"
#include "model/job_records.h"

namespace trainyard::engine {

// What defers a job: all that applies.
struct Deferral {
  bool held = false;             // by its user
  std::optional<JobId> after{};  // this job has to end first, with others perhaps
  std::string never{};           // its dependency cannot be met any more, for this reason
  std::optional<TimePoint> begin{};
  int at_once = 0;  // so many tasks of its array run
};

class Eligibility {
 public:
  // Both must outlive it.
  Eligibility(const model::JobRecords& jobs, const model::JobNumbers& numbers)
      : jobs_(jobs), numbers_(numbers) {}

  // Whether a job has to be deferred when it is submitted.
  [[nodiscard]] static bool HasTerms(const JobSpec& spec) {
    return spec.traits &&
           (spec.traits->begin || !spec.traits->dependency.empty() || !spec.traits->array.empty());
  }
  // The job is there, with terms or without.
  void Arrived(JobId job) {
    if (namesakes_) {
      PutName(job);
    }
  }
  // The job is there, deferred. The first task of an array stands for all of them.
  void Submit(JobId job);
  // Its user holds the job back, or does so no longer.
  void Hold(JobId job, bool hold);
  [[nodiscard]] bool IsHeld(JobId job) const { return held_.contains(job); }
  // A fact of the world holds the live job back, or does so no longer.
  void Bar(JobId job, bool bar) {
    if (bar) {
      barred_.insert(job);
    } else {
      barred_.erase(job);
    }
  }
  // What older snapshots say of it.
  void BarAll(const std::set<JobId>& jobs) { barred_ = jobs; }
  // Whether either says so.
  [[nodiscard]] bool IsHeldBack(JobId job) const {
    return held_.contains(job) || barred_.contains(job);
  }
  // The job is deferred, though it has nothing to wait for but its user.
  void Defer(JobId job);
  // The job has ended; whether it was deferred till then.
  void Ended(JobId job, bool was_deferred);
  // Other values of the job's specification.
  void Respecified(JobId job);
  // The job is there and has a limit, or has got or lost GPUs, or its limit has changed.
  void WatchLimit(JobId job);
  [[nodiscard]] bool has_limits() const { return has_limits_; }  // any job
  // The job may have started. Costs nothing where no job waits for a start.
  void Started(JobId job);
  [[nodiscard]] bool awaits_starts() const { return !start_watchers_.empty(); }

  struct Changes {
    std::vector<JobId> eligible;
    std::vector<std::pair<JobId, std::string>> impossible;  // with the reason
    std::vector<JobId> over;                                // have reached their time limit
  };
  // What has changed by now. Jobs that cannot start have to end, which Ended is told.
  [[nodiscard]] Changes Take(TimePoint now);
  [[nodiscard]] bool IsDue(TimePoint now) const {
    return !ready_.empty() || std::min(NextOf(times_), NextOf(limits_)) <= now;
  }
  // The next time at which something is due by itself.
  [[nodiscard]] std::optional<TimePoint> next(TimePoint now) const {
    const TimePoint next = std::min(NextOf(times_), NextOf(limits_));
    return !ready_.empty()      ? std::optional(now)
           : next == kEndOfTime ? std::nullopt
                                : std::optional(next);
  }
  // REQUIRES: the job is deferred.
  [[nodiscard]] Deferral WhyDeferred(JobId job) const;

  // The first task of the job's array, and its own index there. Nothing: it is in none.
  [[nodiscard]] std::optional<std::pair<JobId, std::int64_t>> TaskOf(JobId job) const;

  void Serialize(StateStream& state);
  // Whether what has been read may be looked at.
  [[nodiscard]] bool IsPossible() const;

 private:
  enum class Verdict : std::uint8_t { kMet, kWaits, kNever };
  using Times = std::set<std::pair<TimePoint, JobId>>;
  using Jobs = std::pair<JobId, std::uint32_t>;  // so many from the first
  // What has become of jobs that are waited for.
  struct WaitedEnds {
    bool waits = false;  // some have not ended
    bool failed = false;
  };
  // Of whole arrays, for which many tasks may wait: looked at once for all of these.
  using EndsOfArrays = std::map<Jobs, WaitedEnds>;
  struct Wait {
    model::Condition::Kind kind{};
    std::vector<Jobs> jobs{};
    std::vector<Duration> delays{};  // of kAfter, for each of these
    void Serialize(StateStream& state) {
      state(kind, jobs);
      if (kind == model::Condition::Kind::kAfter) {
        state(delays);
      }
    }
  };
  // A job, or the tasks of an array.
  struct Unit {
    std::uint32_t count = 1;
    std::uint32_t at_once = 0;  // 0: any number
    std::uint32_t next = 0;     // tasks before it have been presented, skipped or have ended
    std::uint32_t active = 0;   // of those presented, how many have not ended
    bool any = false;           // one of the waits is enough
    std::vector<Wait> waits{};
    std::set<JobId> skipped{};  // held when it was their turn, or one of kAfterCorr to wait for
    void Serialize(StateStream& state) { state(count, at_once, next, active, any, waits, skipped); }
    // Whether tasks wait for jobs that are not the same for all of them.
    [[nodiscard]] bool waits_by_task() const {
      return std::any_of(waits.begin(), waits.end(), [](const Wait& wait) {
        return wait.kind == model::Condition::Kind::kAfterCorr;
      });
    }
  };

  [[nodiscard]] static TimePoint NextOf(const Times& times) {
    return times.empty() ? kEndOfTime : times.begin()->first;
  }
  [[nodiscard]] JobId UnitOf(JobId job) const;
  [[nodiscard]] std::optional<Jobs> Named(const std::string& number) const;
  [[nodiscard]] std::vector<Jobs> NamesakesOf(JobId job);
  void PutName(JobId job);
  void AddWaits(JobId first, Unit& unit);
  void Watch(JobId first, const Unit& unit);
  [[nodiscard]] std::optional<TimePoint> StartOf(JobId job) const;
  void AwaitDelays(JobId first, const Unit& unit);
  [[nodiscard]] Verdict JudgeStarts(const Wait& wait) const;
  [[nodiscard]] std::vector<Jobs> Watched(const Wait& wait) const;
  [[nodiscard]] Jobs CorrespondingTo(JobId job, const Jobs& jobs) const;
  [[nodiscard]] std::vector<Jobs> WaitedFor(const Wait& wait, JobId job) const;
  [[nodiscard]] WaitedEnds EndsOf(const Jobs& jobs) const;
  [[nodiscard]] WaitedEnds EndsOf(const Wait& wait, JobId job, EndsOfArrays& arrays) const;
  [[nodiscard]] Verdict Judge(const Wait& wait, JobId job, EndsOfArrays& arrays) const;
  [[nodiscard]] Verdict Judge(const Unit& unit, JobId job, EndsOfArrays& arrays) const;
  [[nodiscard]] std::string NumberText(JobId job) const;
  [[nodiscard]] std::string WhyNever(JobId job, const Unit& unit, EndsOfArrays& arrays) const;
  [[nodiscard]] bool MayBegin(JobId first, TimePoint now) const;
  void Look(JobId first, TimePoint now, Changes& changes);
  void NoteNever(JobId first, const Unit& unit, EndsOfArrays& arrays, Changes& changes) const;
  void Present(JobId first, Unit& unit, EndsOfArrays& arrays, Changes& changes) const;
  [[nodiscard]] std::optional<TimePoint> LimitOf(JobId job) const;
  [[nodiscard]] bool IsDeferred(JobId job) const { return jobs_.deferred().contains(job); }

  const model::JobRecords& jobs_;
  const model::JobNumbers& numbers_;
  std::map<JobId, Unit> units_;  // by the first job; those with jobs to present
  std::map<JobId, std::vector<std::int64_t>> arrays_;  // all there have been: their indices
  std::set<JobId> ready_;                              // units to look at
  std::set<JobId> held_;                               // by their users
  std::set<JobId> barred_;                             // by the world
  bool has_limits_ = false;
  Times times_;  // at which units may begin
  // When jobs that run, or have run for too long, reach their limits; by job and by time. Not
  // saved.
  std::map<JobId, TimePoint> limit_of_;
  Times limits_;
  // Of all jobs, from the first on that asks for it. Not saved.
  std::optional<Namesakes> namesakes_;
  std::map<JobId, std::vector<JobId>> watchers_;        // the units that wait for a job; not saved
  std::map<JobId, std::vector<JobId>> start_watchers_;  // those that wait for its start; not saved
  TimePoint now_{};                                     // as of the last Take; not saved
};

}  // namespace trainyard::engine
