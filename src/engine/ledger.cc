// SPDX-License-Identifier: Apache-2.0
#include "engine/ledger.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"

namespace trainyard {
namespace {

void FoldProgress(Progress& progress, int gpus, TimePoint now) {
  const Duration dt = now - progress.as_of;
  CHECK(dt.count() >= 0);
  progress.as_of = now;
  if (gpus == 0) {
    progress.waited += dt;
    return;
  }
  const Duration paid = std::min(progress.debt, dt);
  const Duration productive = dt - paid;
  progress.debt -= paid;
  progress.run_time += dt;
  progress.productive_time += productive;
  progress.gpu_micros += dt.count() * gpus;
  progress.useful_gpu_micros += productive.count() * gpus;
  if (productive.count() > 0) {
    progress.work_left -= Seconds(productive) * progress.rate;
  }
}

}  // namespace

void Ledger::Open(JobRecord& job, TimePoint at) const {
  const double work = rates_.TotalWork(*job.spec);
  job.total_work = rules_.accrual.quantum == Accrual::Quantum::kSecond ? std::floor(work) : work;
  job.full_rate = rates_.Rate(*job.spec, job.spec->gpus);
  job.progress = {.as_of = at, .work_left = job.total_work};
}

void Ledger::Fold(JobRecord& job, TimePoint now) const {
  if (!rules_.end.by_plan || job.grant.gpus == 0 || now <= job.forecast.done) {
    FoldProgress(job.progress, job.grant.gpus, now);
    return;
  }
  Progress& progress = job.progress;
  FoldProgress(progress, job.grant.gpus, std::max(progress.as_of, job.forecast.done));
  const Duration idle = now - progress.as_of;
  progress.run_time += idle;
  progress.gpu_micros += idle.count() * job.grant.gpus;
  progress.as_of = now;
}

void Ledger::SetGpus(JobRecord& job, int gpus) const {
  job.progress.rate = gpus == 0 ? 0 : rates_.Rate(*job.spec, gpus);
  if (gpus == 0) {
    if (rules_.debt.charge != Debt::Charge::kEveryArrival) {
      job.progress.debt = Duration{0};
    }
    if (!rules_.end.by_plan) {
      job.forecast = {};
    }
  }
}

void Ledger::Charge(JobRecord& job, Duration cost) const {
  if (rules_.debt.pay == Debt::Pay::kInterval) {
    job.progress.debt = cost;
  } else {
    job.progress.debt += cost;
  }
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
      // As the progress of a round is counted, so that both agree on work that just fits.
      if (const Duration round = rules_.clock.length;
          from == now && job.progress.work_left - Seconds(round) * job.progress.rate <= 0) {
        return now + round;
      }
      return NextMultiple(now, rules_.clock.length, job.forecast.done);
  }
  return job.forecast.done;
}

void Ledger::Predict(JobRecord& job, TimePoint now, bool charge_counts) const {
  const Progress& progress = job.progress;
  CHECK(progress.as_of == now);
  if (progress.rate <= 0) {
    job.forecast = {};
    return;
  }
  const bool with_debt = rules_.debt.in_forecast || charge_counts;
  const TimePoint from = now + (with_debt ? progress.debt : Duration{0});
  job.forecast.done = from + CeilFromSeconds(progress.work_left / progress.rate);
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

JobView Ledger::View(JobId id, const JobRecord& job, TimePoint now, bool with_work) const {
  Progress progress = job.progress;
  FoldProgress(progress, job.grant.gpus, std::max(now, progress.as_of));
  JobView view{.id = id,
               .spec = job.spec.get(),
               .grant = job.grant.gpus > 0 ? &job.grant : nullptr,
               .arrival = job.arrival,
               .started = job.started,
               .waited = progress.waited,
               .run_time = progress.run_time,
               .productive_time = progress.productive_time,
               .debt = progress.debt,
               .gpu_seconds = static_cast<double>(progress.gpu_micros) / 1e6};
  if (with_work) {
    view.expected_end = job.forecast.logged;
    view.work_left = progress.work_left;
    if (const double rate = job.full_rate; rate > 0) {
      view.total_time = CeilFromSeconds(job.total_work / rate);
      view.time_left = CeilFromSeconds(progress.work_left / rate) +
                       (rules_.debt.in_forecast ? progress.debt : Duration{0});
    }
  }
  return view;
}

}  // namespace trainyard
