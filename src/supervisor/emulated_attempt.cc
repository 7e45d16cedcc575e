// SPDX-License-Identifier: Apache-2.0
#include "supervisor/emulated_attempt.h"

#include <algorithm>
#include <utility>

namespace trainyard::supervisor {
namespace {

// Whatever is said in seconds, within what a clock can count.
Attempt::Clock::duration ToDuration(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::ceil<Attempt::Clock::duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, kLongest)));
}

}  // namespace

EmulatedAttempt::EmulatedAttempt(AttemptFolder folder, v1::StartAttempt start,
                                 Clock::time_point now)
    : Attempt(std::move(folder)),
      start_(std::move(start)),
      advances_from_(now + ToDuration(start_.restart_cost_s())),
      next_report_(now) {
  SetStart(start_);
  FindEnd();
}

void EmulatedAttempt::FindEnd() {
  finished_at_ = Clock::time_point::max();
  if (start_.iterations() > 0 && start_.rate() > 0) {
    const double left = start_.iterations() - start_.iterations_done();
    finished_at_ = advances_from_ + ToDuration(left / start_.rate());
  }
}

double EmulatedAttempt::IterationsAt(Clock::time_point now) const {
  if (now >= finished_at_) {
    return start_.iterations();
  }
  const std::chrono::duration<double> advanced = std::max(now - advances_from_, Clock::duration{0});
  return start_.iterations_done() + advanced.count() * start_.rate();
}

void EmulatedAttempt::Advance(Clock::time_point now) {
  if (exited()) {
    return;
  }
  if (now >= finished_at_) {
    End(start_.iterations(), true);
  } else if (now >= next_report_) {
    TellRunning(now);
  }
}

void EmulatedAttempt::TellRunning(Clock::time_point now) {
  v1::AttemptReport report = this->report();
  report.set_state(v1::AttemptReport::RUNNING);
  report.set_iterations(IterationsAt(now));
  Tell(std::move(report));
  next_report_ = now + std::chrono::seconds(1);
}

Attempt::Clock::time_point EmulatedAttempt::NextDue() const {
  return exited() ? Clock::time_point::max() : std::min(next_report_, finished_at_);
}

void EmulatedAttempt::Stop(Clock::time_point now, Clock::time_point end) {
  if (exited()) {
    return;
  }
  if (end > now) {
    End(IterationsAt(now), now >= finished_at_);
    return;
  }
  v1::AttemptReport report = this->report();
  report.set_iterations(IterationsAt(now));
  report.set_exit_code(kKilled);
  report.set_lost(true);
  Exit(std::move(report));
}

void EmulatedAttempt::Tune(Clock::time_point now, const v1::TuneAttempt& tune) {
  if (exited()) {
    return;
  }
  start_.set_iterations_done(IterationsAt(now));
  start_.set_rate(tune.rate());
  advances_from_ = std::max(advances_from_, now);
  FindEnd();
}

void EmulatedAttempt::End(double iterations, bool finished) {
  v1::AttemptReport report = this->report();
  report.set_iterations(iterations);
  report.set_checkpointed_iterations(iterations);
  report.set_finished(finished);
  report.set_lost(!finished);
  Exit(std::move(report));
}

}  // namespace trainyard::supervisor
