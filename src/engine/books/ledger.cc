// SPDX-License-Identifier: Apache-2.0
#include "engine/books/ledger.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"
#include "model/stay.h"

namespace trainyard::engine {
void Ledger::AccrueProgress(model::Progress& progress, const Grant& grant, TimePoint now) const {
  const Duration dt = now - progress.as_of;
  CHECK(dt.count() >= 0);
  if (dt.count() == 0) {
    progress.early = early_;
    return;
  }
  progress.as_of = now;
  const double later = progress.early - early_;  // what `dt` leaves out, in seconds
  progress.early = early_;
  if (!grant.holds() || !grant.running) {
    progress.waited += dt;
    progress.gpu_micros += dt.count() * grant.gpus;
    return;
  }
  const int gpus = grant.gpus;
  const Duration paid = std::min(progress.debt, dt);
  const Duration productive = dt - paid;
  progress.debt -= paid;
  progress.run_time += dt;
  progress.productive_time += productive;
  progress.gpu_micros += dt.count() * gpus;
  progress.useful_gpu_micros += productive.count() * gpus;
  if (rules_.quantum == model::Quantum::kIterationPerRound) {
    const std::int64_t rounds = productive / rules_.clock.length;
    progress.work_left -= static_cast<double>(rounds) * progress.per_round;
  } else if (productive.count() > 0) {
    progress.work_left -= (Seconds(productive) + later) * progress.rate;
  }
}

void Ledger::Learn(model::JobRecord& job) const {
  job.full_rate = rates_.Rate(*job.spec, job.spec->gpus);
  job.preferred = rates_.Preferred(*job.spec);
}

double Ledger::StatedWork(const model::JobRecord& job) const {
  const double work = rates_.TotalWork(*job.spec);
  return rules_.quantum == model::Quantum::kSecond ? std::floor(work) : work;
}

void Ledger::Restate(model::JobRecord& job, double stated_before) const {
  if (const double stated = StatedWork(job); stated != stated_before && stated_before > 0) {
    const double ratio = stated / stated_before;
    job.total_work *= ratio;
    job.progress.work_left *= ratio;
  }
}

bool Ledger::IsExtended(const model::JobRecord& job) const {
  constexpr double kMore =
      1.5;  // each extension doubles, and what is stated may be corrected a bit
  return job.total_work > kMore * StatedWork(job);
}

void Ledger::Extend(model::JobRecord& job, double work_done) const {
  if (work_done > 0) {
    Correct(job, work_done);
  }
  while (job.progress.work_left <= 0 && job.total_work > 0) {
    job.progress.work_left += job.total_work;
    job.total_work += job.total_work;
  }
}

void Ledger::Correct(model::JobRecord& job, double work_done) const {
  if (IsExtended(job)) {
    job.total_work = StatedWork(job);
  }
  job.progress.work_left = std::max(0.0, job.total_work - work_done);
}

void Ledger::Open(model::JobRecord& job, TimePoint at) const {
  job.total_work = StatedWork(job);
  Learn(job);
  job.last_rate = job.full_rate;
  job.idle_since = at;
  job.progress = {.as_of = at, .work_left = job.total_work};
}

void Ledger::Accrue(model::JobRecord& job, TimePoint now) const {
  job.progress = ProgressAt(job, now);
}

model::Progress Ledger::ProgressAt(const model::JobRecord& job, TimePoint now) const {
  model::Progress progress = job.progress;
  if (rules_.end.source != model::EndRule::Source::kPlanned || job.grant.gpus == 0 ||
      now <= job.forecast.done) {
    AccrueProgress(progress, job.grant, now);
    return progress;
  }
  AccrueProgress(progress, job.grant, std::max(progress.as_of, job.forecast.done));
  const Duration idle = now - progress.as_of;
  progress.run_time += idle;
  progress.gpu_micros += idle.count() * job.grant.gpus;
  progress.as_of = now;
  return progress;
}

model::Progress Ledger::ProgressOf(const model::JobRecord& job, TimePoint at) const {
  return job.phase.get() >= model::JobPhase::kCompleted
             ? job.progress
             : ProgressAt(job, std::max(at, job.progress.as_of));
}

void Ledger::Run(model::JobRecord& job, const CoRunners& co_runners) const {
  model::Progress& progress = job.progress;
  if (!job.grant.running) {
    progress.rate = 0;
    progress.per_round = 0;
    return;
  }
  const Throughput throughput = rates_.ThroughputUnder(*job.spec, job.grant, co_runners);
  progress.rate = throughput.rate;
  job.last_rate = progress.rate;
  if (rules_.quantum == model::Quantum::kIterationPerRound) {
    progress.per_round = std::floor(Seconds(rules_.clock.length) / throughput.seconds_per_unit);
  }
}

void Ledger::Stop(model::JobRecord& job) const {
  job.progress.rate = 0;
  job.progress.per_round = 0;
  job.idle_since = job.progress.as_of;
  if (rules_.debt.charge != model::Debt::Charge::kEveryArrival) {
    job.progress.debt = Duration{0};
  }
  if (rules_.end.source != model::EndRule::Source::kPlanned) {
    job.forecast = {};
  }
}

void Ledger::Charge(model::JobRecord& job, Duration cost) const {
  switch (rules_.debt.pay) {
    case model::Debt::Pay::kDelay:
      job.progress.debt += cost;
      return;
    case model::Debt::Pay::kInterval:
      job.progress.debt = cost;
      return;
    case model::Debt::Pay::kAtEnd:
      job.progress.work_left += Seconds(cost) * job.progress.rate;
      return;
  }
}

void Ledger::Credit(model::JobRecord& job, Duration time) const {
  job.progress.work_left -= Seconds(time) * job.progress.rate;
}

void Ledger::CancelDebt(model::JobRecord& job) const {
  if (rules_.debt.pay == model::Debt::Pay::kInterval) {
    job.progress.debt = Duration{0};
  }
}

TimePoint Ledger::Registered(const model::JobRecord& job, TimePoint from, TimePoint now) const {
  const double seconds = Seconds(from) + job.progress.work_left / job.progress.rate;
  switch (rules_.end.finish) {
    case model::EndRule::Finish::kExact:
      return job.forecast.done;
    case model::EndRule::Finish::kCeilSecond:
      return AtSeconds(std::ceil(seconds));
    case model::EndRule::Finish::kFloorSecond:
      return AtSeconds(std::floor(seconds));
    case model::EndRule::Finish::kRoundEnd:
      if (rules_.quantum == model::Quantum::kIterationPerRound) {
        return RoundsToCome(job, now);
      }
      // As the progress of a round is counted, so that both agree on work that just fits.
      if (const Duration round = rules_.clock.length;
          from == now && job.progress.work_left - Seconds(round) * job.progress.rate <= 0) {
        return now + round;
      }
      return base::NextMultiple(now, rules_.clock.length, job.forecast.done);
  }
  return job.forecast.done;
}

// With the round in which the last whole unit is done.
TimePoint Ledger::RoundsToCome(const model::JobRecord& job, TimePoint now) const {
  const double rounds = std::ceil(job.progress.work_left / job.progress.per_round);
  return now + static_cast<std::int64_t>(std::max(1.0, rounds)) * rules_.clock.length;
}

void Ledger::Predict(model::JobRecord& job, TimePoint now, bool charge_counts) const {
  const model::Progress& progress = job.progress;
  CHECK(progress.as_of == now);
  const bool whole = rules_.quantum == model::Quantum::kIterationPerRound;
  if (progress.rate <= 0 || (whole && progress.per_round <= 0)) {
    job.forecast = {};
    return;
  }
  const bool with_debt = rules_.published.debt_in_forecast || charge_counts;
  const TimePoint from = now + (with_debt ? progress.debt : Duration{0});
  const double seconds = progress.work_left / progress.rate - progress.early;
  job.forecast.done = from + CeilFromSeconds(seconds);
  job.forecast.early =
      rules_.published.true_instants ? Seconds(job.forecast.done - from) - seconds : 0;
  job.forecast.logged = Registered(job, from, now);
}

void Ledger::RollBack(model::JobRecord& job, Duration interval) const {
  if (interval.count() <= 0) {
    return;
  }
  model::Progress& progress = job.progress;
  const Duration lost = (progress.productive_time - job.productive_before_attempt) % interval;
  progress.work_left = std::min(job.total_work, progress.work_left + Seconds(lost) * progress.rate);
  progress.productive_time -= lost;
  progress.useful_gpu_micros -= lost.count() * job.grant.gpus;
}

double Ledger::WorkLeft(const model::JobRecord& job, TimePoint now) const {
  if (now <= job.progress.as_of || !job.grant.holds() || !job.grant.running) {
    return job.progress.work_left;
  }
  model::Progress progress = job.progress;
  AccrueProgress(progress, job.grant, now);
  return progress.work_left;
}

JobView Ledger::View(JobId id, const model::JobRecord& job, TimePoint now, bool with_work) const {
  model::Progress progress = job.progress;
  if (now > progress.as_of) {
    AccrueProgress(progress, job.grant, now);
  }
  JobView view{.id = id,
               .spec = job.spec.get(),
               .grant = job.grant.holds() ? &job.grant : nullptr,
               .arrival = job.arrival,
               .started = job.started,
               .waited = progress.waited,
               .waiting = job.grant.holds() ? Duration{0} : now - job.idle_since,
               .run_time = progress.run_time,
               .productive_time = progress.productive_time,
               .debt = progress.debt,
               .gpu_seconds = static_cast<double>(progress.gpu_micros) / 1e6,
               .last_rate = job.last_rate,
               .reported = job.reported};
  if (job.stay > Duration{0} && view.grant != nullptr) {
    view.stay_left = model::StayLeft(job, now);
  }
  view.start_cost = job.started ? job.restart_cost : job.start_cost;
  if (with_work) {
    view.expected_end = job.forecast.logged;
    view.work_left = progress.work_left;
    if (const double rate = job.full_rate; rate > 0) {
      view.total_time = CeilFromSeconds(job.total_work / rate);
      view.time_left = CeilFromSeconds(progress.work_left / rate) +
                       (rules_.published.debt_in_forecast ? progress.debt : Duration{0}) +
                       (view.grant == nullptr ? view.start_cost : Duration{0});
    }
  }
  return view;
}

}  // namespace trainyard::engine
