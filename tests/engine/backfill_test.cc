// SPDX-License-Identifier: Apache-2.0
// Backfilling against an implementation of its own: shadow time and extra GPUs, as the papers have
// it (D. Lifka, JSSPP'95; D. Tsafrir, Y. Etsion, D. Feitelson, TPDS 18(6), 2007).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine_tests/harness.h"
#include "support/sanitized.h"

namespace trainyard {
namespace {

JobSpec Limited(JobSpec job, double limit) {
  JobTraits traits;
  traits.time_limit = FromSeconds(limit);
  job.traits = std::make_shared<const JobTraits>(std::move(traits));
  return job;
}

JobSpec Wanting(JobSpec job, const std::string& type) {
  JobTraits traits;
  traits.gpu_types = {type};
  job.traits = std::make_shared<const JobTraits>(std::move(traits));
  return job;
}

// Four GPUs, three of them taken until 100; job 1 wants all four then.
TEST(BackfillTest, WhatDelaysNobodyGoesBefore) {
  const std::vector<JobSpec> jobs{MakeJob(0, 3, 100), MakeJob(1, 4, 50), MakeJob(2, 1, 99),
                                  MakeJob(3, 1, 97)};
  // Job 2 would end at 101, job 3 ends at 100.
  EXPECT_EQ(Starts(jobs, MakeCluster(1, 4), "backfill"), (std::vector<double>{0, 100, 150, 3}));
  EXPECT_EQ(Starts(jobs, MakeCluster(1, 4), "fifo"), (std::vector<double>{0, 100, 150, 150}));
  EXPECT_EQ(Starts(jobs, MakeCluster(1, 4), "fjf"), (std::vector<double>{0, 197, 2, 100}));
}

// Job 1 leaves one of four GPUs free from 100 on.
TEST(BackfillTest, WhatIsLeftBesideTheReservationIsForAnyLength) {
  const std::vector<JobSpec> jobs{MakeJob(0, 3, 100), MakeJob(1, 3, 50), MakeJob(2, 1, 1000)};
  EXPECT_EQ(Starts(jobs, MakeCluster(1, 4), "backfill"), (std::vector<double>{0, 100, 2}));
}

TEST(BackfillTest, TheTimeLimitSaysHowLongAJobMayTake) {
  const std::vector<JobSpec> jobs{MakeJob(0, 3, 100), MakeJob(1, 4, 50),
                                  Limited(MakeJob(2, 1, 20), 500)};
  EXPECT_EQ(Starts(jobs, MakeCluster(1, 4), "backfill"), (std::vector<double>{0, 100, 150}));
  EXPECT_EQ(Starts(jobs, MakeCluster(1, 4), "backfill:times=estimate"),
            (std::vector<double>{0, 100, 2}));
}

TEST(BackfillTest, TheShortestGoesFirst) {
  const std::vector<JobSpec> jobs{MakeJob(0, 3, 100), MakeJob(1, 4, 50), MakeJob(2, 1, 90),
                                  MakeJob(2, 1, 10), MakeJob(2, 1, 20)};
  EXPECT_EQ(Starts(jobs, MakeCluster(1, 4), "backfill"),
            (std::vector<double>{0, 100, 2, 150, 150}));
  EXPECT_EQ(Starts(jobs, MakeCluster(1, 4), "backfill:order=shortest"),
            (std::vector<double>{0, 100, 150, 2, 12}));
}

// Two nodes of two GPUs: job 2 wants a whole one, which job 0 gives back at 100, and job 1 later.
TEST(BackfillTest, AReservationIsAPlaceAndNotANumber) {
  Cluster cluster = MakeCluster(2, 2);
  cluster.nodes[0].gpu_type = "A100";
  cluster.nodes[1].gpu_type = "V100";
  const std::vector<JobSpec> jobs{
      Wanting(MakeJob(0, 1, 100), "A100"), Wanting(MakeJob(0, 1, 200), "V100"),
      Wanting(MakeJob(1, 2, 50), "A100"),  MakeJob(2, 1, 150),
      Wanting(MakeJob(3, 1, 98), "A100"),  Wanting(MakeJob(4, 1, 90), "A100")};
  // Job 3 may have either: beside job 1, where it is in nobody's way.
  EXPECT_EQ(Starts(jobs, cluster, "backfill"), (std::vector<double>{0, 0, 100, 2, 150, 4}));
}

// The placement would take the free GPU of the first node, which job 2 is to have.
TEST(BackfillTest, OnesThatWouldBeInTheWayGoElsewhere) {
  const std::vector<JobSpec> jobs{MakeJob(0, 3, 100), MakeJob(0, 2, 200), MakeJob(1, 4, 50),
                                  MakeJob(2, 1, 500), MakeJob(3, 1, 500), MakeJob(3, 1, 97)};
  for (const char* const placement : {"consolidated", "first-fit", "buddy", "scattered", "count"}) {
    const TestResult result = RunTest(
        {.jobs = jobs, .cluster = MakeCluster(2, 4), .policy = "backfill", .placement = placement});
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    EXPECT_EQ(result.start(2), 100) << placement;
    EXPECT_EQ(result.start(3), 2) << placement;
    EXPECT_EQ(result.start(4), 3) << placement;
  }
}

// Job 2 may have either type and has the first reservation, on B; job 3 is the first that may have
// A alone, and job 4 would delay it.
TEST(BackfillTest, TheFirstOfEachSetOfNodesIsProtected) {
  Cluster cluster = MakeCluster(2, 4);
  cluster.nodes[0].gpu_type = "A";
  cluster.nodes[1].gpu_type = "B";
  const std::vector<JobSpec> jobs{Wanting(MakeJob(0, 4, 100), "B"),
                                  Wanting(MakeJob(0, 3, 200), "A"),
                                  MakeJob(1, 4, 10),
                                  Wanting(MakeJob(2, 4, 10), "A"),
                                  Wanting(MakeJob(3, 1, 1000), "A"),
                                  Wanting(MakeJob(4, 1, 196), "A")};
  EXPECT_EQ(Starts(jobs, cluster, "backfill"), (std::vector<double>{0, 0, 100, 200, 210, 4}));
}

// All four GPUs are taken until 100; job 2 wants all of them, too.
TEST(BackfillTest, PointsSayWhoIsFirst) {
  std::vector<JobSpec> jobs{MakeJob(0, 4, 100), MakeJob(1, 2, 10), MakeJob(2, 4, 50),
                            MakeJob(3, 3, 10)};
  jobs[3].priority = 5;
  const auto starts = [&](const std::string& options) {
    return Starts(jobs, MakeCluster(1, 4), "backfill" + options);
  };
  EXPECT_EQ(starts(""), (std::vector<double>{0, 100, 110, 160}));
  EXPECT_EQ(starts(":weight_priority=1"), (std::vector<double>{0, 110, 120, 100}));
  EXPECT_EQ(starts(":weight_job_size=1"), (std::vector<double>{0, 160, 100, 150}));
  EXPECT_EQ(starts(":weight_job_size=1,favor=small"), (std::vector<double>{0, 100, 120, 110}));
  // A second of waiting is worth more than size, as long as it counts.
  EXPECT_EQ(starts(":weight_age=1000,max_age=1000,weight_job_size=0.5"),
            (std::vector<double>{0, 100, 110, 160}));
  EXPECT_EQ(starts(":weight_age=1000,max_age=90,weight_job_size=0.5"),
            (std::vector<double>{0, 160, 100, 150}));
}

// ---------------------------------------------------------------------------------------- oracle

struct Running {
  int end = 0;  // as decisions know it
  int real_end = 0;
  int gpus = 0;
};

struct Stated {
  int submit = 0;
  int gpus = 0;
  int run = 0;
  int known = 0;
};

// On equal GPUs: at each instant ends, then submissions, then one decision.
class Easy {
 public:
  Easy(std::vector<Stated> jobs, int gpus, bool shortest)
      : jobs_(std::move(jobs)), free_(gpus), shortest_(shortest), starts_(jobs_.size(), -1) {}

  std::vector<double> Run() {
    std::map<int, std::vector<std::size_t>> submits;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      submits[jobs_[i].submit].push_back(i);
    }
    while (!submits.empty() || !running_.empty()) {
      now_ = submits.empty() ? 1'000'000'000 : submits.begin()->first;
      for (const Running& one : running_) {
        now_ = std::min(now_, one.real_end);
      }
      std::erase_if(running_, [this](const Running& one) {
        free_ += one.real_end == now_ ? one.gpus : 0;
        return one.real_end == now_;
      });
      if (const auto due = submits.extract(now_); !due.empty()) {
        waiting_.insert(waiting_.end(), due.mapped().begin(), due.mapped().end());
      }
      Decide();
    }
    return starts_;
  }

 private:
  void Start(std::size_t job) {
    const Stated& of = jobs_[job];
    free_ -= of.gpus;
    starts_[job] = now_;
    running_.push_back({.end = now_ + of.known, .real_end = now_ + of.run, .gpus = of.gpus});
    std::erase(waiting_, job);
  }

  void Decide() {
    while (!waiting_.empty() && jobs_[waiting_.front()].gpus <= free_) {
      Start(waiting_.front());
    }
    if (waiting_.size() < 2) {
      return;
    }
    const int needs = jobs_[waiting_.front()].gpus;
    std::map<int, int> released;
    for (const Running& one : running_) {
      released[one.end] += one.gpus;
    }
    int then = free_;
    int shadow = 0;
    for (const auto& [at, gpus] : released) {
      then += gpus;
      if (then >= needs) {
        shadow = at;
        break;
      }
    }
    int extra = then - needs;
    std::vector<std::size_t> behind(waiting_.begin() + 1, waiting_.end());
    if (shortest_) {
      std::stable_sort(behind.begin(), behind.end(), [this](std::size_t a, std::size_t b) {
        return jobs_[a].known < jobs_[b].known;
      });
    }
    for (const std::size_t job : behind) {
      const bool ends_before = now_ + jobs_[job].known <= shadow;
      if (jobs_[job].gpus <= free_ && (ends_before || jobs_[job].gpus <= extra)) {
        extra -= ends_before ? 0 : jobs_[job].gpus;
        Start(job);
      }
    }
  }

  const std::vector<Stated> jobs_;
  int free_;
  const bool shortest_;
  std::vector<double> starts_;
  std::vector<std::size_t> waiting_;
  std::vector<Running> running_;
  int now_ = 0;
};

// On nodes of one GPU, where a place is a number.
TEST(BackfillTest, DecidesAsShadowTimeAndExtraGpus) {
  std::size_t went_before = 0;
  for (unsigned seed = 1; seed <= Rounds(300U); ++seed) {
    std::mt19937 random(seed);
    const int gpus = 4 + static_cast<int>(random() % 12);
    const bool shortest = random() % 2 == 0;
    const bool by_limit = random() % 3 != 0;
    std::vector<Stated> stated;
    std::vector<JobSpec> jobs;
    int submit = 0;
    for (int i = 0; i < 60; ++i) {
      submit += static_cast<int>(random() % 12);
      const int run = 1 + static_cast<int>(random() % 60);
      const int limit = run + 1 + static_cast<int>(random() % 3 * (random() % 50));
      const int asks = 1 + static_cast<int>(random() % static_cast<unsigned>(gpus));
      stated.push_back({submit, asks, run, by_limit ? limit : run});
      jobs.push_back(Limited(MakeJob(submit, asks, run), limit));
    }
    const std::string policy = std::string("backfill:order=") +
                               (shortest ? "shortest" : "arrival") +
                               ",times=" + (by_limit ? "limit" : "estimate");
    const std::vector<double> starts = Starts(jobs, MakeCluster(gpus, 1), policy);
    ASSERT_EQ(starts, Easy(stated, gpus, shortest).Run()) << "seed " << seed << " " << policy;
    went_before += static_cast<std::size_t>(
        std::adjacent_find(starts.begin(), starts.end(), std::greater<>()) != starts.end());
  }
  EXPECT_GT(went_before, Rounds(300U) / 2);
}

// --------------------------------------------------------------------------- several reservations

// Each job has the first time at which so many are free for as long as it takes beside those of all
// jobs before it: conservative backfilling (D. Feitelson, A. Weil, IPPS'98) where run times are
// known, so that nobody ends early. Times are whole seconds.
std::vector<double> Conservative(const std::vector<Stated>& jobs, int gpus) {
  std::vector<int> taken(20'000, 0);
  std::vector<double> starts;
  for (const Stated& job : jobs) {
    int start = job.submit;
    for (int at = start; at < start + job.run; ++at) {
      if (taken.at(static_cast<std::size_t>(at)) + job.gpus > gpus) {
        start = at + 1;
      }
    }
    for (int at = start; at < start + job.run; ++at) {
      taken.at(static_cast<std::size_t>(at)) += job.gpus;
    }
    starts.push_back(start);
  }
  return starts;
}

// On nodes of one GPU of one to three types, of which each job wants one.
TEST(BackfillTest, WithReservationsForAllNobodyIsDelayed) {
  const std::vector<std::string> types{"A", "B", "C"};
  std::size_t went_before = 0;
  std::size_t otherwise = 0;
  for (unsigned seed = 1; seed <= Rounds(10'000U); ++seed) {
    std::mt19937 random(seed);
    const unsigned of_types = 1 + static_cast<unsigned>(random() % 3);
    const unsigned gpus = 2 + static_cast<unsigned>(random() % 8);  // of each type
    Cluster cluster = MakeCluster(static_cast<int>(of_types * gpus), 1);
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      cluster.nodes[i].gpu_type = types[i % of_types];
    }
    std::vector<JobSpec> jobs;
    std::map<std::string, std::vector<Stated>> stated;
    int submit = 0;
    for (int i = 0; i < 24; ++i) {
      submit += static_cast<int>(random() % 20);
      const int run = 1 + static_cast<int>(random() % 60);
      const int asks = 1 + static_cast<int>(random() % gpus);
      const std::string& type = types[random() % of_types];
      stated[type].push_back({submit, asks, run, run});
      jobs.push_back(Wanting(MakeJob(submit, asks, run), type));
    }
    const std::vector<double> starts = Starts(jobs, cluster, "backfill:reservations=24");
    std::map<std::string, std::vector<double>> by_type;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      by_type[jobs[i].traits->gpu_types.front()].push_back(starts[i]);
    }
    for (const auto& [type, started] : by_type) {
      ASSERT_EQ(started, Conservative(stated[type], static_cast<int>(gpus))) << "seed " << seed;
    }
    went_before += static_cast<std::size_t>(
        std::adjacent_find(starts.begin(), starts.end(), std::greater<>()) != starts.end());
    otherwise += seed <= 100 && Starts(jobs, cluster, "backfill") != starts ? 1 : 0;
  }
  EXPECT_GT(went_before, Rounds(10'000U) / 2);
  EXPECT_GT(otherwise, 5U);
}

// Job 1 leaves two of four GPUs free at 100; job 2 wants all at 150, when job 1 ends.
TEST(BackfillTest, TheSecondThatWaitsHasOneToo) {
  const std::vector<JobSpec> jobs{MakeJob(0, 3, 100), MakeJob(1, 2, 50), MakeJob(2, 4, 10),
                                  MakeJob(3, 1, 1000)};
  const auto starts = [&](const std::string& options) {
    return Starts(jobs, MakeCluster(1, 4), "backfill" + options);
  };
  EXPECT_EQ(starts(""), (std::vector<double>{0, 100, 1003, 3}));
  EXPECT_EQ(starts(":reservations=2"), (std::vector<double>{0, 100, 150, 160}));
  EXPECT_EQ(starts(":reservations=2,order=shortest"), (std::vector<double>{0, 100, 150, 160}));
}

// ------------------------------------------------------------------------------ nobody is delayed

struct Amounts {
  int gpus = 0;
  int cpus = 0;
  int gib = 0;

  [[nodiscard]] bool Covers(const Amounts& other) const {
    return gpus >= other.gpus && cpus >= other.cpus && gib >= other.gib;
  }
  void Add(const Amounts& other, int sign) {
    gpus += sign * other.gpus;
    cpus += sign * other.cpus;
    gib += sign * other.gib;
  }
};

struct Served {
  double arrival = 0;
  double start = 0;
  double end = 0;
  Amounts asks;
  std::size_t type = 0;  // on which alone it may lie
};

// When the job could start if nobody went before it from `since` on, when it became the first that
// waits: as soon as enough of its type is free of what those have who run then. `free`: if nobody
// has any.
double LatestStart(const Served& job, double since, const std::vector<Served>& jobs, Amounts free) {
  std::map<double, std::vector<const Served*>> ends;
  for (const Served& other : jobs) {
    const bool goes_first = other.start < since || (other.start == since && &other < &job);
    if (other.type == job.type && goes_first && other.end > since) {
      free.Add(other.asks, -1);
      ends[other.end].push_back(&other);
    }
  }
  double at = since;
  for (const auto& [end, ended] : ends) {
    if (free.Covers(job.asks)) {
      return at;
    }
    for (const Served* const other : ended) {
      free.Add(other->asks, 1);
    }
    at = end;
  }
  return at;
}

// With run times that are known, on nodes of one GPU of three types, of which each job wants one.
// Jobs of all types share a queue, a partition and the order.
TEST(BackfillTest, TheFirstThatWaitsIsNotDelayed) {
  std::size_t firsts = 0;
  std::size_t waited = 0;
  for (unsigned seed = 1; seed <= Rounds(10'000U); ++seed) {
    std::mt19937 random(seed);
    const std::vector<std::string> types{"A", "B", "C"};
    Cluster cluster = MakeCluster(9, 1);
    std::vector<Amounts> has(types.size());
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      const std::size_t type = i < 3 ? i : random() % 3;
      cluster.nodes[i].gpu_type = types[type];
      ++has[type].gpus;
    }
    std::vector<JobSpec> jobs;
    std::vector<Served> served;
    double submit = 0;
    for (int i = 0; i < 16; ++i) {
      submit += static_cast<double>(random() % 8);
      const std::size_t type = random() % 3;
      const int gpus = 1 + static_cast<int>(random() % static_cast<unsigned>(has[type].gpus));
      jobs.push_back(
          Wanting(MakeJob(submit, gpus, 1 + static_cast<double>(random() % 40)), types[type]));
      served.push_back({.arrival = submit, .asks = {.gpus = gpus}, .type = type});
    }
    const TestResult result =
        RunTest({.jobs = jobs,
                 .cluster = cluster,
                 .policy = random() % 2 == 0 ? "backfill" : "backfill:order=shortest"});
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    for (std::size_t i = 0; i < served.size(); ++i) {
      served[i].start = result.start(i);
      served[i].end = result.end(i);
    }
    std::vector<double> since(types.size(), 0);  // by type: when those before had all started
    for (const Served& job : served) {
      double& before = since[job.type];
      const double first = std::max(before, job.arrival);
      before = std::max(before, job.start);
      if (first > job.start) {
        continue;  // it went before others
      }
      ++firsts;
      waited += job.start > first ? 1 : 0;
      ASSERT_LE(job.start, LatestStart(job, first, served, has[job.type])) << "seed " << seed;
    }
  }
  EXPECT_GT(firsts, Rounds(10'000U) * 5);
  EXPECT_GT(waited, Rounds(10'000U));
}

// ------------------------------------------------------------------- with CPUs and memory, too

// Three types, of each one node, on which GPUs, CPUs or memory are short.
TEST(BackfillTest, TheFirstThatWaitsIsNotDelayedWithCpusAndMemory) {
  std::size_t waited = 0;
  std::size_t for_others = 0;  // though it had enough GPUs
  for (unsigned seed = 1; seed <= Rounds(10'000U); ++seed) {
    std::mt19937 random(seed);
    const std::vector<std::string> types{"A", "B", "C"};
    Cluster cluster = MakeCluster(3, 1);
    std::vector<Amounts> has;
    for (std::size_t i = 0; i < types.size(); ++i) {
      has.push_back({.gpus = 4 + static_cast<int>(random() % 5),
                     .cpus = 8 + static_cast<int>(random() % 25),
                     .gib = 16 + static_cast<int>(random() % 49)});
      cluster.nodes[i].gpus = has[i].gpus;
      cluster.nodes[i].gpu_type = types[i];
      cluster.nodes[i].capacity = {.milli_cpus = 1000 * has[i].cpus,
                                   .memory_mib = 1024 * has[i].gib};
    }
    std::vector<JobSpec> jobs;
    std::vector<Served> served;
    double submit = 0;
    for (int i = 0; i < 20; ++i) {
      submit += static_cast<double>(random() % 8);
      const std::size_t node = random() % 3;
      const auto some = [&random](int most) {
        return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
      };
      const Amounts asks{
          .gpus = some(has[node].gpus), .cpus = some(has[node].cpus), .gib = some(has[node].gib)};
      JobSpec job = Wanting(MakeJob(submit, asks.gpus, some(40)), types[node]);
      JobTraits traits = *job.traits;
      traits.request = NodeRequest{
          .cpus = {.milli = 1000 * asks.cpus}, .memory = {.mib = 1024 * asks.gib}, .nodes = {}};
      job.traits = std::make_shared<const JobTraits>(std::move(traits));
      jobs.push_back(std::move(job));
      served.push_back({.arrival = submit, .asks = asks, .type = node});
    }
    const TestResult result =
        RunTest({.jobs = jobs,
                 .cluster = cluster,
                 .policy = random() % 2 == 0 ? "backfill" : "backfill:order=shortest"});
    ASSERT_TRUE(result.status.ok()) << result.status.error().message;
    for (std::size_t i = 0; i < served.size(); ++i) {
      served[i].start = result.start(i);
      served[i].end = result.end(i);
    }
    std::vector<double> since(types.size(), 0);  // by type: when those before had all started
    for (const Served& job : served) {
      double& before = since[job.type];
      const double first = std::max(before, job.arrival);
      before = std::max(before, job.start);
      if (first > job.start) {
        continue;  // it went before others
      }
      waited += job.start > first ? 1 : 0;
      const double latest = LatestStart(job, first, served, has[job.type]);
      ASSERT_LE(job.start, latest) << "seed " << seed;
      Amounts gpus_alone = has[job.type];
      gpus_alone.cpus = gpus_alone.gib = 1'000'000;
      for_others += latest > LatestStart(job, first, served, gpus_alone) ? 1 : 0;
    }
  }
  EXPECT_GT(waited, Rounds(10'000U));
  EXPECT_GT(for_others, Rounds(10'000U));
}

}  // namespace
}  // namespace trainyard
