// SPDX-License-Identifier: Apache-2.0
#include "live/measured/overruns.h"

#include <algorithm>
#include <chrono>

#include "engine/engine.h"

namespace trainyard::live {
namespace {

// Ends are told a little late.
constexpr Duration kLeast = std::chrono::seconds(1);

}  // namespace

std::optional<TimePoint> Overruns::next_timer() const {
  const std::optional<TimePoint> first = engine_.first_forecast();
  return first ? std::optional(std::max(*first, looked_) + state_.options.Scaled(kLeast))
               : std::nullopt;
}

// A job that states what it takes is not to be stopped in its last seconds: it has overrun by a
// twentieth of its time at least. Emulated trainers end when their work is done.
std::vector<model::Event> Overruns::TakeFacts() {
  constexpr int kPart = 20;
  std::vector<model::Event> facts;
  if (const std::optional<TimePoint> due = next_timer(); !due || state_.now < *due) {
    return facts;
  }
  looked_ = state_.now;
  for (const JobId id : engine_.OverdueBy(state_.now - state_.options.Scaled(kLeast))) {
    const LiveJob& job = state_.jobs[id];
    const LiveAttempt* const attempt = state_.attempts[id].wanted();
    const Duration late = state_.now - engine_.records()[Index(id)].forecast.logged;
    if (!job.ending && !job.is_emulated() && attempt != nullptr && attempt->has_run &&
        late >= engine_.ProgressOf(id, state_.now).productive_time / (kPart + 1)) {
      facts.push_back({.at = state_.now,
                       .fact = model::fact::Overrun{
                           .job = id, .work_done = job.counts_work() ? job.iterations_seen : 0}});
    }
  }
  return facts;
}

}  // namespace trainyard::live
