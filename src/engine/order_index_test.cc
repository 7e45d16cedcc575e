// SPDX-License-Identifier: Apache-2.0
#include "engine/order_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace trainyard {
namespace {

OrderIndex::Rank RankOf(double key, std::uint64_t arrival) {
  return {.key = {key}, .arrival = arrival};
}

// The best waiting job of a demand class.
JobId BestOf(const OrderIndex& index, int gpus) { return JobAt(index.waiting().at(gpus).top()); }

TEST(OrderIndexTest, TheBestWaitingJobOfAClassIsOnTop) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), 4, RankOf(30, 0));
  index.PushWaiting(JobAt(1), 4, RankOf(10, 1));
  index.PushWaiting(JobAt(2), 4, RankOf(20, 2));
  EXPECT_EQ(BestOf(index, 4), JobAt(1));
}

TEST(OrderIndexTest, DemandClassesAreApart) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), 4, RankOf(30, 0));
  index.PushWaiting(JobAt(1), 1, RankOf(10, 1));
  EXPECT_EQ(BestOf(index, 4), JobAt(0));
  EXPECT_EQ(BestOf(index, 1), JobAt(1));
}

TEST(OrderIndexTest, OfEqualKeysTheEarlierArrivalIsBetter) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), 1, RankOf(10, 8));
  index.PushWaiting(JobAt(1), 1, RankOf(10, 7));
  EXPECT_EQ(BestOf(index, 1), JobAt(1));
  index.Clear();
  index.PushRunning(JobAt(0), RankOf(10, 8), 0, AtSeconds(0));
  index.PushRunning(JobAt(1), RankOf(10, 7), 0, AtSeconds(0));
  EXPECT_EQ(index.WorstRunning(AtSeconds(0)), JobAt(0));
}

TEST(OrderIndexTest, LaterPartsOfTheKeyBreakTies) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), 1, {.key = {1, 2, 3, 5}, .arrival = 0});
  index.PushWaiting(JobAt(1), 1, {.key = {1, 2, 3, 4}, .arrival = 1});
  EXPECT_EQ(BestOf(index, 1), JobAt(1));
}

TEST(OrderIndexTest, AnErasedJobIsHeldNoLonger) {
  OrderIndex index;
  index.PushWaiting(JobAt(3), 1, RankOf(10, 0));
  EXPECT_TRUE(index.Holds(JobAt(3)));
  EXPECT_FALSE(index.Holds(JobAt(2)));
  EXPECT_FALSE(index.Holds(JobAt(1000)));
  index.Erase(JobAt(3));
  EXPECT_FALSE(index.Holds(JobAt(3)));
  EXPECT_TRUE(index.waiting().at(1).empty());
}

TEST(OrderIndexTest, WithoutRunningJobsThereIsNoWorst) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), 1, RankOf(10, 0));
  EXPECT_EQ(index.WorstRunning(AtSeconds(0)), std::nullopt);
}

TEST(OrderIndexTest, TheWorstRunningJobStaysUntilItIsErased) {
  OrderIndex index;
  index.PushRunning(JobAt(0), RankOf(10, 0), 0, AtSeconds(0));
  index.PushRunning(JobAt(1), RankOf(30, 1), 0, AtSeconds(0));
  EXPECT_EQ(index.WorstRunning(AtSeconds(0)), JobAt(1));
  EXPECT_EQ(index.WorstRunning(AtSeconds(0)), JobAt(1));
  index.Erase(JobAt(1));
  EXPECT_EQ(index.WorstRunning(AtSeconds(0)), JobAt(0));
}

TEST(OrderIndexTest, RunningKeysMoveWithTime) {
  OrderIndex index;
  index.PushRunning(JobAt(0), RankOf(100e6, 0), -1, AtSeconds(10));
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(10)).key[0], 100e6);
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(40)).key[0], 70e6);
}

TEST(OrderIndexTest, AFasterKeyOvertakesASlowerOne) {
  OrderIndex index;
  index.PushRunning(JobAt(0), RankOf(100e6, 0), -4, AtSeconds(0));  // falls by 4 a second
  index.PushRunning(JobAt(1), RankOf(70e6, 1), -1, AtSeconds(0));
  EXPECT_EQ(index.WorstRunning(AtSeconds(9)), JobAt(0));
  EXPECT_EQ(index.WorstRunning(AtSeconds(11)), JobAt(1));
}

TEST(OrderIndexTest, AWaitingKeyStaysWhereItIs) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), 1, RankOf(100e6, 0));
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(40)).key[0], 100e6);
}

TEST(OrderIndexTest, ARestoredJobIsWhereItWas) {
  OrderIndex index;
  index.PushRunning(JobAt(0), RankOf(100e6, 0), -1, AtSeconds(10));
  index.PushRunning(JobAt(1), RankOf(50e6, 1), -2, AtSeconds(10));
  index.Erase(JobAt(0));
  EXPECT_EQ(index.WorstRunning(AtSeconds(20)), JobAt(1));
  index.RestoreRunning(JobAt(0));
  EXPECT_EQ(index.WorstRunning(AtSeconds(20)), JobAt(0));
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(20)).key[0], 90e6);
}

TEST(OrderIndexTest, AJobGoesFromRunningToWaiting) {
  OrderIndex index;
  index.PushRunning(JobAt(0), RankOf(10, 0), -1, AtSeconds(0));
  index.Erase(JobAt(0));
  index.PushWaiting(JobAt(0), 2, RankOf(5, 0));
  EXPECT_EQ(index.WorstRunning(AtSeconds(0)), std::nullopt);
  EXPECT_EQ(BestOf(index, 2), JobAt(0));
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(9)).key[0], 5);
}

TEST(OrderIndexTest, ClearRemovesEverything) {
  OrderIndex index;
  index.PushRunning(JobAt(0), RankOf(10, 0), 0, AtSeconds(0));
  index.PushWaiting(JobAt(1), 2, RankOf(5, 1));
  index.Clear();
  EXPECT_FALSE(index.Holds(JobAt(0)));
  EXPECT_FALSE(index.Holds(JobAt(1)));
  EXPECT_TRUE(index.waiting().empty());
  index.PushWaiting(JobAt(0), 2, RankOf(5, 0));
  EXPECT_EQ(BestOf(index, 2), JobAt(0));
}

TEST(OrderIndexDeathTest, NoJobIsFiledTwice) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), 1, RankOf(10, 0));
  EXPECT_DEATH(index.PushRunning(JobAt(0), RankOf(10, 0), 0, AtSeconds(0)), "CHECK");
}

TEST(OrderIndexDeathTest, OnlyAJobThatIsFiledCanBeErased) {
  OrderIndex index;
  EXPECT_DEATH(index.Erase(JobAt(0)), "CHECK");
}

// The same jobs in plain maps, searched from end to end.
class Oracle {
 public:
  struct Job {
    OrderIndex::Rank rank;  // when filed
    int gpus = 0;           // waiting; 0: running
    double slope = 0;
    double since = 0;
  };
  std::map<std::size_t, Job> jobs;

  [[nodiscard]] OrderIndex::Rank RankAt(const Job& job, double now) const {
    OrderIndex::Rank rank = job.rank;
    rank.key[0] += job.slope * (now - job.since) * 1e6;
    return rank;
  }
  [[nodiscard]] std::optional<JobId> Extreme(int gpus, bool best, double now) const {
    std::optional<std::size_t> found;
    for (const auto& [id, job] : jobs) {
      if (job.gpus != gpus) {
        continue;
      }
      if (!found || (RankAt(job, now) < RankAt(jobs.at(*found), now)) == best) {
        found = id;
      }
    }
    return found ? std::optional<JobId>(JobAt(*found)) : std::nullopt;
  }
};

TEST(OrderIndexTest, FindsWhatASearchThroughAllJobsFinds) {
  std::mt19937 random(1);
  OrderIndex index;
  Oracle oracle;
  for (int now = 0; now < 5000; ++now) {
    const std::size_t id = random() % 30;
    const OrderIndex::Rank rank{.key = {static_cast<double>(random() % 50) * 1e6}, .arrival = id};
    if (oracle.jobs.erase(id) > 0) {
      index.Erase(JobAt(id));
    } else if (random() % 2 == 0) {
      const int gpus = 1 + static_cast<int>(random() % 3);
      oracle.jobs[id] = {.rank = rank, .gpus = gpus};
      index.PushWaiting(JobAt(id), gpus, rank);
    } else {
      const double slope = -static_cast<double>(random() % 4);
      oracle.jobs[id] = {.rank = rank, .slope = slope, .since = static_cast<double>(now)};
      index.PushRunning(JobAt(id), rank, slope, AtSeconds(now));
    }
    ASSERT_EQ(index.WorstRunning(AtSeconds(now)), oracle.Extreme(0, false, now)) << now;
    for (const auto& [gpus, heap] : index.waiting()) {
      const auto best = heap.empty() ? std::nullopt : std::optional<JobId>(JobAt(heap.top()));
      ASSERT_EQ(best, oracle.Extreme(gpus, true, now)) << now;
    }
  }
}

}  // namespace
}  // namespace trainyard
