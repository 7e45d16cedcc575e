// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/job_set.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::scheduler {
namespace {

TEST(JobSetTest, HoldsWhatIsInsertedUntilItIsErased) {
  JobSet set;
  EXPECT_TRUE(set.empty());
  set.Insert(JobAt(3));
  set.Insert(JobAt(3));
  set.Insert(JobAt(1));
  EXPECT_TRUE(set.Holds(JobAt(3)));
  EXPECT_FALSE(set.Holds(JobAt(2)));
  set.Erase(JobAt(3));
  set.Erase(JobAt(7));
  EXPECT_FALSE(set.Holds(JobAt(3)));
  EXPECT_EQ(set.TakeAll(), std::vector<JobId>{JobAt(1)});
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.Holds(JobAt(1)));
}

TEST(JobSetTest, IsAsAStdSetAlsoAfterManyChangesAndWhenReadBack) {
  std::mt19937_64 random(1);
  JobSet set;
  std::set<JobId> expected;
  for (int i = 0; i < 5000; ++i) {
    const JobId job = JobAt(random() % 100);
    if (random() % 2 == 0) {
      set.Insert(job);
      expected.insert(job);
    } else {
      set.Erase(job);
      expected.erase(job);
    }
  }
  StateStream written;
  set.Serialize(written);
  JobSet read;
  StateStream bytes{written.bytes()};
  read.Serialize(bytes);
  EXPECT_TRUE(bytes.complete());
  const std::vector<JobId> all(expected.begin(), expected.end());
  EXPECT_EQ(set.TakeAll(), all);
  EXPECT_EQ(read.TakeAll(), all);
}

TEST(JobTimesTest, TheEarliestIsFirstAndOneTimeReplacesAnother) {
  JobTimes times;
  EXPECT_FALSE(times.IsDue(AtSeconds(100)));
  times.Set(JobAt(2), AtSeconds(30));
  times.Set(JobAt(0), AtSeconds(20));
  times.Set(JobAt(1), AtSeconds(20));
  times.Set(JobAt(2), AtSeconds(10));
  EXPECT_FALSE(times.IsDue(AtSeconds(9)));
  EXPECT_TRUE(times.IsDue(AtSeconds(10)));
  EXPECT_EQ(times.TakeFirst(), std::pair(AtSeconds(10), JobAt(2)));
  EXPECT_EQ(times.TakeFirst(), std::pair(AtSeconds(20), JobAt(0)));
  times.Set(JobAt(1), std::nullopt);
  times.Cancel(JobAt(5));
  EXPECT_TRUE(times.empty());
}

}  // namespace
}  // namespace trainyard::scheduler
