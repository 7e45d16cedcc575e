// SPDX-License-Identifier: Apache-2.0
#include "faults/stage_workers.h"

#include <fmt/format.h>

#include <utility>

namespace trainyard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kIterations = 15;  // of each attempt: enough to see every disturbance
// Each of three others may be late once in every slot of a cycle.
constexpr Duration kLongestWait = 12 * seconds(9);

v1::Stage After(v1::Stage stage) {
  return stage == v1::LOAD ? v1::FORWARD : stage == v1::FORWARD ? v1::COMMUNICATION : v1::LOAD;
}

}  // namespace

void StageWorkers::Start(const supervisor::AttemptKey& key, std::uint64_t gpus,
                         const v1::Turns& turns) {
  workers_[key] = {.gpus = gpus, .turns = turns, .iterations = kIterations};
  world_.after(world_.between(Duration{0}, seconds(2)), [this, key] { Ask(key); });
}

void StageWorkers::Leave(const supervisor::AttemptKey& key) {
  if (workers_.erase(key) > 0) {
    turns_.Leave(key, Now());
    Settle();
  }
}

void StageWorkers::LoseAgent() {
  turns_ = {};
  for (auto& [key, worker] : workers_) {
    worker.in_turn = false;
    if (worker.waits) {
      Begin(key, worker, false);
    }
  }
}

void StageWorkers::Ask(const supervisor::AttemptKey& key) {
  const auto at = workers_.find(key);
  if (at == workers_.end() || at->second.waits || at->second.in_stage) {
    return;
  }
  Worker& worker = at->second;
  if (worker.iterations == 0) {
    turns_.Leave(key, Now());
    return Settle();
  }
  worker.waits = true;
  worker.act = ++acts_;
  world_.after(kLongestWait, [this, key, act = worker.act] {
    const auto still = workers_.find(key);
    if (still != workers_.end() && still->second.waits && still->second.act == act) {
      world_.violated(
          fmt::format("job {} has waited for its turn for {} s", key.first, Seconds(kLongestWait)));
    }
  });
  if (world_.no_turns) {
    return Begin(key, worker, true);
  }
  turns_.Join(key, worker.gpus, worker.turns);
  turns_.Want(key, worker.stage, Now());
  Settle();
}

void StageWorkers::Begin(const supervisor::AttemptKey& key, Worker& worker, bool in_turn) {
  worker.waits = false;
  worker.in_stage = true;
  worker.in_turn = in_turn;
  worker.act = ++acts_;
  if (in_turn) {
    ++turns_taken_;
    CheckAlone(key, worker);
  }
  const Duration time = world_.chance(0.01) ? Duration(seconds(20))
                                            : world_.between(milliseconds(20), milliseconds(900));
  world_.after(time, [this, key, act = worker.act] {
    const auto still = workers_.find(key);
    if (still != workers_.end() && still->second.act == act) {
      End(key);
    }
  });
}

void StageWorkers::CheckAlone(const supervisor::AttemptKey& key, const Worker& worker) const {
  for (const auto& [other_key, other] : workers_) {
    const bool beside = other_key != key && other.in_stage && other.in_turn &&
                        (other.gpus & worker.gpus) != 0 && other.stage == worker.stage;
    if (beside && worker.stage != v1::LOAD) {
      world_.violated(fmt::format("jobs {} and {} are in stage {} at a time", key.first,
                                  other_key.first, v1::Stage_Name(worker.stage)));
    }
  }
}

void StageWorkers::End(const supervisor::AttemptKey& key) {
  Worker& worker = workers_.at(key);
  worker.in_stage = false;
  worker.in_turn = false;
  worker.iterations -= worker.stage == v1::COMMUNICATION ? 1 : 0;
  worker.stage = After(worker.stage);
  turns_.End(key, Now());
  Settle();
  world_.after(world_.chance(0.02) ? seconds(3) : milliseconds(1), [this, key] { Ask(key); });
}

// What follows from the last change.
void StageWorkers::Settle() {
  for (const supervisor::StageTurns::Late& late : turns_.TakeLate()) {
    if (!late.over) {
      workers_.at(late.key).in_turn = false;
    }
  }
  for (const supervisor::StageTurns::Go& go : turns_.TakeGoes()) {
    Begin(go.key, workers_.at(go.key), true);
  }
  if (const auto due = turns_.next_due()) {
    const auto left = std::chrono::ceil<Duration>(*due - Now());
    world_.after(std::max(Duration{0}, left), [this, timer = ++timers_] {
      if (timer == timers_) {
        turns_.OnTime(Now());
        Settle();
      }
    });
  }
}

}  // namespace trainyard
