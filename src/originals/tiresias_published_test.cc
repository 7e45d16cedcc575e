// SPDX-License-Identifier: Apache-2.0
#include "originals/tiresias_published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/catalog_lookup.h"
#include "originals/originals.h"
#include "support/hand_made_queues.h"
#include "support/reference.h"

namespace trainyard::originals {
namespace {

Queues Published(const std::string& options, const ComponentContext& context = {}) {
  Result<Components> made =
      base::MakeFrom(Originals(), ComponentKind::kPolicy,
                     ParseNamedOptions("tiresias-published:" + options).value(), context);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return Queues(std::move(made.value().ordering));
}

TEST(PublishedTiresiasTest, ChecksDemoteByOneQueueAtATime) {
  Queues queues = Published("thresholds=1000/3000");
  JobView& job = Running(queues, 4, 750);
  queues.Due(job, 750);
  EXPECT_EQ(queues.QueueOf(job), 1);
  queues.Due(job, 750);
  EXPECT_EQ(queues.QueueOf(job), 2);
}

TEST(PublishedTiresiasTest, RestartCostsAreNoServiceWhereOnlyProductiveTimeCounts) {
  Queues queues = Published("thresholds=1000,counts=productive,check=ceil");
  JobView& job = Running(queues, 1, 600);
  job.productive_time = FromSeconds(500);
  EXPECT_EQ(queues.NextMove(job, 600), 1100);
}

TEST(PublishedTiresiasTest, StarvingIsNotClearedByARun) {
  Queues queues = Published("thresholds=100/1000,promote=2");
  JobView& job = Demoted(queues);
  job.waited = FromSeconds(150);
  queues.Settle(job, true, 250);
  job.run_time = FromSeconds(110);
  queues.Settle(job, false, 260);
  EXPECT_EQ(queues.NextWake(260), 260 + 2 * 110 - 150);
}

// Tiresias, reference 2.3 step 8: T + floor((limit - executed) / GPUs).
TEST(PublishedTiresiasTest, TheCheckComesAtAFloorOfExecutedTime) {
  Queues queues = Published("thresholds=3250/7200");
  EXPECT_TRUE(queues.ordering().traits().sets_wake);
  (void)Running(queues, 4, 100);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 787);  // 3150 / 4 = 787.5
}

// ElasticFlow, reference 6.1: now + ceil((threshold - executed) / GPUs).
TEST(PublishedTiresiasTest, TheElasticFlowCheckComesAtACeiling) {
  Queues queues = Published("thresholds=3250/7200,check=ceil");
  (void)Running(queues, 4, 100);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 788);
}

// Muri, reference 5: now + ceil(threshold / GPUs) - executed, which stays a real number.
TEST(PublishedTiresiasTest, TheMuriCheckComesAfterAWholeSecondOfRunTime) {
  Queues queues = Published("thresholds=3250/7200,check=whole");
  JobView& job = Running(queues, 4, 100.5);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 813 - 100.5);
  job.run_time = FromSeconds(813);
  queues.Due(job, 1713);
  EXPECT_EQ(queues.QueueOf(job), 1);
}

TEST(PublishedTiresiasTest, TheCheckByTimeAloneIsExact) {
  Queues queues = Published("thresholds=3250/7200,service=time");
  (void)Running(queues, 4, 100);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 3150);
}

TEST(PublishedTiresiasTest, TheCheckIsTheEarliestOfAllJobs) {
  Queues queues = Published("thresholds=3250/7200");
  (void)queues.Arrive(8);  // never ran: no check
  (void)Running(queues, 1, 100);
  (void)Running(queues, 8, 10);
  EXPECT_EQ(queues.NextWake(1000), 1000 + 405);  // 3240 / 8
}

// T + trunc(executed * K - lastpend), reference 2.3 step 8.
TEST(PublishedTiresiasTest, ThePromotionCheckIsTruncated) {
  Queues queues = Published("thresholds=100/1000,promote=0.5");
  JobView& job = Running(queues, 1, 301);
  queues.Due(job, 301);
  queues.Settle(job, false, 301);
  job.waited = FromSeconds(20);
  EXPECT_EQ(queues.NextWake(321), 321 + 130);  // 150.5 - 20
}

TEST(PublishedTiresiasTest, APromotionThatIsDueIsNoCheck) {
  Queues queues = Published("thresholds=100/1000,promote=0.5");
  JobView& job = Running(queues, 1, 301);
  queues.Due(job, 301);
  queues.Settle(job, false, 301);
  job.waited = FromSeconds(150);  // half a second is left: cut to nothing
  EXPECT_EQ(queues.NextWake(451), std::nullopt);
}

TEST(PublishedTiresiasTest, ThePromotionIsDueAtTheTruncatedTime) {
  Queues queues = Published("thresholds=100/1000,promote=0.5");
  JobView& job = Running(queues, 1, 301);
  queues.Due(job, 301);
  queues.Settle(job, false, 301);
  job.waited = FromSeconds(150);
  queues.Due(job, 451);
  EXPECT_EQ(queues.QueueOf(job), 0);
}

TEST(PublishedTiresiasTest, OfEqualIndicesTheEarlierSubmitComesFirst) {
  const ComponentContext context{.read_samples = [](const std::string&) {
    return Result<std::vector<double>>({10, 1000});
  }};
  Queues queues = Published("ranking=gittins,prior=x,thresholds=100/200", context);
  const JobView& early = queues.Arrive(1, 3);
  JobView& late = queues.Arrive(1, 4);
  queues.Settle(late, true, 4);
  EXPECT_LT(queues.KeyOf(early), queues.KeyOf(late));
}

// Executed time is cut to whole seconds: 3,250 s are reached when 3,250 have passed, whatever the
// fraction when that was foreseen.
TEST(PublishedTiresiasTest, WithFractionalTimesAThresholdThatIsReachedIsDue) {
  Queues queues = Published("thresholds=3250/7200");
  JobView& job = Running(queues, 1, 0.9);
  EXPECT_EQ(queues.NextMove(job, 0.9), 3250);
  job.run_time = FromSeconds(3250.3);
  EXPECT_EQ(queues.NextMove(job, 3250.3), 3250.3);
  queues.Due(job, 3250.3);
  EXPECT_EQ(queues.QueueOf(job), 1);
  EXPECT_DOUBLE_EQ(queues.NextWake(3250.3).value(), 3250.3 + 3950);
}

TEST(PublishedTiresiasTest, AThresholdThatIsNotReachedHasACheckInTimeToCome) {
  for (const std::string check : {"floor", "ceil", "whole"}) {
    Queues queues = Published("thresholds=10.5/60,check=" + check);
    (void)Running(queues, 64, 0);
    EXPECT_GE(queues.NextWake(5), 6) << check;
    Queues alone = Published("thresholds=10.5/60,check=" + check);
    (void)Running(alone, 1, 10.2);
    EXPECT_GT(alone.NextWake(5), 5) << check;
  }
}

// Reference 2.3, word for word. O(n).
double RankAsPublished(const std::vector<double>& sorted, double horizon, double attained) {
  const std::size_t n = sorted.size();
  const auto first_above = [&](double value) {
    std::size_t i = 0;
    while (i < n && sorted[i] <= value) {
      ++i;
    }
    return i;
  };
  const std::size_t place = first_above(attained);
  if (place == n) {
    return 0;
  }
  const double a = sorted[place] - 1;
  const std::size_t from = first_above(a);
  const bool beyond = a + horizon > sorted[n - 1] - 1;
  const std::size_t to = beyond ? n - 1 : first_above(a + horizon);
  double service = horizon * static_cast<double>(n - to);
  for (std::size_t i = from; i < to; ++i) {
    service += sorted[i];
  }
  service /= static_cast<double>(n - from);
  double chance = static_cast<double>(to - from) / static_cast<double>(n - from);
  chance = std::round(chance * 1e5) / 1e5;
  return std::round(chance * 1e6 / std::floor(service) * 1e4) / 1e4;
}

TEST(PublishedGittinsTest, StaysUntilTheNextSampleIsAttained) {
  const PublishedGittins index(policies::GittinsIndex({10, 20, 400}, 100));
  EXPECT_EQ(index.At(9.5), index.At(0));
  EXPECT_NE(index.At(10), index.At(9.5));
}

TEST(PublishedGittinsTest, WithoutAHorizonNobodyEnds) {
  EXPECT_EQ(PublishedGittins(policies::GittinsIndex({10, 20}, 0)).At(0), 0);
}

TEST(PublishedGittinsTest, RoundsWhatThePublishedProgramRounds) {
  const PublishedGittins index(policies::GittinsIndex({10, 20, 400}, 100));
  // The chance to 5 decimals, the service to whole units, the index to 4 decimals.
  EXPECT_DOUBLE_EQ(index.At(0), 15503.9535);  // 666,670 / 43
  EXPECT_DOUBLE_EQ(index.At(10), 8333.3333);  // 500,000 / 60
  EXPECT_EQ(index.At(20), 0);
}

TEST(PublishedGittinsTest, HalvesAreRoundedUp) {
  // The chance is 8/9, rounded to 0.88889, the service (8 x 10 + 2800) / 9 = 320: 2777.78125.
  const PublishedGittins index(
      policies::GittinsIndex({10, 10, 10, 10, 10, 10, 10, 10, 5000}, 2800));
  EXPECT_DOUBLE_EQ(index.At(0), 2777.7813);  // as Python 2 rounds
}

TEST(PublishedGittinsTest, IsTheDefinitionOnRandomSamples) {
  std::mt19937 random(1);
  for (int round = 0; round < 30; ++round) {
    std::vector<double> samples(1 + random() % 40);
    for (double& sample : samples) {
      sample = 1 + static_cast<double>(random() % 500);
    }
    const double horizon = 1 + static_cast<double>(random() % 300);
    const PublishedGittins index(policies::GittinsIndex(samples, horizon));
    std::sort(samples.begin(), samples.end());
    for (int attained = 0; attained < 520; attained += 3) {
      ASSERT_NEAR(index.At(attained), RankAsPublished(samples, horizon, attained), 1e-9)
          << "round " << round << ", attained " << attained;
    }
  }
}

TEST(PublishedGittinsTest, ThePublishedPriorGivesAFiniteTable) {
  const std::string path = Reference() + "/data/tiresias/yarn-gput1000.csv";
  std::ifstream file(path);
  TRAINYARD_NEEDS_REFERENCE();
  std::vector<double> samples;
  std::string line;
  std::getline(file, line);  // the header
  while (std::getline(file, line)) {
    samples.push_back(std::stod(line));
  }
  ASSERT_GT(samples.size(), 900U);
  const PublishedGittins index(policies::GittinsIndex(samples, 3250));
  double highest = 0;
  for (const double sample : samples) {
    const double value = index.At(sample - 1);
    ASSERT_TRUE(std::isfinite(value)) << sample;
    ASSERT_GE(value, 0) << sample;
    highest = std::max(highest, value);
  }
  EXPECT_GT(highest, 0);
}

}  // namespace
}  // namespace trainyard::originals
