// SPDX-License-Identifier: Apache-2.0
// Steps that srun starts on several nodes of a cluster of this machine, with the real program:
// where their tasks run, what becomes of output, signals and exit codes, and what is left when
// something dies.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kTwoNodes = "#SBATCH -N2 --ntasks-per-node=2 --gpus-per-node=2 -o out.txt\n";

class SlurmStepTest : public testing::Test {
 protected:
  SlurmStepTest() {
    std::filesystem::create_directory(cluster_.Path("out"));
    cluster_.Start();
  }

  // A script of bash that runs in a folder of its own.
  void Submit(const std::string& text) const {
    const std::string path = cluster_.Path("s.sh");
    std::ofstream(path) << "#!/bin/bash\n#SBATCH -D " << cluster_.Path("out") << "\n" << text;
    const Answer submitted = cluster_.Ask({"submit", path});
    EXPECT_EQ(submitted.err, "");
    ASSERT_EQ(submitted.status, 0);
  }
  [[nodiscard]] std::string ReadOut(const std::string& name = "out.txt") const {
    return ReadAll(cluster_.Path("out/" + name));
  }
  [[nodiscard]] bool AwaitOut(const std::string& part) const {
    return Eventually([&] { return ReadOut().find(part) != std::string::npos; });
  }
  // One step of two tasks, one on each node, that says when it is up and then does nothing.
  void SubmitSleepers() const {
    Submit(
        "#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=1 -o out.txt\n"
        "srun -l sh -c 'echo up; echo $$ >pid-$SLURM_PROCID; sleep 10000 & wait'\n");
    ASSERT_TRUE(AwaitOut("0: up"));
    ASSERT_TRUE(AwaitOut("1: up"));
  }
  [[nodiscard]] bool AwaitNoSleepers() const {
    return Eventually([this] {
      const auto processes = cluster_.Processes();
      return std::none_of(processes.begin(), processes.end(), [](const auto& process) {
        return process.second.starts_with("sleep 10000");
      });
    });
  }
  // The process of the cluster whose command line has that in it.
  [[nodiscard]] pid_t Find(const std::string& part) const {
    for (const auto& [pid, command] : cluster_.Processes()) {
      if (command.find(part) != std::string::npos) {
        return pid;
      }
    }
    ADD_FAILURE() << "no process " << part;
    return -1;
  }

  LiveCluster cluster_;
};

TEST_F(SlurmStepTest, TasksRunOnTheNodesInTheOrderOfTheirRanks) {
  Submit(fmt::format(
      "{}srun -l sh -c 'echo $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME $SLURM_GTIDS "
      "$SLURM_STEP_NODELIST $SLURM_STEP_TASKS_PER_NODE $CUDA_VISIBLE_DEVICES' | sort\n"
      "srun --gpus-per-task=1 sh -c 'echo $SLURMD_NODENAME gpu $CUDA_VISIBLE_DEVICES' | sort\n"
      "srun -N1 -n1 -w n1 sh -c 'echo one on $SLURMD_NODENAME of $SLURM_NTASKS'\n"
      "echo to all | srun --ntasks=$SLURM_NNODES cat\n"
      "srun -n4 -m cyclic -o '%t.txt' sh -c 'echo $SLURMD_NODENAME'; cat [0-3].txt\n"
      "for i in 1 2; do srun -N1 -n1 --exact --gpus-per-task=2 sh -c 'echo side by side "
      "$SLURMD_NODENAME; sleep 0.5' & done | sort; wait\n",
      kTwoNodes));
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  EXPECT_EQ(ReadOut(),
            "0: 0 0 n0 0,1 n[0-1] 2(x2) 0,1\n1: 1 0 n0 0,1 n[0-1] 2(x2) 0,1\n"
            "2: 0 1 n1 2,3 n[0-1] 2(x2) 0,1\n3: 1 1 n1 2,3 n[0-1] 2(x2) 0,1\n"
            "n0 gpu 0\nn0 gpu 1\nn1 gpu 0\nn1 gpu 1\none on n1 of 1\nto all\nto all\n"
            "n0\nn1\nn0\nn1\nside by side n0\nside by side n1\n");
}

TEST_F(SlurmStepTest, TasksOfOneStepMayRunSeveralPrograms) {
  Submit(std::string(kTwoNodes) +
         "printf '%s\\n' '0,3 printenv SLURMD_NODENAME' '# the others' '* echo rest %t %o' >p\n"
         "srun -l --multi-prog p | sort\n"
         "echo '0 true' >p; srun --multi-prog p; echo status $?\n");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  EXPECT_THAT(ReadOut(), HasSubstr("0: n0\n1: rest 1 1\n2: rest 2 2\n3: n1\n"));
  EXPECT_THAT(ReadOut(), HasSubstr("No executable program specified for this task: 1"));
  EXPECT_THAT(ReadOut(), HasSubstr("status 1\n"));
}

TEST_F(SlurmStepTest, AStepEndsAsItsTasksOnAllNodesDo) {
  Submit(fmt::format(
      "{}srun sh -c 'exit $SLURM_PROCID'; echo status $?\n"
      "srun no-such-program; echo status $?\n"
      "srun -K sh -c 'if [ $SLURM_PROCID = 1 ]; then exit 4; else exec sleep 1000; fi'\n"
      "echo status $?\nsrun -n5 true; echo status $?\n"
      "head -c 3000000 /dev/zero | srun -n2 wc -c\n"
      "srun -n2 head -c 3000000 /dev/zero | wc -c\n",
      kTwoNodes));
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  const std::string text = ReadOut();
  for (const char* const part :
       {"n1: task 3: Exited with exit code 3\n", "status 3\n",
        "execve(): no-such-program: No such file or directory\n", "status 2\n",
        "n0: task 0: Terminated\n", "n1: task", "3: Terminated\n", "status 143\n",
        "More processors requested than permitted\nstatus 1\n", "3000000\n3000000\n6000000\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(SlurmStepTest, SignalsOfTheScriptReachAllTasks) {
  Submit(
      fmt::format("{}srun -l bash -c 'trap \"echo got it; exit 5\" USR1; echo up; while :; do "
                  "sleep 0.05; done' &\n"
                  "until [ $(grep -c up out.txt) = 4 ]; do sleep 0.05; done\n"
                  "kill -USR1 $!; wait $!; echo status $?\n",
                  kTwoNodes));
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(ReadOut(), HasSubstr(fmt::format("{}: got it\n", rank)));
  }
  EXPECT_THAT(ReadOut(), HasSubstr("status 5\n"));
}

// The script itself ends by it at once.
TEST_F(SlurmStepTest, TasksOnAllNodesHaveTheTimeOfTheNotice) {
  Submit(
      "#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=1 -o out.txt\n"
      "srun -l bash -c 'trap \"echo saving; sleep 1; echo saved; exit 0\" TERM; echo up; while "
      ":; do sleep 0.05; done'\n");
  ASSERT_TRUE(AwaitOut("0: up"));
  ASSERT_TRUE(AwaitOut("1: up"));
  EXPECT_EQ(cluster_.Ask({"cancel", "1"}).status, 0);
  ASSERT_TRUE(cluster_.AwaitState(1, v1::CANCELLED));
  EXPECT_TRUE(AwaitOut("0: saved")) << ReadOut();
  EXPECT_TRUE(AwaitOut("1: saved")) << ReadOut();
  EXPECT_THAT(ReadOut(), Not(HasSubstr("srun: error: node")));
}

TEST_F(SlurmStepTest, AScriptOfAnyShellFindsSrunWhateverItsPath) {
  Submit(
      "#SBATCH -G1 -o out.txt\nexport PATH=/usr/bin:/bin\nsrun echo step $SLURM_JOB_ID\n"
      "scontrol show hostnames\n");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  EXPECT_THAT(ReadOut(), HasSubstr("step 1\nn"));
}

TEST_F(SlurmStepTest, NothingIsLeftWhenSrunOrTheScriptIsKilled) {
  SubmitSleepers();
  kill(Find("srun -l"), SIGKILL);
  ASSERT_TRUE(cluster_.AwaitState(1, v1::FAILED));
  EXPECT_TRUE(AwaitNoSleepers());
  std::filesystem::remove(cluster_.Path("out/out.txt"));
  SubmitSleepers();
  kill(Find("attempts/2-1/script"), SIGKILL);
  ASSERT_TRUE(cluster_.AwaitState(2, v1::FAILED));
  EXPECT_TRUE(AwaitNoSleepers());
}

// Of the other node: the job waits for another one, as after the loss of any node.
TEST_F(SlurmStepTest, NothingIsLeftWhenASupervisorIsKilled) {
  SubmitSleepers();
  kill(Find("supervise " + cluster_.Path("nodes/n1/attempts/1-1")), SIGKILL);
  EXPECT_TRUE(AwaitNoSleepers());
  EXPECT_TRUE(cluster_.AwaitState(1, v1::WAITING));
  EXPECT_EQ(cluster_.Ask({"cancel", "1"}).status, 0);
}

// As under Slurm: SLURM_RESTART_COUNT is unset at first, and the files are begun anew if they say
// so.
TEST_F(SlurmStepTest, AScriptRequeuesItself) {
  setenv("TRAINYARD_CONTROLLER", cluster_.address().c_str(), 1);
  int job = 0;
  for (const char* const mode : {"--open-mode=append", "--open-mode=truncate"}) {
    std::filesystem::remove(cluster_.Path("out/out.txt"));
    Submit(fmt::format(
        "{}#SBATCH {}\necho run ${{SLURM_RESTART_COUNT-none}}\nsrun -n2 -N2 echo step\n"
        "if [ -z \"$SLURM_RESTART_COUNT\" ]; then scontrol requeue $SLURM_JOB_ID || exit; "
        "srun sleep 10000; fi\nexit 0\n",
        kTwoNodes, mode));
    ASSERT_TRUE(cluster_.AwaitState(++job, v1::COMPLETED));
    const std::string second = "run 1\nstep\nstep\n";
    EXPECT_TRUE(ReadOut().ends_with(second)) << ReadOut();
    if (job == 1) {
      EXPECT_TRUE(ReadOut().starts_with("run none\nstep\nstep\n")) << ReadOut();
    } else {
      EXPECT_EQ(ReadOut(), second);
    }
    EXPECT_TRUE(AwaitNoSleepers());
  }
  unsetenv("TRAINYARD_CONTROLLER");
}

// Steps need neither.
TEST_F(SlurmStepTest, StepsStartWhileControllerAndAgentsAreAway) {
  Submit(
      fmt::format("{}while ! [ -e go ]; do sleep 0.05; done\nsrun -N2 -n2 echo task\n"
                  "echo over\nwhile ! [ -e end ]; do sleep 0.05; done\n",
                  kTwoNodes));
  ASSERT_TRUE(cluster_.AwaitState(1, v1::RUNNING));
  cluster_.KillController();
  cluster_.KillAgent(0);
  cluster_.KillAgent(1);
  std::ofstream(cluster_.Path("out/go")) << '\n';
  EXPECT_TRUE(AwaitOut("task\ntask\nover\n"));
  cluster_.Start();
  std::ofstream(cluster_.Path("out/end")) << '\n';
  EXPECT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
}

}  // namespace
}  // namespace trainyard
