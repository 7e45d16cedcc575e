// SPDX-License-Identifier: Apache-2.0
// What a user and an operator of a live cluster do, and what may befall them, with the real
// program.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <thread>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::SizeIs;

// Goes on until the file is there. On notice it leaves.
std::string Until(const LiveCluster& cluster, const std::string& file) {
  return fmt::format("while ! [ -e {} ]; do sleep 0.05; done", cluster.Path("shared/" + file));
}

void Touch(const LiveCluster& cluster, const std::string& file) {
  std::ofstream(cluster.Path("shared/" + file)) << '\n';
}

// The first that it is on.
int NodeOf(const LiveCluster& cluster, int job) {
  const v1::JobStatus status = cluster.StatusOf(job);
  return status.grants().empty() ? -1 : status.grants(0).node().back() - '0';
}

// No two attempts of a job may ever have been there at once.
void ExpectNeverTwice(const LiveCluster& cluster) {
  for (const WorkerLine& line : cluster.Lines()) {
    EXPECT_NE(line.kind, "TWICE") << "job " << line.job << " attempt " << line.attempt;
  }
}

// ------------------------------------------------------------------------------------------- story

TEST(LiveTest, ControllerIsKilledAndJobsNeverNotice) {
  LiveCluster cluster;
  cluster.Start();
  const std::string go = Until(cluster, "go");
  const int steady = cluster.SubmitWorker({"--gpus", "1", "--name", "steady"}, go);
  const int grows = cluster.SubmitWorker({"--gpus", "1"}, go);
  const int unwanted = cluster.SubmitWorker({"--gpus", "1"}, go);
  const int quick = cluster.SubmitWorker({"--gpus", "1"}, "sleep 0.2");
  const int waits = cluster.SubmitWorker({"--gpus", "2"}, "sleep 0.2");
  EXPECT_EQ(waits, 5);
  ASSERT_TRUE(cluster.AwaitState(steady, v1::RUNNING));
  const std::string watched = cluster.Path("watch.out");
  Program watch({"status", "--watch", "--controller", cluster.address()}, watched, watched);

  ASSERT_TRUE(cluster.AwaitState(quick, v1::COMPLETED));
  EXPECT_EQ(cluster.StateOf(waits), v1::WAITING);
  EXPECT_EQ(cluster.StatusOf(waits).reason(),
            "not enough free GPUs: 1 of 4 free, it asks for 2; it is the next in line");
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(unwanted)}).status, 0);
  ASSERT_TRUE(cluster.AwaitState(waits, v1::COMPLETED));
  EXPECT_EQ(cluster.StateOf(unwanted), v1::CANCELLED);

  EXPECT_EQ(cluster.Ask({"resize", std::to_string(grows), "--gpus", "2"}).status, 0);
  ASSERT_TRUE(cluster.AwaitLines(grows, "start", 3));  // one worker, then two
  ASSERT_TRUE(cluster.AwaitState(grows, v1::RUNNING));
  EXPECT_EQ(cluster.StatusOf(grows).attempt(), 2U);
  EXPECT_EQ(cluster.StatusOf(grows).request().gpus(), 2);

  const std::vector<WorkerLine> before = cluster.Lines();
  cluster.KillController();
  EXPECT_NE(cluster.Ask({"nodes"}).status, 0);
  cluster.StartController();
  ASSERT_TRUE(Eventually([&] {
    return cluster.StateOf(steady) == v1::RUNNING && cluster.StateOf(grows) == v1::RUNNING;
  }));
  EXPECT_EQ(cluster.StatusOf(steady).attempt(), 1U);
  EXPECT_EQ(cluster.StatusOf(steady).request().name(), "steady");
  EXPECT_EQ(cluster.StatusOf(grows).attempt(), 2U);
  EXPECT_EQ(cluster.StateOf(unwanted), v1::CANCELLED);
  EXPECT_EQ(cluster.StateOf(quick), v1::COMPLETED);
  EXPECT_EQ(cluster.StateOf(waits), v1::COMPLETED);
  EXPECT_TRUE(IsAlive(cluster.LinesOf(steady, "start").at(0).pid));
  EXPECT_EQ(cluster.Lines().size(), before.size()) << "a worker was started or ended";

  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(steady, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(grows, v1::COMPLETED));
  EXPECT_THAT(cluster.LinesOf(steady, "start"), SizeIs(1));
  // The watch has outlived the controller.
  EXPECT_TRUE(Eventually([&] {
    return ReadAll(watched).ends_with("no jobs that have not ended; --all shows the others\n");
  }));
  EXPECT_EQ(watch.Wait(seconds(0)), std::nullopt);
  EXPECT_THAT(ReadAll(watched), HasSubstr("steady"));
  ExpectNeverTwice(cluster);
}

// The numbers in what the controller has said last of where it began.
struct Begun {
  int snapshot = -1;
  int replayed = -1;
  std::string state;
};

Begun LastBegin(const LiveCluster& cluster) {
  const std::string log = cluster.Log("controller");
  static const std::regex kLine(
      "(no snapshot|snapshot at entry ([0-9]+)), ([0-9]+) entries replayed, in [0-9.]+ s; "
      "state ([0-9a-f]{16})");
  Begun begun;
  for (std::sregex_iterator line(log.begin(), log.end(), kLine); line != std::sregex_iterator();
       ++line) {
    begun = {.snapshot = (*line)[2].matched ? std::stoi((*line)[2]) : 0,
             .replayed = std::stoi((*line)[3]),
             .state = (*line)[4]};
  }
  return begun;
}

TEST(LiveTest, ARestartFromASnapshotEndsInTheSameState) {
  LiveCluster cluster({.policy = {"--policy", "tiresias", "--snapshot-entries", "5"}, .lease = 60});
  cluster.Start();
  for (int i = 0; i < 8; ++i) {
    cluster.SubmitWorker({"--gpus", "2"}, "sleep 0.1");
  }
  const int steady = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitState(8, v1::COMPLETED));
  ASSERT_TRUE(cluster.AwaitState(steady, v1::RUNNING));
  cluster.KillAgent(0);  // from here on nothing happens
  cluster.KillAgent(1);
  cluster.KillController();
  cluster.StartController();
  const Begun from_snapshot = LastBegin(cluster);
  EXPECT_GT(from_snapshot.snapshot, 10);
  EXPECT_LT(from_snapshot.replayed, 5);
  cluster.KillController();
  cluster.options().policy.back() = "0";
  cluster.StartController();
  const Begun from_journal = LastBegin(cluster);
  EXPECT_EQ(from_journal.snapshot, 0);
  EXPECT_EQ(from_journal.replayed, from_snapshot.snapshot + from_snapshot.replayed);
  EXPECT_EQ(from_journal.state, from_snapshot.state);
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(steady, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(steady).attempt(), 1U);
  ExpectNeverTwice(cluster);
}

TEST(LiveTest, JobEndsWhileNoControllerIsThere) {
  LiveCluster cluster({.lease = 20});
  cluster.Start();
  const int job = cluster.SubmitWorker({"--gpus", "2"}, Until(cluster, "go"));
  const int fails = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "go") + "; exit 3");
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 2));
  ASSERT_TRUE(cluster.AwaitLines(fails, "start", 1));
  cluster.KillController();
  Touch(cluster, "go");
  ASSERT_TRUE(cluster.AwaitLines(job, "end", 2));
  cluster.StartController();
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(fails, v1::FAILED));
  EXPECT_EQ(cluster.StatusOf(fails).exit_code(), 3);
  EXPECT_EQ(cluster.StatusOf(job).attempt(), 1U);
}

TEST(LiveTest, LogsAreFollowedThroughARestartOfTheController) {
  LiveCluster cluster;
  cluster.Start();
  const int job = cluster.SubmitWorker(
      {"--gpus", "2"}, "echo first $RANK; " + Until(cluster, "go") + "; echo last $RANK");
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 2));
  const std::string copy = cluster.Path("follow.out");
  Program follow(
      {"logs", std::to_string(job), "--follow", "--rank", "1", "--controller", cluster.address()},
      copy, cluster.Path("follow.err"));
  EXPECT_TRUE(Eventually([&] { return ReadAll(copy) == "first 1\n"; }));
  cluster.KillController();
  cluster.LaunchController();
  Touch(cluster, "go");
  EXPECT_EQ(follow.Wait(seconds(300)), 0) << ReadAll(cluster.Path("follow.err"));
  EXPECT_EQ(ReadAll(copy), "first 1\nlast 1\n");
}

// ------------------------------------------------------------------------------------- preemption

// Counts to 40 and on until it may go; on notice it saves how far it has come.
constexpr const char* kTrainer = R"(
saved=$TRAINYARD_CHECKPOINT_DIR/step
step=$(cat "$saved" 2>/dev/null || echo 0)
trap 'echo $step >"$saved"; say saved $step; exit 0' TERM
say from $step
while [ $step -lt 40 ] || [ ! -e "$SHARED/go" ]; do
  sleep 0.02
  step=$((step + 1))
  [ $step -ne 5 ] || say fifth
done
say done $step
)";

void ExpectResumedAfterPreemption(const Words& policy, const Words& small_options) {
  LiveCluster cluster({.nodes = 1, .policy = policy});
  cluster.Start();
  const int big = cluster.SubmitWorker({"--gpus", "2", "--workers", "per-node"}, kTrainer);
  ASSERT_TRUE(cluster.AwaitLines(big, "fifth", 1));
  Words options = {"--gpus", "1"};
  options.insert(options.end(), small_options.begin(), small_options.end());
  const int small = cluster.SubmitWorker(options, "sleep 0.3");
  ASSERT_TRUE(cluster.AwaitState(small, v1::COMPLETED));
  Touch(cluster, "go");
  ASSERT_TRUE(cluster.AwaitState(big, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(big).preemptions(), 1U);
  EXPECT_EQ(cluster.StatusOf(big).attempt(), 2U);
  EXPECT_EQ(cluster.StatusOf(big).failures(), 0U);
  const std::vector<WorkerLine> saved = cluster.LinesOf(big, "saved");
  const std::vector<WorkerLine> from = cluster.LinesOf(big, "from");
  ASSERT_THAT(saved, SizeIs(1));
  ASSERT_THAT(from, SizeIs(2));
  EXPECT_NE(saved[0].rest, "0");
  EXPECT_EQ(from[1].rest, saved[0].rest);
  EXPECT_THAT(cluster.LinesOf(big, "done"), SizeIs(1));
  ExpectNeverTwice(cluster);
}

TEST(LiveTest, PreemptedJobResumesFromItsCheckpointUnderSrtf) {
  ExpectResumedAfterPreemption({"--policy", "srtf"}, {"--duration", "10"});
}

TEST(LiveTest, PreemptedJobResumesFromItsCheckpointUnderLas) {
  ExpectResumedAfterPreemption({"--policy", "las:quantum=0.2"}, {});
}

TEST(LiveTest, JobThatIgnoresItsNoticeIsKilledAfterTheGracePeriod) {
  LiveCluster cluster({.nodes = 1, .grace = 1});
  cluster.Start();
  const int deaf = cluster.SubmitWorker({"--gpus", "2"}, "trap '' TERM; while :; do sleep 1; done");
  ASSERT_TRUE(cluster.AwaitLines(deaf, "start", 2));
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(deaf)}).status, 0);
  const int next = cluster.SubmitWorker({"--gpus", "1"}, "true");
  EXPECT_TRUE(cluster.AwaitState(next, v1::COMPLETED));
  EXPECT_FALSE(IsAlive(cluster.LinesOf(deaf, "start").at(0).pid));
}

// examples/cpp-trainer, with the one header of the C++ client.
TEST(LiveTest, ATrainerInCppTellsOfItsProgressAndGoesOnFromItsCheckpoint) {
  LiveCluster cluster;
  cluster.Start();
  const int job = cluster.Submit({"--gpus", "1"}, {TRAINYARD_CPP_TRAINER, "400"});
  ASSERT_TRUE(Eventually([&] { return cluster.StatusOf(job).iterations_done() > 20; }));
  const int drained = cluster.StatusOf(job).grants(0).node() == cluster.node_name(0) ? 0 : 1;
  EXPECT_EQ(cluster.Ask({"drain", "--now", cluster.node_name(drained)}).status, 0);
  ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(job).attempt(), 2U);
  EXPECT_EQ(cluster.StatusOf(job).iterations_done(), 400);
  EXPECT_THAT(cluster.Ask({"logs", std::to_string(job), "--attempt", "2"}).out,
              HasSubstr("leaves at 400"));
}

TEST(LiveTest, JobOfADrainedNodeResumesElsewhereFromItsCheckpoint) {
  LiveCluster cluster;
  cluster.Start();
  const int job = cluster.SubmitWorker({"--gpus", "2", "--workers", "per-node"}, kTrainer);
  ASSERT_TRUE(cluster.AwaitLines(job, "fifth", 1));
  const int drained = NodeOf(cluster, job);
  EXPECT_EQ(cluster.Ask({"drain", "--now", cluster.node_name(drained)}).status, 0);
  ASSERT_TRUE(cluster.AwaitLines(job, "from", 2));
  EXPECT_NE(NodeOf(cluster, job), drained);
  EXPECT_NE(cluster.LinesOf(job, "from")[1].rest, "0");
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  ExpectNeverTwice(cluster);
}

// ------------------------------------------------------------------------------------------- nodes

// As with control groups that have gone.
TEST(LiveTest, ANodeWhoseLauncherEndsNothingGetsNoFurtherJobs) {
  LiveCluster cluster;
  const std::string launcher = cluster.Path("launcher");
  std::ofstream(launcher) << fmt::format(
      "#!/bin/sh\ncase $1 in\n"
      "start) cat >/dev/null; exec {0} supervise $(echo {1}nodes/*/attempts/$2) ;;\n"
      "end) [ -e {1}whole ] && exit 0; echo \"trainyard-launcher: end $2: refused: "
      "no control groups are mounted\" >&2; exit 1 ;;\nesac\n",
      TRAINYARD_PROGRAM, cluster.Path(""));
  std::filesystem::permissions(launcher, std::filesystem::perms::owner_all);
  cluster.options().agent = {"--launcher", launcher};
  cluster.Start();
  const int first = cluster.Submit({"--gpus", "2"}, {"sleep", "1000"});
  ASSERT_TRUE(cluster.AwaitState(first, v1::RUNNING));
  const int bad = NodeOf(cluster, first);
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(first)}).status, 0);
  EXPECT_TRUE(Eventually([&] { return cluster.NodeStatus(bad).drained(); }));
  EXPECT_EQ(cluster.NodeStatus(bad).reason(),
            fmt::format("trainyard-launcher has not ended attempt 1 of job {}: no control groups "
                        "are mounted",
                        first));
  EXPECT_THAT(cluster.Ask({"nodes"}).out, HasSubstr("is drained by the controller at"));
  const int next = cluster.Submit({"--gpus", "2"}, {"sleep", "1000"});
  const int last = cluster.Submit({"--gpus", "2"}, {"sleep", "1000"});
  ASSERT_TRUE(cluster.AwaitState(next, v1::RUNNING));
  EXPECT_EQ(NodeOf(cluster, next), 1 - bad);
  EXPECT_THAT(cluster.StatusOf(last).reason(), HasSubstr("drained: " + cluster.node_name(bad)));
  std::ofstream(cluster.Path("whole")) << '\n';
  EXPECT_EQ(cluster.Ask({"undrain", cluster.node_name(bad)}).status, 0);
  ASSERT_TRUE(cluster.AwaitState(last, v1::RUNNING));
  EXPECT_EQ(NodeOf(cluster, last), bad);
  for (const int job : {next, last}) {
    EXPECT_EQ(cluster.Ask({"cancel", std::to_string(job)}).status, 0);
    EXPECT_TRUE(cluster.AwaitState(job, v1::CANCELLED));
  }
}

TEST(LiveTest, AgentIsKilledAndItsJobsRunOn) {
  LiveCluster cluster({.nodes = 1, .lease = 20});
  cluster.Start();
  const int longer = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "go"));
  const int shorter = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "away"));
  ASSERT_TRUE(cluster.AwaitLines(longer, "start", 1));
  ASSERT_TRUE(cluster.AwaitLines(shorter, "start", 1));
  cluster.KillAgent(0);
  Touch(cluster, "away");
  ASSERT_TRUE(cluster.AwaitLines(shorter, "end", 1));
  cluster.StartAgent(0);
  EXPECT_TRUE(cluster.AwaitState(shorter, v1::COMPLETED))
      << "its end came while no agent was there";
  EXPECT_EQ(cluster.StateOf(longer), v1::RUNNING);
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(longer, v1::COMPLETED));
  EXPECT_THAT(cluster.LinesOf(longer, "start"), SizeIs(1));
  EXPECT_THAT(cluster.LinesOf(shorter, "start"), SizeIs(1));
}

// Controller and agent together: the worst that happens to one machine's software.
TEST(LiveTest, EverythingIsKilledAndJobsRunOn) {
  LiveCluster cluster({.lease = 20});
  cluster.Start();
  const int job = cluster.SubmitWorker({"--gpus", "3"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 3));
  cluster.KillController();
  cluster.KillAgent(0);
  cluster.KillAgent(1);
  cluster.StartAgent(1);
  cluster.StartController();
  cluster.StartAgent(0);
  ASSERT_TRUE(cluster.AwaitState(job, v1::RUNNING));
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_THAT(cluster.LinesOf(job, "start"), SizeIs(3));
}

TEST(LiveTest, JobsOfANodeThatStaysAwayStartElsewhereOnceTheyAreStopped) {
  LiveCluster cluster({.nodes = 3, .gpus = 1, .lease = kShortLease});
  cluster.Start();
  const std::string go = "trap 'say notice; exit 1' TERM; " + Until(cluster, "go");
  const int single = cluster.SubmitWorker({"--gpus", "1"}, go);
  const int gang = cluster.SubmitWorker({"--gpus", "2"}, go);
  ASSERT_TRUE(cluster.AwaitLines(single, "start", 1));
  ASSERT_TRUE(cluster.AwaitLines(gang, "start", 2));
  ASSERT_EQ(cluster.StatusOf(gang).grants_size(), 2);
  const int away = NodeOf(cluster, gang);
  cluster.KillAgent(away);
  // Its part on the other node, too, though that one has no lack of contact.
  ASSERT_TRUE(cluster.AwaitLines(gang, "notice", 2));
  EXPECT_TRUE(Eventually([&] { return !cluster.NodeStatus(away).up(); }));
  EXPECT_TRUE(Eventually([&] { return cluster.StateOf(gang) == v1::WAITING; }));
  EXPECT_EQ(cluster.StateOf(single), v1::RUNNING);

  Touch(cluster, "go");  // two nodes are free for the gang
  EXPECT_TRUE(cluster.AwaitState(single, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(gang, v1::COMPLETED));
  const v1::JobStatus status = cluster.StatusOf(gang);
  EXPECT_EQ(status.attempt(), 2U);
  EXPECT_EQ(status.failures(), 0U) << "it was not the job's fault";
  for (const WorkerLine& line : cluster.LinesOf(gang, "notice")) {
    EXPECT_FALSE(IsAlive(line.pid));
  }
  cluster.StartAgent(away);
  EXPECT_TRUE(Eventually([&] { return cluster.NodeStatus(away).up(); }));
  const int whole = cluster.SubmitWorker({"--gpus", "3"}, "true");
  EXPECT_TRUE(cluster.AwaitState(whole, v1::COMPLETED));
  ExpectNeverTwice(cluster);
}

// The lease of a node is over when nobody is left to renew it: no agent, no controller.
TEST(LiveTest, SupervisorsStopTheirAttemptsAloneWhenTheLeaseIsOver) {
  LiveCluster cluster({.nodes = 1, .lease = kShortLease});
  cluster.Start();
  const int job = cluster.SubmitWorker({"--gpus", "2"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 2));
  cluster.KillController();
  cluster.KillAgent(0);
  ASSERT_TRUE(Eventually([&] { return cluster.Processes().empty(); }));
  cluster.StartController();
  cluster.StartAgent(0);
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(job).attempt(), 2U);
  EXPECT_EQ(cluster.StatusOf(job).failures(), 0U);
  ExpectNeverTwice(cluster);
}

// It is there and does nothing: what it had is stopped without it, and it must not speak for that
// any more when it comes to again.
TEST(LiveTest, AgentHangsLongerThanItsLease) {
  LiveCluster cluster({.gpus = 1, .lease = kShortLease});
  cluster.Start();
  const int job = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 1));
  const int hung = NodeOf(cluster, job);
  cluster.agent(hung).Signal(SIGSTOP);
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 2));
  EXPECT_FALSE(IsAlive(cluster.LinesOf(job, "start")[0].pid));
  EXPECT_NE(NodeOf(cluster, job), hung);
  cluster.agent(hung).Signal(SIGCONT);
  EXPECT_TRUE(Eventually([&] { return cluster.NodeStatus(hung).up(); }));
  const int other = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitLines(other, "start", 1));
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(other, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(job).attempt(), 2U);
  EXPECT_EQ(cluster.StatusOf(job).failures(), 0U);
  ExpectNeverTwice(cluster);
}

TEST(LiveTest, ControllerHangsLongerThanAllLeases) {
  LiveCluster cluster({.lease = kShortLease});
  cluster.Start();
  const int job = cluster.SubmitWorker({"--gpus", "3"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 3));
  cluster.controller().Signal(SIGSTOP);
  for (const WorkerLine& line : cluster.LinesOf(job, "start")) {
    EXPECT_TRUE(Eventually([&] { return !IsAlive(line.pid); })) << "the lease is over";
  }
  std::this_thread::sleep_for(seconds(7));  // by its own clock they are all lost
  Touch(cluster, "go");
  cluster.controller().Signal(SIGCONT);
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(job).failures(), 0U);
  ExpectNeverTwice(cluster);
}

TEST(LiveTest, SupervisorIsKilledAndItsWorkersWithIt) {
  LiveCluster cluster({.nodes = 1});
  cluster.Start();
  const int job = cluster.SubmitWorker({"--gpus", "2"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 2));
  for (const auto& [pid, command] : cluster.Processes()) {
    if (command.find(" supervise ") != std::string::npos) {
      kill(pid, SIGKILL);
    }
  }
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 4));
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(job).attempt(), 2U);
  EXPECT_EQ(cluster.StatusOf(job).failures(), 0U);
  ExpectNeverTwice(cluster);
}

TEST(LiveTest, DrainedNodeLosesItsJobsToOthersAndGetsNoMore) {
  LiveCluster cluster({.gpus = 1});
  cluster.Start();
  const int first = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitLines(first, "start", 1));
  const std::string drained = cluster.StatusOf(first).grants(0).node();
  const Answer drain = cluster.Ask({"drain", "--now", drained});
  EXPECT_THAT(drain.out, testing::StartsWith("node " + drained + " is up, dr")) << drain.err;
  ASSERT_TRUE(cluster.AwaitLines(first, "start", 2));
  EXPECT_NE(cluster.StatusOf(first).grants(0).node(), drained);
  const int second = cluster.SubmitWorker({"--gpus", "1"}, "true");
  EXPECT_EQ(cluster.StateOf(second), v1::WAITING);
  EXPECT_EQ(cluster.StatusOf(second).reason(),
            "not enough free GPUs: 0 of 1 free, it asks for 1; it is the next in line; drained: " +
                drained);

  cluster.KillController();  // the next one knows
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(second), v1::WAITING);
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(first, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(second, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(first).failures(), 0U);
  const int whole = cluster.SubmitWorker({"--gpus", "2"}, "true");
  EXPECT_EQ(cluster.StateOf(whole), v1::WAITING);
  EXPECT_EQ(cluster.Ask({"undrain", drained}).status, 0);
  EXPECT_TRUE(cluster.AwaitState(whole, v1::COMPLETED));
  ExpectNeverTwice(cluster);
}

TEST(LiveTest, JobsOfADrainedNodeFinishThereUnlessADeadlineComesFirst) {
  LiveCluster cluster({.nodes = 1, .gpus = 2});
  cluster.Start();
  const int first = cluster.SubmitWorker({"--gpus", "1"}, Until(cluster, "go"));
  const int second = cluster.SubmitWorker({"--gpus", "1"}, "sleep 600");
  ASSERT_TRUE(cluster.AwaitState(first, v1::RUNNING) && cluster.AwaitState(second, v1::RUNNING));
  const std::string node = cluster.node_name(0);
  EXPECT_EQ(cluster.Ask({"drain", node, "--reason", "a fan"}).out,
            fmt::format(
                "node {0} is up, draining; its jobs run until they end: 1 2 ('trainyard drain {0} "
                "--now' makes them go on elsewhere)\n",
                node));
  EXPECT_THAT(cluster.Ask({"nodes"}).out, HasSubstr("; jobs on it run until they end: a fan;"));
  const int third = cluster.SubmitWorker({"--gpus", "1"}, "true");
  cluster.KillController();
  cluster.StartController();
  Touch(cluster, "go");
  ASSERT_TRUE(cluster.AwaitState(first, v1::COMPLETED));
  EXPECT_EQ(cluster.StateOf(third), v1::WAITING);
  EXPECT_EQ(cluster.StateOf(second), v1::RUNNING);
  EXPECT_EQ(cluster.Ask({"drain", node, "--deadline", "1"}).status, 0);
  ASSERT_TRUE(cluster.AwaitState(second, v1::WAITING));
  EXPECT_TRUE(Eventually([&] {
    return cluster.Ask({"drain", node}).out == "node " + node + " is up, drained\n";
  }));
  EXPECT_EQ(cluster.Ask({"undrain", node}).status, 0);
  EXPECT_TRUE(cluster.AwaitState(third, v1::COMPLETED));
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(second)}).status, 0);
  EXPECT_EQ(cluster.Ask({"drain", node, "--now", "--deadline", "1"}).status, 2);
}

// -------------------------------------------------------------------------------------------- jobs

TEST(LiveTest, FailuresOfJobs) {
  LiveCluster cluster;
  cluster.Start();
  const int fails = cluster.SubmitWorker({"--gpus", "1"}, "echo no luck; exit 3");
  const int tries = cluster.SubmitWorker({"--gpus", "1", "--max-restarts", "2"}, "exit 4");
  const int succeeds =
      cluster.SubmitWorker({"--gpus", "1", "--max-restarts", "2"}, "[ $TRAINYARD_ATTEMPT -eq 3 ]");
  const int missing = cluster.Submit({"--gpus", "1"}, {"no-such-program"});
  const int crashes = cluster.SubmitWorker({"--gpus", "1"}, "kill -SEGV $$");
  ASSERT_TRUE(cluster.AwaitState(fails, v1::FAILED));
  EXPECT_EQ(cluster.StatusOf(fails).exit_code(), 3);
  EXPECT_THAT(cluster.Ask({"logs", std::to_string(fails)}).out, HasSubstr("no luck\n"));
  ASSERT_TRUE(cluster.AwaitState(tries, v1::FAILED));
  EXPECT_EQ(cluster.StatusOf(tries).attempt(), 3U);
  EXPECT_EQ(cluster.StatusOf(tries).exit_code(), 4);
  ASSERT_TRUE(cluster.AwaitState(succeeds, v1::COMPLETED));
  EXPECT_EQ(cluster.StatusOf(succeeds).attempt(), 3U);
  EXPECT_EQ(cluster.StatusOf(succeeds).failures(), 2U);
  ASSERT_TRUE(cluster.AwaitState(missing, v1::FAILED));
  EXPECT_EQ(cluster.StatusOf(missing).exit_code(), 127);
  EXPECT_THAT(cluster.StatusOf(missing).reason(), HasSubstr("no-such-program"));
  const Answer nothing = cluster.Ask({"logs", std::to_string(missing)});
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(nothing.err, HasSubstr("has written nothing in attempt 2; the job is failed: "));
  EXPECT_THAT(nothing.err, HasSubstr("no-such-program"));
  const Answer followed = cluster.Ask({"logs", "--follow", std::to_string(fails)});
  EXPECT_EQ(followed.status, 1);
  EXPECT_THAT(followed.out, HasSubstr("no luck\n"));
  EXPECT_EQ(followed.err,
            fmt::format("job {} has failed: {}\n", fails, cluster.StatusOf(fails).reason()));
  ASSERT_TRUE(cluster.AwaitState(crashes, v1::FAILED));
  EXPECT_EQ(cluster.StatusOf(crashes).exit_code(), 128 + SIGSEGV);
}

TEST(LiveTest, OneTokenIsOneJobAlsoForTheNextController) {
  LiveCluster cluster({.nodes = 1});
  cluster.Start();
  const Words options = {"--gpus", "1", "--token", "mine"};
  const int job = cluster.SubmitWorker(options, "true");
  EXPECT_EQ(cluster.SubmitWorker(options, "true"), job);
  cluster.KillController();
  cluster.LaunchController();
  EXPECT_EQ(cluster.SubmitWorker(options, "true"), job);
  const Answer another = cluster.Ask(cluster.WorkerWords(options, "sleep 1"));
  EXPECT_EQ(another.status, 1);
  EXPECT_THAT(another.err,
              HasSubstr("the token 'mine' is that of job 1, which is another request"));
  EXPECT_EQ(cluster.SubmitWorker({"--gpus", "1", "--token", "other"}, "true"), job + 1);
  EXPECT_TRUE(cluster.AwaitState(job + 1, v1::COMPLETED));
  EXPECT_THAT(cluster.LinesOf(job, "start"), SizeIs(1));
}

// A client that is there before its controller waits a little for it.
TEST(LiveTest, SubmissionIsMadeWhileTheControllerStarts) {
  LiveCluster cluster({.nodes = 1});
  const std::string out = cluster.Path("submit.out");
  const std::string err = cluster.Path("submit.err");
  Program submit({"submit", "--controller", cluster.address(), "--gpus", "1", "--", "true"}, out,
                 err);
  EXPECT_TRUE(Eventually([&] { return ReadAll(err).ends_with("\n"); }));
  EXPECT_EQ(ReadAll(err), "trainyard: no controller answers at " + cluster.address() +
                              "; start one with 'trainyard up' or name it with --controller; "
                              "trying again for 10.0s\n");
  cluster.Start();
  EXPECT_EQ(submit.Wait(seconds(300)), 0);
  EXPECT_EQ(ReadAll(out), "job 1 submitted\n");
  EXPECT_TRUE(cluster.AwaitState(1, v1::COMPLETED));
}

TEST(LiveTest, ATraceIsReplayedWithACommandInThePlaceOfTrainers) {
  LiveCluster cluster({.nodes = 1});
  cluster.Start();
  const std::string trace = cluster.Path("trace.csv");
  std::ofstream(trace) << "job_id,submit_time,gpus,duration\na,0,2,1\nb,0,1,1\n";
  const Answer replayed = cluster.Ask({"replay-live", trace, "--cluster", "1x2", "--out",
                                       cluster.Path("run"), "--", "sh", "-c", "echo rank $RANK"});
  EXPECT_EQ(replayed.status, 0) << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr("2 of 2 completed"));
  EXPECT_EQ(cluster.Ask({"logs", "1", "--rank", "1"}).out, "rank 1\n");
  const Answer compared = cluster.Run({"fidelity", cluster.Path("run"), cluster.Path("run")});
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("same outcome 2, same JCT 2"));
}

TEST(LiveTest, AppsOfATorchloaderWorkloadRunOnTheGpusThatTheyName) {
  LiveCluster cluster({.policy = {"--policy", "torchloader"}});
  cluster.Start();
  const std::string workload = cluster.Path("workload.csv");
  std::ofstream(workload)
      << "arch, depth, batch, workers, output_folder, master, port, arrival_time, cuda_device, "
         "start_iter, start_epoch, end_iter, end_epoch, node_size\n"
         "vgg, 13, 256, 12, night, n0, 10000, 0, \"1\", 0, 0, 500, 2, 1\n"
         "resnet, 18, 64, 4, night, n0, 11000, 1, {'n0':[0]}, 0, 0, 500, 1, 1\n";
  const std::string nodes = cluster.Path("dl_cluster_config.xml");
  std::ofstream(nodes) << "<cluster_config>"
                          "<worker_config><worker_ip>n1</worker_ip></worker_config>"
                          "<worker_config><worker_ip>n0</worker_ip></worker_config>"
                          "</cluster_config>\n";
  const Answer answer = cluster.Ask(
      {"submit", "--workload", workload, "--cluster-xml", nodes, "--", "sh", "-c",
       "echo $0 $CUDA_VISIBLE_DEVICES; " + Until(cluster, "go"), "{arch}{depth} {output}"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(answer.out,
            "job 1 submitted: vgg13-line2, 1 GPU (1 of 2)\n"
            "job 2 submitted: resnet18-line3, 1 GPU (2 of 2)\n");
  ASSERT_TRUE(cluster.AwaitState(1, v1::RUNNING));
  ASSERT_TRUE(cluster.AwaitState(2, v1::RUNNING));
  EXPECT_EQ(NodeOf(cluster, 1), 1);  // the first worker of the cluster file
  EXPECT_EQ(NodeOf(cluster, 2), 0);
  EXPECT_EQ(cluster.StatusOf(1).request().iterations(), 1000);
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(1, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(2, v1::COMPLETED));
  EXPECT_EQ(cluster.Ask({"logs", "1"}).out, "vgg13 trace/night/app2_vgg13_256_12_1 1\n");
}

// ------------------------------------------------------------------------------------ fast-forward

// Goes on from its checkpoint, tells of each iteration, and saves when it is told to stop.
constexpr const char* kIterating = R"(
import os, signal, socket, threading, time
told = socket.socket(socket.AF_UNIX)
told.connect(os.environ["TRAINYARD_SOCKET"])
saved = os.path.join(os.environ["TRAINYARD_CHECKPOINT_DIR"], "iterations")
done = int(open(saved).read()) if os.path.exists(saved) else 0
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
print("from", done, "of", os.environ["WORLD_SIZE"], flush=True)
while not stop.is_set():
    time.sleep(0.01)
    done += 1
    if os.environ["RANK"] == "0":
        told.sendall(b"progress %d\n" % done)
print("to", done, flush=True)
if os.environ["RANK"] == "0":
    with open(saved, "w") as file:
        file.write(str(done))
)";

TEST(FastForwardTest, EachAttemptDoesRealIterationsBeforeTimeJumps) {
  LiveCluster cluster;
  const std::string trace = cluster.Path("trace.csv");
  std::ofstream(trace)
      << "job_id,submit_time,gpus,duration\na,0,4,7200\nb,600,2,1800\nc,900,1,600\n";
  std::ofstream(cluster.Path("iterating.py")) << kIterating;
  const Words run = {trace, "--cluster", "2x2", "--policy", "srtf", "--out"};
  const auto with = [&run](Words words, const Words& more) {
    words.insert(words.end(), run.begin(), run.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string state = cluster.Path("state");
  const Answer live =
      cluster.Run(with({"replay-live"}, {cluster.Path("live"), "--fast-forward", "--state", state,
                                         "--", "python3", cluster.Path("iterating.py")}));
  ASSERT_EQ(live.status, 0) << live.err;
  ASSERT_EQ(cluster.Run(with({"simulate"}, {cluster.Path("simulated")})).status, 0);
  const Answer compared =
      cluster.Run({"fidelity", cluster.Path("live"), cluster.Path("simulated"), "--within", "0"});
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("same outcome 3, same JCT 3"));
  // Job a is preempted by b and goes on from what it had saved.
  int begin = 0;
  for (const char* attempt : {"1-1", "1-2"}) {
    int from = -1;
    int to = -1;
    int gpus = 0;
    const std::string log = ReadAll(state + "/n0/logs/" + attempt + "/rank-0.log");
    ASSERT_EQ(std::sscanf(log.c_str(), "from %d of %d\nto %d", &from, &gpus, &to), 3) << log;
    EXPECT_EQ(gpus, 4);
    EXPECT_EQ(from, begin);
    EXPECT_GE(to, from + 3);
    begin = to;
  }
}

TEST(FastForwardTest, WorkersThatEndAreTold) {
  LiveCluster cluster;
  const std::string trace = cluster.Path("trace.csv");
  std::ofstream(trace) << "job_id,submit_time,gpus,duration\na,0,1,7200\n";
  const auto replay = [&](const std::string& state, const std::string& steps,
                          const Words& command) {
    Words words = {"replay-live", trace, "--cluster", "1x2", "--policy", "fifo", "--fast-forward"};
    words.insert(words.end(), {"--steps", steps, "--state", cluster.Path(state), "--"});
    words.insert(words.end(), command.begin(), command.end());
    return cluster.Run(words);
  };
  EXPECT_EQ(replay("a", "0", {"sleep", "100"}).status, 0);  // killed when its time has come
  EXPECT_EQ(replay("b", "3", {"true"}).status, 0);          // an end is enough
  const Answer again = replay("b", "3", {"true"});
  EXPECT_NE(again.status, 0);
  EXPECT_THAT(again.err, HasSubstr("is not empty; expected a new folder"));
  for (const Words& command : {Words{"sh", "-c", "exit 3"}, Words{"/nowhere/trainer"}}) {
    const Answer failed = replay("of-" + std::to_string(command.size()), "3", command);
    EXPECT_NE(failed.status, 0);
    EXPECT_THAT(failed.err, HasSubstr("a worker of job 1 ended with exit status"));
  }
}

TEST(FastForwardTest, CtrlCStopsTheWorkers) {
  LiveCluster cluster;
  const std::string trace = cluster.Path("trace.csv");
  std::ofstream(trace) << "job_id,submit_time,gpus,duration\na,0,2,7200\n";
  const std::string begun = cluster.Path("begun");
  const std::string log = cluster.Path("replay.log");
  Program replay(
      {"replay-live", trace, "--cluster", "1x2", "--policy", "fifo", "--fast-forward", "--state",
       cluster.Path("state"), "--", "sh", "-c", "touch " + begun + "; exec sleep 100"},
      log, log);
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(begun); }));
  ASSERT_FALSE(cluster.Processes().empty());
  replay.Signal(SIGINT);
  EXPECT_EQ(replay.Wait(seconds(300)), 1);
  EXPECT_TRUE(Eventually([&] { return cluster.Processes().empty(); }));
  EXPECT_THAT(ReadAll(log), HasSubstr("interrupted; the workers have been stopped"));
}

// ---------------------------------------------------------------------------------------------- up

TEST(LiveTest, CtrlCEndsUpAndTheNextOneGoesOn) {
  LiveCluster cluster({.grace = 5});
  cluster.StartUp();
  const int saves = cluster.SubmitWorker({"--gpus", "2", "--workers", "per-node"}, kTrainer);
  const int deaf =
      cluster.SubmitWorker({"--gpus", "2"}, fmt::format("trap '' TERM; {}", Until(cluster, "go")));
  const int waits = cluster.SubmitWorker({"--gpus", "1"}, "true");
  ASSERT_TRUE(cluster.AwaitLines(saves, "from", 1));
  ASSERT_TRUE(cluster.AwaitLines(deaf, "start", 2));
  cluster.up().Signal(SIGINT);
  EXPECT_EQ(cluster.up().Wait(seconds(300)), 0) << cluster.Log("up");
  // A supervisor's last word comes just before its end.
  EXPECT_TRUE(Eventually([&] { return cluster.Processes().empty(); }));
  EXPECT_THAT(cluster.Log("up"),
              HasSubstr("2 nodes with 4 GPUs in all, policy fifo, at " + cluster.address()));

  Touch(cluster, "go");
  cluster.StartUp();
  EXPECT_TRUE(cluster.AwaitState(saves, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(deaf, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(waits, v1::COMPLETED));
  const std::vector<WorkerLine> saved = cluster.LinesOf(saves, "saved");
  const std::vector<WorkerLine> from = cluster.LinesOf(saves, "from");
  ASSERT_THAT(saved, SizeIs(1));
  ASSERT_THAT(from, SizeIs(2));
  EXPECT_EQ(from[1].rest, saved[0].rest);
  EXPECT_EQ(cluster.StatusOf(saves).failures(), 0U);
  EXPECT_EQ(cluster.StatusOf(deaf).failures(), 0U);
  EXPECT_EQ(cluster.StatusOf(waits).attempt(), 1U);
  ExpectNeverTwice(cluster);
}

TEST(LiveTest, CtrlCSaysWhatIsAwaitedAndASecondOneKillsIt) {
  LiveCluster cluster({.nodes = 1, .grace = 300});
  cluster.StartUp();
  const int deaf =
      cluster.SubmitWorker({"--gpus", "1"}, fmt::format("trap '' TERM; {}", Until(cluster, "go")));
  ASSERT_TRUE(cluster.AwaitLines(deaf, "start", 1));
  cluster.up().Signal(SIGINT);
  EXPECT_TRUE(Eventually([&] {
    return cluster.Log("up").ends_with(
        "trainyard: n0: waiting up to 5m00s for job 1 to save and leave; Ctrl-C kills at once\n");
  })) << cluster.Log("up");
  EXPECT_EQ(cluster.up().Wait(seconds(0)), std::nullopt);
  cluster.up().Signal(SIGINT);
  EXPECT_EQ(cluster.up().Wait(seconds(60)), 0) << cluster.Log("up");
  EXPECT_TRUE(Eventually([&] { return cluster.Processes().empty(); }));
}

TEST(LiveTest, ASilentNodeIsShownSoBeforeItsLeaseIsOver) {
  LiveCluster cluster({.lease = 600});
  cluster.Start();
  const auto nodes = [&cluster] { return cluster.Ask({"nodes"}).out; };
  EXPECT_THAT(nodes(), HasSubstr("2 of 2 nodes up"));
  cluster.KillAgent(1);
  EXPECT_TRUE(Eventually([&] {
    return std::regex_search(nodes(), std::regex("n1 +silent")) &&
           nodes().find("1 of 2 nodes up, 0 of their 2 GPUs in use") != std::string::npos;
  })) << nodes();
  cluster.StartAgent(1);
  EXPECT_TRUE(Eventually([&] { return nodes().find("2 of 2 nodes up") != std::string::npos; }));
}

TEST(LiveTest, UpIsKilledAndTheNextOneFindsItsJobsRunning) {
  LiveCluster cluster({.lease = 20});
  cluster.StartUp();
  const int job = cluster.SubmitWorker({"--gpus", "3"}, Until(cluster, "go"));
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 3));
  cluster.StartUp();  // after a kill -9
  ASSERT_TRUE(cluster.AwaitState(job, v1::RUNNING));
  Touch(cluster, "go");
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_THAT(cluster.LinesOf(job, "start"), SizeIs(3));
}

// -------------------------------------------------------------------------------------- wrong uses

TEST(LiveTest, SecondControllerOnAStateFolderIsRefused) {
  LiveCluster cluster;
  cluster.Start();
  Words second = cluster.ControllerArguments();
  *std::find(second.begin(), second.end(), cluster.address()) = FreeAddress();
  const Answer answer = cluster.Run(second);
  EXPECT_EQ(answer.status, 1);
  EXPECT_EQ(answer.err, cluster.Path("controller") +
                            ": another controller has it open; stop that one or choose another "
                            "folder\n");
  EXPECT_EQ(cluster.Ask({"nodes"}).status, 0) << "the first has not noticed";
}

TEST(LiveTest, TakenPortIsRefused) {
  LiveCluster cluster;
  cluster.Start();
  const Answer answer = cluster.Run({"controller", "--cluster", "2x2", "--state",
                                     cluster.Path("other"), "--listen", cluster.address()});
  EXPECT_EQ(answer.status, 1);
  EXPECT_THAT(answer.err, HasSubstr(cluster.address()));
  EXPECT_THAT(answer.err, HasSubstr("in use"));
  const Answer up =
      cluster.Run({"up", "--state", cluster.Path("other-up"), "--listen", cluster.address()});
  EXPECT_EQ(up.status, 1);
  EXPECT_EQ(up.err, answer.err);
}

// Another policy and a node more: what runs goes on, and what waits gets the new node.
TEST(LiveTest, AStartWithOtherOptionsAppliesThem) {
  LiveCluster cluster({.nodes = 3});
  cluster.options().nodes = 2;
  cluster.Start();
  const int first = cluster.SubmitWorker({"--gpus", "2"}, "sleep 600");
  const int second = cluster.SubmitWorker({"--gpus", "2"}, "sleep 600");
  const int third = cluster.SubmitWorker({"--gpus", "2"}, "sleep 600");
  ASSERT_TRUE(cluster.AwaitState(first, v1::RUNNING) && cluster.AwaitState(second, v1::RUNNING));
  cluster.KillController();
  cluster.options().nodes = 3;
  cluster.options().policy = {"--policy", "las"};
  cluster.StartController();
  EXPECT_THAT(cluster.Log("controller"),
              HasSubstr("configuration 1, by the options of this start: policy fifo, now las; node "
                        "n2 added"));
  cluster.StartAgent(2);
  ASSERT_TRUE(cluster.AwaitState(third, v1::RUNNING));
  EXPECT_EQ(cluster.LinesOf(first, "start").size(), 2U);  // a worker for each GPU, once
  EXPECT_EQ(cluster.StatusOf(first).attempt(), 1U);
  EXPECT_EQ(cluster.StatusOf(second).attempt(), 1U);
  cluster.KillController();
  cluster.StartController();  // with the same options: nothing changes
  EXPECT_EQ(cluster.AskFor<v1::NodesReply>({"nodes"}).policy(), "las");
  EXPECT_THAT(cluster.Log("controller"), Not(HasSubstr("configuration 2")));
  EXPECT_EQ(cluster.Ask({"cancel", "1", "2", "3"}).status, 0);
}

// A node more, another policy, and back, while jobs run; a start with the options of before leaves
// that as it is.
TEST(LiveTest, TheConfigurationIsChangedWhileJobsRun) {
  LiveCluster cluster({.nodes = 2, .gpus = 1});
  cluster.options().nodes = 1;
  cluster.Start();
  const int first = cluster.SubmitWorker({"--gpus", "1"}, "sleep 600");
  const int second = cluster.SubmitWorker({"--gpus", "1"}, "sleep 600");
  ASSERT_TRUE(cluster.AwaitState(first, v1::RUNNING));
  const auto ask = [&cluster](Words words) {  // of commands below others
    words.insert(words.end(), {"--controller", cluster.address()});
    return cluster.Run(words);
  };
  const std::string added = cluster.node_name(1);
  cluster.options().nodes = 2;
  EXPECT_THAT(ask({"node", "add", added, "--gpus", "1", "--rehearse"}).out,
              HasSubstr("would change configuration 0: node " + added + " added"));
  EXPECT_EQ(ask({"node", "add", added, "--gpus", "1"}).out,
            "configuration 1 is in force: node " + added +
                " added\n  no job gets or loses GPUs by the change itself\n");
  cluster.StartAgent(1);
  ASSERT_TRUE(cluster.AwaitState(second, v1::RUNNING));

  const Answer shown = ask({"config", "show"});
  const std::string file = cluster.Path("las.toml");
  std::ofstream(file) << std::regex_replace(shown.out, std::regex("policy = 'fifo'"),
                                            "policy = 'las'");
  EXPECT_THAT(ask({"config", "diff", file}).out,
              HasSubstr("'trainyard config apply --check-index 1 " + file + "' does it"));
  EXPECT_EQ(ask({"config", "apply", "--check-index", "0", file}).status, 1);
  EXPECT_THAT(ask({"config", "apply", "--check-index", "1", file}).out,
              HasSubstr("configuration 2 is in force: policy fifo, now las\n"));
  EXPECT_THAT(ask({"config", "apply", file}).out, HasSubstr("says the same"));

  cluster.KillController();
  cluster.options().nodes = 1;
  cluster.StartController();  // with the options of the first start
  cluster.options().nodes = 2;
  EXPECT_THAT(cluster.Log("controller"), HasSubstr("configuration 2 is in force, as "));
  EXPECT_EQ(cluster.AskFor<v1::NodesReply>({"nodes"}).policy(), "las");
  EXPECT_EQ(cluster.StateOf(second), v1::RUNNING);
  EXPECT_THAT(ask({"config", "rollback"}).out,
              HasSubstr("configuration 3 is in force: policy las, now fifo\n"));
  EXPECT_THAT(ask({"config", "history"}).out, HasSubstr("policy las, now fifo"));
  EXPECT_THAT(ask({"node", "remove", added}).out,
              HasSubstr("job 2 gives back 1 GPU on " + added + ", and waits"));
  ASSERT_TRUE(cluster.AwaitState(second, v1::WAITING));
  EXPECT_EQ(cluster.StatusOf(first).attempt(), 1U);
  EXPECT_EQ(cluster.StatusOf(second).failures(), 0U);
  EXPECT_EQ(cluster.Ask({"cancel", "1", "2"}).status, 0);
}

TEST(LiveTest, AStateFolderOfAnotherTimeScaleIsRefused) {
  LiveCluster cluster({.nodes = 1});
  cluster.Start();
  cluster.KillController();
  Words arguments = cluster.ControllerArguments();
  arguments.insert(arguments.end(), {"--time-scale", "2"});
  const Answer answer = cluster.Run(arguments);
  EXPECT_EQ(answer.status, 3);
  EXPECT_THAT(answer.err, HasSubstr("belongs to a cluster with time_scale 1.000000, now 2.000000"));
}

TEST(LiveTest, AgentsThatDoNotFitAreTold) {
  LiveCluster cluster({.nodes = 1});
  cluster.Start();
  const auto said = [&cluster](const std::string& name, const Words& options) {
    Words words = {"agent", "--controller", cluster.address(), "--state", cluster.Path(name)};
    words.insert(words.end(), options.begin(), options.end());
    const std::string log = cluster.Path(name + ".log");
    const Program agent(words, log, log);
    EXPECT_TRUE(Eventually([&] { return ReadAll(log).ends_with("\n"); })) << name;
    const std::string line = ReadAll(log);
    return line.substr(line.find(' ') + 1);  // behind the time
  };
  const std::string refuses = "trainyard agent: the controller refuses: ";
  EXPECT_EQ(
      said("stranger", {"--node", "n7", "--gpus", "2"}),
      refuses + "node 'n7' is not in the controller's cluster; 'trainyard node add' adds it\n");
  EXPECT_EQ(said("twin", {"--node", "n0", "--gpus", "2"}),
            refuses + "node 'n0' has an agent already\n");
  cluster.KillAgent(0);
  EXPECT_EQ(said("wide", {"--node", "n0", "--gpus", "8"}),
            refuses + "node 'n0' has 8 GPUs; expected 2 as the configuration says\n");
}

TEST(LiveTest, HangUpsReadTheConfigurationAgainAndEndNothing) {
  LiveCluster cluster({.nodes = 1});
  const std::string config = cluster.Path("trainyard.toml");
  std::ofstream(config) << "[controller]\noperators = [\"nobody\"]\n[agent]\nlog-limit = \"1GB\"\n";
  Words& policy = cluster.options().policy;
  policy = {"--config", config};
  cluster.Start();
  const auto logs = [&cluster](const std::string& name, const std::string& text) {
    return Eventually([&] { return cluster.Log(name).find(text) != std::string::npos; });
  };
  cluster.controller().Signal(SIGHUP);
  EXPECT_TRUE(logs("controller", "has been read again; no option has changed"))
      << cluster.Log("controller");
  std::ofstream(config) << "[controller]\noperators = [\"nobody\", \"daemon\"]\ntls = true\n";
  cluster.controller().Signal(SIGHUP);
  EXPECT_TRUE(logs("controller",
                   "Z trainyard controller: the configuration has been read again; from now on "
                   "--operators is 'nobody daemon' (was 'nobody'); needs a restart: --tls is "
                   "'true' (was not set)"))
      << cluster.Log("controller");
  std::ofstream(config) << "[controller]\npolicy = \"nosuch\"\n";
  cluster.controller().Signal(SIGHUP);
  EXPECT_TRUE(logs("controller", "the configuration is wrong: unknown policy 'nosuch'"))
      << cluster.Log("controller");
  std::ofstream(config) << "[controller]\npolicy = \"las\"\n";
  cluster.controller().Signal(SIGHUP);
  EXPECT_TRUE(
      logs("controller",
           "configuration 1, by the options that were read again: policy backfill, now las"))
      << cluster.Log("controller");
  std::ofstream(config) << "[controller]\nno-such-key = 1\n";
  cluster.controller().Signal(SIGHUP);
  EXPECT_TRUE(logs("controller", "cannot be read again: " + config + ":2: unknown key"))
      << cluster.Log("controller");
  cluster.agent(0).Signal(SIGHUP);
  EXPECT_TRUE(logs("n0", "Z trainyard agent: the configuration has been read again"))
      << cluster.Log("n0");
  const int job = cluster.Submit({"--gpus", "1"}, {"true"});
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_TRUE(logs("controller", "Z trainyard controller: job 1: submitted by "))
      << cluster.Log("controller");
}

TEST(LiveTest, AHangUpChangesNothingOfAWholeCluster) {
  LiveCluster cluster({.nodes = 1});
  cluster.StartUp();
  cluster.up().Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] {
    return cluster.Log("up").find("trainyard: SIGHUP changes nothing here") != std::string::npos;
  })) << cluster.Log("up");
  const int job = cluster.Submit({"--gpus", "1"}, {"true"});
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
}

TEST(LiveTest, SecondAgentOnAStateFolderIsRefused) {
  LiveCluster cluster({.nodes = 1});
  cluster.Start();
  const Answer second = cluster.Run(cluster.AgentArguments(0));
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.err,
            cluster.Path("nodes/n0") +
                ": another agent has it open; stop that one or choose another folder\n");
}

TEST(LiveTest, WrongCallsAreAnsweredClearly) {
  LiveCluster cluster;
  EXPECT_EQ(cluster.Ask({"nodes"}).err,
            "no controller answers at " + cluster.address() +
                "; start one with 'trainyard up' or name it with --controller\n");
  cluster.Start();
  const auto expect = [&cluster](const Words& words, int status, const std::string& text) {
    const Answer answer = cluster.Ask(words);
    EXPECT_EQ(answer.status, status) << words[0];
    EXPECT_EQ(answer.out, "");
    EXPECT_THAT(answer.err, HasSubstr(text));
  };
  expect({"drain", "n7"}, 1, "there is no node 'n7'\n");
  expect({"status", "7"}, 1, "there is no job 7\n");
  expect({"cancel", "7"}, 1, "there is no job 7\n");
  expect({"resize", "7", "--gpus", "1"}, 1, "there is no job 7\n");
  expect({"logs", "7"}, 1, "there is no job 7\n");
  expect({"cancel", "all"}, 2,
         "'all' is no job; expected its number, or ARRAY_INDEX for a task of an array\n");
  expect({"submit", "--gpus", "5", "--", "true"}, 1, "it asks for 5 GPUs; the cluster has 4\n");
  expect({"submit", "--gpus", "1"}, 2, "no command");
  expect({"submit", "--", "true"}, 2, "--gpus is missing");
  const int job = cluster.SubmitWorker({"--gpus", "1"}, "true");
  ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  const Answer some = cluster.Ask({"status", "7", "1", "8"});
  EXPECT_EQ(some.status, 1);
  EXPECT_EQ(some.err, "there are no jobs 7, 8\n");
  EXPECT_THAT(some.out, HasSubstr("state:        completed\n"));
  expect({"submit", "--gpus", "1", "--env", "RANK=0", "--", "true"}, 2,
         "the environment variable RANK is set by Trainyard itself");
  expect({"submit", "--gpus", "1", "--name", "caf\xe9", "--", "true"}, 2,
         "--name is not UTF-8; expected UTF-8 text\n");
  expect({"submit", "--gpus", "1", "true"}, 2, "expected one, or -- before the job's command");
  expect({"cancel", "1"}, 1, "job 1 has ended and cannot be cancelled\n");
  expect({"resize", "1", "--gpus", "2"}, 1, "job 1 has ended and cannot be resized\n");
  expect({"logs", "1", "--rank", "1"}, 2, "job 1 has no worker 1\n");
  expect({"logs", "1", "--attempt", "2"}, 1, "job 1 has no attempt 2\n");
}

}  // namespace
}  // namespace trainyard
