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
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kNodes = 4;
constexpr double kSecondsPerKill = 0.7;  // of the controller; as much again for agents

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

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

// The arguments of all submissions, each with its own token.
std::vector<Words> MakeJobs(const LiveCluster& cluster, int count, std::mt19937& random) {
  std::uniform_int_distribution<int> gpus(1, 2);
  std::uniform_real_distribution<double> length(0.2, 1);
  std::vector<Words> jobs;
  for (int i = 0; i < count; ++i) {
    jobs.push_back(cluster.WorkerWords(
        {"--token", fmt::format("token-{}", i), "--gpus", std::to_string(gpus(random))},
        fmt::format("sleep {:.2f}", length(random))));
  }
  return jobs;
}

// The numbers given to all that are submitted, in order.
std::vector<int> SubmitAll(const LiveCluster& cluster, const std::vector<Words>& jobs,
                           double longest_pause, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> pause(0, longest_pause);
  std::vector<int> numbers;
  for (const Words& job : jobs) {
    numbers.push_back(static_cast<int>(cluster.AskFor<v1::SubmitReply>(job).job()));
    std::this_thread::sleep_for(Seconds(pause(random)));
  }
  return numbers;
}

// No worker has met an earlier one of its job, and each has done its work once.
void CheckWorkers(const LiveCluster& cluster, const v1::JobsReply& reply) {
  std::map<int, int> ends;
  for (const WorkerLine& line : cluster.Lines()) {
    EXPECT_NE(line.kind, "TWICE") << "job " << line.job << " attempt " << line.attempt;
    ends[line.job] += line.kind == "end" ? 1 : 0;
  }
  for (const v1::JobStatus& job : reply.jobs()) {
    EXPECT_EQ(ends[static_cast<int>(job.job())], job.request().gpus())
        << "job " << job.job() << ", attempt " << job.attempt();
  }
}

TEST(KillTest, NothingIsLostAndNothingRunsTwice) {
  const int of_each = FromEnvironment("TRAINYARD_KILLS", 50);
  const int seed = FromEnvironment("TRAINYARD_SEED", 1);
  std::mt19937 random(seed);
  LiveCluster cluster({.nodes = kNodes, .gpus = 4, .policy = {"--policy", "fjf"}});
  const std::vector<Words> jobs = MakeJobs(cluster, 2 * of_each, random);
  const std::vector<Kill> kills = MakeKills(of_each, random);
  cluster.Start();

  std::vector<int> numbers;
  std::thread submitter([&] { numbers = SubmitAll(cluster, jobs, 0.9 * kSecondsPerKill, seed); });
  const auto begin = steady_clock::now();
  for (const Kill& kill : kills) {
    std::this_thread::sleep_until(
        begin + std::chrono::duration_cast<steady_clock::duration>(Seconds(kill.at)));
    if (kill.node < 0) {
      cluster.KillController();
      cluster.StartController();
    } else {
      cluster.KillAgent(kill.node);
      cluster.StartAgent(kill.node);
    }
  }
  submitter.join();
  cluster.AwaitController();

  EXPECT_EQ(std::set<int>(numbers.begin(), numbers.end()).size(), jobs.size()) << "a number twice";
  const auto ended = [&] { return cluster.AskFor<v1::JobsReply>({"status"}).jobs().empty(); };
  EXPECT_TRUE(Eventually(ended));
  const auto reply = cluster.AskFor<v1::JobsReply>({"status", "--all"});
  EXPECT_EQ(reply.jobs_size(), static_cast<int>(jobs.size()));
  int attempts = 0;
  for (const v1::JobStatus& job : reply.jobs()) {
    EXPECT_EQ(job.state(), v1::COMPLETED) << "job " << job.job() << ": " << job.reason();
    EXPECT_EQ(job.failures(), 0U) << "job " << job.job();
    attempts += static_cast<int>(job.attempt());
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(static_cast<int>(cluster.AskFor<v1::SubmitReply>(jobs[i]).job()), numbers[i]);
  }
  CheckWorkers(cluster, reply);
  fmt::print("seed {}: {} jobs in {} attempts, {} kills, {:.0f} s\n", seed, jobs.size(), attempts,
             kills.size(), Seconds(steady_clock::now() - begin).count());
}

}  // namespace
}  // namespace trainyard
