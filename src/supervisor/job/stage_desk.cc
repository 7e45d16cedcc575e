// SPDX-License-Identifier: Apache-2.0
#include "supervisor/job/stage_desk.h"

#include <algorithm>

#include "supervisor/job/recent_mean.h"

namespace trainyard::supervisor {

bool StageDesk::Want(Worker worker, v1::Stage stage, Clock::time_point now) {
  const bool is_new = !workers_.contains(worker);
  State& state = workers_[worker];
  if (is_new) {  // in the iteration of the others
    for (const auto& [other, of] : workers_) {
      state.iteration = std::max(state.iteration, of.iteration);
    }
  } else if (stage <= state.last) {
    ++state.iteration;
  }
  state.last = stage;
  state.stage = stage;
  const bool joins =
      running_ && std::any_of(workers_.begin(), workers_.end(), [&](const auto& other) {
        return other.first != worker && !other.second.waits && other.second.stage == stage;
      });
  state.waits = !joins;
  LookForTurns(now);
  return joins;
}

const StageDesk::State& StageDesk::Hindmost() const {
  return std::min_element(workers_.begin(), workers_.end(),
                          [](const auto& a, const auto& b) { return a.second.IsBefore(b.second); })
      ->second;
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
    const auto [stage, since] = *running_;
    const double last = std::chrono::duration<double>(now - since).count();
    double& mean = seconds_.at(static_cast<std::size_t>(stage));
    mean = RecentMean(mean > 0 ? std::optional(mean) : std::nullopt, last);
    running_.reset();
    Say(v1::StageTurn::ENDS, stage);
  }
  const bool all_wait =
      !workers_.empty() && std::all_of(workers_.begin(), workers_.end(),
                                       [](const auto& worker) { return worker.second.waits; });
  if (all_wait && !waits_since_) {
    Say(v1::StageTurn::WANTS, Hindmost().stage);
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
  const State first = Hindmost();
  for (auto& [worker, state] : workers_) {
    if (!first.IsBefore(state)) {
      state.waits = false;
      begin.emplace_back(worker, state.stage);
    }
  }
  running_ = {begin.front().second, now};
  waits_since_.reset();
  return begin;
}

}  // namespace trainyard::supervisor
