// SPDX-License-Identifier: Apache-2.0
// Measures the jobs that run: iterations per second, the times of their stages, and what their
// changes cost. What it finds becomes facts, from which the engine corrects its profiles; it keeps
// only what is unfinished, which a restart forgets.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "live/live_state.h"
#include "profile/measured_book.h"

namespace trainyard::engine {
class Engine;
}  // namespace trainyard::engine

namespace trainyard::live {

// Pretended workers are not measured: they do what the profiles say.
class ThroughputMeter {
 public:
  // Both must outlive it.
  ThroughputMeter(const LiveState& state, const engine::Engine& engine)
      : state_(state), engine_(engine) {}

  // The job's last attempt has been opened by this action.
  void Open(const model::Action& action);
  // Its agents are told to start it.
  void Start(JobId job);
  // A report of the part that runs.
  void Hear(JobId job, const LiveAttempt& attempt, const Part& part,
            const v1::AttemptReport& report);
  // An attempt on so many GPUs that had notice has gone.
  void NoteStopped(JobId job, int gpus, Duration took);
  // The job has ended.
  void Drop(JobId job) { jobs_.erase(job); }

  // What has been found since the last time.
  [[nodiscard]] std::vector<model::fact::Measured> TakeFacts() { return std::exchange(facts_, {}); }

 private:
  // Of the workers, by the clock of their node.
  struct Mark {
    double seconds = 0;
    double iterations = 0;
  };
  // The last attempt of a job.
  struct OfJob {
    std::uint32_t attempt = 0;
    Change change = Change::kStart;
    TimePoint opened{};
    std::optional<TimePoint> ordered{};
    std::optional<TimePoint> first{};  // since when it is known that iterations have been done
    double first_iterations = 0;       // of this attempt by then
    bool is_warm = false;
    bool has_told_cost = false;
    Mark base{};  // where the present window begins
    double window_s = 0;
    int loader_workers = 0;  // in this window
  };

  [[nodiscard]] bool Measures(JobId job) const;
  void Tell(JobId job, const LiveAttempt& attempt, OfJob& measured, double rate,
            const v1::AttemptReport& report);
  // Facts of loader workers, where they were what limited the job. `waits`: the part of the time in
  // which it waited for data.
  void TellOfLoader(JobId job, const LiveAttempt& attempt, int workers, double rate, double waits);
  // The part of the time in which the job waited for data; nothing: it does not say, or the
  // profiles do not tell loading apart.
  [[nodiscard]] std::optional<double> WaitsOf(JobId job, const v1::AttemptReport& report) const;
  [[nodiscard]] double FullRate(JobId job, const LiveAttempt& attempt, double rate,
                                const GpuType& type) const;
  [[nodiscard]] Duration CostOf(JobId job, const OfJob& measured, double rate) const;

  const LiveState& state_;
  const engine::Engine& engine_;
  std::map<JobId, OfJob> jobs_;
  std::vector<model::fact::Measured> facts_;
};

}  // namespace trainyard::live
