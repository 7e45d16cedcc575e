// SPDX-License-Identifier: Apache-2.0
// Optimus on hand-made jobs whose throughput depends on their model and GPU count.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "policies/policies.h"
#include "support/hand_made_jobs.h"

namespace trainyard::policies {
namespace {

class Costs final : public RestartCosts {
 public:
  double seconds = 0;
  [[nodiscard]] Duration Of(const JobSpec& /*job*/, Change change, int /*gpus*/) const override {
    return FromSeconds(change == Change::kStart ? 0 : seconds);
  }
};

using Shares = std::vector<int>;

class OptimusTest : public testing::Test {
 protected:
  OptimusTest() {
    profiles_.Set("linear", {{1, 1}, {2, 2}, {4, 4}, {8, 8}});
    profiles_.Set("concave", {{1, 1}, {2, 1.8}, {4, 3}, {8, 4}});
    profiles_.Set("peak2", {{1, 1}, {2, 1.5}, {4, 1.2}, {8, 1.5}});
    profiles_.Set("wide", {{1, 0}, {4, 3}, {8, 5}});
    Use("");
  }
  void Use(const std::string& options) {
    Result<Components> made = TryPolicy("optimus" + options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
  }
  JobView& Add(const std::string& model, double work_left = 1000) {
    JobView& job = jobs_.Add({.name = "job", .model = model});
    job.work_left = work_left;
    return job;
  }

  // Decides, and the jobs hold what they are given: GPUs by job.
  Shares Decide(int gpus, double now = 0) {
    const Proposal proposal = policy_->Decide({.now = AtSeconds(now),
                                               .gpus_up = gpus,
                                               .jobs = &jobs_,
                                               .rates = &profiles_,
                                               .costs = &costs_},
                                              memory_.get());
    wake_ = proposal.wake_at ? Seconds(*proposal.wake_at) : -1;
    jobs_.Hold(proposal.demands);
    Shares shares;
    for (const Demand& demand : proposal.demands) {
      shares.resize(std::max(shares.size(), Index(demand.job) + 1), 0);
      EXPECT_EQ(shares[Index(demand.job)], 0) << "named twice";
      shares[Index(demand.job)] = demand.gpus;
    }
    EXPECT_LE(std::accumulate(shares.begin(), shares.end(), 0), gpus);
    return shares;
  }

  Profiles profiles_;
  Costs costs_;
  ChangingJobs jobs_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  double wake_ = -1;  // of the last decision; -1: none
};

TEST_F(OptimusTest, NeedsWorkLeftAndSetsGpuCounts) {
  EXPECT_TRUE(policy_->traits().needs.work_left);
  EXPECT_TRUE(policy_->traits().may.resize);
}

TEST_F(OptimusTest, BadIntervalsAreRefused) {
  for (const char* interval : {"0.5", "1e10"}) {
    EXPECT_EQ(PolicyError("optimus:interval=" + std::string(interval)),
              "policy 'optimus': interval must be 0 or lie between 1 and 1e9 seconds");
  }
}

TEST_F(OptimusTest, NoJobsNoDemandsAndNoWakeUp) {
  EXPECT_EQ(Decide(8), Shares());
  EXPECT_EQ(wake_, -1);
}

TEST_F(OptimusTest, AJobAloneGetsAsMuchAsHelps) {
  (void)Add("peak2");
  EXPECT_EQ(Decide(16), Shares({2}));
}

TEST_F(OptimusTest, TheLeastUsefulCountMayBeMoreThanOneGpu) {
  (void)Add("wide");
  EXPECT_EQ(Decide(7), Shares({4}));
}

TEST_F(OptimusTest, EverybodyStartsBeforeAnybodyGrows) {
  (void)Add("linear", 1e6);
  (void)Add("linear", 1);
  (void)Add("linear", 1);
  EXPECT_EQ(Decide(4), Shares({2, 1, 1}));
}

TEST_F(OptimusTest, WhereGpusAreShortTheOrderOfArrivalDecides) {
  (void)Add("linear", 1e6);
  (void)Add("wide", 1);
  (void)Add("linear", 1);
  EXPECT_EQ(Decide(1), Shares({1}));
  jobs_.Hold({});
  Use("");
  EXPECT_EQ(Decide(4), Shares({2, 0, 2})) << "who does not fit is passed over";
  jobs_.Hold({});
  Use("");
  EXPECT_EQ(Decide(5), Shares({1, 4}));
}

TEST_F(OptimusTest, GpusGoToTheJobWhoseEndComesNearestByThem) {
  (void)Add("concave", 1000);  // 1000, 556, 333, 250 s
  (void)Add("concave", 4000);  // 4000, 2222, 1333, 1000 s
  EXPECT_EQ(Decide(3), Shares({1, 2}));
  jobs_.Hold({});
  Use("");
  EXPECT_EQ(Decide(6), Shares({2, 4}));
}

TEST_F(OptimusTest, AChangeThatCostsMoreThanItSavesIsLeftOut) {
  Use(":interval=0");
  (void)Add("linear", 100);
  EXPECT_EQ(Decide(1), Shares({1}));
  costs_.seconds = 60;  // 100 s against 60 + 50, 60 + 25 and 60 + 12.5
  EXPECT_EQ(Decide(3), Shares({1}));
  EXPECT_EQ(Decide(4), Shares({4}));
}

TEST_F(OptimusTest, ShrinkingCostsToo) {
  Use(":interval=0");
  (void)Add("linear", 100);
  EXPECT_EQ(Decide(2), Shares({2}));
  (void)Add("linear", 90);
  costs_.seconds = 30;
  EXPECT_EQ(Decide(2), Shares({1, 1})) << "everybody has the least";
  jobs_.Hold({{.job = JobAt(0), .gpus = 2}});
  EXPECT_EQ(Decide(3), Shares({2, 1})) << "100 + 30 s on one against 50 s";
}

TEST_F(OptimusTest, AWaitingJobThatHasRunPaysARestart) {
  Use(":interval=0");
  Add("linear", 100).started = true;
  (void)Add("linear", 100);
  costs_.seconds = 1000;  // the same on any number: no reason to prefer one
  EXPECT_EQ(Decide(3), Shares({2, 1}));
}

TEST_F(OptimusTest, BetweenReallocationsRunningJobsKeepWhatTheyHave) {
  (void)Add("concave");
  EXPECT_EQ(Decide(4), Shares({4}));
  EXPECT_EQ(wake_, 600);
  (void)Add("concave", 1e6);
  EXPECT_EQ(Decide(4, 10), Shares({4}));
  EXPECT_EQ(Decide(7, 20), Shares({4, 2}));
  EXPECT_EQ(wake_, 600);
  jobs_.Remove(JobAt(0));
  EXPECT_EQ(Decide(7, 30), Shares({0, 2})) << "nobody grows";
  EXPECT_EQ(Decide(7, 600), Shares({0, 4}));
  EXPECT_EQ(wake_, 1200);
}

TEST_F(OptimusTest, AfterAnIdleTimeTheNextArrivalIsServedAtOnce) {
  (void)Add("linear");
  EXPECT_EQ(Decide(8), Shares({8}));
  jobs_.Remove(JobAt(0));
  EXPECT_EQ(Decide(8, 100), Shares());
  EXPECT_EQ(wake_, -1);
  (void)Add("linear");
  EXPECT_EQ(Decide(8, 5000), Shares({0, 8}));
  EXPECT_EQ(wake_, 5600);
}

TEST_F(OptimusTest, WhereNoPlaceIsFoundNobodyWaitsForTheNextTime) {
  (void)Add("wide");
  EXPECT_EQ(Decide(4), Shares({4}));
  EXPECT_EQ(wake_, 600);
  jobs_.Hold({});  // the placement has failed
  EXPECT_EQ(Decide(4, 600), Shares({4}));
  EXPECT_EQ(wake_, -1);
  EXPECT_EQ(Decide(4, 700), Shares({4}));
  EXPECT_EQ(wake_, 1200) << "it has got them after all";
}

TEST_F(OptimusTest, WithoutAnIntervalEveryDecisionIsAnew) {
  Use(":interval=0");
  (void)Add("concave");
  EXPECT_EQ(Decide(4), Shares({4}));
  (void)Add("concave", 1e6);
  EXPECT_EQ(Decide(4, 1), Shares({2, 2}));
  EXPECT_EQ(wake_, -1);
}

TEST_F(OptimusTest, AJobWhoseWorkIsDoneHoldsNoMoreThanTheLeast) {
  (void)Add("linear", -0.001);
  (void)Add("linear", 10);
  EXPECT_EQ(Decide(8), Shares({1, 4}));
}

// Both have 9,000 units to go. The first has gained nearly all it can, as its losses show.
TEST_F(OptimusTest, AJobThatHasNearlyConvergedNeedsNoMore) {
  for (const char* options : {":interval=0,rest=0.1", ":interval=0,rest=0.1,loss="}) {
    Use(options);
    jobs_ = ChangingJobs();
    JobView& job = jobs_.Add({.name = "a", .model = "concave", .iterations = 10'000});
    job.work_left = 10'000;
    JobView& other = jobs_.Add({.name = "b", .model = "concave", .iterations = 10'000});
    other.work_left = 9'000;
    jobs_.Hold({{.job = JobAt(0), .gpus = 1}, {.job = JobAt(1), .gpus = 1}});
    std::vector<Metric> said{{"accuracy", 0}, {"loss", 0}};
    job.reported = said;
    Shares shares;
    for (int i = 0; i <= 10; ++i) {  // converged after 9 x 100 units
      const double done = 100 * i;
      said[1].value = 1 / (0.01 * done + 1) + 0.2;
      job.work_left = 10'000 - done;
      shares = Decide(6, 10 * i);
    }
    const bool listens = std::string_view(options).find("loss=") == std::string_view::npos;
    EXPECT_EQ(shares, listens ? Shares({1, 4}) : Shares({4, 2})) << options;
  }
}

TEST_F(OptimusTest, ARestThatIsNoShareIsRefused) {
  for (const char* rest : {"0", "1"}) {
    EXPECT_EQ(PolicyError("optimus:rest=" + std::string(rest)),
              "policy 'optimus': rest must lie between 0 and 1");
  }
}

// Whatever the jobs, GPUs are never given twice, and the same question has the same answer.
TEST_F(OptimusTest, RandomJobsShareNoMoreThanThereIs) {
  std::mt19937 random(5);
  const std::vector<std::string> models{"linear", "concave", "peak2", "wide"};
  costs_.seconds = 20;
  for (int round = 0; round < 300; ++round) {
    Use(round % 2 == 0 ? ":interval=0" : ":interval=30");
    jobs_ = ChangingJobs();
    const int gpus = 1 + static_cast<int>(random() % 40);
    for (int step = 0; step < 20; ++step) {
      if (random() % 2 == 0) {
        (void)Add(models[random() % 4], static_cast<double>(random() % 1000));
      } else if (!jobs_.live().empty()) {
        jobs_.Remove(jobs_.live()[random() % jobs_.live().size()]);
      }
      const std::unique_ptr<Memory> before = CopyOf(*memory_, *policy_);
      const Snapshot snapshot{.now = AtSeconds(10 * step),
                              .gpus_up = gpus,
                              .jobs = &jobs_,
                              .rates = &profiles_,
                              .costs = &costs_};
      const Proposal again = policy_->Decide(snapshot, before.get());
      const Shares shares = Decide(gpus, 10 * step);
      for (const Demand& demand : again.demands) {
        ASSERT_EQ(shares.at(Index(demand.job)), demand.gpus) << round;
        ASSERT_GT(profiles_.Rate(*jobs_.view(demand.job).spec, demand.gpus), 0) << round;
      }
    }
  }
}

}  // namespace
}  // namespace trainyard::policies
