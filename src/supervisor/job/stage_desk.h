// SPDX-License-Identifier: Apache-2.0
// The stages of one attempt on its node: its workers ask each for itself, and begin each stage
// together. Knows nothing of other jobs (stage_turns.h).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

class StageDesk {
 public:
  using Clock = std::chrono::steady_clock;
  using Worker = std::uint64_t;  // a connection of one

  // The worker wants to begin a stage; it has ended the one before. True: it begins at once, since
  // its attempt is in that stage.
  [[nodiscard]] bool Want(Worker worker, v1::Stage stage, Clock::time_point now);
  void End(Worker worker, Clock::time_point now);
  // The worker has gone. Nothing where it has never asked.
  void Leave(Worker worker, Clock::time_point now);

  // What the attempt as a whole wants, since the last call: WANTS once all workers that take part
  // wait, ENDS once none is in a stage.
  [[nodiscard]] std::vector<v1::StageTurn> TakeTurns() { return std::exchange(turns_, {}); }
  // Since when all wait. None: they do not.
  [[nodiscard]] std::optional<Clock::time_point> waits_since() const { return waits_since_; }
  // It is the attempt's turn: those that are furthest behind begin, each with its stage; a worker
  // that is ahead of them goes on waiting.
  [[nodiscard]] std::vector<std::pair<Worker, v1::Stage>> Go(Clock::time_point now);
  // Seconds of each stage, means of the last ones; 0: not known. By v1::Stage.
  using Seconds = std::array<double, v1::Stage_ARRAYSIZE>;
  [[nodiscard]] const Seconds& seconds() const { return seconds_; }

 private:
  struct State {
    v1::Stage stage = v1::STAGE_UNSPECIFIED;  // it is in, or wants; none: between two
    bool waits = false;
    v1::Stage last = v1::STAGE_UNSPECIFIED;  // that it has asked for
    std::int64_t iteration = 0;              // begins with a stage that is not behind the last one

    [[nodiscard]] bool IsBefore(const State& other) const {
      return iteration != other.iteration ? iteration < other.iteration : stage < other.stage;
    }
  };

  [[nodiscard]] const State& Hindmost() const;  // REQUIRES: all wait, and there is one

  void LookForTurns(Clock::time_point now);
  void Say(v1::StageTurn::Kind kind, v1::Stage stage);

  std::map<Worker, State> workers_;                                 // that have asked for a stage
  std::optional<std::pair<v1::Stage, Clock::time_point>> running_;  // of the attempt, since when
  std::optional<Clock::time_point> waits_since_;
  Seconds seconds_{};
  std::vector<v1::StageTurn> turns_;
};

}  // namespace trainyard::supervisor
