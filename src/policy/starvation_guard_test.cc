// SPDX-License-Identifier: Apache-2.0
#include "policy/starvation_guard.h"

#include <gtest/gtest.h>

#include "policy/hand_made_jobs.h"

namespace trainyard {
namespace {

// One job that waits, under an ordering whose keys do not move while it is served.
class StarvationGuardTest : public testing::Test {
 protected:
  void Use(const std::string& policy) {
    ordering_ = OrderingNamed(policy);
    memory_ = ordering_->NewMemory();
  }
  // Told at `waiting` seconds that its time has come: whether it goes first from then on.
  bool FirstWhenDue(double waiting) {
    job_.waiting = FromSeconds(waiting);
    ordering_->Notify(JobEvent::kDue, job_, AtSeconds(waiting), memory_.get());
    return ordering_->StandingOf(job_, {}, memory_.get()).first;
  }
  [[nodiscard]] std::optional<TimePoint> NextMove(double now) const {
    return ordering_->StandingOf(job_, AtSeconds(now), memory_.get()).moves_at;
  }

  HandMadeJobs jobs_;
  JobView& job_ = jobs_.Add({.user = "u", .gpus = 1});
  std::unique_ptr<Ordering> ordering_;
  std::unique_ptr<Memory> memory_;
};

TEST_F(StarvationGuardTest, WhoHasWaitedLongEnoughRanksFirstForGood) {
  Use("fifo:guard=1000");
  EXPECT_EQ(NextMove(0), AtSeconds(1000));
  EXPECT_FALSE(FirstWhenDue(999));
  EXPECT_TRUE(FirstWhenDue(1000));
  EXPECT_EQ(NextMove(1000), std::nullopt);
  jobs_.Hold(job_, 1);
  EXPECT_TRUE(ordering_->StandingOf(job_, {}, memory_.get()).first);
}

TEST_F(StarvationGuardTest, WhoHasRunBeforeMayHaveToWaitLonger) {
  Use("fifo:guard=1000,guard_again=300");
  job_.started = true;
  EXPECT_EQ(NextMove(0), AtSeconds(1300));
  EXPECT_FALSE(FirstWhenDue(1299));
  EXPECT_TRUE(FirstWhenDue(1300));
}

TEST_F(StarvationGuardTest, ItMayCountFromTheNextDecisionOnEvenForAJobThatRunsByThen) {
  Use("fifo:guard=1000,guard_late=1");
  EXPECT_FALSE(FirstWhenDue(1000));
  jobs_.Hold(job_, 1);
  EXPECT_EQ(NextMove(1000), AtSeconds(1000) + Duration{1});
  EXPECT_TRUE(FirstWhenDue(1300));
}

TEST_F(StarvationGuardTest, WhoRunsIsNotStarved) {
  Use("fifo:guard=1000");
  jobs_.Hold(job_, 1);
  EXPECT_EQ(NextMove(0), std::nullopt);
  EXPECT_FALSE(FirstWhenDue(5000));
}

TEST_F(StarvationGuardTest, TheGuardedOrderKeepsItsKeysItsStayAndItsMemory) {
  Use("las:quantum=0,guard=1000");
  job_.gpu_seconds = 600;
  EXPECT_TRUE(FirstWhenDue(1000));
  EXPECT_EQ(ordering_->StandingOf(job_, {}, memory_.get()).key[0], 600e6);
  EXPECT_EQ(ordering_->StandingOf(job_, {}, memory_.get()).stay, Duration{0});
  Use("drf:guard=1000");
  job_.shares = {.gpus = 0.5};
  const JobView& other = jobs_.Add({.user = "u", .gpus = 1});
  ordering_->BeginDecision({.gpus_up = 4, .jobs = &jobs_}, memory_.get());
  EXPECT_EQ(ordering_->StandingOf(other, {}, memory_.get()).key[0], 0.5);
  EXPECT_TRUE(FirstWhenDue(1000));
}

TEST_F(StarvationGuardTest, WithoutItThereIsNoMemory) {
  for (const char* policy : {"srtf", "las:quantum=0", "fifo", "ftf"}) {
    EXPECT_EQ(OrderingNamed(policy)->NewMemory(), nullptr) << policy;
  }
}

}  // namespace
}  // namespace trainyard
