// SPDX-License-Identifier: Apache-2.0
// For tests: jobs that take turns in a pretended world with a clock of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "supervisor/job/stage_turns.h"

namespace trainyard {

inline constexpr supervisor::StageTurns::Clock::time_point kBegin{};

inline v1::Turns TurnsOf(int position, double iteration_s = 0.4) {
  v1::Turns turns;
  turns.set_position(position);
  turns.set_iteration_s(iteration_s);
  return turns;
}

// A job in a pretended world: goes through its stages, each of its length, and hangs or dies at
// times.
struct StagedJob {
  supervisor::AttemptKey key;
  std::vector<std::pair<v1::Stage, std::chrono::milliseconds>> stages;
  std::size_t next = 0;  // the stage that it wants or is in
  std::size_t done = 0;  // iterations
  bool in_stage = false;
  bool dead = false;
  supervisor::StageTurns::Clock::time_point acts_at = kBegin;
  supervisor::StageTurns::Clock::time_point asked{};
};

struct StageSpan {
  supervisor::AttemptKey key;
  v1::Stage stage;
  supervisor::StageTurns::Clock::time_point begin;
  supervisor::StageTurns::Clock::time_point end;
};

struct TurnsWorld {
  supervisor::StageTurns turns;
  std::vector<StagedJob> jobs;
  std::vector<StageSpan> spans;
  std::chrono::milliseconds longest_wait{0};

  void Begin(supervisor::StageTurns::Clock::time_point now) {
    for (const supervisor::StageTurns::Go& go : turns.TakeGoes()) {
      StagedJob& job = *std::find_if(jobs.begin(), jobs.end(),
                                     [&go](const StagedJob& j) { return j.key == go.key; });
      ASSERT_FALSE(job.in_stage);
      ASSERT_EQ(job.stages[job.next].first, go.stage);
      longest_wait = std::max(
          longest_wait, std::chrono::duration_cast<std::chrono::milliseconds>(now - job.asked));
      job.in_stage = true;
      job.acts_at = now + job.stages[job.next].second;
      spans.push_back({job.key, go.stage, now, job.acts_at});
    }
  }
  // `misbehave`: hangs for 20 s, or dies, once in so many steps; 0: never.
  void Run(std::size_t iterations, int misbehave, std::mt19937& random) {
    const auto busy = [iterations](const StagedJob& job) {
      return !job.dead && job.done < iterations;
    };
    for (int step = 0; step < 100'000 && std::any_of(jobs.begin(), jobs.end(), busy); ++step) {
      supervisor::StageTurns::Clock::time_point now =
          turns.next_due().value_or(supervisor::StageTurns::Clock::time_point::max());
      for (const StagedJob& job : jobs) {
        now = busy(job) ? std::min(now, job.acts_at) : now;
      }
      ASSERT_NE(now, supervisor::StageTurns::Clock::time_point::max()) << "all wait for ever";
      turns.OnTime(now);
      Begin(now);
      for (StagedJob& job : jobs) {
        if (busy(job) && job.acts_at <= now) {
          Act(job, iterations, misbehave, now, random);
          Begin(now);
        }
      }
    }
    EXPECT_FALSE(std::any_of(jobs.begin(), jobs.end(), busy));
  }
  void Act(StagedJob& job, std::size_t iterations, int misbehave,
           supervisor::StageTurns::Clock::time_point now, std::mt19937& random) {
    if (misbehave > 0 && random() % static_cast<unsigned>(misbehave) == 0) {
      if (random() % 4 == 0) {
        job.dead = true;
        turns.Leave(job.key, now);
      } else {
        job.acts_at = now + std::chrono::seconds(20);
      }
      return;
    }
    if (job.in_stage) {
      turns.End(job.key, now);
      job.in_stage = false;
      job.next = (job.next + 1) % job.stages.size();
      job.done += job.next == 0 ? 1 : 0;
    }
    if (job.done == iterations) {
      turns.Leave(job.key, now);
      return;
    }
    job.asked = now;
    job.acts_at = supervisor::StageTurns::Clock::time_point::max();
    turns.Want(job.key, job.stages[job.next].first, now);
  }
};

}  // namespace trainyard
