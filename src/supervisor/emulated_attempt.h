// SPDX-License-Identifier: Apache-2.0
// A trainer that is only played: it advances at a rate, and is gone with the agent. Cheap enough
// for hundreds at once.
#pragma once

#include "supervisor/attempt.h"

namespace trainyard::supervisor {

class EmulatedAttempt final : public Attempt {
 public:
  EmulatedAttempt(AttemptFolder folder, v1::StartAttempt start, Clock::time_point now);

  void Advance(Clock::time_point now) override;
  [[nodiscard]] pollfd Awaited() const override { return {.fd = -1}; }
  [[nodiscard]] Clock::time_point NextDue() const override;
  // On notice it checkpoints at once and leaves; without time for that its progress is lost.
  void Stop(Clock::time_point now, Clock::time_point end) override;
  void Tune(Clock::time_point now, const v1::TuneAttempt& tune) override;
  void LeaseOver(Clock::time_point now, Clock::time_point end) override { Stop(now, end); }

 private:
  void FindEnd();
  [[nodiscard]] double IterationsAt(Clock::time_point now) const;
  void TellRunning(Clock::time_point now);
  void End(double iterations, bool finished);

  v1::StartAttempt start_;
  Clock::time_point advances_from_;
  Clock::time_point finished_at_ = Clock::time_point::max();
  Clock::time_point next_report_;
};

}  // namespace trainyard::supervisor
