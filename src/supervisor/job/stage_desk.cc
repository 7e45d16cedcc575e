// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/stage_desk.h"

#include <algorithm>

namespace trainyard::supervisor {

void StageDesk::Want(Worker worker, v1::Stage stage, Clock::time_point now) {
  workers_[worker] = {.stage = stage, .waits = true};
  LookForTurns(now);
}

void StageDesk::End(Worker worker, Clock::time_point now) {
  if (const auto state = workers_.find(worker); state != workers_.end() && !state->second.waits) {
    state->second.stage = v1::STAGE_UNSPECIFIED;
    LookForTurns(now);
  }
}

void StageDesk::Leave(Worker worker, Clock::time_point now) {
  if (workers_.erase(worker) > 0) {
    LookForTurns(now);
  }
}

void StageDesk::Say(v1::StageTurn::Kind kind, v1::Stage stage) {
  v1::StageTurn& turn = turns_.emplace_back();
  turn.set_kind(kind);
  turn.set_stage(stage);
}

void StageDesk::LookForTurns(Clock::time_point now) {
  const bool in_stage = std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return !worker.second.waits && worker.second.stage != v1::STAGE_UNSPECIFIED;
  });
  if (running_ && !in_stage) {
    constexpr double kWeightOfLast = 0.2;
    const auto [stage, since] = *running_;
    const double last = std::chrono::duration<double>(now - since).count();
    double& mean = seconds_.at(static_cast<std::size_t>(stage));
    mean = mean > 0 ? mean + kWeightOfLast * (last - mean) : last;
    running_.reset();
    Say(v1::StageTurn::ENDS, stage);
  }
  const bool all_wait =
      !workers_.empty() && std::all_of(workers_.begin(), workers_.end(),
                                       [](const auto& worker) { return worker.second.waits; });
  if (all_wait && !waits_since_) {
    Say(v1::StageTurn::WANTS, workers_.begin()->second.stage);
  }
  if (workers_.empty()) {
    Say(v1::StageTurn::LEAVES, v1::STAGE_UNSPECIFIED);
  }
  waits_since_ = all_wait ? std::optional(waits_since_.value_or(now)) : std::nullopt;
}

std::vector<std::pair<StageDesk::Worker, v1::Stage>> StageDesk::Go(Clock::time_point now) {
  std::vector<std::pair<Worker, v1::Stage>> begin;
  if (!waits_since_) {
    return begin;
  }
  for (auto& [worker, state] : workers_) {
    state.waits = false;
    begin.emplace_back(worker, state.stage);
  }
  running_ = {begin.front().second, now};
  waits_since_.reset();
  return begin;
}

}  // namespace trainyard::supervisor
