// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/incremental_queue.h"

#include <gtest/gtest.h>

#include "scheduler/queue/plain_list.h"
#include "support/same_decisions.h"

namespace trainyard::scheduler {
namespace {

QueueByCount::MakeQueue Incremental(const QueueRules& rules = {}) {
  return [rules](const Ordering& ordering, const JobTable& jobs, Packing& packing) {
    return std::make_unique<IncrementalQueue>(ordering, jobs, packing, rules);
  };
}

QueueByCount::MakeQueue Oracle(const QueueRules& rules = {}) {
  return [rules](const Ordering& ordering, const JobTable& jobs, Packing& /*packing*/) {
    return std::make_unique<PlainList>(ordering, jobs, rules);
  };
}

TEST(IncrementalQueueTest, ADecisionAsksAboutJobsThatHaveChangedAndNoOthers) {
  SetOrdering ordering;
  QueueByCount queue(ordering, 2, Incremental());
  for (int i = 0; i < 100; ++i) {
    queue.Arrive(2, TimePoint{});
  }
  queue.Decide(TimePoint{});
  queue.End(JobAt(0), AtSeconds(1));
  ordering.asked = 0;
  queue.Decide(AtSeconds(1));
  EXPECT_EQ(queue.jobs().running(), std::vector{JobAt(1)});
  EXPECT_LE(ordering.asked, 3);
}

TEST(IncrementalQueueTest, AJobThatHasLostItsGpusMayGetOthersAtItsPlaceInTheOrder) {
  SetOrdering ordering;
  QueueByCount queue(ordering, 4, Incremental());
  ordering.SetKey(queue.Arrive(1, TimePoint{}), 5);
  queue.Decide(TimePoint{});
  ordering.SetKey(JobAt(1), 1);
  queue.Arrive(3, AtSeconds(1));
  EXPECT_TRUE(queue.Decide(AtSeconds(1)).dropped.empty());
  ordering.SetKey(JobAt(2), 0);
  queue.Arrive(4, AtSeconds(2));
  EXPECT_EQ(queue.Decide(AtSeconds(2)).dropped.size(), 2U);
  EXPECT_EQ(queue.jobs().running(), std::vector{JobAt(2)});
}

TEST(IncrementalQueueTest, InAStrictOrderNobodyPassesTheHead) {
  SetOrdering ordering;
  QueueByCount queue(ordering, 4,
                     Incremental({.walk = {.misfit = Misfit::kStop, .preempt = false}}));
  queue.Arrive(3, TimePoint{});
  queue.Arrive(4, TimePoint{});
  queue.Arrive(1, TimePoint{});
  const Selection selection = queue.Decide(TimePoint{});
  EXPECT_EQ(queue.jobs().running(), std::vector{JobAt(0)});
  ASSERT_EQ(selection.blocked.size(), 2U);
  EXPECT_EQ(selection.blocked[0].first, JobAt(1));
  EXPECT_EQ(selection.blocked[1].reason, model::WaitReason::kBehindHead);
}

// Else nothing would happen between the end of the stay and the next event.
TEST(IncrementalQueueTest, WakesWhenAStayEndsWhoseJobAWaitingOneWouldDisplace) {
  SetOrdering ordering;
  QueueByCount queue(ordering, 4, Incremental());
  ordering.SetKey(JobAt(0), 5);
  queue.Arrive(4, TimePoint{});
  queue.jobs().view(JobAt(0)).stay_left = FromSeconds(60);
  queue.Decide(TimePoint{});
  EXPECT_EQ(queue.next(), std::nullopt);
  ordering.SetKey(JobAt(1), 9);
  queue.Arrive(4, AtSeconds(1));
  queue.Decide(AtSeconds(1));
  EXPECT_EQ(queue.next(), std::nullopt);  // it ranks below
  ordering.SetKey(JobAt(2), 1);
  queue.Arrive(4, AtSeconds(2));
  queue.Decide(AtSeconds(2));
  EXPECT_EQ(queue.next(), AtSeconds(60));
}

TEST(IncrementalQueueTest, DecidesAsThePlainListByCount) {
  for (const unsigned moves : {unsigned{kNeverMoves}, unsigned{kAlways}}) {
    for (const bool preempt : {true, false}) {
      for (unsigned seed = 0; seed < 10; ++seed) {
        const QueueRules rules{.walk = {.preempt = preempt}, .running_first = seed % 2 == 0};
        SetOrdering ordering({.moves = moves});
        QueueByCount subject(ordering, 7, Incremental(rules));
        QueueByCount oracle(ordering, 7, Oracle(rules));
        ExpectSameDecisions(ordering, subject, oracle, seed);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard::scheduler
