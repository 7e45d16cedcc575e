// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/sorted_list.h"

#include <gtest/gtest.h>

#include "scheduler/queue/plain_list.h"
#include "support/same_decisions.h"

namespace trainyard::scheduler {
namespace {

template <typename List>
QueueByCount::MakeQueue Make(const QueueRules& rules = {}) {
  return [rules](const Ordering& ordering, const JobTable& jobs, Packing& /*packing*/) {
    return std::make_unique<List>(ordering, jobs, rules);
  };
}

std::vector<JobId> OrderOf(QueueByCount& queue, TimePoint now) {
  const Snapshot snapshot{.now = now, .jobs = &queue.jobs()};
  std::vector<JobId> jobs;
  for (const Ranked& ranked : dynamic_cast<OrderedList&>(queue.queue()).InOrder(snapshot)) {
    jobs.push_back(ranked.job);
  }
  return jobs;
}

TEST(SortedListTest, AsksOnlyForKeysThatMayHaveMoved) {
  SetOrdering ordering({.moves = kNeverMoves});
  QueueByCount queue(ordering, 4, Make<SortedList>());
  for (int i = 0; i < 10; ++i) {
    queue.Arrive(1, TimePoint{});
  }
  (void)OrderOf(queue, TimePoint{});
  ordering.asked = 0;
  (void)OrderOf(queue, AtSeconds(1));
  EXPECT_EQ(ordering.asked, 0);
  queue.Arrive(1, AtSeconds(1));
  ordering.asked = 0;
  (void)OrderOf(queue, AtSeconds(1));
  EXPECT_EQ(ordering.asked, 1);
}

TEST(SortedListTest, KeysThatMoveWhileServedAreAskedForOfRunningJobs) {
  SetOrdering ordering({.moves = kWhileServed});
  QueueByCount queue(ordering, 3, Make<SortedList>());
  for (int i = 0; i < 10; ++i) {
    queue.Arrive(1, TimePoint{});
  }
  queue.Decide(TimePoint{});
  (void)OrderOf(queue, AtSeconds(1));
  ordering.asked = 0;
  (void)OrderOf(queue, AtSeconds(2));
  EXPECT_EQ(ordering.asked, 3);
}

TEST(SortedListTest, EqualJobsKeepTheirOrderOfLastTimeWhereTheWalkSaysSo) {
  SetOrdering ordering({.moves = kAlways});
  QueueByCount queue(ordering, 1,
                     Make<SortedList>({.walk = {.former_rank = Walk::FormerRank::kKeys}}));
  queue.Arrive(1, TimePoint{});
  queue.Arrive(1, TimePoint{});
  ordering.SetKey(JobAt(0), 2);
  ordering.SetKey(JobAt(1), 1);
  EXPECT_EQ(OrderOf(queue, TimePoint{}), (std::vector{JobAt(1), JobAt(0)}));
  ordering.SetKey(JobAt(0), 1);
  EXPECT_EQ(OrderOf(queue, AtSeconds(1)), (std::vector{JobAt(1), JobAt(0)}));
}

TEST(SortedListTest, DecidesAsThePlainList) {
  for (const unsigned moves : {unsigned{kNeverMoves}, unsigned{kWhileServed}, unsigned{kAlways}}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      SetOrdering ordering({.moves = moves});
      QueueByCount subject(ordering, 7, Make<SortedList>());
      QueueByCount oracle(ordering, 7, Make<PlainList>());
      ExpectSameDecisions(ordering, subject, oracle, seed);
    }
  }
}

}  // namespace
}  // namespace trainyard::scheduler
