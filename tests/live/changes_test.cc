// SPDX-License-Identifier: Apache-2.0
// What changes under jobs that run: the program, the policy, the nodes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::size_t CountIn(const v1::JobsReply& jobs, v1::JobState state) {
  std::size_t count = 0;
  for (const v1::JobStatus& job : jobs.jobs()) {
    count += job.state() == state ? 1U : 0U;
  }
  return count;
}

std::size_t LinesIn(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// None is lost, none has begun anew.
void ExpectAllThere(const LiveCluster& cluster, std::size_t running, std::size_t waiting) {
  const auto jobs = cluster.AskFor<v1::JobsReply>({"status", "--all"});
  EXPECT_EQ(static_cast<std::size_t>(jobs.jobs_size()), running + waiting);
  EXPECT_EQ(CountIn(jobs, v1::RUNNING), running);
  EXPECT_EQ(CountIn(jobs, v1::WAITING), waiting);
  for (const v1::JobStatus& job : jobs.jobs()) {
    EXPECT_LE(job.attempt(), 1U) << job.job() << ": " << job.reason();
    EXPECT_EQ(job.failures(), 0U) << job.job() << ": " << job.reason();
  }
}

// A program that would have decided otherwise (another version of a plug-in) goes on with what was
// decided: nothing that runs is touched, and what begins then does so by the new version.
TEST(ChangesTest, AnUpgradeTouchesNoJob) {
  constexpr int kNodes = 16;
  constexpr int kReal = 20;
  constexpr int kEmulated = 1000;
  const auto plugin = [](int version) {
    return fmt::format("{}/company_order_{}.so", TRAINYARD_TEST_PLUGINS, version);
  };
  LiveCluster cluster({.nodes = kNodes, .gpus = 64, .policy = {"--policy", "company-order"}});
  cluster.options().program = {"--plugin", plugin(1)};
  cluster.Start();
  for (int i = 0; i < kReal; ++i) {
    ASSERT_EQ(cluster.SubmitWorker({"--gpus", "1"}, "sleep 600"), i + 1);
  }
  const int last_real = kReal;
  ASSERT_EQ(cluster
                .Ask({"submit", "--gpus", "1", "--workers", "emulated", "--duration", "10h",
                      "--array", fmt::format("0-{}", kEmulated - 1)})
                .status,
            0);
  ASSERT_TRUE(cluster.AwaitState(last_real + kEmulated, v1::RUNNING));
  ASSERT_TRUE(cluster.AwaitLines(last_real, "start", 1));
  // Four GPUs are left, and the first of those that wait gets them once there are two more.
  const int first = cluster.SubmitWorker({"--gpus", "6"}, "sleep 600");
  const int second = cluster.SubmitWorker({"--gpus", "6"}, "sleep 600");
  EXPECT_EQ(cluster
                .Ask({"cancel", std::to_string(last_real + kEmulated),
                      std::to_string(last_real + kEmulated - 1)})
                .status,
            0);
  ASSERT_TRUE(cluster.AwaitState(first, v1::RUNNING));
  ASSERT_TRUE(cluster.AwaitLines(first, "start", 1));

  cluster.KillController();
  cluster.options().program = {"--plugin", plugin(2)};
  Words rehearsal = cluster.ControllerArguments();
  rehearsal.emplace_back("--rehearse");
  const Answer rehearsed = cluster.Run(rehearsal);
  EXPECT_EQ(rehearsed.status, 0) << rehearsed.err;
  EXPECT_THAT(rehearsed.out, HasSubstr(fmt::format("recorded is 'launch job {} on", first)));
  EXPECT_THAT(rehearsed.out,
              HasSubstr(fmt::format("would have decided 'launch job {} on", second)));
  EXPECT_THAT(rehearsed.out, HasSubstr("every running job keeps its GPUs then"));
  cluster.StartController();
  EXPECT_THAT(cluster.Log("controller"), HasSubstr("decides otherwise than the program"));
  EXPECT_THAT(cluster.Log("controller"), HasSubstr("what is recorded stays"));
  const auto jobs = cluster.AskFor<v1::JobsReply>({"status", "--all"});
  EXPECT_EQ(jobs.jobs_size(), kReal + kEmulated + 2);
  EXPECT_EQ(CountIn(jobs, v1::CANCELLED), 2U);
  EXPECT_EQ(CountIn(jobs, v1::RUNNING), static_cast<std::size_t>(kReal + kEmulated - 2 + 1));
  EXPECT_EQ(CountIn(jobs, v1::WAITING), 1U);
  for (const v1::JobStatus& job : jobs.jobs()) {
    ASSERT_LE(job.attempt(), 1U) << job.job() << ": " << job.reason();
  }
  for (int job = 1; job <= kReal; ++job) {
    EXPECT_EQ(cluster.LinesOf(job, "start").size(), 1U) << job;
  }
  // Version 2: the last that has come.
  const int third = cluster.SubmitWorker({"--gpus", "6"}, "sleep 600");
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(first)}).status, 0);
  EXPECT_TRUE(cluster.AwaitState(third, v1::RUNNING));
  EXPECT_EQ(cluster.StateOf(second), v1::WAITING);

  cluster.KillController();  // what comes before the upgrade is not decided again
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(third), v1::RUNNING);
  EXPECT_EQ(cluster.StatusOf(1).attempt(), 1U);
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(second)}).status, 0);
  EXPECT_EQ(cluster.Ask({"cancel", "--state", "running"}).status, 0);
  EXPECT_TRUE(Eventually([&cluster] {
    const auto nodes = cluster.AskFor<v1::NodesReply>({"nodes"});
    return std::all_of(nodes.nodes().begin(), nodes.nodes().end(),
                       [](const v1::NodeStatus& node) { return node.gpus_used() == 0; });
  }));
}

// Ten changes one after the other, restarts among them.
TEST(ChangesTest, ConfigurationsComeAndGoUnderJobs) {
  constexpr int kNodes = 5;
  constexpr std::size_t kRunning = 20;
  constexpr std::size_t kWaiting = 50;
  LiveCluster cluster({.nodes = kNodes, .gpus = 4});
  cluster.Start();
  for (std::size_t i = 0; i < kRunning; ++i) {
    ASSERT_GT(cluster.SubmitWorker({"--gpus", "1", "--duration", "1h"}, "sleep 600"), 0);
  }
  ASSERT_TRUE(cluster.AwaitState(kRunning, v1::RUNNING));
  // Longer, later and wider than what runs: no policy below lets one of them go before.
  ASSERT_EQ(cluster
                .Ask({"submit", "--gpus", "2", "--duration", "100h", "--array",
                      fmt::format("0-{}", kWaiting - 1), "--", "sleep", "600"})
                .status,
            0);
  const auto change = [&cluster](Words words) {
    words.insert(words.end(), {"--controller", cluster.address()});
    const Answer answer = cluster.Run(words);
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("is in force")) << answer.err;
    ExpectAllThere(cluster, kRunning, kWaiting);
  };
  const auto apply = [&](const std::string& what, const std::string& now) {
    const Answer shown = cluster.Run({"config", "show", "--controller", cluster.address()});
    const std::string file = cluster.Path("next.toml");
    const std::string next = std::regex_replace(shown.out, std::regex(what), now);
    EXPECT_NE(next, shown.out) << what;
    std::ofstream(file) << next;
    change({"config", "apply", file});
  };
  const std::string node = "another";  // whose agent never comes
  apply("policy = 'fifo'", "policy = 'srtf'");
  change({"node", "add", node, "--gpus", "8"});
  apply("policy = 'srtf'", "policy = 'sjf'\nplacement = 'first-fit'");
  change({"node", "set", cluster.node_name(0), "--cpus", "64", "--labels", "nvlink, rack2"});
  cluster.KillController();
  cluster.StartController();
  ExpectAllThere(cluster, kRunning, kWaiting);
  EXPECT_THAT(cluster.AskFor<v1::NodesReply>({"nodes"}).nodes(0).labels(),
              testing::ElementsAre("nvlink", "rack2"));
  EXPECT_THAT(cluster.Run({"nodes", "--controller", cluster.address()}).out,
              HasSubstr("nvlink,rack2"));
  apply("placement = 'first-fit'", "placement = 'consolidated'");
  change({"node", "set", node, "--gpus", "4"});
  change({"config", "rollback"});
  change({"node", "remove", node});
  apply("policy = 'sjf'", "policy = 'fjf'");
  cluster.KillController();
  cluster.StartController();
  change({"config", "rollback"});
  const Answer history = cluster.Run({"config", "history", "--controller", cluster.address()});
  EXPECT_THAT(history.out, HasSubstr("policy fjf, now sjf"));
  const auto trail = [&cluster](Words words) {
    words.insert(words.begin(), {"audit", "--controller", cluster.address()});
    return cluster.Run(words).out;
  };
  EXPECT_EQ(LinesIn(trail({})), kRunning + 1 + 10) << "submissions and changes, each once";
  EXPECT_THAT(trail({"--job", "1"}), EndsWith("  job 1: submitted: 'job-1', 1 GPU\n"));
  EXPECT_THAT(trail({"--last", "1"}), HasSubstr("configuration 10: policy fjf, now sjf\n"));
  EXPECT_EQ(LinesIn(trail({"--json", "--from", "2026-01-01"})), kRunning + 1 + 10);
  EXPECT_EQ(trail({"--to", "2026-01-01"}), "");
  EXPECT_EQ(cluster.Ask({"cancel", "--state", "waiting"}).status, 0);
  EXPECT_EQ(cluster.Ask({"cancel", "--state", "running"}).status, 0);
}

}  // namespace
}  // namespace trainyard
