// SPDX-License-Identifier: Apache-2.0
// State folders of other versions (states/README.md): gone on with, or refused and left as they
// are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "live_tests/cluster.h"
#include "support/scratch_folder.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The controller's folder becomes a copy of that of the version.
void TakeState(const LiveCluster& cluster, const std::string& version) {
  const fs::path folder = cluster.Path("controller");
  fs::create_directories(folder);
  fs::copy_file(fs::path(TRAINYARD_SOURCE_DIR) / "tests/live/states" / version / "controller.db",
                folder / "controller.db");
  fs::permissions(folder / "controller.db", fs::perms::owner_read | fs::perms::owner_write);
}

// What has been is known, what ran is started on nodes that know nothing of it, and what waited
// gets its turn.
void ExpectGoesOn(const std::string& version, const Words& options = {}) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  TakeState(cluster, version);
  Words& policy = cluster.options().policy;
  policy.insert(policy.end(), options.begin(), options.end());
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(1), v1::COMPLETED);
  EXPECT_EQ(cluster.StatusOf(1).request().name(), "done");
  EXPECT_EQ(cluster.StateOf(2), v1::FAILED);
  EXPECT_EQ(cluster.StatusOf(2).exit_code(), 3);
  EXPECT_EQ(cluster.StatusOf(3).attempt(), 1U);
  EXPECT_EQ(cluster.StateOf(4), v1::WAITING);
  EXPECT_EQ(cluster.StatusOf(4).request().gpus(), 3);
  EXPECT_EQ(cluster.StateOf(5), v1::CANCELLED);
  fs::create_directory(cluster.Path("checkpoints"));
  std::ofstream(cluster.Path("checkpoints/go")) << '\n';
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  EXPECT_TRUE(cluster.AwaitState(3, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(4, v1::COMPLETED));
  EXPECT_EQ(cluster.Submit({"--gpus", "1"}, {"true"}), 6);
  EXPECT_TRUE(cluster.AwaitState(6, v1::COMPLETED));
  cluster.KillController();  // and what it has written is its own
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(6), v1::COMPLETED);
}

TEST(StatesTest, ThatOf010GoesOnByItsJournal) { ExpectGoesOn("0.1.0"); }

TEST(StatesTest, ThatOf020GoesOn) { ExpectGoesOn("0.2.0"); }

TEST(StatesTest, ThatOf020GoesOnByItsJournal) {
  ExpectGoesOn("0.2.0", {"--snapshot-entries", "0"});
}

// What users have said of their jobs beside what to run: tasks, holds, dependencies, times.
void ExpectKeepsTerms(const Words& options) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  TakeState(cluster, "0.2.0-terms");
  Words& policy = cluster.options().policy;
  policy.insert(policy.end(), options.begin(), options.end());
  cluster.StartController();
  EXPECT_THAT(cluster.StatusOf(8).reason(), HasSubstr("dependency"));
  EXPECT_EQ(cluster.StateOf(9), v1::FAILED);
  EXPECT_THAT(cluster.StatusOf(9).reason(), HasSubstr("time limit"));
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  EXPECT_TRUE(cluster.AwaitState(2, v1::RUNNING) && cluster.AwaitState(3, v1::RUNNING));
  EXPECT_EQ(cluster.StateOf(4), v1::WAITING) << "two tasks at a time, though GPUs are free";
  EXPECT_EQ(cluster.StateOf(7), v1::WAITING) << "depends on all tasks";
  EXPECT_EQ(cluster.StateOf(11), v1::WAITING) << "and alone of its name";
  fs::create_directory(cluster.Path("checkpoints"));
  std::ofstream(cluster.Path("checkpoints/go")) << '\n';
  for (const int job : {2, 3, 4, 5, 7, 11}) {
    EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << job;
  }
  EXPECT_EQ(cluster.StateOf(6), v1::WAITING);
  EXPECT_THAT(cluster.StatusOf(6).reason(), HasSubstr("held"));
  EXPECT_EQ(cluster.Ask({"release", "6"}).status, 0);
  EXPECT_TRUE(cluster.AwaitState(6, v1::COMPLETED));
  EXPECT_EQ(cluster.StateOf(10), v1::WAITING) << "begins in a hundred years";
  EXPECT_EQ(cluster.StatusOf(10).request().launch().priority(), 3);
}

TEST(StatesTest, ThatOf020KeepsTheTermsOfJobs) { ExpectKeepsTerms({}); }

TEST(StatesTest, ThatOf020KeepsTheTermsOfJobsByItsJournal) {
  ExpectKeepsTerms({"--snapshot-entries", "0"});
}

// What a restart must not change of the first `count` jobs, as text.
std::string KnownOfJobs(const LiveCluster& cluster, int count) {
  std::string known;
  for (int job = 1; job <= count; ++job) {
    const v1::JobStatus all =
        cluster.AskFor<v1::JobsReply>({"status", std::to_string(job), "--history"}).jobs(0);
    v1::JobStatus status;
    status.set_job(all.job());
    *status.mutable_request() = all.request();
    status.set_state(all.state());
    status.set_attempt(all.attempt());
    if (all.state() != v1::STOPPING) {  // which says since when
      status.set_reason(all.reason());
    }
    status.set_held(all.held());
    status.set_array_job(all.array_job());
    status.set_array_index(all.array_index());
    status.set_changed_by(all.changed_by());
    *status.mutable_history() = all.history();
    known += status.ShortDebugString() + "\n";
  }
  return known;
}

// A call on many jobs or nodes is one entry of the journal since 0.3.0, in a form that 0.2.0 did
// not know: behind what that has written it is understood, too.
TEST(StatesTest, ThatOf020TakesCallsOnManyJobs) {
  LiveCluster cluster({.lease = 300});  // no node is given up, however slow this machine is
  TakeState(cluster, "0.2.0-terms");
  cluster.StartController();
  const auto ask = [&cluster](const Words& words) {
    const Answer answer = cluster.Ask(words);
    EXPECT_EQ(answer.status, 0) << words.front() << ": " << answer.err;
  };
  ask({"drain", "--reason", "all of them", cluster.node_name(0), cluster.node_name(1)});
  ask({"hold", "2", "7", "11"});  // an array of 0.2.0, and others
  ask({"update", "2", "10", "--priority", "7"});
  ask({"cancel", "4", "5"});
  ASSERT_EQ(cluster.Submit({"--gpus", "1", "--array", "0-9", "--notify", "end"}, {"true"}), 12);
  ask({"hold", "12_[3-9]"});
  ask({"update", "12", "--set-queue", "night"});
  ask({"cancel", "12_[0-2]"});
  ask({"release", "12_[8-9]"});
  constexpr int kJobs = 21;
  const std::string before = KnownOfJobs(cluster, kJobs);
  EXPECT_THAT(before, HasSubstr("night"));
  EXPECT_THAT(before, HasSubstr("CANCELLED"));
  const Words policy = cluster.options().policy;
  const auto restart = [&](const Words& options) {
    cluster.KillController();
    cluster.options().policy = policy;
    cluster.options().policy.insert(cluster.options().policy.end(), options.begin(), options.end());
    cluster.StartController();
    return KnownOfJobs(cluster, kJobs);
  };
  EXPECT_EQ(restart({}), before);
  EXPECT_EQ(restart({"--snapshot-entries", "0"}), before) << "from the journal alone";
  EXPECT_EQ(restart({"--snapshot-entries", "1"}), before);
  ask({"hold", "12_8"});  // takes a snapshot
  const std::string after = KnownOfJobs(cluster, kJobs);
  EXPECT_NE(after, before);
  EXPECT_EQ(restart({"--snapshot-entries", "1"}), after) << "from a snapshot of its own";
  EXPECT_EQ(restart({"--snapshot-entries", "0"}), after);

  ask({"undrain", cluster.node_name(0), cluster.node_name(1)});
  ask({"release", "2", "11", "12"});
  fs::create_directory(cluster.Path("checkpoints"));
  std::ofstream(cluster.Path("checkpoints/go")) << '\n';
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  for (const int job : {2, 3, 11, 15, 21}) {
    EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << job;
  }
}

// What calls on many jobs have made of them.
void ExpectKeepsCalls(const Words& options) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  TakeState(cluster, "0.3.0-calls");
  const std::string said = cluster.Path("said");
  std::ofstream(cluster.Path("hook"))
      << "#!/bin/sh\necho \"$TRAINYARD_EVENT $TRAINYARD_JOB.\" >>" << said << '\n';
  fs::permissions(cluster.Path("hook"), fs::perms(0755));
  Words& policy = cluster.options().policy;
  policy.insert(policy.end(), {"--notify-program", cluster.Path("hook")});
  policy.insert(policy.end(), options.begin(), options.end());
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(1), v1::COMPLETED);
  EXPECT_TRUE(cluster.NodeStatus(1).drained());
  EXPECT_THAT(cluster.NodeStatus(1).changed_by(), HasSubstr("a new fan"));
  for (int job = 3; job <= 12; ++job) {
    const v1::JobStatus task =
        cluster.AskFor<v1::JobsReply>({"status", std::to_string(job), "--history"}).jobs(0);
    EXPECT_EQ(task.array_job(), 3U);
    EXPECT_EQ(task.state(), job >= 5 && job <= 7 ? v1::CANCELLED : v1::WAITING) << job;
    EXPECT_EQ(task.held(), job >= 8) << job;
    EXPECT_EQ(task.request().launch().priority(), 5) << job;
    const std::string history = task.ShortDebugString();
    EXPECT_THAT(history, HasSubstr("what: \"held\""));
    EXPECT_THAT(history, HasSubstr("what: \"updated priority\""));
  }
  EXPECT_TRUE(Eventually([&] {
    const std::string lines = ReadAll(said);
    return lines.find("end 5.") != std::string::npos && lines.find("end 6.") != std::string::npos &&
           lines.find("end 7.") != std::string::npos;
  }));
  EXPECT_EQ(cluster.Ask({"release", "3"}).status, 0);
  EXPECT_EQ(cluster.Ask({"undrain", cluster.node_name(1)}).status, 0);
  fs::create_directory(cluster.Path("checkpoints"));
  std::ofstream(cluster.Path("checkpoints/go")) << '\n';
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  for (const int job : {2, 3, 4, 8, 12}) {
    EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << job;
  }
}

TEST(StatesTest, ThatOf030KeepsCallsOnManyJobs) { ExpectKeepsCalls({}); }

TEST(StatesTest, ThatOf030KeepsCallsOnManyJobsByItsJournal) {
  ExpectKeepsCalls({"--snapshot-entries", "0"});
}

// The start asks for two plain nodes under fifo: a change, as any other. The state has what was in
// force before, profiles included, whose file is gone.
void ExpectKeepsConfigurations(const Words& options) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  TakeState(cluster, "0.4.0-configured");
  Words& policy = cluster.options().policy;
  policy.insert(policy.end(), options.begin(), options.end());
  cluster.StartController();
  const std::string history =
      cluster.Run({"config", "history", "--controller", cluster.address()}).out;
  EXPECT_THAT(history, HasSubstr("profiles of profiles.csv changed"));
  EXPECT_THAT(history, HasSubstr("partition long: nodes n1, now nodes n0"));
  EXPECT_THAT(history, HasSubstr("node n2 added; partition long: nodes n0, now nodes n[0,2]"));
  EXPECT_THAT(history, HasSubstr("profiles profiles.csv, now none"));
  EXPECT_THAT(history, HasSubstr("partition debug removed; partition long removed"));
  EXPECT_EQ(cluster.StatusOf(1).request().queue(), "long");
  EXPECT_EQ(cluster.StatusOf(3).request().queue(), "debug");
  EXPECT_EQ(cluster.StatusOf(3).request().time_s(), 7200);
  const Answer back = cluster.Run({"config", "rollback", "2", "--controller", cluster.address()});
  EXPECT_EQ(back.status, 0) << back.err;
  const v1::NodesReply nodes = cluster.AskFor<v1::NodesReply>({"nodes"});
  ASSERT_EQ(nodes.nodes_size(), 3);
  EXPECT_EQ(nodes.policy(), "srtf");
  EXPECT_EQ(nodes.partitions_size(), 2);
  EXPECT_THAT(nodes.nodes(0).partitions(), testing::ElementsAre("debug", "long"));
  EXPECT_THAT(nodes.nodes(1).partitions(), testing::IsEmpty());
  EXPECT_THAT(nodes.nodes(2).labels(), testing::ElementsAre("nvlink"));
  fs::create_directory(cluster.Path("checkpoints"));
  std::ofstream(cluster.Path("checkpoints/go")) << '\n';
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  for (const int job : {1, 2, 3}) {
    EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << job;
  }
  cluster.KillController();
  cluster.StartController();
  EXPECT_EQ(cluster.AskFor<v1::NodesReply>({"nodes"}).partitions_size(), 2);
}

TEST(StatesTest, ThatOf040KeepsItsConfigurations) { ExpectKeepsConfigurations({}); }

TEST(StatesTest, ThatOf040KeepsItsConfigurationsByItsJournal) {
  ExpectKeepsConfigurations({"--snapshot-entries", "0"});
}

// There a job has taken the GPUs of another by a rule that has gone since.
TEST(StatesTest, ThatOf010GoesOnThoughThisProgramWouldHaveDecidedOtherwise) {
  LiveCluster cluster({.policy = {"--policy", "las:quantum=0"}, .lease = kShortLease, .grace = 1});
  TakeState(cluster, "0.1.0-las");
  Words rehearsal = cluster.ControllerArguments();
  rehearsal.emplace_back("--rehearse");
  const Answer rehearsed = cluster.Run(rehearsal);
  EXPECT_EQ(rehearsed.status, 0);
  const std::string difference =
      "recorded is 'preempt job 1', and this program would have decided 'nothing'";
  EXPECT_THAT(rehearsed.out, HasSubstr(difference));
  cluster.StartController();
  EXPECT_THAT(cluster.Log("controller"), HasSubstr(difference));
  EXPECT_THAT(cluster.Log("controller"), HasSubstr("what Trainyard 0.1.0 has decided stays"));
  EXPECT_EQ(cluster.StatusOf(1).attempt(), 2U);  // it had its GPUs back
  EXPECT_EQ(cluster.StatusOf(2).attempt(), 1U);
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  EXPECT_TRUE(Eventually([&cluster] {
    return cluster.StateOf(1) == v1::RUNNING || cluster.StateOf(2) == v1::RUNNING;
  }));
  EXPECT_EQ(cluster.Submit({"--gpus", "1"}, {"true"}), 3);
  EXPECT_EQ(cluster.Ask({"cancel", "1", "2"}).status, 0);
  EXPECT_TRUE(cluster.AwaitState(3, v1::COMPLETED));
  cluster.KillController();  // and what it has written is its own
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(3), v1::COMPLETED);
  EXPECT_EQ(cluster.StateOf(1), v1::CANCELLED);
}

// There a job waited behind one that needed a node which was drained: such a head holds up nobody
// since. The plug-in makes this another program also while its version is that of the state.
TEST(StatesTest, ThatOf030GoesOnThoughThisProgramWouldHaveDecidedOtherwise) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  cluster.options().program = {"--plugin",
                               std::string(TRAINYARD_TEST_PLUGINS) + "/company_order_1.so"};
  TakeState(cluster, "0.3.0-blocked");
  cluster.StartController();
  EXPECT_THAT(cluster.Log("controller"),
              HasSubstr("recorded is 'nothing', and this program would have decided 'launch "
                        "job 3 on"));
  EXPECT_EQ(cluster.StatusOf(1).attempt(), 1U);
  EXPECT_EQ(cluster.StateOf(2), v1::WAITING);
  fs::create_directory(cluster.Path("checkpoints"));
  std::ofstream(cluster.Path("checkpoints/go")) << '\n';
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  EXPECT_TRUE(cluster.AwaitState(1, v1::COMPLETED));
  EXPECT_TRUE(cluster.AwaitState(3, v1::COMPLETED));
  EXPECT_EQ(cluster.StateOf(2), v1::WAITING);
  EXPECT_EQ(cluster.Ask({"undrain", cluster.node_name(1)}).status, 0);
  EXPECT_TRUE(cluster.AwaitState(2, v1::COMPLETED));
}

// As docs/operations.md has it: a copy made while the controller is away for a moment, and put back
// after everything has ended. What came after the copy is unknown then; nothing runs twice.
TEST(StatesTest, ACopyIsPutBack) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  cluster.Start();
  const int done = cluster.SubmitWorker({"--gpus", "1"}, "true");
  ASSERT_TRUE(cluster.AwaitState(done, v1::COMPLETED));
  const std::string go = cluster.Path("go");
  const int running =
      cluster.SubmitWorker({"--gpus", "1"}, "while [ ! -e " + go + " ]; do sleep 0.1; done");
  ASSERT_TRUE(cluster.AwaitLines(running, "start", 1));

  cluster.controller().Signal(SIGTERM);
  ASSERT_EQ(cluster.controller().Wait(std::chrono::seconds(60)), 0);
  const std::string folder = cluster.Path("controller");
  fs::copy(folder, cluster.Path("copy"), fs::copy_options::recursive);
  std::ofstream(cluster.Path("copy") + "/copy");  // says that it is one
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(running), v1::RUNNING) << "the copy has cost no job anything";
  const int late = cluster.SubmitWorker({"--gpus", "1"}, "sleep 600");
  ASSERT_TRUE(cluster.AwaitLines(late, "start", 1));

  cluster.KillController();
  cluster.KillAgent(0);
  cluster.KillAgent(1);
  fs::remove_all(folder);
  const auto workers_ended = [&cluster] {
    const std::vector<WorkerLine> lines = cluster.Lines();
    return std::none_of(lines.begin(), lines.end(), [](const auto& at) { return IsAlive(at.pid); });
  };
  ASSERT_TRUE(Eventually(workers_ended, 60)) << "the leases are over, supervisors end their jobs";

  fs::rename(cluster.Path("copy"), folder);
  cluster.StartController();
  EXPECT_EQ(cluster.StateOf(done), v1::COMPLETED);
  EXPECT_EQ(cluster.Ask({"status", std::to_string(late)}).status, 1) << "came after the copy";
  std::ofstream(go) << '\n';
  cluster.StartAgent(0);
  cluster.StartAgent(1);
  EXPECT_TRUE(cluster.AwaitState(running, v1::COMPLETED));
  EXPECT_EQ(cluster.LinesOf(running, "end").size(), 1U);
  EXPECT_EQ(cluster.LinesOf(running, "TWICE").size(), 0U);
}

TEST(StatesTest, AJournalThatIsMissingIsSaid) {
  LiveCluster cluster({.nodes = 1});
  cluster.Start();
  ASSERT_EQ(cluster.Ask({"drain", "n0", "--reason", "a fan"}).status, 0);
  cluster.controller().Signal(SIGTERM);
  ASSERT_EQ(cluster.controller().Wait(std::chrono::seconds(60)), 0);
  EXPECT_EQ(cluster.Log("controller").find("has no journal"), std::string::npos);
  for (const char* file : {"/controller.db", "/controller.db-wal", "/controller.db-shm"}) {
    fs::remove(cluster.Path("controller") + file);
  }
  cluster.StartController();
  EXPECT_NE(cluster.Log("controller").find("controller.db has no journal, but audit.jsonl"),
            std::string::npos);
}

// Whatever the controller after the copy has given, also to jobs that left no trace on any node.
TEST(StatesTest, NumbersGivenAfterTheCopyAreNotGivenAgain) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  cluster.StartController();
  const auto submit = [&cluster](Words options) {
    options.insert(options.begin(), "submit");
    options.insert(options.end(), {"--gpus", "1", "--", "true"});
    return cluster.AskFor<v1::SubmitReply>(options).job();
  };
  const auto status = [&cluster](const std::string& job) {
    return cluster.AskFor<v1::JobsReply>({"status", job}).jobs(0);
  };
  ASSERT_EQ(submit({"--name", "kept"}), 1U);
  const auto stop = [&cluster] {
    cluster.controller().Signal(SIGTERM);
    ASSERT_EQ(cluster.controller().Wait(std::chrono::seconds(60)), 0);
  };
  stop();
  const std::string folder = cluster.Path("controller");
  fs::copy(folder, cluster.Path("copy"), fs::copy_options::recursive);
  std::ofstream(cluster.Path("copy") + "/copy");
  const auto put_back = [&] {
    fs::remove_all(folder);
    fs::copy(cluster.Path("copy"), folder, fs::copy_options::recursive);
  };

  cluster.StartController();
  EXPECT_EQ(submit({"--array", "0-1999"}), 2U) << "a copy that is not put back changes nothing";
  stop();
  put_back();
  cluster.StartController();
  const std::uint64_t first = submit({"--name", "first", "--hold"});
  EXPECT_GT(first, 2001U);
  const std::string number = std::to_string(first);
  const std::uint64_t array = submit({"--array", "7-8", "--dependency", "afterok:" + number});
  EXPECT_EQ(array, first + 1);
  EXPECT_THAT(cluster.Ask({"status", "2"}).err, HasSubstr("there is no job 2"));

  cluster.KillController();  // the numbers last
  cluster.StartController();
  EXPECT_EQ(status("1").request().name(), "kept");
  EXPECT_EQ(status(number).request().name(), "first");
  const std::string task = std::to_string(array) + "_8";
  EXPECT_EQ(status(task).array_job(), array);
  EXPECT_THAT(status(task).reason(), HasSubstr("waits for job " + number));
  EXPECT_EQ(submit({}), array + 2);
  cluster.StartAgent(0);
  EXPECT_EQ(cluster.Ask({"release", number}).status, 0);
  EXPECT_EQ(cluster.Ask({"wait", number, task, "1"}).status, 0);
  EXPECT_EQ(cluster.Ask({"logs", task}).status, 0);

  stop();
  put_back();  // the same copy a second time
  cluster.StartController();
  EXPECT_GT(submit({}), array + 2);
}

// The commands that docs/operations.md has for each node, on one without a launcher.
TEST(StatesTest, TheCommandsOfTheRestoreSucceedWithoutALauncher) {
  const std::string page = ReadAll(std::string(TRAINYARD_SOURCE_DIR) + "/docs/operations.md");
  const std::size_t begin = page.find("   SINCE=");
  ASSERT_NE(begin, std::string::npos);
  std::string commands = page.substr(begin, page.find("   ```", begin) - begin);
  const std::string folder = "/var/lib/trainyard/agent";
  const ScratchFolder scratch;
  const fs::path agent = fs::path(scratch.path()) / "agent";
  ASSERT_NE(commands.find(folder), std::string::npos);
  commands.replace(commands.find(folder), folder.size(), agent.string());
  fs::create_directories(agent / "logs" / "1234-1");
  fs::create_directories(agent / "logs" / "1234-2");
  fs::last_write_time(agent / "logs" / "1234-1",
                      fs::file_time_type::clock::now() - std::chrono::hours(24 * 365 * 20));
  const std::string script = scratch.path() + "/restore.sh";
  std::ofstream(script) << "set -eu\n" << commands;
  EXPECT_EQ(std::system(("bash " + script).c_str()), 0);
  EXPECT_TRUE(fs::exists(agent / "logs" / "1234-1"));
  EXPECT_FALSE(fs::exists(agent / "logs" / "1234-2"));
  EXPECT_TRUE(fs::exists(agent.parent_path() / "lost" / "logs" / "1234-2"));
}

// What a restart after a long outage makes of a job that has a time limit.
TEST(StatesTest, AnOutageIsNoRunTime) {
  LiveCluster cluster({.lease = kShortLease, .grace = 1});
  cluster.Start();
  const std::string go = cluster.Path("go");
  const int job = cluster.SubmitWorker({"--gpus", "1", "--time", "60s"},
                                       "while [ ! -e " + go + " ]; do sleep 0.1; done");
  ASSERT_TRUE(cluster.AwaitLines(job, "start", 1));
  cluster.KillController();
  const std::string database = cluster.Path("controller") + "/controller.db";
  // As if it had been away for an hour: all that it knows is an hour older.
  const std::string older =
      "python3 -c \"import sqlite3; d = sqlite3.connect('" + database +
      "'); d.execute(\\\"UPDATE settings SET value = value - 3600 WHERE name IN ('present', "
      "'unix_zero')\\\"); d.commit()\"";
  ASSERT_EQ(std::system(older.c_str()), 0) << older;
  cluster.StartController();
  EXPECT_TRUE(cluster.AwaitState(job, v1::RUNNING)) << "it waits, and starts again";
  std::ofstream(go) << '\n';
  EXPECT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
}

}  // namespace
}  // namespace trainyard
