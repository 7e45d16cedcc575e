// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "support/antman_jobs.h"

namespace trainyard::policies {
namespace {

Demand On(JobId job, std::size_t node, std::uint64_t gpus, bool running) {
  return {.job = job,
          .gpus = std::popcount(gpus),
          .slices = {{.node = NodeAt(node), .gpus = gpus}},
          .sharing = Sharing::kCollocated,
          .running = running};
}

TEST_F(AntManTest, AGuaranteedJobGoesToTheFirstNodeWithRoom) {
  const JobId a = Add(1, kGuaranteed);
  const JobId b = Add(2, kGuaranteed);
  const JobId c = Add(1, kGuaranteed);
  Decide();
  EXPECT_EQ(GpusOf(a), Masks({0b01, 0}));
  EXPECT_EQ(GpusOf(b), Masks({0, 0b11}));
  EXPECT_EQ(GpusOf(c), Masks({0b10, 0}));
  EXPECT_TRUE(Runs(a) && Runs(b) && Runs(c));
}

TEST_F(AntManTest, AnOpportunisticJobTakesIdleGpusThenThoseOfGuaranteedJobs) {
  const JobId guaranteed = Add(2, kGuaranteed);
  const JobId first = Add(3, kOpportunistic);
  const JobId second = Add(2, kOpportunistic);
  Decide();
  EXPECT_EQ(GpusOf(guaranteed), Masks({0b11, 0}));
  EXPECT_EQ(GpusOf(first), Masks({0b01, 0b11}));
  EXPECT_FALSE(Runs(second));  // one GPU is left without another of its kind
  EXPECT_EQ(GpusOf(second), Masks({0, 0}));
}

TEST_F(AntManTest, GuaranteedJobsComeFirstWheneverTheyHaveCome) {
  const JobId opportunistic = Add(4, kOpportunistic);
  const JobId guaranteed = Add(1, kGuaranteed);
  Decide();
  EXPECT_TRUE(Runs(guaranteed));
  EXPECT_TRUE(Runs(opportunistic));  // it shares the one GPU
}

// As after a failure: the earlier job has lost its GPUs. Took it the free one, both would wait.
TEST_F(AntManTest, WhoHoldsSomeGetsTheRestBeforeAnEarlierJob) {
  const JobId early = Add(2, kGuaranteed);
  const JobId late = Add(2, kGuaranteed);
  const JobId other = Add(2, kGuaranteed);
  held_.Hold({On(late, 0, 0b01, false), On(other, 1, 0b11, true)});
  Decide();
  EXPECT_TRUE(Runs(late));
  EXPECT_EQ(GpusOf(late), Masks({0b11, 0}));
  EXPECT_EQ(GpusOf(early), Masks({0, 0}));
}

// As after an update of its priority.
TEST_F(AntManTest, WhoHoldsSomeAndIsGuaranteedNoMoreGetsTheRestAllTheSame) {
  const JobId late = Add(2, kOpportunistic);
  const JobId first = Add(1, kGuaranteed);
  const JobId second = Add(2, kGuaranteed);
  held_.Hold({On(late, 0, 0b01, false), On(first, 0, 0b10, true), On(second, 1, 0b11, true)});
  Decide();
  EXPECT_FALSE(Runs(late));
  EXPECT_EQ(GpusOf(late), Masks({0b01, 0}));
  Leave(first);
  Add(2, kGuaranteed);
  Decide();
  EXPECT_TRUE(Runs(late)) << "with one GPU each both would wait for ever";
  EXPECT_EQ(GpusOf(late), Masks({0b11, 0}));
}

TEST_F(AntManTest, NobodyIsPreemptedOrMoved) {
  const JobId opportunistic = Add(4, kOpportunistic);
  Decide();
  const JobId guaranteed = Add(4, kGuaranteed);
  Decide();
  EXPECT_TRUE(Runs(opportunistic) && Runs(guaranteed));
  EXPECT_EQ(GpusOf(opportunistic), Masks({0b11, 0b11}));
}

TEST_F(AntManTest, WhoDoesNotFitHoldsWhatThereIsAndWaits) {
  const JobId a = Add(1, kGuaranteed);
  const JobId b = Add(2, kGuaranteed);
  const JobId waits = Add(2, kGuaranteed);
  const JobId small = Add(1, kGuaranteed);
  Decide();
  EXPECT_EQ(GpusOf(waits), Masks({0b10, 0}));
  EXPECT_FALSE(Runs(waits));
  EXPECT_FALSE(Runs(small));  // the hold keeps it out
  Leave(b);
  Decide();
  EXPECT_FALSE(Runs(waits));  // it waits on its node
  EXPECT_EQ(GpusOf(small), Masks({0, 0b01}));
  Leave(a);
  Decide();
  EXPECT_EQ(GpusOf(waits), Masks({0b11, 0}));
  EXPECT_TRUE(Runs(waits));
}

TEST_F(AntManTest, AJobLargerThanANodeHoldsIdleNodes) {
  const JobId small = Add(1, kGuaranteed);
  const JobId large = Add(4, kGuaranteed);
  Decide();
  EXPECT_EQ(GpusOf(large), Masks({0, 0b11}));
  EXPECT_FALSE(Runs(large));
  Leave(small);
  Decide();
  EXPECT_EQ(GpusOf(large), Masks({0b11, 0b11}));
  EXPECT_TRUE(Runs(large));
}

TEST_F(AntManTest, JobsWithoutStagesHaveTheirGpusForThemselves) {
  const JobId plain = jobs_.AddPlain(2, 10).id;
  const JobId opportunistic = Add(3, kOpportunistic);
  Decide();
  EXPECT_TRUE(Runs(plain));
  EXPECT_FALSE(Runs(opportunistic));
}

}  // namespace
}  // namespace trainyard::policies
