// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/plain_list.h"

#include <gtest/gtest.h>

#include "support/queued_jobs.h"

namespace trainyard::scheduler {
namespace {

using Jobs = std::vector<JobId>;

QueueByCount::MakeQueue Plain(const Walk& walk = {}) {
  return [walk](const Ordering& ordering, const JobTable& jobs, Packing& /*packing*/) {
    return std::make_unique<PlainList>(ordering, jobs, QueueRules{.walk = walk});
  };
}

TEST(PlainListTest, SmallerKeysTakeTheGpusOfLargerOnes) {
  SetOrdering ordering;
  QueueByCount queue(ordering, 4, Plain());
  ordering.SetKey(JobAt(0), 5);
  ordering.SetKey(JobAt(1), 1);
  queue.Arrive(4, TimePoint{});
  queue.Decide(TimePoint{});
  EXPECT_EQ(queue.jobs().running(), Jobs{JobAt(0)});
  queue.Arrive(4, AtSeconds(1));
  EXPECT_TRUE(queue.Decide(AtSeconds(1)).complete);
  EXPECT_EQ(queue.jobs().running(), Jobs{JobAt(1)});
}

TEST(PlainListTest, WithoutPreemptionRunningJobsRunOn) {
  SetOrdering ordering;
  QueueByCount queue(ordering, 4, Plain({.preempt = false}));
  ordering.SetKey(JobAt(0), 5);
  queue.Arrive(4, TimePoint{});
  queue.Decide(TimePoint{});
  queue.Arrive(4, AtSeconds(1));  // of key 0
  queue.Decide(AtSeconds(1));
  EXPECT_EQ(queue.jobs().running(), Jobs{JobAt(0)});
}

TEST(PlainListTest, AsksForEveryKeyAtEachDecisionWhateverTheOrderingSays) {
  SetOrdering ordering({.moves = kNeverMoves});
  QueueByCount queue(ordering, 4, Plain());
  queue.Arrive(4, TimePoint{});
  queue.Arrive(4, TimePoint{});
  queue.Decide(TimePoint{});
  ordering.SetKey(JobAt(0), 7);  // which it has not announced
  queue.Decide(AtSeconds(1));
  EXPECT_EQ(queue.jobs().running(), Jobs{JobAt(1)});
}

}  // namespace
}  // namespace trainyard::scheduler
