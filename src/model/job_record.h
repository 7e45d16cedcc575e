// SPDX-License-Identifier: Apache-2.0
// Everything the engine knows about one job, and the phases of its life.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/metric.h"
#include "trainyard/plan.h"
#include "trainyard/resources.h"
#include "trainyard/state.h"
#include "trainyard/time.h"

namespace trainyard::model {

enum class JobPhase : std::uint8_t {
  kUnknown,  // not submitted yet
  kArrived,  // submitted, not yet judged
  kWaiting,  // admitted, holds nothing
  kRunning,  // with GPUs, or on CPUs alone
  kCompleted,
  kRejected,
  kCancelled,
  kFailed,
};

[[nodiscard]] std::string_view Name(JobPhase phase);

// A phase that changes only along the arrows of ARCHITECTURE.md, "Jobs".
class CheckedPhase {
 public:
  // REQUIRES: the transition exists; anything else is an error in the engine.
  void To(JobPhase next);
  [[nodiscard]] JobPhase get() const { return phase_; }
  void Serialize(StateStream& state) { state(phase_); }
  [[nodiscard]] bool live() const {
    return phase_ == JobPhase::kWaiting || phase_ == JobPhase::kRunning;
  }

 private:
  JobPhase phase_ = JobPhase::kUnknown;
};

// What has been done and what is owed, as of one moment. Between changes everything follows in
// closed form (Ledger::Accrue).
struct Progress {
  TimePoint as_of{};
  double early = 0;      // seconds by which the true instant is before `as_of` (true_instants)
  double work_left = 0;  // units of the execution model; below 0 where rounding overshot
  double rate = 0;       // units per second under the present grant
  double per_round = 0;  // whole units per round (Quantum::kIterationPerRound)
  Duration debt{0};      // restart cost not yet paid
  Duration waited{0};
  Duration run_time{0};
  Duration productive_time{0};
  std::int64_t gpu_micros = 0;         // GPUs held x time
  std::int64_t useful_gpu_micros = 0;  // the part in which the job advanced

  void Serialize(StateStream& state) {
    state(as_of, early, work_left, rate, per_round, debt, waited, run_time, productive_time,
          gpu_micros, useful_gpu_micros);
  }
};

// The three times of an end, as predicted when the job's rate last changed.
struct Forecast {
  TimePoint done = kEndOfTime;    // exactly when the work is done
  TimePoint logged = kEndOfTime;  // what the rules register as the end
  double early = 0;               // seconds by which the true end is before `done`

  void Serialize(StateStream& state) { state(done, logged, early); }
};

struct JobRecord {
  std::shared_ptr<const JobSpec> spec;
  CheckedPhase phase;
  bool started = false;
  bool started_late = false;  // not at the decision that admitted it
  std::uint64_t arrival = 0;
  Grant grant{};
  Progress progress{};
  Duration productive_before_attempt{0};
  Duration fetch{0};         // what it owed for its data when it got its grant
  Duration start_cost{0};    // of a first launch (Preemption::Rule::kSound)
  Duration restart_cost{0};  // of another one
  Duration stay{0};          // with GPUs: how long it trains before it may be a victim
  Forecast forecast{};
  double total_work = 0;
  double full_rate = 0;    // on the requested GPUs; 0: it does not run so
  Resources preferred{};   // of its node's CPUs, memory and storage bandwidth
  double last_rate = 0;    // under its latest grant; the full rate before its first
  TimePoint idle_since{};  // holds no GPUs since
  TimePoint first_start = kEndOfTime;
  TimePoint done = kEndOfTime;    // the exact end
  TimePoint logged = kEndOfTime;  // the registered end
  std::vector<Metric> reported;   // by name
  std::uint32_t preemptions = 0;
  std::uint32_t migrations = 0;
  std::uint32_t resizes = 0;

  void Serialize(StateStream& state);
};

}  // namespace trainyard::model
