// SPDX-License-Identifier: Apache-2.0
#include "live/calls/start_forecast.h"

#include <algorithm>
#include <chrono>

#include "model/conditions.h"
#include "model/job_fields.h"

namespace trainyard::live {
namespace {

// A future with the job in it.
class Future {
 public:
  Future(const engine::Engine& engine, TimePoint now, const std::shared_ptr<const JobSpec>& job)
      : fork_(engine.Fork()),
        runner_(engine.configuration().forks),
        job_(JobAt(fork_->records().size())) {
    model::Batch batch{.now = now};
    if (model::PartOf<JobTraits>(*job).array.empty()) {
      batch.events = {{.at = now, .fact = model::fact::Submitted{.job = job_, .spec = job}}};
    } else {  // its first task
      batch.events = {{.at = now, .fact = model::fact::ArraySubmitted{.job = job_, .spec = job}}};
    }
    goes_on_ = fork_->Step(batch).ok();
  }

  // Until then. False: it cannot be said what comes.
  [[nodiscard]] bool RunUntil(TimePoint until) {
    goes_on_ = goes_on_ && runner_ != nullptr && runner_->Run(*fork_, until).ok();
    return goes_on_;
  }
  [[nodiscard]] bool goes_on() const { return goes_on_; }
  [[nodiscard]] const model::JobRecord& record() const { return fork_->records()[Index(job_)]; }

 private:
  const std::unique_ptr<engine::Engine> fork_;
  const engine::ForkRunner* const runner_;
  const JobId job_;
  bool goes_on_ = false;
};

}  // namespace

std::optional<ForecastStart> StartOf(const engine::Engine& engine, TimePoint now,
                                     const std::shared_ptr<const JobSpec>& job) {
  constexpr Duration kFirst = std::chrono::minutes(1);
  constexpr Duration kMost = std::chrono::hours(24 * 365);
  if (engine.is_paused()) {
    return std::nullopt;
  }
  Future future(engine, now, job);
  for (Duration ahead = kFirst; future.goes_on() && !future.record().started && ahead < kMost;
       ahead *= 2) {
    static_cast<void>(future.RunUntil(now + ahead));
  }
  if (!future.goes_on() || !future.record().started) {
    return std::nullopt;
  }
  const TimePoint at = std::max(now, future.record().first_start);
  Future again(engine, now, job);  // as far as the start
  if (!again.record().started && !again.RunUntil(at)) {
    return std::nullopt;
  }
  return ForecastStart{.at = at, .grant = again.record().grant};
}

}  // namespace trainyard::live
