// SPDX-License-Identifier: Apache-2.0
#include "engine/instants.h"

#include <algorithm>

#include "base/earlier.h"

namespace trainyard::engine {

void Instants::AddFact(TimePoint at) {
  cpu_jobs_are_due_ = true;
  first_fact_ = first_fact_ ? std::min(*first_fact_, at) : at;
  last_fact_ = last_fact_ ? std::max(*last_fact_, at) : at;
}

void Instants::AddSubmit(TimePoint at) {
  clock_.Anchor(at);
  AddFact(at);
}

void Instants::Decided(TimePoint now) {
  clock_.Decided(now);
  first_fact_.reset();
  last_fact_.reset();
}

bool Instants::SubmitIsLone(const model::JobRecords& jobs, const Ends& ends) const {
  if (submits_to_come_ || !first_fact_ || *first_fact_ != *last_fact_) {
    return false;
  }
  switch (rules_.published.lone_fact) {
    case model::PublishedRules::LoneFact::kDelayed:
      return false;
    case model::PublishedRules::LoneFact::kStarted:
      return (rules_.end.source == model::EndRule::Source::kPlanned ? ends.empty()
                                                                    : jobs.started_live() == 0) &&
             !wake_at_;
    case model::PublishedRules::LoneFact::kSubmits:
      return true;
  }
  return false;
}

bool Instants::EndIsLone(const model::JobRecords& jobs, const Ends& ends) const {
  if (rules_.published.lone_fact != model::PublishedRules::LoneFact::kStarted || submits_to_come_ ||
      first_fact_ || wake_at_) {
    return false;
  }
  if (rules_.end.source != model::EndRule::Source::kPlanned &&
      static_cast<std::int64_t>(ends.size()) != jobs.started_live()) {
    return false;  // a job that has started and holds nothing now ends some time, too
  }
  const TimePoint first = jobs[ends.first()].forecast.logged;
  return std::all_of(ends.members().begin(), ends.members().end(),
                     [&](std::uint32_t job) { return jobs[JobAt(job)].forecast.logged == first; });
}

std::optional<TimePoint> Instants::Next(const model::JobRecords& jobs, const Ends& ends) const {
  std::optional<TimePoint> next;
  if (first_fact_) {
    next = clock_.InstantFor(*first_fact_, SubmitIsLone(jobs, ends));
  }
  if (wake_at_) {
    next = base::Earlier(next, clock_.InstantFor(*wake_at_, false));
  }
  if (rules_.clock.mode == model::ClockRules::Mode::kRounds && !jobs.running().empty() &&
      clock_.last()) {
    next = base::Earlier(next, clock_.InstantFor(*clock_.last(), false));
  }
  if (rules_.clock.mode == model::ClockRules::Mode::kArrivals && !submits_to_come_ &&
      clock_.last() && (!jobs.running().empty() || jobs.waiting() > 0)) {
    next = base::Earlier(next, *clock_.last() + rules_.clock.length);
  }
  return next;
}

TimePoint Instants::ReleaseOf(TimePoint logged, const model::JobRecords& jobs,
                              const Ends& ends) const {
  return rules_.end.release_at_instant ? clock_.InstantFor(logged, EndIsLone(jobs, ends)) : logged;
}

}  // namespace trainyard::engine
