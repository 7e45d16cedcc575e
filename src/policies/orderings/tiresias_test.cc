// SPDX-License-Identifier: Apache-2.0
#include "policies/orderings/tiresias.h"

#include <gtest/gtest.h>

#include "support/hand_made_queues.h"

namespace trainyard::policies {
namespace {

TEST(TiresiasTest, JobsEnterTheFirstQueueInOrderOfArrival) {
  Queues queues("tiresias");
  const JobView& first = queues.Arrive(8);
  const JobView& second = queues.Arrive(1);
  EXPECT_EQ(queues.QueueOf(first), 0);
  EXPECT_EQ(queues.QueueOf(second), 0);
  EXPECT_LT(queues.KeyOf(first), queues.KeyOf(second));
}

TEST(TiresiasTest, KeysMoveAtKnownTimesAndWithGrants) {
  const auto tiresias = OrderingNamed("tiresias");
  EXPECT_EQ(tiresias->traits().moves, kAtKnownTimes | kOnGrant);
  EXPECT_FALSE(tiresias->traits().sets_wake);
  EXPECT_TRUE(tiresias->traits().walk.preempt);
  EXPECT_FALSE(tiresias->traits().needs.work_left);
}

TEST(TiresiasTest, ARunningJobIsDemotedWhenItsServiceReachesTheThreshold) {
  Queues queues("tiresias:thresholds=1000/3000");
  JobView& job = Running(queues, 4, 249);
  queues.Due(job, 249);
  EXPECT_EQ(queues.QueueOf(job), 0);
  job.run_time = FromSeconds(250);
  queues.Due(job, 250);
  EXPECT_EQ(queues.QueueOf(job), 1);
}

TEST(TiresiasTest, ServiceCanBeTimeAlone) {
  Queues queues("tiresias:thresholds=1000/3000,service=time");
  JobView& job = Running(queues, 4, 999);
  queues.Due(job, 999);
  EXPECT_EQ(queues.QueueOf(job), 0);
  EXPECT_EQ(queues.NextMove(job, 999), 1000);
}

TEST(TiresiasTest, TheNextMoveIsTheExactTimeOfTheDemotion) {
  Queues queues("tiresias:thresholds=1000/3000");
  const JobView& job = Running(queues, 4, 100);  // 600 GPU-seconds to go
  EXPECT_EQ(queues.NextMove(job, 100), 250);
}

TEST(TiresiasTest, ADemotedJobAimsAtTheNextThreshold) {
  Queues queues("tiresias:thresholds=1000/3000");
  JobView& job = Running(queues, 4, 250);
  queues.Due(job, 250);
  EXPECT_EQ(queues.NextMove(job, 250), 750);
}

TEST(TiresiasTest, TheLastQueueIsNeverLeft) {
  Queues queues("tiresias:thresholds=1000/3000");
  JobView& job = Running(queues, 4, 750);
  queues.Due(job, 750);
  EXPECT_EQ(queues.QueueOf(job), 2);
  EXPECT_EQ(queues.NextMove(job, 750), std::nullopt);
}

TEST(TiresiasTest, ADemotedJobEntersBehindTheQueue) {
  Queues queues("tiresias:thresholds=1000/3000");
  JobView& first = Running(queues, 4, 250);
  JobView& second = Running(queues, 4, 260);
  queues.Due(second, 260);
  queues.Due(first, 260);
  EXPECT_LT(queues.KeyOf(second), queues.KeyOf(first));
}

TEST(TiresiasTest, ARunningJobStaysBeforeTheWaitingOnesOfItsQueue) {
  Queues queues("tiresias");
  const JobView& waiting = queues.Arrive(1);
  JobView& running = queues.Arrive(1);
  queues.Settle(running, true, 0);
  EXPECT_LT(queues.KeyOf(running), queues.KeyOf(waiting));
}

TEST(TiresiasTest, TheLatestStoppedJobWaitsFirst) {
  Queues queues("tiresias");
  const JobView& never_ran = queues.Arrive(1);
  JobView& stopped_early = Running(queues, 1, 50);
  JobView& stopped_late = Running(queues, 1, 70);
  queues.Settle(stopped_early, false, 50);
  queues.Settle(stopped_late, false, 70);
  EXPECT_LT(queues.KeyOf(stopped_late), queues.KeyOf(stopped_early));
  EXPECT_LT(queues.KeyOf(stopped_early), queues.KeyOf(never_ran));
}

TEST(TiresiasTest, JobsStoppedTogetherKeepTheirOrder) {
  Queues queues("tiresias");
  JobView& first = Running(queues, 1, 50);
  JobView& second = Running(queues, 1, 50);
  queues.Settle(second, false, 50);
  queues.Settle(first, false, 50);
  EXPECT_LT(queues.KeyOf(first), queues.KeyOf(second));
}

TEST(TiresiasTest, AStarvingJobIsPromoted) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  EXPECT_EQ(queues.NextMove(job, 100), 300);
  job.waited = FromSeconds(199);
  queues.Due(job, 299);
  EXPECT_EQ(queues.QueueOf(job), 1);
  job.waited = FromSeconds(200);
  queues.Due(job, 300);
  EXPECT_EQ(queues.QueueOf(job), 0);
}

TEST(TiresiasTest, APromotedJobHasItsWholeThresholdAgain) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  job.waited = FromSeconds(200);
  queues.Due(job, 300);
  queues.Settle(job, true, 300);
  EXPECT_EQ(queues.NextMove(job, 300), 400);
}

TEST(TiresiasTest, APromotedJobEntersBehindTheFirstQueue) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  const JobView& newcomer = queues.Arrive(1, 250);
  job.waited = FromSeconds(200);
  queues.Due(job, 300);
  EXPECT_LT(queues.KeyOf(newcomer), queues.KeyOf(job));
}

TEST(TiresiasTest, NobodyIsPromotedWithoutTheOption) {
  Queues queues("tiresias:thresholds=100/1000");
  JobView& job = Demoted(queues);
  EXPECT_EQ(queues.NextMove(job, 100), std::nullopt);
  job.waited = FromSeconds(1e6);
  queues.Due(job, 1e6);
  EXPECT_EQ(queues.QueueOf(job), 1);
}

TEST(TiresiasTest, StarvingBeginsAnewWithEachStop) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  job.waited = FromSeconds(150);
  queues.Settle(job, true, 250);
  job.run_time = FromSeconds(110);
  queues.Settle(job, false, 260);
  EXPECT_EQ(queues.NextMove(job, 260), 260 + 2 * 110);
}

TEST(TiresiasTest, WaitingBeforeTheFirstRunIsNotStarving) {
  Queues queues("tiresias:thresholds=100/1000,promote=2");
  JobView& job = queues.Arrive(1);
  job.waited = FromSeconds(500);
  queues.Settle(job, true, 500);
  job.run_time = FromSeconds(100);
  queues.Due(job, 600);
  queues.Settle(job, false, 600);
  EXPECT_EQ(queues.NextMove(job, 600), 800);
}

TEST(TiresiasTest, AClonedMemoryGoesItsOwnWay) {
  Queues queues("tiresias:thresholds=100");
  JobView& job = Running(queues, 1, 100);
  const std::unique_ptr<Memory> before = queues.CopyOfMemory();
  queues.Due(job, 100);
  EXPECT_EQ(queues.QueueOf(job), 1);
  EXPECT_EQ(queues.ordering().StandingOf(job, {}, before.get()).key[0], 0);
}

TEST(TiresiasTest, ThresholdsThatFallAreRefused) {
  EXPECT_EQ(PolicyError("tiresias:thresholds=7200/3250"),
            "policy 'tiresias': thresholds must not fall");
  EXPECT_EQ(PolicyError("tiresias:thresholds=100/100"), "no error");
}

TEST(TiresiasTest, GittinsWithoutAPriorIsRefused) {
  const Result<Components> policy = TryPolicy("tiresias:ranking=gittins");
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(policy.error().message.starts_with(
      "policy 'tiresias': ranking=gittins needs prior=FILE: samples of total service in "
      "GPU-seconds, one per line"))
      << policy.error().message;
}

TEST(TiresiasTest, APriorThatCannotBeReadIsRefusedWithItsOwnWords) {
  const ComponentContext context{.read_samples = [](const std::string& name) {
    return Result<std::vector<double>>(BadInput(name + ": no such file"));
  }};
  EXPECT_EQ(PolicyError("tiresias:ranking=gittins,prior=x.csv", context), "x.csv: no such file");
}

TEST(TiresiasTest, GittinsPutsTheLikelierEndFirst) {
  const ComponentContext context{.read_samples = [](const std::string&) {
    return Result<std::vector<double>>({10, 10, 10, 1000});
  }};
  Queues queues("tiresias:ranking=gittins,prior=x,thresholds=100/200", context);
  EXPECT_EQ(queues.ordering().traits().moves, kAtKnownTimes | kOnGrant | kAlways);
  const JobView& past_the_short_ones = Running(queues, 1, 50);
  const JobView& young = Running(queues, 1, 5);
  EXPECT_LT(queues.KeyOf(young), queues.KeyOf(past_the_short_ones));
  // 3 of 4 end within 100, which takes (3 x 5 + 100) / 4 on average.
  EXPECT_DOUBLE_EQ(queues.KeyOf(young)[1], -3.0 / 115);
  EXPECT_EQ(queues.KeyOf(past_the_short_ones)[1], 0);
}

TEST(TiresiasTest, RestartCostsAreService) {
  Queues queues("tiresias:thresholds=1000");
  JobView& job = Running(queues, 1, 600);
  job.productive_time = FromSeconds(500);
  EXPECT_EQ(queues.NextMove(job, 600), 1000);
}

TEST(TiresiasTest, OfEqualIndicesTheRunningJobComesFirst) {
  const ComponentContext context{.read_samples = [](const std::string&) {
    return Result<std::vector<double>>({10, 1000});
  }};
  Queues queues("tiresias:ranking=gittins,prior=x,thresholds=100/200", context);
  const JobView& early = queues.Arrive(1, 3);
  JobView& late = queues.Arrive(1, 4);
  queues.Settle(late, true, 4);
  EXPECT_LT(queues.KeyOf(late), queues.KeyOf(early));
}

}  // namespace
}  // namespace trainyard::policies
