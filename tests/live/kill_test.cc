// SPDX-License-Identifier: Apache-2.0
// Controller and agents are killed again and again while jobs come, run and end. By hand for
// longer:
//   TRAINYARD_KILLS=1000 TRAINYARD_SEED=7 live_cluster_test --gtest_filter='Kill*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kNodes = 4;
constexpr int kGpus = 4;
constexpr double kSecondsPerKill = 0.7;  // of the controller; as much again for agents

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// The clock of kills and submissions. On a machine that cannot keep up it is set back, so that a
// controller has, on average, the same time until the next kill however slow the machine is. Were
// it not, the kills that are overdue would follow each other without a controller in between.
class Schedule {
 public:
  void SleepUntil(double at) const {
    std::this_thread::sleep_until(
        begin_ + std::chrono::duration_cast<steady_clock::duration>(Seconds(at + late_)));
  }
  // What was due at `at` has just been done.
  void Done(double at) { late_ = std::max(late_.load(), Elapsed() - at); }
  [[nodiscard]] double Elapsed() const { return Seconds(steady_clock::now() - begin_).count(); }

 private:
  const steady_clock::time_point begin_ = steady_clock::now();
  std::atomic<double> late_ = 0;
};

struct Kill {
  double at = 0;
  int node = -1;  // -1: the controller
};

std::vector<Kill> MakeKills(int of_each, std::mt19937& random) {
  std::uniform_real_distribution<double> time(0, of_each * kSecondsPerKill);
  std::uniform_int_distribution<int> node(0, kNodes - 1);
  std::vector<Kill> kills;
  for (int i = 0; i < of_each; ++i) {
    kills.push_back({.at = time(random)});
    kills.push_back({.at = time(random), .node = node(random)});
  }
  std::sort(kills.begin(), kills.end(), [](const Kill& a, const Kill& b) { return a.at < b.at; });
  return kills;
}

struct Submission {
  double at = 0;
  Words arguments;
  int number = 0;  // as acknowledged
};

struct Load {
  Words policy;
  int most_gpus = 2;
  bool preempts = false;
};

// Each a moment before a kill, so that many are cut off while they are taken, started or stopped.
std::vector<Submission> MakeSubmissions(const LiveCluster& cluster, const Load& load,
                                        const std::vector<Kill>& kills, std::mt19937& random) {
  std::uniform_real_distribution<double> before(0, 0.06);
  std::uniform_int_distribution<int> gpus(1, load.most_gpus);
  std::uniform_real_distribution<double> length(0.2, 1);
  // As estimated: beside the restart costs that the controller reckons with, it would be nothing.
  constexpr double kStretch = 1000;
  std::vector<Submission> submissions;
  for (const Kill& kill : kills) {
    const double seconds = length(random);
    const Words options = {"--token",    fmt::format("token-{}", submissions.size()),
                           "--gpus",     std::to_string(gpus(random)),
                           "--duration", fmt::format("{:.0f}", seconds * kStretch),
                           "--workers",  "per-node"};
    submissions.push_back(
        {.at = kill.at - before(random),
         .arguments = cluster.WorkerWords(options, fmt::format("sleep {:.2f}", seconds))});
  }
  return submissions;
}

// As a user's script does: a submit that nobody answered is repeated, with its token.
void SubmitAll(const LiveCluster& cluster, const Schedule& schedule,
               std::vector<Submission>& submissions) {
  constexpr double kPatience = 120;
  for (Submission& submission : submissions) {
    schedule.SleepUntil(submission.at);
    submission.number =
        static_cast<int>(cluster.AskFor<v1::SubmitReply>(submission.arguments, kPatience).job());
  }
}

// No worker has met one of an earlier attempt, and the last attempt that was started has done its
// work. Unless jobs are preempted, no other has: what has ended is not started again.
void CheckWorkers(const LiveCluster& cluster, const v1::JobsReply& reply, bool preempts) {
  struct Counts {
    int starts = 0;
    int ends = 0;
  };
  std::map<int, std::map<int, Counts>> jobs;  // by job and attempt
  for (const WorkerLine& line : cluster.Lines()) {
    EXPECT_NE(line.kind, "TWICE") << "job " << line.job << " attempt " << line.attempt;
    Counts& counts = jobs[line.job][line.attempt];
    counts.starts += line.kind == "start" ? 1 : 0;
    counts.ends += line.kind == "end" ? 1 : 0;
  }
  for (const v1::JobStatus& status : reply.jobs()) {
    const std::map<int, Counts>& attempts = jobs[static_cast<int>(status.job())];
    ASSERT_FALSE(attempts.empty()) << "job " << status.job() << " was never started";
    const Counts& last = attempts.rbegin()->second;
    EXPECT_EQ(last.ends, last.starts) << "job " << status.job();
    const bool ended_before = std::any_of(attempts.begin(), std::prev(attempts.end()),
                                          [](const auto& at) { return at.second.ends > 0; });
    EXPECT_FALSE(ended_before && !preempts) << "job " << status.job();
  }
}

void KillAgainAndAgain(const Load& load, int of_each) {
  const int seed = FromEnvironment("TRAINYARD_SEED", 1);
  std::mt19937 random(static_cast<unsigned>(seed));
  LiveCluster cluster({.nodes = kNodes, .gpus = kGpus, .policy = load.policy});
  const std::vector<Kill> kills = MakeKills(of_each, random);
  std::vector<Submission> submissions = MakeSubmissions(cluster, load, kills, random);
  cluster.Start();

  Schedule schedule;
  std::thread submitter([&] { SubmitAll(cluster, schedule, submissions); });
  for (const Kill& kill : kills) {
    schedule.SleepUntil(kill.at);
    if (kill.node < 0) {
      cluster.KillController();
      cluster.LaunchController();
    } else {
      cluster.KillAgent(kill.node);
      cluster.StartAgent(kill.node);
    }
    schedule.Done(kill.at);
  }
  submitter.join();
  cluster.AwaitController();

  const auto ended = [&] { return cluster.AskFor<v1::JobsReply>({"status"}).jobs().empty(); };
  EXPECT_TRUE(Eventually(ended, 60));
  const auto reply = cluster.AskFor<v1::JobsReply>({"status", "--all"});
  EXPECT_EQ(reply.jobs_size(), static_cast<int>(submissions.size()));
  int attempts = 0;
  for (const v1::JobStatus& job : reply.jobs()) {
    EXPECT_EQ(job.state(), v1::COMPLETED) << "job " << job.job() << ": " << job.reason();
    EXPECT_EQ(job.failures(), 0U) << "job " << job.job();
    attempts += static_cast<int>(job.attempt());
  }
  std::set<int> numbers;
  for (const Submission& submission : submissions) {
    EXPECT_TRUE(numbers.insert(submission.number).second) << submission.number << " given twice";
    EXPECT_EQ(static_cast<int>(cluster.AskFor<v1::SubmitReply>(submission.arguments).job()),
              submission.number);
  }
  CheckWorkers(cluster, reply, load.preempts);
  fmt::print("seed {}: {} jobs in {} attempts, {} kills, {:.0f} s\n", seed, submissions.size(),
             attempts, kills.size(), schedule.Elapsed());
}

TEST(KillTest, NothingIsLostAndNothingRunsTwice) {
  KillAgainAndAgain({.policy = {"--policy", "fjf", "--snapshot-entries", "20"}},
                    FromEnvironment("TRAINYARD_KILLS", 50));
}

// Gangs across nodes that make room for shorter ones: more that starts and stops.
TEST(KillTest, NorWhenJobsArePreempted) {
  KillAgainAndAgain(
      {.policy = {"--policy", "srtf", "--snapshot-entries", "7", "--journal", "compact"},
       .most_gpus = 12,
       .preempts = true},
      FromEnvironment("TRAINYARD_KILLS", 50) / 2);
}

}  // namespace
}  // namespace trainyard
