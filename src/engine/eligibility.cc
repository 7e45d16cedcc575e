// SPDX-License-Identifier: Apache-2.0
#include "engine/eligibility.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "model/job_fields.h"

namespace trainyard::engine {
namespace {

bool HasEnded(model::JobPhase phase) { return phase >= model::JobPhase::kCompleted; }

const JobTraits& TraitsOf(const model::JobRecord& job) {
  return model::PartOf<JobTraits>(*job.spec);
}

}  // namespace

// ------------------------------------------------------------------------------------------- units

JobId Eligibility::UnitOf(JobId job) const {
  const auto after = arrays_.upper_bound(job);
  if (after == arrays_.begin()) {
    return job;
  }
  const auto& [first, indices] = *std::prev(after);
  return Index(job) < Index(first) + indices.size() ? first : job;
}

std::optional<std::pair<JobId, std::int64_t>> Eligibility::TaskOf(JobId job) const {
  const JobId first = UnitOf(job);
  const auto array = arrays_.find(first);
  return array == arrays_.end()
             ? std::nullopt
             : std::optional(std::pair(first, array->second[Index(job) - Index(first)]));
}

void Eligibility::Submit(JobId job) {
  if (UnitOf(job) != job || arrays_.contains(job)) {
    return;  // a later task of an array
  }
  const JobTraits& traits = TraitsOf(jobs_[job]);
  Unit unit;
  if (!traits.array.empty()) {
    Result<model::ArrayTasks> tasks = model::ParseArray(traits.array);
    CHECK(tasks.ok());
    unit.count = static_cast<std::uint32_t>(tasks.value().indices.size());
    unit.at_once = static_cast<std::uint32_t>(tasks.value().at_once);
    arrays_[job] = std::move(tasks.value().indices);
  }
  AddWaits(job, unit);
  if (traits.begin) {
    times_.emplace(*traits.begin, job);
  }
  Watch(job, unit);
  units_[job] = std::move(unit);
  ready_.insert(job);
}

// The jobs of that number that have been submitted.
std::optional<Eligibility::Jobs> Eligibility::Named(const std::string& number) const {
  const std::optional<model::JobNumber> named = model::ParseJobNumber(number);
  const std::optional<JobId> known = named ? numbers_.Find(named->job, jobs_.size()) : std::nullopt;
  if (!known || jobs_[*known].phase.get() == model::JobPhase::kUnknown) {
    return std::nullopt;
  }
  const JobId job = *known;
  const auto array = arrays_.find(job);
  if (!named->task) {
    return Jobs(job, array == arrays_.end() ? 1 : static_cast<std::uint32_t>(array->second.size()));
  }
  if (array == arrays_.end()) {
    return std::nullopt;
  }
  const std::vector<std::int64_t>& indices = array->second;
  const auto at = std::lower_bound(indices.begin(), indices.end(), *named->task);
  return at == indices.end() || *at != *named->task
             ? std::nullopt
             : std::optional(Jobs(
                   JobAt(Index(job) + static_cast<std::size_t>(std::distance(indices.begin(), at))),
                   1));
}

// Earlier jobs of the same user and name that have not ended.
std::vector<Eligibility::Jobs> Eligibility::NamesakesOf(JobId job) {
  if (!namesakes_) {
    namesakes_.emplace();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      PutName(JobAt(i));
    }
  }
  std::vector<Jobs> found;
  const JobSpec& spec = *jobs_[job].spec;
  for (const JobId other : namesakes_->Before(job, spec.user, spec.name)) {
    found.emplace_back(other, 1);
  }
  return found;
}

void Eligibility::PutName(JobId job) {
  const model::JobRecord& record = jobs_[job];
  if (record.spec && !HasEnded(record.phase.get())) {
    namesakes_->Put(job, record.spec->user, record.spec->name);
  }
}

void Eligibility::AddWaits(JobId first, Unit& unit) {
  const std::string& text = TraitsOf(jobs_[first]).dependency;
  unit.waits.clear();
  unit.any = false;
  if (text.empty()) {
    return;
  }
  const Result<model::Dependency> dependency = model::ParseDependency(text);
  CHECK(dependency.ok());
  unit.any = dependency.value().any;
  for (const model::Condition& condition : dependency.value().conditions) {
    Wait wait{.kind = condition.kind};
    if (condition.kind == model::Condition::Kind::kSingleton) {
      wait.jobs = NamesakesOf(first);
    }
    for (const std::string& number : condition.jobs) {
      // One that there is not yet never ends: the job itself stands for it.
      const Jobs named = Named(number).value_or(Jobs(first, 1));
      // Delays are of each that is named, and the others need to be looked at once only.
      if (condition.kind == model::Condition::Kind::kAfter ||
          std::find(wait.jobs.begin(), wait.jobs.end(), named) == wait.jobs.end()) {
        wait.jobs.push_back(named);
      }
    }
    for (const int minutes : condition.minutes) {
      wait.delays.emplace_back(std::chrono::minutes(minutes));
    }
    unit.waits.push_back(std::move(wait));
  }
}

void Eligibility::Watch(JobId first, const Unit& unit) {
  for (const Wait& wait : unit.waits) {
    for (const auto& [job, count] : Watched(wait)) {
      for (std::size_t i = Index(job); i < Index(job) + count; ++i) {
        std::vector<JobId>& watchers = watchers_[JobAt(i)];
        if (watchers.empty() || watchers.back() != first) {
          watchers.push_back(first);
        }
        if (wait.kind == model::Condition::Kind::kAfter && !jobs_[JobAt(i)].started) {
          start_watchers_[JobAt(i)].push_back(first);
        }
      }
    }
  }
}

void Eligibility::Hold(JobId job, bool hold) {
  if (hold) {
    held_.insert(job);
    return;
  }
  held_.erase(job);
  if (IsDeferred(job)) {
    ready_.insert(UnitOf(job));
  }
}

void Eligibility::Defer(JobId job) {
  const JobId first = UnitOf(job);
  const auto [unit, is_new] = units_.try_emplace(first);
  if (const auto array = arrays_.find(first); array != arrays_.end() && is_new) {
    unit->second.count = static_cast<std::uint32_t>(array->second.size());
    unit->second.active = 1;
  }
  if (is_new) {
    unit->second.next = unit->second.count;
  }
  unit->second.active -= std::min(unit->second.active, 1U);
  unit->second.skipped.insert(job);
}

void Eligibility::Ended(JobId job, bool was_deferred) {
  held_.erase(job);
  barred_.erase(job);
  if (has_limits_) {
    WatchLimit(job);
  }
  if (namesakes_) {
    namesakes_->Remove(job);
  }
  if (const auto watched = watchers_.extract(job); !watched.empty()) {
    ready_.insert(watched.mapped().begin(), watched.mapped().end());
  }
  const JobId first = UnitOf(job);
  const auto unit = units_.find(first);
  if (unit == units_.end()) {
    return;
  }
  if (!was_deferred && unit->second.active > 0) {
    --unit->second.active;
  }
  ready_.insert(first);
}

void Eligibility::Started(JobId job) {
  const auto watched = start_watchers_.find(job);
  if (watched != start_watchers_.end() && jobs_[job].started) {
    ready_.insert(watched->second.begin(), watched->second.end());
    start_watchers_.erase(watched);
  }
}

void Eligibility::Respecified(JobId job) {
  Arrived(job);
  WatchLimit(job);
  const auto unit = units_.find(UnitOf(job));
  if (unit == units_.end()) {
    return;
  }
  AddWaits(unit->first, unit->second);
  Watch(unit->first, unit->second);
  if (const std::optional<TimePoint> begin = TraitsOf(jobs_[unit->first]).begin) {
    times_.emplace(*begin, unit->first);
  }
  ready_.insert(unit->first);
}

// ------------------------------------------------------------------------------------- time limits

// When a live job will have run for as long as it may, or has; nothing: it does not run, or has no
// limit. While it holds GPUs and waits for more it does not run.
std::optional<TimePoint> Eligibility::LimitOf(JobId id) const {
  const model::JobRecord& job = jobs_[id];
  const std::optional<Duration> limit = TraitsOf(job).time_limit;
  if (!limit || !job.phase.live()) {
    return std::nullopt;
  }
  const bool runs = job.phase.get() == model::JobPhase::kRunning && job.grant.running;
  return runs || job.progress.run_time >= *limit
             ? std::optional(job.progress.as_of + *limit - job.progress.run_time)
             : std::nullopt;
}

void Eligibility::WatchLimit(JobId job) {
  has_limits_ = has_limits_ || TraitsOf(jobs_[job]).time_limit;
  if (const auto watched = limit_of_.extract(job); !watched.empty()) {
    limits_.erase({watched.mapped(), job});
  }
  if (const std::optional<TimePoint> limit = LimitOf(job)) {
    limit_of_[job] = *limit;
    limits_.emplace(*limit, job);
  }
}

// --------------------------------------------------------------------------------------- judgement

// When it has started, or has ended without; nothing: neither.
std::optional<TimePoint> Eligibility::StartOf(JobId id) const {
  const model::JobRecord& job = jobs_[id];
  return job.started ? std::optional(job.first_start)
         : HasEnded(job.phase.get())
             ? std::optional(job.done == kEndOfTime ? TimePoint{} : job.done)
             : std::nullopt;
}

// Of the jobs whose start is waited for, those that have started some time ago, or just now.
void Eligibility::AwaitDelays(JobId first, const Unit& unit) {
  for (const Wait& wait : unit.waits) {
    for (std::size_t k = 0; k < wait.delays.size(); ++k) {
      const auto [job, count] = wait.jobs[k];
      for (std::size_t i = Index(job); i < Index(job) + count; ++i) {
        const std::optional<TimePoint> start = StartOf(JobAt(i));
        if (start && *start + wait.delays[k] > now_) {
          times_.emplace(*start + wait.delays[k], first);
        }
      }
    }
  }
}

Eligibility::Verdict Eligibility::JudgeStarts(const Wait& wait) const {
  for (std::size_t k = 0; k < wait.jobs.size(); ++k) {
    const auto [job, count] = wait.jobs[k];
    for (std::size_t i = Index(job); i < Index(job) + count; ++i) {
      const std::optional<TimePoint> start = StartOf(JobAt(i));
      if (!start || *start + wait.delays[k] > now_) {
        return Verdict::kWaits;
      }
    }
  }
  return Verdict::kMet;
}

// The task with the index that the job has in its own array, of the array that is named, or of
// which a task is, as in Slurm. Where there is none, or the job is in no array: what is named.
Eligibility::Jobs Eligibility::CorrespondingTo(JobId job, const Jobs& jobs) const {
  const std::optional<std::pair<JobId, std::int64_t>> task = TaskOf(job);
  const auto array = arrays_.find(UnitOf(jobs.first));
  if (!task || array == arrays_.end()) {
    return jobs;
  }
  const auto& [first, indices] = *array;
  const auto at = std::lower_bound(indices.begin(), indices.end(), task->second);
  return at == indices.end() || *at != task->second
             ? jobs
             : Jobs(JobAt(Index(first) +
                          static_cast<std::size_t>(std::distance(indices.begin(), at))),
                    1);
}

// All jobs for which some task of a unit may wait by it.
std::vector<Eligibility::Jobs> Eligibility::Watched(const Wait& wait) const {
  std::vector<Jobs> jobs = wait.jobs;
  if (wait.kind == model::Condition::Kind::kAfterCorr) {
    for (Jobs& each : jobs) {
      const auto array = arrays_.find(UnitOf(each.first));
      each = array == arrays_.end()
                 ? each
                 : Jobs(array->first, static_cast<std::uint32_t>(array->second.size()));
    }
  }
  return jobs;
}

// The jobs for which the job, of the unit with that wait, waits by it.
std::vector<Eligibility::Jobs> Eligibility::WaitedFor(const Wait& wait, JobId job) const {
  std::vector<Jobs> jobs = wait.jobs;
  if (wait.kind == model::Condition::Kind::kAfterCorr) {
    for (Jobs& each : jobs) {
      each = CorrespondingTo(job, each);
    }
  }
  return jobs;
}

Eligibility::WaitedEnds Eligibility::EndsOf(const Jobs& jobs) const {
  WaitedEnds ends;
  const auto [first, count] = jobs;
  for (std::size_t i = Index(first); i < Index(first) + count; ++i) {
    const model::JobPhase phase = jobs_[JobAt(i)].phase.get();
    ends.waits = ends.waits || !HasEnded(phase);
    ends.failed = ends.failed || (HasEnded(phase) && phase != model::JobPhase::kCompleted);
  }
  return ends;
}

// Of all that the job waits for by it.
Eligibility::WaitedEnds Eligibility::EndsOf(const Wait& wait, JobId job,
                                            EndsOfArrays& arrays) const {
  WaitedEnds ends;
  const bool by_task = wait.kind == model::Condition::Kind::kAfterCorr;
  for (const Jobs& named : wait.jobs) {
    const Jobs waited = by_task ? CorrespondingTo(job, named) : named;
    WaitedEnds one;
    if (waited.second == 1) {
      one = EndsOf(waited);
    } else {
      const auto [at, is_new] = arrays.try_emplace(waited);
      if (is_new) {
        at->second = EndsOf(waited);
      }
      one = at->second;
    }
    ends.waits = ends.waits || one.waits;
    ends.failed = ends.failed || one.failed;
  }
  return ends;
}

Eligibility::Verdict Eligibility::Judge(const Wait& wait, JobId job, EndsOfArrays& arrays) const {
  if (wait.kind == model::Condition::Kind::kAfter) {
    return JudgeStarts(wait);
  }
  const WaitedEnds ends = EndsOf(wait, job, arrays);
  switch (wait.kind) {
    case model::Condition::Kind::kAfterOk:
    case model::Condition::Kind::kAfterCorr:
      return ends.failed ? Verdict::kNever : ends.waits ? Verdict::kWaits : Verdict::kMet;
    case model::Condition::Kind::kAfterNotOk:
      return ends.failed ? Verdict::kMet : ends.waits ? Verdict::kWaits : Verdict::kNever;
    case model::Condition::Kind::kAfterAny:
    case model::Condition::Kind::kSingleton:
      return ends.waits ? Verdict::kWaits : Verdict::kMet;
    case model::Condition::Kind::kAfter:
      break;
  }
  return Verdict::kWaits;
}

Eligibility::Verdict Eligibility::Judge(const Unit& unit, JobId job, EndsOfArrays& arrays) const {
  std::size_t met = 0;
  std::size_t never = 0;
  for (const Wait& wait : unit.waits) {
    const Verdict verdict = Judge(wait, job, arrays);
    met += verdict == Verdict::kMet ? 1 : 0;
    never += verdict == Verdict::kNever ? 1 : 0;
  }
  if (unit.any ? met > 0 : met == unit.waits.size()) {
    return Verdict::kMet;
  }
  return (unit.any ? never == unit.waits.size() : never > 0) ? Verdict::kNever : Verdict::kWaits;
}

// "12", or "12_3" of a task.
std::string Eligibility::NumberText(JobId job) const {
  const std::optional<std::pair<JobId, std::int64_t>> task = TaskOf(job);
  return task ? model::TextOf({.job = numbers_.Of(task->first), .task = task->second})
              : model::TextOf({.job = numbers_.Of(job)});
}

std::string Eligibility::WhyNever(JobId job, const Unit& unit, EndsOfArrays& arrays) const {
  std::string text =
      "its dependency '" + TraitsOf(jobs_[job]).dependency + "' cannot be met any more";
  for (const Wait& wait : unit.waits) {
    if (Judge(wait, job, arrays) != Verdict::kNever) {
      continue;
    }
    for (const auto& [first, count] : WaitedFor(wait, job)) {
      for (std::size_t i = Index(first); i < Index(first) + count; ++i) {
        const model::JobPhase phase = jobs_[JobAt(i)].phase.get();
        const bool completed = phase == model::JobPhase::kCompleted;
        if (HasEnded(phase) && completed == (wait.kind == model::Condition::Kind::kAfterNotOk)) {
          return text + ": job " + NumberText(JobAt(i)) + " is " + std::string(model::Name(phase));
        }
      }
    }
  }
  return text;
}

bool Eligibility::MayBegin(JobId first, TimePoint now) const {
  const std::optional<TimePoint>& begin = TraitsOf(jobs_[first]).begin;
  return !begin || *begin <= now;
}

void Eligibility::Look(JobId first, TimePoint now, Changes& changes) {
  jobs_.Touch(first);
  const auto found = units_.find(first);
  if (found == units_.end()) {
    return;
  }
  Unit& unit = found->second;
  const bool by_task = unit.waits_by_task();
  EndsOfArrays arrays;
  const Verdict verdict = Judge(unit, first, arrays);
  if (by_task || verdict == Verdict::kNever) {
    NoteNever(first, unit, arrays, changes);
  }
  if (!by_task && verdict == Verdict::kNever) {
    if (!TraitsOf(jobs_[first]).keep_on_invalid_dep) {
      units_.erase(found);
    }
    return;
  }
  if (by_task || verdict == Verdict::kWaits) {
    AwaitDelays(first, unit);
  }
  if ((by_task || verdict == Verdict::kMet) && MayBegin(first, now)) {
    Present(first, unit, arrays, changes);
  }
  if (unit.next == unit.count && unit.skipped.empty() && (unit.at_once == 0 || unit.active == 0)) {
    units_.erase(found);
  }
}

// The jobs that can never start have to end, unless their user keeps them.
void Eligibility::NoteNever(JobId first, const Unit& unit, EndsOfArrays& arrays,
                            Changes& changes) const {
  const bool keeps = TraitsOf(jobs_[first]).keep_on_invalid_dep;
  const bool by_task = unit.waits_by_task();
  const std::string of_all = by_task || keeps ? std::string() : WhyNever(first, unit, arrays);
  const auto waits_for_several = [&](JobId job) {
    std::size_t others = 0;
    for (const Wait& wait : unit.waits) {
      for (const auto& [other, count] : WaitedFor(wait, job)) {
        others += count;
      }
    }
    return others > 1;
  };
  for (std::size_t i = Index(first); i < Index(first) + unit.count; ++i) {
    const JobId job = JobAt(i);
    if (!IsDeferred(job)) {
      continue;
    }
    const bool never = !by_task || Judge(unit, job, arrays) == Verdict::kNever;
    if (never ? keeps : waits_for_several(job)) {
      jobs_.Touch(job);  // it may have another reason now
    } else if (never) {
      changes.impossible.emplace_back(job, by_task ? WhyNever(job, unit, arrays) : of_all);
    }
  }
}

// The tasks that have their turn.
void Eligibility::Present(JobId first, Unit& unit, EndsOfArrays& arrays, Changes& changes) const {
  const bool by_task = unit.waits_by_task();
  const auto has_room = [&unit] { return unit.at_once == 0 || unit.active < unit.at_once; };
  const auto has_to_wait = [&](JobId job) {
    return IsHeld(job) || (by_task && Judge(unit, job, arrays) != Verdict::kMet);
  };
  const auto present = [&](JobId job) {
    ++unit.active;
    changes.eligible.push_back(job);
  };
  for (auto job = unit.skipped.begin(); job != unit.skipped.end() && has_room();) {
    if (IsDeferred(*job) && has_to_wait(*job)) {
      ++job;
      continue;
    }
    if (IsDeferred(*job)) {
      present(*job);
    }
    job = unit.skipped.erase(job);
  }
  for (; unit.next < unit.count && has_room(); ++unit.next) {
    const JobId job = JobAt(Index(first) + unit.next);
    if (Index(job) >= jobs_.size() || !IsDeferred(job)) {
      continue;  // it has been cancelled
    }
    if (has_to_wait(job)) {
      unit.skipped.insert(job);
    } else {
      present(job);
    }
  }
}

Eligibility::Changes Eligibility::Take(TimePoint now) {
  Changes changes;
  now_ = now;
  for (; NextOf(times_) <= now; times_.erase(times_.begin())) {
    ready_.insert(times_.begin()->second);
  }
  while (NextOf(limits_) <= now) {
    const JobId job = limits_.begin()->second;
    limits_.erase(limits_.begin());
    limit_of_.erase(job);
    if (LimitOf(job).value_or(kEndOfTime) <= now) {  // it may have lost its GPUs just now
      changes.over.push_back(job);
    }
  }
  for (const JobId first : std::exchange(ready_, {})) {
    Look(first, now, changes);
  }
  return changes;
}

Deferral Eligibility::WhyDeferred(JobId job) const {
  Deferral why{.held = IsHeld(job)};
  const JobId first = UnitOf(job);
  const auto unit = units_.find(first);
  if (unit == units_.end()) {
    return why;
  }
  EndsOfArrays arrays;
  const Verdict verdict = Judge(unit->second, job, arrays);
  if (verdict == Verdict::kNever) {
    why.never = WhyNever(job, unit->second, arrays);
  }
  for (const Wait& wait : unit->second.waits) {
    for (const auto& [other, count] : WaitedFor(wait, job)) {
      for (std::size_t i = Index(other); i < Index(other) + count && !why.after; ++i) {
        const bool is_over =
            HasEnded(jobs_[JobAt(i)].phase.get()) && wait.kind != model::Condition::Kind::kAfter;
        if (!is_over && verdict != Verdict::kMet) {
          why.after = JobAt(i);
        }
      }
    }
  }
  why.begin = TraitsOf(jobs_[first]).begin;
  why.at_once = static_cast<int>(unit->second.at_once);
  return why;
}

// ------------------------------------------------------------------------------ saved and resumed

void Eligibility::Serialize(StateStream& state) {
  state(units_, arrays_, ready_, held_, barred_, times_, has_limits_);
  if (state.reading()) {
    namesakes_.reset();
  }
  if (state.reading() && IsPossible()) {
    watchers_.clear();
    start_watchers_.clear();
    for (const auto& [first, unit] : units_) {
      Watch(first, unit);
    }
    limit_of_.clear();
    limits_.clear();
    for (std::size_t i = 0; has_limits_ && i < jobs_.size(); ++i) {
      if (jobs_.IsLive(JobAt(i))) {
        WatchLimit(JobAt(i));
      }
    }
  }
}

bool Eligibility::IsPossible() const {
  const auto fits = [this](JobId first, std::size_t count) {
    return Index(first) < jobs_.size() && count <= jobs_.size() - Index(first);
  };
  for (const auto& [first, unit] : units_) {
    if (!fits(first, unit.count) || unit.next > unit.count) {
      return false;
    }
    for (const Wait& wait : unit.waits) {
      if (wait.kind == model::Condition::Kind::kAfter && wait.delays.size() != wait.jobs.size()) {
        return false;
      }
      for (const auto& [job, count] : wait.jobs) {
        if (!fits(job, count)) {
          return false;
        }
      }
    }
  }
  return std::all_of(
             arrays_.begin(), arrays_.end(),
             [&fits](const auto& array) { return fits(array.first, array.second.size()); }) &&
         std::all_of(times_.begin(), times_.end(),
                     [&fits](const auto& time) { return fits(time.second, 1); });
}

}  // namespace trainyard::engine
