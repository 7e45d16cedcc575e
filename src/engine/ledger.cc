// SPDX-License-Identifier: Apache-2.0
#include "engine/ledger.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"

namespace trainyard {
void Ledger::FoldProgress(Progress& progress, const Grant& grant, TimePoint now) const {
  const Duration dt = now - progress.as_of;
  CHECK(dt.count() >= 0);
  if (dt.count() == 0) {
    progress.early = early_;
    return;
  }
  progress.as_of = now;
  const double later = progress.early - early_;  // what `dt` leaves out, in seconds
  progress.early = early_;
  if (grant.gpus == 0 || !grant.running) {
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
  if (rules_.accrual.quantum == Accrual::Quantum::kIterationPerRound) {
    const std::int64_t rounds = productive / rules_.clock.length;
    progress.work_left -= static_cast<double>(rounds) * progress.per_round;
  } else if (productive.count() > 0) {
    progress.work_left -= (Seconds(productive) + later) * progress.rate;
  }
}

void Ledger::Learn(JobRecord& job) const {
  job.full_rate = rates_.Rate(*job.spec, job.spec->gpus);
  job.preferred = rates_.Preferred(*job.spec);
}

void Ledger::Open(JobRecord& job, TimePoint at) const {
  const double work = rates_.TotalWork(*job.spec);
  job.total_work = rules_.accrual.quantum == Accrual::Quantum::kSecond ? std::floor(work) : work;
  Learn(job);
  job.last_rate = job.full_rate;
  job.idle_since = at;
  job.progress = {.as_of = at, .work_left = job.total_work};
}

void Ledger::Fold(JobRecord& job, TimePoint now) const {
  if (!rules_.end.by_plan || job.grant.gpus == 0 || now <= job.forecast.done) {
    FoldProgress(job.progress, job.grant, now);
    return;
  }
  Progress& progress = job.progress;
  FoldProgress(progress, job.grant, std::max(progress.as_of, job.forecast.done));
  const Duration idle = now - progress.as_of;
  progress.run_time += idle;
  progress.gpu_micros += idle.count() * job.grant.gpus;
  progress.as_of = now;
}

void Ledger::Run(JobRecord& job, const CoRunners& co_runners) const {
  Progress& progress = job.progress;
  if (!job.grant.running) {
    progress.rate = 0;
    progress.per_round = 0;
    return;
  }
  const Throughput throughput = rates_.ThroughputUnder(*job.spec, job.grant, co_runners);
  progress.rate = throughput.rate;
  job.last_rate = progress.rate;
  if (rules_.accrual.quantum == Accrual::Quantum::kIterationPerRound) {
    progress.per_round = std::floor(Seconds(rules_.clock.length) / throughput.seconds_per_unit);
  }
}

void Ledger::Stop(JobRecord& job) const {
  job.progress.rate = 0;
  job.progress.per_round = 0;
  job.idle_since = job.progress.as_of;
  if (rules_.debt.charge != Debt::Charge::kEveryArrival) {
    job.progress.debt = Duration{0};
  }
  if (!rules_.end.by_plan) {
    job.forecast = {};
  }
}

void Ledger::Charge(JobRecord& job, Duration cost) const {
  switch (rules_.debt.pay) {
    case Debt::Pay::kDelay:
      job.progress.debt += cost;
      return;
    case Debt::Pay::kInterval:
      job.progress.debt = cost;
      return;
    case Debt::Pay::kAtEnd:
      job.progress.work_left += Seconds(cost) * job.progress.rate;
      return;
  }
}

void Ledger::Credit(JobRecord& job, Duration time) const {
  job.progress.work_left -= Seconds(time) * job.progress.rate;
}

void Ledger::ForgetDebt(JobRecord& job) const {
  if (rules_.debt.pay == Debt::Pay::kInterval) {
    job.progress.debt = Duration{0};
  }
}

TimePoint Ledger::Registered(const JobRecord& job, TimePoint from, TimePoint now) const {
  const double seconds = Seconds(from) + job.progress.work_left / job.progress.rate;
  switch (rules_.end.finish) {
    case EndRule::Finish::kExact:
      return job.forecast.done;
    case EndRule::Finish::kCeilSecond:
      return AtSeconds(std::ceil(seconds));
    case EndRule::Finish::kFloorSecond:
      return AtSeconds(std::floor(seconds));
    case EndRule::Finish::kRoundEnd:
      if (rules_.accrual.quantum == Accrual::Quantum::kIterationPerRound) {
        return RoundsToCome(job, now);
      }
      // As the progress of a round is counted, so that both agree on work that just fits.
      if (const Duration round = rules_.clock.length;
          from == now && job.progress.work_left - Seconds(round) * job.progress.rate <= 0) {
        return now + round;
      }
      return NextMultiple(now, rules_.clock.length, job.forecast.done);
  }
  return job.forecast.done;
}

// With the round in which the last whole unit is done.
TimePoint Ledger::RoundsToCome(const JobRecord& job, TimePoint now) const {
  const double rounds = std::ceil(job.progress.work_left / job.progress.per_round);
  return now + static_cast<std::int64_t>(std::max(1.0, rounds)) * rules_.clock.length;
}

void Ledger::Predict(JobRecord& job, TimePoint now, bool charge_counts) const {
  const Progress& progress = job.progress;
  CHECK(progress.as_of == now);
  const bool whole = rules_.accrual.quantum == Accrual::Quantum::kIterationPerRound;
  if (progress.rate <= 0 || (whole && progress.per_round <= 0)) {
    job.forecast = {};
    return;
  }
  const bool with_debt = rules_.debt.in_forecast || charge_counts;
  const TimePoint from = now + (with_debt ? progress.debt : Duration{0});
  const double seconds = progress.work_left / progress.rate - progress.early;
  job.forecast.done = from + CeilFromSeconds(seconds);
  job.forecast.early =
      rules_.accrual.true_instants ? Seconds(job.forecast.done - from) - seconds : 0;
  job.forecast.logged = Registered(job, from, now);
  if (rules_.end.logged_slot.count() > 0) {
    job.forecast.logged = NextMultiple(now, rules_.end.logged_slot, job.forecast.logged);
  }
  if (rules_.end.logged_with_debt) {
    job.forecast.logged += progress.debt;
  }
}

void Ledger::RollBack(JobRecord& job, Duration interval) const {
  if (interval.count() <= 0) {
    return;
  }
  Progress& progress = job.progress;
  const Duration lost = (progress.productive_time - job.productive_before_attempt) % interval;
  progress.work_left = std::min(job.total_work, progress.work_left + Seconds(lost) * progress.rate);
  progress.productive_time -= lost;
  progress.useful_gpu_micros -= lost.count() * job.grant.gpus;
}

double Ledger::WorkLeft(const JobRecord& job, TimePoint now) const {
  if (now <= job.progress.as_of || job.grant.gpus == 0 || !job.grant.running) {
    return job.progress.work_left;
  }
  Progress progress = job.progress;
  FoldProgress(progress, job.grant, now);
  return progress.work_left;
}

JobView Ledger::View(JobId id, const JobRecord& job, TimePoint now, bool with_work) const {
  Progress progress = job.progress;
  if (now > progress.as_of) {
    FoldProgress(progress, job.grant, now);
  }
  JobView view{.id = id,
               .spec = job.spec.get(),
               .grant = job.grant.gpus > 0 ? &job.grant : nullptr,
               .arrival = job.arrival,
               .started = job.started,
               .waited = progress.waited,
               .waiting = job.grant.gpus > 0 ? Duration{0} : now - job.idle_since,
               .run_time = progress.run_time,
               .productive_time = progress.productive_time,
               .debt = progress.debt,
               .gpu_seconds = static_cast<double>(progress.gpu_micros) / 1e6,
               .last_rate = job.last_rate,
               .reported = job.reported};
  if (job.stay > Duration{0} && view.grant != nullptr) {
    const Duration trained = progress.productive_time - job.productive_before_attempt;
    view.stay_left = std::max(Duration{0}, progress.debt + job.stay - trained);
  }
  view.start_cost = job.started ? job.restart_cost : job.start_cost;
  if (with_work) {
    view.expected_end = job.forecast.logged;
    view.work_left = progress.work_left;
    if (const double rate = job.full_rate; rate > 0) {
      view.total_time = CeilFromSeconds(job.total_work / rate);
      view.time_left = CeilFromSeconds(progress.work_left / rate) +
                       (rules_.debt.in_forecast ? progress.debt : Duration{0}) +
                       (view.grant == nullptr ? view.start_cost : Duration{0});
    }
  }
  return view;
}

}  // namespace trainyard
