// SPDX-License-Identifier: Apache-2.0
#include "loader/reallocation.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::loader {
namespace {

constexpr JobId kA = JobAt(0);
constexpr JobId kB = JobAt(1);
constexpr JobId kC = JobAt(2);

// Twelve workers in equal parts.
std::vector<int> Evenly(const LoaderQueues& /*queues*/, std::span<const JobId> jobs) {
  return std::vector<int>(jobs.size(), jobs.empty() ? 0 : 12 / static_cast<int>(jobs.size()));
}

Reallocation Always() { return {ReallocationMode::kAlways, Evenly}; }

std::vector<LoaderArrival> Batch(std::initializer_list<JobId> jobs) {
  std::vector<LoaderArrival> batch;
  for (const JobId job : jobs) {
    batch.push_back({.job = job, .workers = 5});
  }
  return batch;
}

// "launch 1:6" and so on.
std::vector<std::string> Words(const LoaderStep& step) {
  std::vector<std::string> words;
  for (const LoaderCommand& command : step.commands) {
    words.push_back((command.kind == LoaderCommand::Kind::kPause ? "pause " : "launch ") +
                    std::to_string(Index(command.job)) + ":" + std::to_string(command.workers));
  }
  return words;
}

using SaidOfLoader = std::vector<std::string>;

TEST(ReallocationTest, AnArrivalWaitsUntilTheOthersHaveStopped) {
  LoaderStep step = Always().Arrive({}, Batch({kA}));
  EXPECT_EQ(Words(step), (SaidOfLoader{"launch 0:12"}));
  step = Always().Arrive(step.queues, Batch({kB}));
  EXPECT_EQ(Words(step), (SaidOfLoader{"pause 0:6"}));
  step = Always().Paused(step.queues, kA);
  EXPECT_EQ(Words(step), (SaidOfLoader{"launch 1:6", "launch 0:6"}));
  EXPECT_TRUE(step.commands[1].from_checkpoint);
  EXPECT_EQ(step.commands[1].restarts, 1);
}

TEST(ReallocationTest, WhoHasNotBeenToldIsToldThoughOthersArePausing) {
  LoaderStep step = Always().Arrive({}, Batch({kA}));
  step = Always().Arrive(step.queues, Batch({kB}));  // pauses A
  step = Always().Paused(step.queues, kA);           // B and A run
  step = Always().Arrive(step.queues, Batch({kC}));
  EXPECT_EQ(Words(step), (SaidOfLoader{"pause 1:4", "pause 0:4"}));
  step = Always().Finish(step.queues, std::vector{kB});
  EXPECT_EQ(Words(step), SaidOfLoader{});  // A has been told already
  EXPECT_EQ(step.queues.jobs.at(kA).workers, 6);
}

TEST(ReallocationTest, WhoFinishesInsteadOfPausingIsNotWaitedFor) {
  LoaderStep step = Always().Arrive({}, Batch({kA}));
  step = Always().Arrive(step.queues, Batch({kB}));
  step = Always().Finish(step.queues, std::vector{kA});
  EXPECT_EQ(Words(step), (SaidOfLoader{"launch 1:12"}));
}

TEST(ReallocationTest, ModesSayWhenToDivideAnew) {
  const Reallocation never(ReallocationMode::kNever, Evenly);
  LoaderStep step = never.Arrive({}, Batch({kA}));
  EXPECT_EQ(Words(step), (SaidOfLoader{"launch 0:5"}));
  step = never.Arrive(step.queues, Batch({kB}));
  EXPECT_EQ(Words(step), (SaidOfLoader{"launch 1:5"}));
  const Reallocation arrivals(ReallocationMode::kOnArrival, Evenly);
  step = arrivals.Arrive({}, Batch({kA, kB}));
  step = arrivals.Finish(step.queues, std::vector{kB});
  EXPECT_EQ(Words(step), SaidOfLoader{});
  EXPECT_EQ(step.queues.jobs.at(kA).workers, 6);
}

TEST(ReallocationTest, AReportOfNobodyWhoWasToldIsNothing) {
  LoaderStep step = Always().Arrive({}, Batch({kA}));
  step = Always().Paused(step.queues, kA);
  EXPECT_TRUE(step.commands.empty());
  EXPECT_EQ(step.queues.running, (std::vector{kA}));
}

TEST(ReallocationTest, WindowsHandOverAtTheirStart) {
  const Duration window = FromSeconds(10);
  EXPECT_EQ(HandoverOf(AtSeconds(0), window), AtSeconds(0));
  EXPECT_EQ(HandoverOf(AtSeconds(3), window), AtSeconds(0));
  EXPECT_EQ(HandoverOf(AtSeconds(10), window), AtSeconds(0));
  EXPECT_EQ(HandoverOf(AtSeconds(10.5), window), AtSeconds(10));
  EXPECT_EQ(HandoverOf(AtSeconds(20), window), AtSeconds(10));
  EXPECT_EQ(HandoverOf(AtSeconds(20), Duration{0}), AtSeconds(20));
}

// However facts come, all jobs run once everybody who was told has answered, and a job is told
// once only.
TEST(ReallocationTest, NothingIsLeftWaiting) {
  std::mt19937 random(5);  // NOLINT(bugprone-random-generator-seed): the same each time
  for (int round = 0; round < 300; ++round) {
    const auto mode = static_cast<ReallocationMode>(1 + random() % 3);
    const Reallocation machine(mode, Evenly);
    LoaderQueues queues;
    std::size_t next = 0;
    for (int fact = 0; fact < 30; ++fact) {
      LoaderStep step{.queues = queues};
      if (random() % 3 == 0 || queues.running.empty()) {
        step = machine.Arrive(queues, Batch({JobAt(next++)}));
      } else if (!queues.told.empty() && random() % 2 == 0) {
        step = machine.Paused(queues, *queues.told.begin());
      } else {
        step =
            machine.Finish(queues, std::vector{queues.running[random() % queues.running.size()]});
      }
      queues = step.queues;
      EXPECT_TRUE(!queues.told.empty() || (queues.ready.empty() && queues.paused.empty()));
    }
    while (!queues.told.empty()) {
      queues = machine.Paused(queues, *queues.told.begin()).queues;
    }
    EXPECT_TRUE(queues.ready.empty() && queues.paused.empty());
    EXPECT_EQ(queues.running.size() + queues.finished.size(), next);
  }
}

}  // namespace
}  // namespace trainyard::loader
