// SPDX-License-Identifier: Apache-2.0
// Owns what jobs say of themselves: what the engine has been told of it, and what it has still to
// be told, not too often.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/event.h"
#include "trainyard/live.pb.h"
#include "trainyard/state.h"

namespace trainyard {

class LiveMetrics {
 public:
  // `pause`: the least time between two facts about one job.
  explicit LiveMetrics(Duration pause) : pause_(pause) {}

  // What a live job says. Names beyond those that the engine keeps are dropped: they would be told
  // again and again.
  void Hear(JobId job, const v1::AttemptReport& report);
  // The engine is told so.
  void Note(const Event& event);
  // The job has ended.
  void Drop(JobId job);

  // What there is to tell of the job, as a fact.
  [[nodiscard]] std::optional<Event> Untold(JobId job, TimePoint now) const;
  // The jobs of which the engine may be told again.
  [[nodiscard]] std::vector<JobId> Due(TimePoint now) const;
  [[nodiscard]] std::optional<TimePoint> next_timer() const;

  void SerializeJob(JobId job, StateStream& state);

 private:
  struct OfJob {
    std::map<std::string, double> told;
    std::map<std::string, double> untold;
    TimePoint tell_from{};

    void Serialize(StateStream& state) { state(told, untold, tell_from); }
  };

  const Duration pause_;
  std::map<JobId, OfJob> jobs_;  // those that have said something
  std::set<JobId> untold_;       // those with something untold
};

}  // namespace trainyard
