// SPDX-License-Identifier: Apache-2.0
// What a user of Slurm types in the first hour (docs/from-slurm.md), with the real program on a
// cluster of this machine: two nodes with two GPUs each.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

class FirstHourTest : public testing::Test {
 protected:
  FirstHourTest() { cluster_.Start(); }

  int Submit(const Words& options, const std::string& script) const {
    Words all{"--gpus", "1"};
    all.insert(all.end(), options.begin(), options.end());
    return cluster_.Submit(all, {"sh", "-c", script});
  }
  // Goes on until the test has made the file.
  [[nodiscard]] std::string Until(const std::string& file) const {
    return fmt::format("while ! [ -e {} ]; do sleep 0.05; done", cluster_.Path(file));
  }
  void Touch(const std::string& file) const { std::ofstream(cluster_.Path(file)) << '\n'; }
  [[nodiscard]] Answer Ask(const Words& words) const { return cluster_.Ask(words); }

  LiveCluster cluster_;
};

TEST_F(FirstHourTest, SrunShowsTheOutputAndTheExitCode) {
  const Answer good = Ask({"run", "--gpus", "1", "--", "sh", "-c", "echo hello"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_EQ(good.out, "hello\n");
  EXPECT_EQ(Ask({"run", "--gpus", "1", "--", "sh", "-c", "exit 7"}).status, 7);
  EXPECT_NE(Ask({"run", "--gpus", "99", "--", "true"}).status, 0);
}

TEST_F(FirstHourTest, SrunSaysOnceThatATimeToBeginIsToCome) {
  const Answer answer = Ask({"run", "--begin", "3s", "--gpus", "1", "--", "true"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  const std::size_t said = answer.err.find("is waiting: begins in ");
  EXPECT_NE(said, std::string::npos) << answer.err;
  EXPECT_EQ(said, answer.err.rfind("is waiting: begins in ")) << answer.err;
}

TEST_F(FirstHourTest, SrunCancelsAJobThatWaitsOnCtrlC) {
  const int big = cluster_.Submit({"--gpus", "4"}, {"sh", "-c", Until("go")});
  ASSERT_TRUE(cluster_.AwaitState(big, v1::RUNNING));
  Program run({"run", "--controller", cluster_.address(), "--gpus", "1", "--", "true"},
              cluster_.Path("run.out"), cluster_.Path("run.err"));
  ASSERT_TRUE(Eventually(
      [&] { return ReadAll(cluster_.Path("run.err")).find("submitted") != std::string::npos; }));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(seconds(120)), 128 + SIGINT);
  EXPECT_EQ(cluster_.StateOf(2), v1::CANCELLED);
  Touch("go");
}

TEST_F(FirstHourTest, SbatchReadsTheLinesOfAScript) {
  const std::string script = cluster_.Path("train.sh");
  std::ofstream(script) << "#!/bin/sh\n#SBATCH --job-name=lines --gres=gpu:2\n#SBATCH -D "
                        << cluster_.Path("") << "\n#SBATCH -o out-%j\necho $1 $TRAINYARD_GPUS\n";
  EXPECT_EQ(Ask({"submit", script, "--name", "mine", "--", "hello"}).out, "job 1 submitted\n");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  EXPECT_EQ(cluster_.StatusOf(1).request().name(), "mine") << "options override lines";
  EXPECT_EQ(cluster_.StatusOf(1).request().gpus(), 2);
  EXPECT_EQ(ReadAll(cluster_.Path("out-1")), "hello 0,1\n");
  std::ofstream(script) << "#!/bin/sh\n#SBATCH --reservation=high\n";
  const Answer refused = Ask({"submit", script});
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err, HasSubstr("train.sh:2: '--reservation' is refused: there are no"));
}

TEST_F(FirstHourTest, UpdateChangesNameQueueAndGpusOfAJobThatWaits) {
  const int big = cluster_.Submit({"--gpus", "4"}, {"sh", "-c", Until("go")});
  ASSERT_TRUE(cluster_.AwaitState(big, v1::RUNNING));
  const int job = cluster_.Submit({"--gpus", "3"}, {"sh", "-c", "echo $WORLD_SIZE"});
  const std::string number = std::to_string(job);
  EXPECT_EQ(
      Ask({"update", "--set-name", "other", "--set-queue", "long", "--gpus", "2", number}).status,
      0);
  const v1::JobStatus status = cluster_.StatusOf(job);
  EXPECT_EQ(status.request().name(), "other");
  EXPECT_EQ(status.request().queue(), "long");
  EXPECT_EQ(status.request().gpus(), 2);
  EXPECT_THAT(Ask({"update", "--gpus", "9", number}).err, HasSubstr("the cluster has 4"));
  EXPECT_THAT(Ask({"update", "--gpus", "2", std::to_string(big)}).err,
              HasSubstr("resize --gpus 2 1"));
  cluster_.KillController();
  cluster_.StartController();
  EXPECT_EQ(cluster_.StatusOf(job).request().gpus(), 2);
  Touch("go");
  EXPECT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
  EXPECT_EQ(Ask({"logs", number}).out, "2\n");
}

TEST_F(FirstHourTest, SqueueAndScancelSelect) {
  const std::string wait = Until("go");
  const int mine = Submit({"--name", "bert-1", "--user", "ann"}, wait);
  const int other = Submit({"--name", "gpt", "--user", "bob"}, wait);
  ASSERT_TRUE(cluster_.AwaitState(mine, v1::RUNNING));
  ASSERT_TRUE(cluster_.AwaitState(other, v1::RUNNING));
  const Answer list = Ask({"status", "--user", "ann", "--state", "running,waiting"});
  EXPECT_THAT(list.out, HasSubstr("bert-1"));
  EXPECT_THAT(list.out, Not(HasSubstr("gpt")));
  const Answer details = Ask({"status", std::to_string(mine)});
  EXPECT_THAT(details.out, HasSubstr("command:      sh -c 'while"));
  EXPECT_THAT(details.out, HasSubstr("folder:       /"));
  EXPECT_EQ(Ask({"cancel", "--name", "bert-*"}).status, 0);
  EXPECT_TRUE(cluster_.AwaitState(mine, v1::CANCELLED));
  EXPECT_EQ(cluster_.StateOf(other), v1::RUNNING);
  EXPECT_NE(Ask({"cancel", "--user", "ann"}).status, 0) << "nobody is left";
  EXPECT_EQ(Ask({"cancel", "all"}).err,
            "'all' is no job; expected its number, or ARRAY_INDEX for a task of an array\n");
  Touch("go");
}

TEST_F(FirstHourTest, ADependencyIsMetOrEndsTheJob) {
  const int first = Submit({}, Until("go") + "; exit 3");
  const std::string number = std::to_string(first);
  const int good = Submit({"--dependency", "afterok:" + number}, "true");
  const int cleans = Submit({"--dependency", "afternotok:" + number}, "true");
  EXPECT_EQ(cluster_.StateOf(good), v1::WAITING);
  EXPECT_EQ(cluster_.StatusOf(good).reason(),
            fmt::format("waits for job {0}, by its dependency 'afterok:{0}'", first));
  Touch("go");
  EXPECT_TRUE(cluster_.AwaitState(cleans, v1::COMPLETED));
  EXPECT_EQ(cluster_.StateOf(first), v1::FAILED);
  EXPECT_EQ(cluster_.StateOf(good), v1::REJECTED);
  EXPECT_THAT(cluster_.StatusOf(good).reason(),
              HasSubstr("cannot be met any more: job 1 is failed"));
  EXPECT_THAT(Ask({"submit", "--gpus", "1", "--dependency", "afterok:99", "--", "true"}).err,
              HasSubstr("there is no earlier job 99"));
}

TEST_F(FirstHourTest, AnArrayRunsSoManyTasksAtATime) {
  const int array = Submit(
      {"--array", "1-5%2"},
      fmt::format("echo $TRAINYARD_ARRAY_TASK_ID >>{}; {}", cluster_.Path("tasks"), Until("go")));
  ASSERT_TRUE(cluster_.AwaitState(array + 1, v1::RUNNING));
  EXPECT_EQ(cluster_.StateOf(array + 2), v1::WAITING) << "GPUs are free, and two run";
  EXPECT_THAT(cluster_.StatusOf(array + 2).reason(),
              HasSubstr("at most 2 tasks of its array run at a time"));
  EXPECT_THAT(Ask({"status", std::to_string(array)}).out,
              HasSubstr(fmt::format("\n{}_[3-5%2]  ", array)));
  EXPECT_EQ(Ask({"cancel", fmt::format("{}_5", array)}).status, 0);
  const int next = Submit({"--dependency", fmt::format("afterany:{}", array)}, "true");
  const auto never = Ask(
      {"submit", "--gpus", "1", "--dependency", fmt::format("afterok:{}", array), "--", "true"});
  EXPECT_EQ(never.status, 1);
  EXPECT_THAT(never.err,
              HasSubstr(fmt::format("cannot be met any more: job {}_5 is cancelled", array)));
  Touch("go");
  EXPECT_EQ(Ask({"wait", std::to_string(array)}).status, 1) << "one was cancelled";
  EXPECT_TRUE(cluster_.AwaitState(next, v1::COMPLETED));
  std::ifstream file(cluster_.Path("tasks"));
  std::set<int> indices;
  for (int index = 0; file >> index;) {
    indices.insert(index);
  }
  EXPECT_EQ(indices, (std::set<int>{1, 2, 3, 4}));
  EXPECT_EQ(cluster_.StateOf(array + 4), v1::CANCELLED);
}

TEST_F(FirstHourTest, ATimeLimitEndsAJob) {
  const int job = Submit({"--time", "1s"}, Until("never"));
  EXPECT_TRUE(cluster_.AwaitState(job, v1::FAILED));
  EXPECT_THAT(cluster_.StatusOf(job).reason(), HasSubstr("it has reached its time limit of 1"));
  EXPECT_THAT(Ask({"submit", "--gpus", "1", "--time", "90", "--", "true"}).err,
              HasSubstr("expected a unit, as Slurm counts minutes here: 90m"));
}

TEST_F(FirstHourTest, AJobBeginsLater) {
  const int later = Submit({"--begin", "now+1hour"}, "true");
  const int soon = Submit({"--begin", "2s"}, "true");
  EXPECT_THAT(cluster_.StatusOf(later).reason(), HasSubstr("begins in "));
  EXPECT_TRUE(cluster_.AwaitState(soon, v1::COMPLETED));
  EXPECT_EQ(cluster_.StateOf(later), v1::WAITING);
  EXPECT_EQ(Ask({"update", "--begin", "", std::to_string(later)}).status, 0);
  EXPECT_TRUE(cluster_.AwaitState(later, v1::COMPLETED));
}

TEST_F(FirstHourTest, ScontrolHoldsReleasesAndRequeues) {
  const std::string wait = Until("go");
  const int big = cluster_.Submit({"--gpus", "4"}, {"sh", "-c", wait});
  ASSERT_TRUE(cluster_.AwaitState(big, v1::RUNNING));
  const int held = Submit({}, "true");
  EXPECT_EQ(Ask({"hold", std::to_string(held)}).out,
            fmt::format("job {} is waiting, held\n", held));
  EXPECT_THAT(Ask({"hold", std::to_string(big)}).err, HasSubstr("requeue --hold"));
  EXPECT_EQ(Ask({"requeue", "--hold", std::to_string(big)}).status, 0);
  const int passes = Submit({}, "true");
  EXPECT_TRUE(cluster_.AwaitState(passes, v1::COMPLETED));
  EXPECT_EQ(cluster_.StateOf(held), v1::WAITING);
  EXPECT_THAT(cluster_.StatusOf(held).reason(), HasSubstr("held by "));
  cluster_.KillController();
  cluster_.StartController();
  EXPECT_TRUE(cluster_.StatusOf(held).held()) << "a restart forgets no hold";
  EXPECT_EQ(Ask({"release", std::to_string(held)}).status, 0);
  EXPECT_TRUE(cluster_.AwaitState(held, v1::COMPLETED));
  EXPECT_EQ(Ask({"release", std::to_string(big)}).status, 0);
  ASSERT_TRUE(cluster_.AwaitState(big, v1::RUNNING));
  EXPECT_EQ(cluster_.StatusOf(big).attempt(), 2U);
  Touch("go");
  EXPECT_TRUE(cluster_.AwaitState(big, v1::COMPLETED));
}

TEST_F(FirstHourTest, NoTaskBeginsWhileItsArrayIsCancelled) {
  const std::string begun = cluster_.Path("begun");
  const int array =
      Submit({"--array", "0-199"},
             fmt::format("echo $TRAINYARD_ARRAY_TASK_ID >>{}; {}", begun, Until("never")));
  const auto count = [&begun] {
    const std::string text = ReadAll(begun);
    return std::count(text.begin(), text.end(), '\n');
  };
  while (count() < 4) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (int task = array; task < array + 4; ++task) {  // its agent has told, too
    EXPECT_TRUE(cluster_.AwaitState(task, v1::RUNNING));
  }
  EXPECT_THAT(Ask({"hold", std::to_string(array)}).err,
              HasSubstr("1_[0-3] is running and goes on"));
  EXPECT_EQ(Ask({"release", std::to_string(array)}).status, 0);
  EXPECT_EQ(Ask({"cancel", std::to_string(array)}).out, "job 1_[0-199] is cancelled\n");
  EXPECT_TRUE(cluster_.AwaitState(array + 3, v1::CANCELLED));
  EXPECT_EQ(cluster_.StateOf(array + 199), v1::CANCELLED);
  const int next = Submit({}, "true");  // which would have to wait for a task that had begun
  EXPECT_TRUE(cluster_.AwaitState(next, v1::COMPLETED));
  EXPECT_EQ(count(), 4);
}

TEST_F(FirstHourTest, SbatchHoldSubmitsAJobThatWaitsForItsRelease) {
  EXPECT_EQ(Ask({"submit", "--hold", "--gpus", "1", "--", "true"}).out, "job 1 submitted, held\n");
  const int array = Submit({"--hold", "--array", "3-4"}, "true");
  const std::string script = cluster_.Path("held.sh");
  std::ofstream(script) << "#!/bin/sh\n#SBATCH -H -n 1\ntrue\n";
  EXPECT_EQ(Ask({"submit", script}).out, "job 4 submitted, held\n");
  const int passes = Submit({}, "true");
  EXPECT_TRUE(cluster_.AwaitState(passes, v1::COMPLETED));
  EXPECT_EQ(cluster_.StateOf(1), v1::WAITING);
  cluster_.KillController();
  cluster_.StartController();
  EXPECT_TRUE(cluster_.StatusOf(array + 1).held());
  EXPECT_THAT(cluster_.StatusOf(array + 1).reason(), HasSubstr("'trainyard release 2_4' lets"));
  // Who waits for one is told at once, once for each.
  const Answer waited = Ask({"wait", "--timeout", "2s", "1", fmt::format("{}_4", array)});
  EXPECT_EQ(waited.status, 1);
  EXPECT_THAT(waited.err, HasSubstr("trainyard: job 1 is held by "));
  EXPECT_THAT(waited.err, HasSubstr("'trainyard release 1' lets it go on\n"));
  EXPECT_THAT(waited.err, HasSubstr("trainyard: job 2_4 is held by "));
  EXPECT_EQ(waited.err.find("job 1 is held"), waited.err.rfind("job 1 is held"));
  EXPECT_EQ(Ask({"release", "1", "2", "4"}).status, 0);
  EXPECT_EQ(Ask({"wait", "1", "2", "4"}).status, 0);
}

TEST_F(FirstHourTest, TasksOfArraysAreNamedAsTheyAreTyped) {
  const int big = cluster_.Submit({"--gpus", "4"}, {"sh", "-c", Until("go")});
  ASSERT_TRUE(cluster_.AwaitState(big, v1::RUNNING));
  ASSERT_EQ(Submit({"--array", "7-9"}, "true"), 2);
  EXPECT_THAT(Ask({"logs", "2_8"}).err, HasSubstr("job 2_8 has not started"));
  EXPECT_THAT(Ask({"requeue", "2_9"}).err, HasSubstr("job 2_9 is waiting and holds no GPUs"));
  EXPECT_EQ(Ask({"hold", "2_9"}).status, 0);
  EXPECT_THAT(cluster_.StatusOf(4).reason(), HasSubstr("'trainyard release 2_9'"));
  EXPECT_EQ(Ask({"cancel", "2_8"}).status, 0);
  EXPECT_THAT(Ask({"hold", "2_8"}).err, HasSubstr("job 2_8 has ended and cannot be held"));
  Touch("go");
}

TEST_F(FirstHourTest, AnUpdateThatThePolicyDoesNotHeedSaysSo) {
  const int big = cluster_.Submit({"--gpus", "4"}, {"sh", "-c", Until("go")});
  ASSERT_TRUE(cluster_.AwaitState(big, v1::RUNNING));
  const int first = Submit({}, "true");
  const int second = Submit({}, "true");
  const Answer answer = Ask({"update", "--priority", "5", "--set-queue", "long",
                             std::to_string(first), std::to_string(second)});
  EXPECT_EQ(answer.status, 0);
  const std::string said =
      "trainyard: priority 5 has no effect: policy 'fifo' does not heed priorities\n"
      "trainyard: queue 'long' has no effect: policy 'fifo' does not heed queues\n";
  EXPECT_THAT(answer.err, HasSubstr(said));
  EXPECT_EQ(answer.err.find(said), answer.err.rfind(said)) << "once for all jobs";
  EXPECT_THAT(Ask({"update", "--time", "1h", std::to_string(first)}).err,
              Not(HasSubstr("no effect")));
  Touch("go");
}

TEST_F(FirstHourTest, WaitHasTheExitCodeOfTheFirstThatFailed) {
  const int good = Submit({}, "true");
  const int bad = Submit({}, "exit 5");
  const Answer both = Ask({"wait", std::to_string(good), std::to_string(bad)});
  EXPECT_EQ(both.status, 5);
  EXPECT_THAT(both.out, HasSubstr(fmt::format("job {} completed\n", good)));
  EXPECT_EQ(Ask({"wait", std::to_string(good)}).status, 0);
  EXPECT_NE(Ask({"wait", "99"}).status, 0);
}

TEST_F(FirstHourTest, LogsOfAllAttemptsAndTheirEnd) {
  const std::string first = cluster_.Path("first");
  const int job = Submit({}, fmt::format("if [ -e {0} ]; then echo three; echo four; exit; fi; "
                                         "touch {0}; echo one; echo two; {1}",
                                         first, Until("never")));
  const std::string number = std::to_string(job);
  ASSERT_TRUE(cluster_.AwaitState(job, v1::RUNNING));
  while (Ask({"logs", number}).out != "one\ntwo\n") {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(Ask({"requeue", number}).status, 0);
  EXPECT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
  EXPECT_EQ(Ask({"logs", number}).out, "three\nfour\n");
  EXPECT_EQ(Ask({"logs", "--all", number}).out, "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(Ask({"logs", "--tail", "1", number}).out, "four\n");
  EXPECT_EQ(Ask({"logs", "--tail", "3", "--all", number}).out, "two\nthree\nfour\n");
}

}  // namespace
}  // namespace trainyard
