// SPDX-License-Identifier: Apache-2.0
// salloc, and srun outside of a job, on a cluster of this machine, with the real program: what they
// say, what runs where, and that nothing of it stays. Messages and exit statuses are those of a
// real Slurm 22.05.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using testing::HasSubstr;
using testing::Not;

class SlurmAllocationTest : public testing::Test {
 protected:
  SlurmAllocationTest() {
    cluster_.Start();
    std::filesystem::create_directory(cluster_.Path("bin"));
    for (const char* const tool : {"salloc", "sbatch", "scancel", "squeue", "srun"}) {
      std::filesystem::create_symlink(TRAINYARD_PROGRAM,
                                      fmt::format("{}/{}", cluster_.Path("bin"), tool));
    }
    setenv("TRAINYARD_CONTROLLER", cluster_.address().c_str(), 1);
  }
  ~SlurmAllocationTest() override {
    EXPECT_TRUE(AwaitNone("salloc") && AwaitNone("srun")) << "nothing is given back any more";
    unsetenv("TRAINYARD_CONTROLLER");
  }
  SlurmAllocationTest(const SlurmAllocationTest&) = delete;
  SlurmAllocationTest& operator=(const SlurmAllocationTest&) = delete;

  // A line of a shell that finds these commands first, in a folder of its own.
  [[nodiscard]] Program Begin(const std::string& line, const std::string& name) const {
    const std::string folder = cluster_.Path("work");
    std::filesystem::create_directory(folder);
    return Program(
        {"-c", fmt::format("cd {}; PATH={}:$PATH; {}", folder, cluster_.Path("bin"), line)},
        cluster_.Path(name + ".out"), cluster_.Path(name + ".err"), "/bin/sh");
  }
  [[nodiscard]] Answer Shell(const std::string& line) const {
    const std::string name = fmt::format("line-{}", ++lines_);
    Program shell = Begin(line, name);
    const std::optional<int> status = shell.Wait(std::chrono::minutes(5));
    return {.status = status.value_or(-1), .out = Out(name), .err = Err(name)};
  }
  [[nodiscard]] std::string Out(const std::string& name) const {
    return ReadAll(cluster_.Path(name + ".out"));
  }
  [[nodiscard]] std::string Err(const std::string& name) const {
    return ReadAll(cluster_.Path(name + ".err"));
  }
  [[nodiscard]] bool AwaitErr(const std::string& name, const std::string& part) const {
    return Eventually([&] { return Err(name).find(part) != std::string::npos; });
  }
  // No process of the cluster's jobs has these words.
  [[nodiscard]] bool AwaitNone(const std::string& words) const {
    return Eventually([&] {
      const auto processes = cluster_.Processes();
      return std::none_of(processes.begin(), processes.end(),
                          [&](const auto& process) { return process.second.starts_with(words); });
    });
  }

  LiveCluster cluster_;
  mutable int lines_ = 0;
};

TEST_F(SlurmAllocationTest, SrunOutsideOfAJobRunsItsTasksOnNodesOfItsOwn) {
  const Answer ran = Shell(
      "echo to all | srun -N2 --gpus-per-node=1 -l sh -c 'cat; echo $SLURM_PROCID on "
      "$SLURMD_NODENAME $SLURM_STEP_NODELIST; echo aside >&2; exit 3' | sort");
  EXPECT_EQ(ran.out, "0: 0 on n0 n[0-1]\n0: to all\n1: 1 on n1 n[0-1]\n1: to all\n");
  EXPECT_THAT(ran.err, HasSubstr("0: aside\n"));
  EXPECT_THAT(ran.err, HasSubstr("n1: task 1: Exited with exit code 3\n"));
  EXPECT_TRUE(cluster_.AwaitState(1, v1::COMPLETED)) << "nothing holds its nodes";
  EXPECT_EQ(Shell("srun -n2 sh -c 'exit $SLURM_PROCID'").status, 1);
  EXPECT_EQ(Shell("srun no-such-program").status, 2);
  EXPECT_EQ(Shell("srun -o out-%t.txt pwd; cat out-0.txt").out, cluster_.Path("work") + "\n");
  for (int job = 2; job <= 4; ++job) {
    EXPECT_TRUE(cluster_.AwaitState(job, v1::COMPLETED));
  }
  EXPECT_EQ(Shell("srun --nonsense true").status, 255);
  EXPECT_EQ(Shell("srun").err, "srun: fatal: No command given to execute.\n");
}

TEST_F(SlurmAllocationTest, SallocHoldsNodesForACommandHere) {
  const Answer ran = Shell(
      "salloc -N2 --ntasks-per-node=1 --gpus-per-node=1 sh -c 'echo $SLURM_JOB_ID "
      "$SLURM_JOB_NODELIST $SLURM_JOB_NUM_NODES $SLURM_JOB_NAME $SLURM_TASKS_PER_NODE "
      "${SLURM_PROCID-none}; srun -l sh -c \"echo step \\$SLURM_STEP_ID on \\$SLURMD_NODENAME; "
      "pwd\""
      " | sort; srun sh -c \"exit 4\"'");
  EXPECT_EQ(ran.out, fmt::format("1 n[0-1] 2 interactive 1(x2) none\n0: {0}\n0: step 0 on n0\n"
                                 "1: {0}\n1: step 0 on n1\n",
                                 cluster_.Path("work")));
  EXPECT_EQ(ran.status, 4);
  EXPECT_THAT(ran.err, HasSubstr("salloc: Granted job allocation 1\n"));
  EXPECT_THAT(ran.err, HasSubstr("salloc: Relinquishing job allocation 1\n"));
  EXPECT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  const Answer missing = Shell("salloc no-such-program");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("Unable to find command \"no-such-program\"\n"));
  EXPECT_TRUE(cluster_.AwaitState(2, v1::COMPLETED));
  EXPECT_EQ(Shell("salloc --no-shell").err, "salloc: Granted job allocation 3\n");
  EXPECT_EQ(Shell("srun --jobid=3 sh -c 'echo $SLURM_JOB_ID'; scancel 3").out, "3\n");
}

TEST_F(SlurmAllocationTest, WhatWaitsIsGivenUpByASignal) {
  ASSERT_EQ(Shell("salloc -N2 --gpus-per-node=2 --no-shell").status, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string name = fmt::format("waits-{}", signal);
    Program waits = Begin("exec salloc --gpus=2 echo yes", name);
    ASSERT_TRUE(AwaitErr(name, "queued and waiting for resources\n"));
    waits.Signal(signal);
    EXPECT_EQ(waits.Wait(std::chrono::minutes(5)), 1);
    EXPECT_THAT(Err(name), HasSubstr("salloc: Job aborted due to signal\nsalloc: Job allocation"));
    EXPECT_EQ(Out(name), "");
  }
  for (int job = 2; job <= 4; ++job) {
    EXPECT_TRUE(cluster_.AwaitState(job, v1::CANCELLED));
  }
  Program waits = Begin("exec srun --gpus=2 echo yes", "cancelled");
  ASSERT_TRUE(AwaitErr("cancelled", "srun: job 5 queued and waiting for resources\n"));
  EXPECT_EQ(Shell("scancel 5").status, 0);
  EXPECT_EQ(waits.Wait(std::chrono::minutes(5)), 1);
  EXPECT_THAT(Err("cancelled"), HasSubstr("srun: Job has been cancelled\n"));
  Program next = Begin("exec srun --gpus=2 echo yes", "next");
  ASSERT_TRUE(AwaitErr("next", "srun: job 6 queued and waiting for resources\n"));
  EXPECT_EQ(Shell("scancel 1").status, 0);
  EXPECT_EQ(next.Wait(std::chrono::minutes(5)), 0);
  EXPECT_EQ(Out("next"), "yes\n");
  EXPECT_TRUE(cluster_.AwaitState(6, v1::COMPLETED));
}

TEST_F(SlurmAllocationTest, NothingIsHeldForWhatHasBeenKilled) {
  int job = 0;
  for (const char* const command : {"salloc", "srun"}) {
    Program killed =
        Begin(fmt::format("exec {} -N2 sh -c 'echo up; while kill -0 $PPID; do sleep 0.1; done'",
                          command),
              command);
    ASSERT_TRUE(Eventually([&] { return Out(command).find("up") != std::string::npos; }));
    killed.Signal(SIGKILL);
    EXPECT_TRUE(cluster_.AwaitState(++job, v1::COMPLETED));
  }
  EXPECT_TRUE(AwaitNone("sleep infinity"));
}

TEST_F(SlurmAllocationTest, ACommandIsToldThatItsNodesAreLost) {
  Program waits = Begin(
      "exec salloc -K sh -c 'trap \"echo told; exit 7\" TERM; echo up; while :; do sleep 0.05; "
      "done'",
      "lost");
  ASSERT_TRUE(Eventually([&] { return Out("lost") == "up\n"; }));
  EXPECT_EQ(Shell("scancel 1").status, 0);
  EXPECT_EQ(waits.Wait(std::chrono::minutes(5)), 7);
  EXPECT_EQ(Out("lost"), "up\ntold\n");
  EXPECT_THAT(Err("lost"), HasSubstr("salloc: Job allocation 1 has been revoked.\n"));
  EXPECT_THAT(Err("lost"), Not(HasSubstr("Relinquishing")));
}

TEST_F(SlurmAllocationTest, SignalsOfSrunReachItsTasks) {
  Program step = Begin(
      "exec srun -N2 -l bash -c 'trap \"echo got it; exit 5\" USR1; echo up; while :; do sleep "
      "0.05; done'",
      "signal");
  ASSERT_TRUE(Eventually([&] {
    const std::string out = Out("signal");
    return out.find("0: up") != std::string::npos && out.find("1: up") != std::string::npos;
  }));
  step.Signal(SIGUSR1);
  EXPECT_EQ(step.Wait(std::chrono::minutes(5)), 5);
  EXPECT_THAT(Out("signal"), HasSubstr("0: got it\n"));
  EXPECT_THAT(Out("signal"), HasSubstr("1: got it\n"));
  EXPECT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
}

TEST_F(SlurmAllocationTest, TasksHaveTheVariablesOfTheShellInWhichSrunIsCalled) {
  const Answer ran = Shell(
      "mkdir own; printf '#!/bin/sh\\necho found' > own/own-program; chmod +x own/own-program; "
      "export GONE=1 KEPT=first; salloc sh -c '"
      "export KEPT=later; unset GONE; MORE=one srun sh -c \"echo \\$KEPT \\$MORE \\${GONE-gone} "
      "\\$SLURM_JOB_ID \\$SLURM_PROCID\"; "
      "srun --export=NONE sh -c \"echo \\${KEPT-none}\"; "
      "srun --export=KEPT,NEW=x sh -c \"echo \\$KEPT \\$NEW\"; "
      "PATH=$PWD/own:$PATH srun own-program'");
  EXPECT_EQ(ran.out, "later one gone 1 0\nnone\nlater x\nfound\n") << ran.err;
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
}

TEST_F(SlurmAllocationTest, TheFirstInterruptTellsOfTheTasksAndTheNextOneSoonAfterItEndsThem) {
  Program step = Begin(
      "exec srun -n2 sh -c 'trap \"echo interrupted; exit 6\" INT; trap \"echo told; exit 5\" "
      "USR1; "
      "echo up; while :; do sleep 0.05; done'",
      "once");
  ASSERT_TRUE(Eventually([&] { return Out("once") == "up\nup\n"; }));
  step.Signal(SIGINT);
  ASSERT_TRUE(AwaitErr("once",
                       "srun: interrupt (one more within 1 sec to abort)\n"
                       "srun: StepId=1.0 tasks 0-1: running\n"));
  step.Signal(SIGUSR1);
  EXPECT_EQ(step.Wait(std::chrono::minutes(5)), 5);
  EXPECT_EQ(Out("once"), "up\nup\ntold\ntold\n") << "the tasks have not got it";

  Program twice = Begin("exec srun -n2 sh -c 'echo up; exec sleep infinity'", "twice");
  ASSERT_TRUE(Eventually([&] { return Out("twice") == "up\nup\n"; }));
  ASSERT_TRUE(Eventually([&] {  // on a busy machine two of them may be more than a second apart
    twice.Signal(SIGINT);
    return Err("twice").find(
               "srun: sending Ctrl-C to StepId=2.0\nsrun: forcing job termination\n"
               "srun: Job step aborted: Waiting up to 32 seconds for job step to "
               "finish.\n") != std::string::npos;
  }));
  EXPECT_EQ(twice.Wait(std::chrono::minutes(5)), 130);

  Program at_once = Begin(
      "exec srun -X sh -c 'trap \"exit 6\" INT; echo up; while :; do sleep 0.05; done'", "at-once");
  ASSERT_TRUE(Eventually([&] { return Out("at-once") == "up\n"; }));
  at_once.Signal(SIGINT);
  EXPECT_EQ(at_once.Wait(std::chrono::minutes(5)), 6);
}

}  // namespace
}  // namespace trainyard
