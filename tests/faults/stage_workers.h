// SPDX-License-Identifier: Apache-2.0
// The workers of one node that go through stages by turns, in the pretended world: each stage takes
// a while, some hang, some die, and the agent that gives the turns may crash. What must hold is
// looked at from when stages begin and end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "supervisor/job/stage_turns.h"
#include "trainyard/live.pb.h"
#include "trainyard/time.h"

namespace trainyard {

class StageWorkers {
 public:
  struct World {
    std::function<TimePoint()> now;
    std::function<void(Duration, std::function<void()>)> after;
    std::function<Duration(Duration, Duration)> between;
    std::function<bool(double)> chance;
    std::function<void(const std::string&)> violated;
    bool no_turns = false;  // a planted bug: nobody waits
  };

  explicit StageWorkers(World world) : world_(std::move(world)) {}

  // An attempt begins that takes turns: goes through a number of iterations.
  void Start(const supervisor::AttemptKey& key, std::uint64_t gpus, const v1::Turns& turns);
  // Nothing of it is left. Nothing where it takes no turns.
  void Leave(const supervisor::AttemptKey& key);
  // The agent has crashed, and another one has taken its place: those that wait go on without
  // turns.
  void LoseAgent();
  // Stages that have begun when it was their turn.
  [[nodiscard]] int turns() const { return turns_taken_; }

 private:
  using Clock = supervisor::StageTurns::Clock;
  struct Worker {
    std::uint64_t gpus = 0;
    v1::Turns turns;
    int iterations = 0;  // still to do
    v1::Stage stage = v1::LOAD;
    bool waits = false;
    bool in_stage = false;
    bool in_turn = false;   // and others wait for it
    std::uint64_t act = 0;  // the number of what it does now
  };

  [[nodiscard]] Clock::time_point Now() const {
    return Clock::time_point(
        std::chrono::duration_cast<Clock::duration>(world_.now().time_since_epoch()));
  }
  void Ask(const supervisor::AttemptKey& key);
  void Begin(const supervisor::AttemptKey& key, Worker& worker, bool in_turn);
  void End(const supervisor::AttemptKey& key);
  void Settle();
  void CheckAlone(const supervisor::AttemptKey& key, const Worker& worker) const;

  World world_;
  supervisor::StageTurns turns_;
  std::map<supervisor::AttemptKey, Worker> workers_;
  std::uint64_t acts_ = 0;
  std::uint64_t timers_ = 0;
  int turns_taken_ = 0;
};

}  // namespace trainyard
