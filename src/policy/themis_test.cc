// SPDX-License-Identifier: Apache-2.0
// Themis on hand-made jobs: the order of an auction, what a lease keeps, and that nobody starves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "policy/policies.h"
#include "support/hand_made_jobs.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

// A model is called by its iterations per second.
class NamedRates final : public ExecutionModel {
 public:
  [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
  [[nodiscard]] double Rate(const JobSpec& job, int /*gpus*/) const override {
    return std::stod(job.model);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
};

class RatedJobs final : public ChangingJobs {
 public:
  JobView& Add(double submit, int gpus, double rate, double left) {
    JobView& job = ChangingJobs::Add({.name = "job",
                                      .model = std::to_string(rate),
                                      .gpus = gpus,
                                      .submit = AtSeconds(submit),
                                      .iterations = left});
    job.work_left = left;
    return job;
  }
};

using Ids = std::vector<std::size_t>;

class ThemisTest : public testing::Test {
 protected:
  // Starts anew with these options.
  void Use(const std::string& options) {
    Result<Components> made = TryPolicy("themis" + options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    policy_ = std::move(made.value().policy);
    memory_ = policy_->NewMemory();
    jobs_ = RatedJobs();
  }

  [[nodiscard]] Snapshot At(double now, int gpus) const {
    return {.now = AtSeconds(now), .gpus_up = gpus, .jobs = &jobs_, .rates = &rates_};
  }
  Proposal Decide(double now, int gpus) { return policy_->Decide(At(now, gpus), memory_.get()); }
  // Decides, and the jobs hold what they are given.
  Ids Serve(double now, int gpus) {
    const Proposal proposal = Decide(now, gpus);
    jobs_.Hold(proposal.demands);
    wake_ = proposal.wake_at ? Seconds(*proposal.wake_at) : -1;
    return Named(proposal);
  }
  // All jobs in the order of the last auction: that in which a huge cluster would serve them.
  [[nodiscard]] Ids Order(double now) const {
    const std::unique_ptr<Memory> memory = CopyOf(*memory_, *policy_);
    return Named(policy_->Decide(At(now, 1'000'000), memory.get()));
  }
  void Run(JobId job, double iterations) { *jobs_.view(job).work_left -= iterations; }

  static Ids Named(const Proposal& proposal) {
    Ids ids;
    for (const Demand& demand : proposal.demands) {
      ids.push_back(Index(demand.job));
    }
    return ids;
  }

  NamedRates rates_;
  RatedJobs jobs_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Memory> memory_;
  double wake_ = -1;  // of the last decision; -1: none
};

constexpr char kPublished[] = ":lease=0,iso=iterations,age=last_event,serve=share";
constexpr char kShares[] = ":lease=0,iso=iterations,serve=share";

// ---------------------------------------------------------------------------------------- options

TEST_F(ThemisTest, BadOptionsAreRefused) {
  EXPECT_EQ(PolicyError("themis:serve=best"),
            "policy 'themis': option 'serve' is 'best'; expected one of worst, share, owed");
  EXPECT_EQ(PolicyError("themis:iso=hours"),
            "policy 'themis': option 'iso' is 'hours'; expected one of seconds, iterations");
  EXPECT_EQ(PolicyError("themis:age=old"),
            "policy 'themis': option 'age' is 'old'; expected one of now, last_event");
  EXPECT_EQ(PolicyError("themis:rule=conelp"),
            "policy 'themis': option 'rule' is 'conelp'; expected one of analytic-centre");
  EXPECT_EQ(PolicyError("themis:lease=-1"),
            "policy 'themis': option 'lease' is '-1'; expected seconds >= 0, or a time "
            "such as 90s, 15m or 2h");
  EXPECT_EQ(PolicyError("themis:lease=1e10"), "policy 'themis': lease must be at most 1e9 seconds");
}

TEST_F(ThemisTest, ItAsksForTheWorkLeftAndLeavesGpuCountsAlone) {
  Use("");
  EXPECT_TRUE(policy_->traits().needs.work_left);
  EXPECT_FALSE(policy_->traits().may.resize);
}

// ------------------------------------------------------------------------------- order of service

TEST_F(ThemisTest, WhereThereIsRoomAllRunInOrderOfArrival) {
  for (const char* options : {"", kPublished}) {
    Use(options);
    jobs_.Add(0, 2, 1, 500);
    jobs_.Add(0, 4, 10, 100);
    jobs_.Add(0, 2, 1, 9000);
    EXPECT_EQ(Serve(0, 8), Ids({0, 1, 2}));
    EXPECT_EQ(Serve(10, 8), Ids({0, 1, 2}));
    EXPECT_EQ(wake_, -1);
  }
}

TEST_F(ThemisTest, NoJobsNoDemands) {
  Use("");
  EXPECT_EQ(Serve(0, 8), Ids());
  EXPECT_EQ(wake_, -1);
}

// themis.py's solve (a restatement of ElasticFlow's reference, 6.2) gives for these jobs, all new,
// at 500 on 6 GPUs: rho with all they ask for 2.0, 0.3, 1.55, 1.1; least shares 1, 0.055556, 0.1,
// 0.526316 (sum 3.508), so the capacity does not bind; centre 1, 0.500933, 0.316752, 0.749511.
class FourJobs : public ThemisTest {
 protected:
  void Use(const std::string& options) {
    ThemisTest::Use(options);
    jobs_.Add(300, 2, 1, 200);
    jobs_.Add(300, 1, 10, 1000);
    jobs_.Add(200, 4, 10, 100);
    jobs_.Add(100, 2, 1, 4000);
  }
};

TEST_F(FourJobs, ServeShareOrdersByTheAnalyticCentre) {
  Use(kShares);
  EXPECT_EQ(Serve(500, 6), Ids({0, 3, 1}));  // 2 + 2 + 1; the gang of 4 is passed over
  EXPECT_EQ(Order(500), Ids({0, 3, 1, 2}));
}

TEST_F(FourJobs, ServeWorstOrdersByRho) {
  Use(":lease=0,iso=iterations");
  EXPECT_EQ(Serve(500, 6), Ids({0, 2}));
  EXPECT_EQ(Order(500), Ids({0, 2, 3, 1}));
}

// Two jobs on four GPUs whose least shares need all of them or more: both get the same rho, the
// larger root of 4 (rho - c0)(rho - c1) = g0 k0 (rho - c1) + g1 k1 (rho - c0).
class TwoJobs : public ThemisTest {
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
    Use(kShares);
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

TEST_F(ThemisTest, EqualRanksKeepTheirFormerOrder) {
  Use(":lease=0");
  for (int i = 0; i < 3; ++i) {
    jobs_.Add(0, 1, 1, 1000);
  }
  EXPECT_EQ(Serve(0, 1), Ids({0}));
  EXPECT_EQ(Order(0), Ids({0, 1, 2}));
  Run(JobAt(0), 100);
  EXPECT_EQ(Serve(100, 1), Ids({1}));  // 1.1, 1.1, and 1.0 for the job that ran
  EXPECT_EQ(Order(100), Ids({1, 2, 0}));
  Run(JobAt(1), 100);
  EXPECT_EQ(Serve(200, 1), Ids({2}));  // 1.2, and 1.1 for both that ran
  EXPECT_EQ(Order(200), Ids({2, 1, 0}));
}

TEST_F(ThemisTest, ANewJobJoinsAtTheTail) {
  Use(":lease=0");
  jobs_.Add(0, 1, 1, 1000);
  jobs_.Add(0, 1, 1, 1000);
  (void)Serve(0, 2);
  jobs_.Add(0, 1, 1, 1000);
  EXPECT_EQ(Serve(0, 2), Ids({0, 1}));
  EXPECT_EQ(Order(0), Ids({0, 1, 2}));
}

TEST_F(ThemisTest, FairTimeInSecondsDoesNotDependOnTheUnitOfWork) {
  Use(":lease=0");
  jobs_.Add(0, 1, 10, 1000);  // both 100 s
  jobs_.Add(0, 1, 1, 100);
  (void)Serve(50, 1);
  EXPECT_EQ(Order(50), Ids({0, 1}));
  Use(":lease=0,iso=iterations");
  jobs_.Add(0, 1, 10, 1000);
  jobs_.Add(0, 1, 1, 100);
  (void)Serve(50, 1);
  EXPECT_EQ(Order(50), Ids({1, 0}));  // 0.15 and 1.5
}

TEST_F(ThemisTest, WorkCountsAtTheFairShareOfItsTime) {
  Use(":lease=0");
  jobs_.Add(0, 4, 1, 1000);
  (void)Serve(0, 4);  // alone: fair share 1
  Run(JobAt(0), 500);
  jobs_.Add(500, 4, 1, 400);
  // Now 2 of 4 GPUs each. Job 0: (500 + 500) / (500 + 500 / 0.5) = 0.667; job 1: 400 / 800 = 0.5.
  // Had the first half counted at the present share, too, both would have 0.5.
  EXPECT_EQ(Serve(500, 4), Ids({0}));
  Run(JobAt(0), 100);
  // Job 0 stays, job 1 has (100 + 400) / 800 = 0.625; 40 s later 0.675.
  EXPECT_EQ(Serve(600, 4), Ids({0}));
  Run(JobAt(0), 40);
  EXPECT_EQ(Serve(640, 4), Ids({1}));
}

TEST_F(ThemisTest, WorkThatAFailureUndoesIsTakenOffAgain) {
  Use(":lease=0");
  jobs_.Add(0, 1, 1, 1000);
  jobs_.Add(0, 1, 1, 1000);
  (void)Serve(0, 1);
  Run(JobAt(0), 500);
  (void)Serve(500, 1);
  EXPECT_EQ(Order(500), Ids({1, 0}));
  Run(JobAt(0), -500);
  (void)Serve(500, 1);
  EXPECT_EQ(Order(500), Ids({1, 0}));  // as if it had never run: ranks are equal
  Run(JobAt(1), 1);
  (void)Serve(501, 1);
  EXPECT_EQ(Order(501), Ids({0, 1}));
}

// Rho at 700: 1.1, 1.2333 and 1.6; with the age of 100: 0.5, 1.0333 and 1.
class StaleAge : public ThemisTest {
 protected:
  void Use(const std::string& options) {
    ThemisTest::Use(options);
    jobs_.Add(0, 1, 1, 1000);
    jobs_.Add(0, 1, 1, 3000);
    jobs_.Add(100, 1, 1, 1000);
    ASSERT_EQ(Serve(100, 1), Ids({0}));
    Run(JobAt(0), 600);
  }
};

TEST_F(StaleAge, AgeIsOfNow) {
  Use(":lease=0");
  EXPECT_EQ(Serve(700, 1), Ids({2}));
}

TEST_F(StaleAge, OrOfTheLastArrivalOrEnd) {
  Use(":lease=0,age=last_event");
  EXPECT_EQ(Serve(700, 1), Ids({1}));
  Use(":lease=0,age=last_event");
  jobs_.Add(700, 1, 1, 1000);
  EXPECT_EQ(Serve(700, 1), Ids({2}));
  Use(":lease=0,age=last_event");
  jobs_.Remove(JobAt(0));
  EXPECT_EQ(Serve(700, 1), Ids({2}));
}

TEST_F(ThemisTest, AGangLargerThanWhatIsUpWaitsAndIsNoBurden) {
  Use("");
  jobs_.Add(0, 8, 1, 1000);
  jobs_.Add(0, 2, 1, 1000);
  EXPECT_EQ(Serve(0, 4), Ids({1}));
  EXPECT_EQ(Serve(1, 4), Ids({1}));
  EXPECT_EQ(wake_, -1);  // who can run does so: there is nothing to decide
  jobs_.Hold({});
  EXPECT_EQ(Serve(10, 0), Ids());
  EXPECT_EQ(Serve(20, 10), Ids({0, 1}));
}

// ----------------------------------------------------------------------------------------- leases

TEST_F(ThemisTest, ALeaseKeepsRunningJobsUntilItEnds) {
  Use(":lease=600");
  jobs_.Add(0, 1, 1, 10000);
  jobs_.Add(0, 1, 1, 100);
  EXPECT_EQ(Serve(0, 1), Ids({0}));
  EXPECT_EQ(wake_, 600);
  Run(JobAt(0), 300);
  jobs_.Add(300, 1, 1, 10);
  EXPECT_EQ(Serve(300, 1), Ids({0}));
  EXPECT_EQ(wake_, 600);
  Run(JobAt(0), 300);
  EXPECT_EQ(Serve(600, 1), Ids({2}));
  EXPECT_EQ(wake_, 1200);
  jobs_.Remove(JobAt(2));
  EXPECT_EQ(Serve(610, 1), Ids({1}));  // nothing runs: nothing is leased
  EXPECT_EQ(wake_, 1210);
}

TEST_F(ThemisTest, FreeGpusAreFilledInTheOrderOfTheLastAuction) {
  Use(":lease=600");
  jobs_.Add(0, 2, 1, 5000);
  jobs_.Add(0, 2, 1, 50);
  jobs_.Add(0, 4, 1, 5000);
  jobs_.Add(0, 1, 1, 5000);
  jobs_.Add(0, 1, 1, 5000);
  jobs_.Add(0, 1, 1, 5000);
  ASSERT_EQ(Serve(0, 4), Ids({3, 4, 5}));  // fair share of a GPU each: rho 1, then 0.5 and 0.25
  ASSERT_EQ(Order(0), Ids({3, 4, 5, 0, 1, 2}));
  jobs_.Remove(JobAt(4));
  EXPECT_EQ(Serve(100, 4), Ids({3, 5, 0}));  // 1 + 1, then 2 of the free 2
  jobs_.Remove(JobAt(3));
  jobs_.Add(100, 1, 1, 10);
  EXPECT_EQ(Serve(100, 4), Ids({5, 0, 6}));  // 2 and 4 do not fit into 1: the new job does
}

TEST_F(ThemisTest, WithoutALeaseEveryDecisionIsAnAuction) {
  Use(":lease=0");
  jobs_.Add(0, 1, 1, 1000);
  jobs_.Add(0, 1, 1, 1000);
  EXPECT_EQ(Serve(0, 1), Ids({0}));
  EXPECT_EQ(wake_, -1);
  Run(JobAt(0), 1);
  EXPECT_EQ(Serve(1, 1), Ids({1}));
  EXPECT_EQ(wake_, -1);
}

TEST_F(ThemisTest, AJobThatFindsNoPlaceIsTriedAtTheNextAuctionButNotForEver) {
  Use(":lease=600");
  jobs_.Add(0, 4, 1, 1000);
  EXPECT_EQ(Named(Decide(0, 4)), Ids({0}));  // the placement has no place: it does not run
  const Proposal again = Decide(600, 4);
  EXPECT_EQ(Named(again), Ids({0}));
  EXPECT_FALSE(again.wake_at);
}

TEST_F(ThemisTest, ACopyOfTheMemoryGoesItsOwnWay) {
  Use(":lease=600");
  jobs_.Add(0, 1, 1, 10000);
  jobs_.Add(0, 1, 1, 100);
  ASSERT_EQ(Serve(0, 1), Ids({0}));
  const std::unique_ptr<Memory> copy = CopyOf(*memory_, *policy_);
  Run(JobAt(0), 600);
  const Ids after = Serve(600, 1);
  ASSERT_EQ(after, Ids({1}));
  jobs_.Hold({{.job = JobAt(0), .gpus = 1}});
  EXPECT_EQ(Named(policy_->Decide(At(600, 1), copy.get())), after);
  // The copy's lease now ends at 1200, too; a copy of then that is asked later moves on alone.
  const std::unique_ptr<Memory> later = CopyOf(*memory_, *policy_);
  jobs_.Hold({{.job = JobAt(1), .gpus = 1}});
  Run(JobAt(1), 50);
  EXPECT_EQ(Seconds(*policy_->Decide(At(1200, 1), later.get()).wake_at), 1800);
  EXPECT_EQ(Seconds(*Decide(650, 1).wake_at), 1200);
}

// ------------------------------------------------------------------------------------- no starving

struct Arrival {
  double submit = 0;
  int gpus = 1;
  double rate = 1;
  double work = 0;  // iterations
};

// What became of a job: its end and its rho, with a fair share of the jobs that lived with it.
struct Outcome {
  double end = 0;
  double rho = 0;
  double overload = 1;  // most that was asked for in its time, in clusters
};

// Whole runs that count GPUs; checks on the way that leases are kept.
class ThemisRunTest : public ThemisTest {
 protected:
  std::vector<Outcome> RunAll(const std::string& options, double lease, int gpus,
                              const std::vector<Arrival>& arrivals) {
    Use(options);
    gpus_ = gpus;
    lease_ = lease;
    arrivals_ = arrivals;
    fair_.assign(arrivals.size(), 0);
    outcomes_.assign(arrivals.size(), {});
    next_ = 0;
    last_auction_ = -1e18;
    now_ = arrivals.front().submit;
    for (int decisions = 0; next_ < arrivals_.size() || !jobs_.live().empty(); ++decisions) {
      if (decisions > 100'000) {
        ADD_FAILURE() << "it does not end";
        break;
      }
      AdmitArrivals();
      DecideAndCheck();
      GoOn(NextTime());
    }
    return outcomes_;
  }

 private:
  void AdmitArrivals() {
    for (; next_ < arrivals_.size() && arrivals_[next_].submit <= now_ + 1e-9; ++next_) {
      const Arrival& job = arrivals_[next_];
      jobs_.Add(job.submit, job.gpus, job.rate, job.work);
    }
  }

  void DecideAndCheck() {
    const std::set<JobId> before = Running();
    (void)Serve(now_, gpus_);
    const std::set<JobId> after = Running();
    int used = 0;
    for (const JobId job : after) {
      used += jobs_.grant(job).gpus;
    }
    EXPECT_LE(used, gpus_);
    if (!std::includes(after.begin(), after.end(), before.begin(), before.end())) {
      EXPECT_GE(now_, last_auction_ + lease_ - 1e-5) << "a lease is broken";
      last_auction_ = now_;
    }
  }

  [[nodiscard]] std::set<JobId> Running() const {
    std::set<JobId> running;
    for (const JobId job : jobs_.live()) {
      if (jobs_.grant(job).gpus > 0) {
        running.insert(job);
      }
    }
    return running;
  }

  [[nodiscard]] double NextTime() {
    double next = wake_ >= 0 ? wake_ : 1e18;
    for (const JobId job : Running()) {
      next = std::min(next, now_ + *jobs_.view(job).work_left / arrivals_[Index(job)].rate);
    }
    if (next_ < arrivals_.size()) {
      next = std::min(next, arrivals_[next_].submit);
    }
    return next;
  }

  void GoOn(double to) {
    const double live = static_cast<double>(jobs_.live().size());
    const double fair = std::ceil(gpus_ / live);
    double asked = 0;
    for (const JobId job : jobs_.live()) {
      asked += arrivals_[Index(job)].gpus;
    }
    for (const JobId job : jobs_.live()) {
      double& overload = outcomes_[Index(job)].overload;
      overload = std::max(overload, asked / gpus_);
    }
    for (const JobId job : Running()) {
      const Arrival& spec = arrivals_[Index(job)];
      Run(job, spec.rate * (to - now_));
      fair_[Index(job)] += (to - now_) / std::min(1.0, fair / spec.gpus);
      if (*jobs_.view(job).work_left <= spec.rate * 1e-6) {
        outcomes_[Index(job)].end = to;
        outcomes_[Index(job)].rho = (to - spec.submit) / fair_[Index(job)];
        jobs_.Remove(job);
      }
    }
    now_ = to;
  }

  int gpus_ = 0;
  double lease_ = 0;
  double now_ = 0;
  double last_auction_ = 0;  // at which somebody lost GPUs
  std::vector<Arrival> arrivals_;
  std::size_t next_ = 0;
  std::vector<double> fair_;  // fair time of the work done, by job
  std::vector<Outcome> outcomes_;
};

std::vector<Arrival> RandomArrivals(std::mt19937& random, int count) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Arrival> arrivals;
  double submit = 0;
  for (int i = 0; i < count; ++i) {
    submit += random() % 3 == 0 ? 0 : std::round(1500 * uniform(random));
    const double rate = 1.0 + static_cast<double>(random() % 9);
    arrivals.push_back({.submit = submit,
                        .gpus = 1 << (random() % 4),
                        .rate = rate,
                        .work = rate * std::round(1800 * std::pow(10, uniform(random)))});
  }
  return arrivals;
}

// Were the GPUs shared evenly by request, no rho would exceed the overload. (Largest seen: 1.05 of
// it; in order of arrival 4.2, shortest first 1.7.)
TEST_F(ThemisRunTest, NoRhoIsMuchLargerThanTheOverload) {
  std::mt19937 random(11);
  for (int round = 0; round < Rounds(200); ++round) {
    const std::vector<Arrival> arrivals = RandomArrivals(random, 25);
    for (const auto& [options, lease] :
         {std::pair(":lease=600", 600.0), std::pair(":lease=3600", 3600.0),
          std::pair(":lease=600,serve=share", 600.0)}) {
      for (const Outcome& job : RunAll(options, lease, 8, arrivals)) {
        ASSERT_GT(job.end, 0) << options << " round " << round << ": a job did not end";
        ASSERT_LT(job.rho, 1.25 * job.overload) << options << " round " << round;
      }
    }
  }
}

// Single-GPU jobs without end keep three quarters of the cluster busy: by count alone there would
// never be room for the gang.
TEST_F(ThemisRunTest, AStreamOfSmallJobsDoesNotStarveAGangOfTheWholeCluster) {
  std::vector<Arrival> arrivals;
  for (int i = 0; i < 2000; ++i) {
    if (i == 20) {
      arrivals.push_back({.submit = 300.0 * i, .gpus = 4, .rate = 1, .work = 7200});
    }
    arrivals.push_back({.submit = 300.0 * i, .gpus = 1, .rate = 1, .work = 900});
  }
  EXPECT_LT(RunAll(":lease=600", 600, 4, arrivals)[20].rho, 2);
}

// Muri, reference 6: shares per time that a job has run, and nobody twice before all have run.
TEST_F(ThemisTest, OwedTimeGoesToThoseWhoHaveNotRun) {
  Use(":lease=0,serve=owed,iso=iterations");
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
TEST_F(ThemisTest, OwedTimeIsComparedToFiveDigits) {
  Use(":lease=0,serve=owed,iso=iterations");
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
TEST_F(ThemisTest, OwedTimeIsServedAsFarAsItFitsOnTheNodes) {
  Use(":lease=0,serve=owed,iso=iterations");
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

TEST(ThemisOptionsTest, OwedTimeKnowsNoLeases) {
  EXPECT_EQ(PolicyError("themis:serve=owed"),
            "policy 'themis': serve=owed has no leases; expected lease=0 with it");
}

}  // namespace
}  // namespace trainyard
