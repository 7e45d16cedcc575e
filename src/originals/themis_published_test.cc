// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/catalog_lookup.h"
#include "originals/originals.h"
#include "support/themis_jobs.h"

namespace trainyard::originals {
namespace {

Result<Components> ThemisWith(const std::string& options) {
  return base::MakeFrom(Originals(), ComponentKind::kPolicy,
                        ParseNamedOptions("themis-published" + options).value());
}

class PublishedThemisTest : public ThemisTest {
 protected:
  [[nodiscard]] Result<Components> Make(const std::string& options) const override {
    return ThemisWith(options);
  }
};

class PublishedThemisRunTest : public ThemisRunTest {
 protected:
  [[nodiscard]] Result<Components> Make(const std::string& options) const override {
    return ThemisWith(options);
  }
};

TEST(PublishedThemisOptionsTest, BadOnesAreRefused) {
  const auto error = [](const std::string& options) { return ThemisWith(options).error().message; };
  EXPECT_EQ(
      error(":serve=best"),
      "policy 'themis-published': option 'serve' is 'best'; expected one of worst, share, owed");
  EXPECT_EQ(
      error(":iso=hours"),
      "policy 'themis-published': option 'iso' is 'hours'; expected one of seconds, iterations");
  EXPECT_EQ(error(":age=old"),
            "policy 'themis-published': option 'age' is 'old'; expected one of now, last_event");
  EXPECT_EQ(
      error(":rule=conelp"),
      "policy 'themis-published': option 'rule' is 'conelp'; expected one of analytic-centre");
  EXPECT_EQ(error(":serve=owed,lease=600"),
            "policy 'themis-published': serve=owed has no leases; expected lease=0 with it");
}

TEST_F(PublishedThemisTest, WhereThereIsRoomAllRunInOrderOfArrival) {
  Use("");
  CheckThatAllRunInOrderOfArrival();
}

TEST_F(PublishedThemisRunTest, NoRhoIsMuchLargerThanTheOverload) {
  CheckThatNoRhoIsMuchLargerThanTheOverload({{":lease=600,iso=seconds,age=now", 600}});
}

// themis.py's solve (a restatement of ElasticFlow's reference, 6.2) gives for these jobs, all new,
// at 500 on 6 GPUs: rho with all they ask for 2.0, 0.3, 1.55, 1.1; least shares 1, 0.055556, 0.1,
// 0.526316 (sum 3.508), so the capacity does not bind; centre 1, 0.500933, 0.316752, 0.749511.
class FourJobs : public PublishedThemisTest {
 protected:
  void Use(const std::string& options) {
    PublishedThemisTest::Use(options);
    jobs_.Add(300, 2, 1, 200);
    jobs_.Add(300, 1, 10, 1000);
    jobs_.Add(200, 4, 10, 100);
    jobs_.Add(100, 2, 1, 4000);
  }
};

TEST_F(FourJobs, ServeShareOrdersByTheAnalyticCentre) {
  Use(":age=now");
  EXPECT_EQ(Serve(500, 6), Ids({0, 3, 1}));  // 2 + 2 + 1; the gang of 4 is passed over
  EXPECT_EQ(Order(500), Ids({0, 3, 1, 2}));
}

TEST_F(FourJobs, ServeWorstOrdersByRho) {
  Use(":serve=worst,age=now");
  EXPECT_EQ(Serve(500, 6), Ids({0, 2}));
  EXPECT_EQ(Order(500), Ids({0, 2, 3, 1}));
}

// Two jobs on four GPUs whose least shares need all of them or more: both get the same rho, the
// larger root of 4 (rho - c0)(rho - c1) = g0 k0 (rho - c1) + g1 k1 (rho - c0).
class TwoJobs : public PublishedThemisTest {
 protected:
  struct Job {
    double g = 0;
    double c = 0;
    double k = 0;
    [[nodiscard]] double ShareFor(double rho) const { return k / (rho - c); }
  };

  Job AddRandom(std::mt19937& random) {
    std::uniform_real_distribution<double> uniform(0, 1);
    const int gpus = 3 + static_cast<int>(random() % 2);
    const double submit = std::round(kNow * uniform(random));
    const double rate = std::stod(std::to_string(0.1 + uniform(random)));
    const double left = 100 + 1000 * uniform(random);
    jobs_.Add(submit, gpus, rate, left);
    const double share = 2.0 / gpus;
    return {.g = static_cast<double>(gpus), .c = (kNow - submit) * share / left, .k = share / rate};
  }
  static double LargerRoot(const Job& a, const Job& b) {
    const double p = 4 * (a.c + b.c) + a.g * a.k + b.g * b.k;
    const double q = 4 * a.c * b.c + a.g * a.k * b.c + b.g * b.k * a.c;
    return (p + std::sqrt(p * p - 16 * q)) / 8;
  }

  static constexpr double kNow = 1000;
};

TEST_F(TwoJobs, WhereCapacityBindsSharesSolveTheQuadratic) {
  std::mt19937 random(5);
  int compared = 0;
  int unlike_least = 0;
  for (int round = 0; round < 5000; ++round) {
    Use(":age=now");
    const Job a = AddRandom(random);
    const Job b = AddRandom(random);
    const double worst = std::max(a.c + a.k, b.c + b.k);
    const double rho = LargerRoot(a, b);
    const double difference = a.ShareFor(rho) - b.ShareFor(rho);
    if (rho <= worst || std::abs(difference) < 1e-9) {
      continue;
    }
    ASSERT_NEAR(a.g * a.ShareFor(rho) + b.g * b.ShareFor(rho), 4, 1e-9);
    (void)Serve(kNow, 4);
    ASSERT_EQ(Order(kNow), difference > 0 ? Ids({0, 1}) : Ids({1, 0})) << round;
    ++compared;
    unlike_least += (difference > 0) != (a.ShareFor(worst) > b.ShareFor(worst)) ? 1 : 0;
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(unlike_least, 10);
}

TEST_F(PublishedThemisTest, FairTimeInIterationsDependsOnTheUnitOfWork) {
  Use(":serve=worst,age=now");
  jobs_.Add(0, 1, 10, 1000);
  jobs_.Add(0, 1, 1, 100);
  (void)Serve(50, 1);
  EXPECT_EQ(Order(50), Ids({1, 0}));  // 0.15 and 1.5
}

// Rho at 700: 1.1, 1.2333 and 1.6; with the age of 100: 0.5, 1.0333 and 1.
class StaleAge : public PublishedThemisTest {
 protected:
  void Use(const std::string& options) {
    PublishedThemisTest::Use(options);
    jobs_.Add(0, 1, 1, 1000);
    jobs_.Add(0, 1, 1, 3000);
    jobs_.Add(100, 1, 1, 1000);
    ASSERT_EQ(Serve(100, 1), Ids({0}));
    Run(JobAt(0), 600);
  }
};

TEST_F(StaleAge, AgeIsOfNow) {
  Use(":serve=worst,iso=seconds,age=now");
  EXPECT_EQ(Serve(700, 1), Ids({2}));
}

TEST_F(StaleAge, OrOfTheLastArrivalOrEnd) {
  Use(":serve=worst,iso=seconds");
  EXPECT_EQ(Serve(700, 1), Ids({1}));
  Use(":serve=worst,iso=seconds");
  jobs_.Add(700, 1, 1, 1000);
  EXPECT_EQ(Serve(700, 1), Ids({2}));
  Use(":serve=worst,iso=seconds");
  jobs_.Remove(JobAt(0));
  EXPECT_EQ(Serve(700, 1), Ids({2}));
}

// Muri, reference 6: shares per time that a job has run, and nobody twice before all have run.
TEST_F(PublishedThemisTest, OwedTimeGoesToThoseWhoHaveNotRun) {
  Use(":serve=owed,age=now");
  const Cluster cluster{.nodes = {{.gpus = 2}}};
  const auto decide = [&](double now) {
    Snapshot snapshot = At(now, 2);
    snapshot.cluster = &cluster;
    const Proposal proposal = policy_->Decide(snapshot, memory_.get());
    jobs_.Hold(proposal.demands);
    return Named(proposal);
  };
  for (int i = 0; i < 3; ++i) {
    jobs_.Add(0, 2, 1, 100);
  }
  EXPECT_EQ(decide(0), Ids({0}));
  jobs_.view(JobAt(0)).run_time = FromSeconds(10);
  Run(JobAt(0), 10);
  EXPECT_EQ(decide(10), Ids({1}));
  jobs_.view(JobAt(1)).run_time = FromSeconds(5);
  Run(JobAt(1), 5);
  EXPECT_EQ(decide(15), Ids({2}));
  jobs_.view(JobAt(2)).run_time = FromSeconds(20);
  Run(JobAt(2), 20);
  EXPECT_EQ(decide(35), Ids({1}));
}

// Muri, reference 6: whose shares per time are equal to five digits are served in order of the
// trace, whoever came first at the last decision.
TEST_F(PublishedThemisTest, OwedTimeIsComparedToFiveDigits) {
  Use(":serve=owed,age=now");
  const Cluster cluster{.nodes = {{.gpus = 1}}};
  for (int i = 0; i < 3; ++i) {
    jobs_.Add(0, 1, 1, 100);
  }
  const auto first = [&](double ran0, double ran1, double ran2) {
    jobs_.view(JobAt(0)).run_time = FromSeconds(ran0);
    jobs_.view(JobAt(1)).run_time = FromSeconds(ran1);
    jobs_.view(JobAt(2)).run_time = FromSeconds(ran2);
    Snapshot snapshot = At(1000, 1);
    snapshot.cluster = &cluster;
    return Named(policy_->Decide(snapshot, memory_.get()));
  };
  EXPECT_EQ(first(9, 8, 7), Ids({2}));
  EXPECT_EQ(first(7.00002, 7.00001, 7), Ids({0}));
  EXPECT_EQ(first(7.002, 7.001, 7), Ids({2}));
}

// 2 + 3 of 8 GPUs are free by count, but no node has 4.
TEST_F(PublishedThemisTest, OwedTimeIsServedAsFarAsItFitsOnTheNodes) {
  Use(":serve=owed,age=now");
  const Cluster cluster{.nodes = {{.gpus = 4}, {.gpus = 4}}};
  jobs_.Add(0, 3, 1, 100);
  jobs_.Add(0, 3, 1, 100);
  jobs_.Add(0, 2, 1, 100);
  jobs_.Add(0, 1, 1, 100);
  Snapshot snapshot = At(0, 8);
  snapshot.cluster = &cluster;
  std::vector<int> gpus;
  for (const Demand& demand : policy_->Decide(snapshot, memory_.get()).demands) {
    gpus.push_back(demand.gpus);
  }
  EXPECT_LT(std::count(gpus.begin(), gpus.end(), 3) + std::count(gpus.begin(), gpus.end(), 2), 3);
}

}  // namespace
}  // namespace trainyard::originals
