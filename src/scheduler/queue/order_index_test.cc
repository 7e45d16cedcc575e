// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/order_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace trainyard::scheduler {
namespace {

OrderIndex::Rank RankOf(double key, std::uint64_t arrival) {
  return {.key = {key}, .arrival = arrival};
}

void Launch(OrderIndex& index, JobId job, const OrderIndex::Rank& rank, double slope,
            TimePoint now) {
  index.PushRunning(job, {.gpus = 1, .slices = {}}, rank, slope, now);
}

// Below nothing.
OrderIndex::Rank Anything() { return RankOf(-1e18, 0); }

// All running jobs, the worst-ranked first.
std::vector<JobId> FromWorst(const OrderIndex& index, TimePoint now,
                             const OrderIndex::Rank& limit = Anything()) {
  OrderIndex::FromWorst jobs(index, now);
  std::vector<JobId> found;
  while (const OrderIndex::Running* running = jobs.Next(limit)) {
    found.push_back(running->job);
  }
  return found;
}

using IndexedJobs = std::vector<JobId>;

// The best waiting job of a demand class.
JobId BestOf(const OrderIndex& index, int gpus) { return JobAt(index.waiting().at({gpus}).top()); }

TEST(OrderIndexTest, TheBestWaitingJobOfAClassIsOnTop) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), {4}, RankOf(30, 0));
  index.PushWaiting(JobAt(1), {4}, RankOf(10, 1));
  index.PushWaiting(JobAt(2), {4}, RankOf(20, 2));
  EXPECT_EQ(BestOf(index, 4), JobAt(1));
}

TEST(OrderIndexTest, DemandClassesAreApart) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), {4}, RankOf(30, 0));
  index.PushWaiting(JobAt(1), {1}, RankOf(10, 1));
  EXPECT_EQ(BestOf(index, 4), JobAt(0));
  EXPECT_EQ(BestOf(index, 1), JobAt(1));
}

TEST(OrderIndexTest, OfEqualKeysTheEarlierArrivalIsBetter) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), {1}, RankOf(10, 8));
  index.PushWaiting(JobAt(1), {1}, RankOf(10, 7));
  EXPECT_EQ(BestOf(index, 1), JobAt(1));
}

TEST(OrderIndexTest, OfEqualKeysTheLaterArrivalIsWorse) {
  OrderIndex index;
  Launch(index, JobAt(0), RankOf(10, 8), 0, AtSeconds(0));
  Launch(index, JobAt(1), RankOf(10, 7), 0, AtSeconds(0));
  EXPECT_EQ(FromWorst(index, AtSeconds(0)), IndexedJobs({JobAt(0), JobAt(1)}));
}

TEST(OrderIndexTest, LaterPartsOfTheKeyBreakTies) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), {1}, {.key = {1, 2, 3, 5}, .arrival = 0});
  index.PushWaiting(JobAt(1), {1}, {.key = {1, 2, 3, 4}, .arrival = 1});
  EXPECT_EQ(BestOf(index, 1), JobAt(1));
}

TEST(OrderIndexTest, AnErasedJobIsHeldNoLonger) {
  OrderIndex index;
  index.PushWaiting(JobAt(3), {1}, RankOf(10, 0));
  EXPECT_TRUE(index.Holds(JobAt(3)));
  EXPECT_FALSE(index.Holds(JobAt(2)));
  EXPECT_FALSE(index.Holds(JobAt(1000)));
  index.Erase(JobAt(3));
  EXPECT_FALSE(index.Holds(JobAt(3)));
  EXPECT_TRUE(index.waiting().at({1}).empty());
}

TEST(OrderIndexTest, WaitingJobsAreNotAmongTheRunning) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), {1}, RankOf(10, 0));
  EXPECT_EQ(FromWorst(index, AtSeconds(0)), IndexedJobs());
}

TEST(OrderIndexTest, RunningJobsComeFromTheWorst) {
  OrderIndex index;
  Launch(index, JobAt(0), RankOf(10, 0), 0, AtSeconds(0));
  Launch(index, JobAt(1), RankOf(30, 1), -1, AtSeconds(0));
  Launch(index, JobAt(2), RankOf(20, 2), 0, AtSeconds(0));
  EXPECT_EQ(FromWorst(index, AtSeconds(0)), IndexedJobs({JobAt(1), JobAt(2), JobAt(0)}));
  index.Erase(JobAt(2));
  EXPECT_EQ(FromWorst(index, AtSeconds(0)), IndexedJobs({JobAt(1), JobAt(0)}));
}

TEST(OrderIndexTest, OnlyRunningJobsBelowTheLimitAreGoneThrough) {
  OrderIndex index;
  Launch(index, JobAt(0), RankOf(10, 0), 0, AtSeconds(0));
  Launch(index, JobAt(1), RankOf(20, 1), 0, AtSeconds(0));
  Launch(index, JobAt(2), RankOf(20, 2), 0, AtSeconds(0));
  EXPECT_EQ(FromWorst(index, AtSeconds(0), RankOf(20, 1)), IndexedJobs({JobAt(2)}));
  EXPECT_EQ(FromWorst(index, AtSeconds(0), RankOf(20, 2)), IndexedJobs());
}

TEST(OrderIndexTest, RunningKeysMoveWithTime) {
  OrderIndex index;
  Launch(index, JobAt(0), RankOf(100e6, 0), -1, AtSeconds(10));
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(10)).key[0], 100e6);
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(40)).key[0], 70e6);
}

TEST(OrderIndexTest, AFasterKeyOvertakesASlowerOne) {
  OrderIndex index;
  Launch(index, JobAt(0), RankOf(100e6, 0), -4, AtSeconds(0));  // falls by 4 a second
  Launch(index, JobAt(1), RankOf(70e6, 1), -1, AtSeconds(0));
  EXPECT_EQ(FromWorst(index, AtSeconds(9)), IndexedJobs({JobAt(0), JobAt(1)}));
  EXPECT_EQ(FromWorst(index, AtSeconds(11)), IndexedJobs({JobAt(1), JobAt(0)}));
}

TEST(OrderIndexTest, AWaitingKeyStaysWhereItIs) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), {1}, RankOf(100e6, 0));
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(40)).key[0], 100e6);
}

TEST(OrderIndexTest, AJobGoesFromRunningToWaiting) {
  OrderIndex index;
  Launch(index, JobAt(0), RankOf(10, 0), -1, AtSeconds(0));
  index.Erase(JobAt(0));
  index.PushWaiting(JobAt(0), {2}, RankOf(5, 0));
  EXPECT_EQ(FromWorst(index, AtSeconds(0)), IndexedJobs());
  EXPECT_EQ(BestOf(index, 2), JobAt(0));
  EXPECT_EQ(index.RankAt(JobAt(0), AtSeconds(9)).key[0], 5);
}

TEST(OrderIndexTest, AJobRunsOnlyAmongTheRunning) {
  OrderIndex index;
  EXPECT_FALSE(index.Runs(JobAt(0)));
  index.PushWaiting(JobAt(0), {1}, RankOf(10, 0));
  EXPECT_FALSE(index.Runs(JobAt(0)));
  index.Erase(JobAt(0));
  Launch(index, JobAt(0), RankOf(10, 0), 0, AtSeconds(0));
  EXPECT_TRUE(index.Runs(JobAt(0)));
  index.Erase(JobAt(0));
  EXPECT_FALSE(index.Runs(JobAt(0)));
}

TEST(OrderIndexTest, ARunningJobShowsWhereItIs) {
  const Slice one{.node = NodeAt(3), .gpus = 0b11};
  const Slice two{.node = NodeAt(4), .gpus = 0b11};
  OrderIndex index;
  index.PushRunning(JobAt(0), {.gpus = 2, .slices = {one}}, RankOf(20, 0), 0, AtSeconds(0));
  index.PushRunning(JobAt(1), {.gpus = 4, .slices = {one, two}}, RankOf(10, 1), 0, AtSeconds(0));
  OrderIndex::FromWorst jobs(index, AtSeconds(0));
  const OrderIndex::Running* whole = jobs.Next(Anything());
  ASSERT_NE(whole, nullptr);
  EXPECT_EQ(whole->gpus, 2);
  EXPECT_EQ(whole->node, NodeAt(3));
  const OrderIndex::Running* split = jobs.Next(Anything());
  ASSERT_NE(split, nullptr);
  EXPECT_EQ(split->gpus, 4);
  EXPECT_EQ(split->node, std::nullopt);
}

TEST(OrderIndexTest, ACommonSlopeIsThatOfAllRunningJobs) {
  OrderIndex index;
  Launch(index, JobAt(0), RankOf(10, 0), -1, AtSeconds(0));
  Launch(index, JobAt(1), RankOf(10, 1), -1, AtSeconds(0));
  EXPECT_EQ(index.CommonSlope(), -1);
  Launch(index, JobAt(2), RankOf(10, 2), -2, AtSeconds(0));
  EXPECT_EQ(index.CommonSlope(), std::nullopt);
}

TEST(OrderIndexDeathTest, NoJobIsInsertedTwice) {
  OrderIndex index;
  index.PushWaiting(JobAt(0), {1}, RankOf(10, 0));
  EXPECT_DEATH(index.PushWaiting(JobAt(0), {1}, RankOf(10, 0)), "CHECK");
}

TEST(OrderIndexDeathTest, OnlyAJobThatIsThereCanBeErased) {
  OrderIndex index;
  EXPECT_DEATH(index.Erase(JobAt(0)), "CHECK");
}

// The same jobs in a plain map, sorted when asked.
class Oracle {
 public:
  struct Job {
    OrderIndex::Rank rank;  // as stored
    int gpus = 0;           // waiting; 0: running
    double slope = 0;
    double since = 0;
  };
  std::map<std::size_t, Job> jobs;

  // Those with the demand (0: the running ones), the best-ranked first.
  [[nodiscard]] std::vector<JobId> Sorted(int gpus, double now) const {
    std::vector<std::pair<OrderIndex::Rank, JobId>> ranked;
    for (const auto& [id, job] : jobs) {
      if (job.gpus == gpus) {
        ranked.emplace_back(job.rank, JobAt(id));
        ranked.back().first.key[0] += job.slope * (now - job.since) * 1e6;
      }
    }
    std::sort(ranked.begin(), ranked.end());
    std::vector<JobId> sorted;
    for (const auto& [rank, job] : ranked) {
      sorted.push_back(job);
    }
    return sorted;
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
      index.PushWaiting(JobAt(id), {gpus}, rank);
    } else {
      const double slope = -static_cast<double>(random() % 4);
      oracle.jobs[id] = {.rank = rank, .slope = slope, .since = static_cast<double>(now)};
      Launch(index, JobAt(id), rank, slope, AtSeconds(now));
    }
    std::vector<JobId> running = oracle.Sorted(0, now);
    std::reverse(running.begin(), running.end());
    ASSERT_EQ(FromWorst(index, AtSeconds(now)), running) << now;
    for (const auto& [of, heap] : index.waiting()) {
      const std::vector<JobId> waiting = oracle.Sorted(of.gpus, now);
      ASSERT_EQ(heap.size(), waiting.size()) << now;
      ASSERT_TRUE(heap.empty() || JobAt(heap.top()) == waiting.front()) << now;
    }
  }
}

}  // namespace
}  // namespace trainyard::scheduler
