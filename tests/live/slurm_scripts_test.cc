// SPDX-License-Identifier: Apache-2.0
// Scripts with #SBATCH lines on a cluster of this machine, with the real program: the files that
// they write to, the variables that they find, and what is said at their submission.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class SlurmScriptTest : public testing::Test {
 protected:
  SlurmScriptTest() { cluster_.Start(); }

  // A script that runs in a folder of its own. Jobs read it when they start.
  [[nodiscard]] std::string Script(const std::string& text) const {
    const std::string path = cluster_.Path(std::to_string(++scripts_) + "-s.sh");
    std::filesystem::create_directory(cluster_.Path("out"));
    std::ofstream(path) << "#!/bin/sh\n#SBATCH -D " << cluster_.Path("out") << "\n" << text;
    return path;
  }
  [[nodiscard]] Answer Submit(const std::string& text, const Words& options = {}) const {
    Words words{"submit", Script(text)};
    words.insert(words.end(), options.begin(), options.end());
    return cluster_.Ask(words);
  }
  // The files that the jobs have written.
  [[nodiscard]] std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cluster_.Path("out"))) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  [[nodiscard]] std::string ReadOut(const std::string& name) const {
    return ReadAll(cluster_.Path("out/" + name));
  }

  LiveCluster cluster_;
  mutable int scripts_ = 0;
};

TEST_F(SlurmScriptTest, NoTwoJobsWriteToOneFile) {
  const std::string lines = "#SBATCH -G1 -J nm\n#SBATCH -o %x_%j_.out -e %j%j_train.err\n";
  EXPECT_EQ(Submit(lines + "echo a; echo b >&2\n").err, "");
  EXPECT_EQ(Submit(lines + "echo c\n", {"--name", "other"}).err, "");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  ASSERT_TRUE(cluster_.AwaitState(2, v1::COMPLETED));
  EXPECT_THAT(Files(), ElementsAre("11_train.err", "22_train.err", "nm_1_.out", "other_2_.out"));
  EXPECT_EQ(ReadOut("nm_1_.out"), "a\n");
  EXPECT_EQ(ReadOut("11_train.err"), "b\n");
  EXPECT_EQ(Submit("#SBATCH -G1 -a 3-4 -o %A_%4a.out\necho $SLURM_ARRAY_TASK_ID\n").err, "");
  ASSERT_TRUE(cluster_.AwaitState(3, v1::COMPLETED));
  ASSERT_TRUE(cluster_.AwaitState(4, v1::COMPLETED));
  EXPECT_EQ(ReadOut("3_0003.out"), "3\n");
  EXPECT_EQ(ReadOut("3_0004.out"), "4\n");
}

TEST_F(SlurmScriptTest, TheLogNamesTheFileThatHasTheOutput) {
  const Answer submitted = Submit("#SBATCH -G1 -o slurm-%j.out\necho no such data >&2; exit 3\n");
  EXPECT_EQ(submitted.err, "");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::FAILED));
  EXPECT_EQ(ReadOut("slurm-1.out"), "no such data\n");
  EXPECT_EQ(cluster_.Ask({"logs", "1"}).out,
            fmt::format("trainyard: output and errors go to {}/slurm-1.out\n",
                        std::filesystem::path(cluster_.Path("out")).lexically_normal().string()));
  const Answer missing = Submit("#SBATCH -G1 -o no/such/%j.out\ntrue\n");
  EXPECT_THAT(missing.err,
              HasSubstr("s.sh:3: --output is 'no/such/%j.out', and there is no folder"));
  ASSERT_TRUE(cluster_.AwaitState(2, v1::FAILED));
  EXPECT_THAT(cluster_.Ask({"logs", "2"}).out, HasSubstr("no/such/2.out"));
}

TEST_F(SlurmScriptTest, VariablesOfSlurmAreSet) {
  EXPECT_EQ(Submit("#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=2 -a 1-9:4 -J sweep -o %a\n"
                   "for n in JOB_ID JOBID JOB_NAME ARRAY_JOB_ID ARRAY_TASK_ID ARRAY_TASK_MIN "
                   "ARRAY_TASK_MAX ARRAY_TASK_STEP ARRAY_TASK_COUNT LOCALID NTASKS NNODES "
                   "JOB_NUM_NODES TASKS_PER_NODE GPUS_ON_NODE GPUS_PER_NODE; do\n"
                   "  eval echo $n=\\$SLURM_$n; done >>$SLURM_ARRAY_TASK_ID-$SLURM_PROCID\n")
                .err,
            "");
  ASSERT_TRUE(cluster_.AwaitState(2, v1::COMPLETED));
  const std::string expected =
      "JOB_ID=2\nJOBID=2\nJOB_NAME=sweep\nARRAY_JOB_ID=1\nARRAY_TASK_ID=5\nARRAY_TASK_MIN=1\n"
      "ARRAY_TASK_MAX=9\nARRAY_TASK_STEP=4\nARRAY_TASK_COUNT=3\nLOCALID=0\nNTASKS=2\nNNODES=2\n"
      "JOB_NUM_NODES=2\nTASKS_PER_NODE=1(x2)\nGPUS_ON_NODE=2\nGPUS_PER_NODE=2\n";
  EXPECT_EQ(ReadOut("5-0"), expected);
  EXPECT_EQ(Files().count("5-1"), 0U) << "it runs once, on the first node";
  ASSERT_TRUE(cluster_.AwaitState(3, v1::COMPLETED));

  EXPECT_EQ(Submit("#SBATCH --ntasks=2 -o both\n"
                   "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS >$SLURM_PROCID\n"
                   "echo \"$SLURM_JOB_NODELIST $SLURM_SUBMIT_DIR\" >where\n")
                .err,
            "");
  ASSERT_TRUE(cluster_.AwaitState(4, v1::COMPLETED));
  EXPECT_EQ(ReadOut("0"), "0 0 0 2\n");
  EXPECT_THAT(ReadOut("where"), HasSubstr(" " + std::filesystem::current_path().string() + "\n"));
  EXPECT_THAT(ReadOut("where"), testing::StartsWith("n"));
  // A command has none of them.
  const int plain = cluster_.Submit({"--gpus", "1"}, {"sh", "-c", "env | grep -c SLURM_"});
  ASSERT_TRUE(cluster_.AwaitState(plain, v1::FAILED));
  EXPECT_EQ(cluster_.Ask({"logs", std::to_string(plain)}).out, "0\n") << "grep finds none";
}

// Though its file has changed, with the environment of its submission, once.
TEST_F(SlurmScriptTest, AScriptRunsAsItWasSubmitted) {
  ASSERT_EQ(cluster_.Ask({"drain", "n0"}).status, 0);
  ASSERT_EQ(cluster_.Ask({"drain", "n1"}).status, 0);
  setenv("SUBMITTED_WITH", "this value", 1);
  const std::string script = Script(
      "#SBATCH -N2 --gpus-per-node=1 --qos=high --hint=nomultithread\n"
      "echo \"$SUBMITTED_WITH $1\"; pwd; basename $0\n");
  const Answer submitted = cluster_.Ask({"submit", script, "--", "argument"});
  unsetenv("SUBMITTED_WITH");
  EXPECT_EQ(submitted.status, 0) << submitted.err;
  EXPECT_THAT(submitted.err, HasSubstr("without effect here: --hint ("));
  std::ofstream(script) << "#!/bin/sh\necho another\n";
  EXPECT_THAT(cluster_.Ask({"status", "1"}).out,
              HasSubstr("command:      /bin/sh '{the script}' argument\n"));
  EXPECT_THAT(cluster_.Ask({"status", "1"}).out, HasSubstr("qos:          high"));
  ASSERT_EQ(cluster_.Ask({"undrain", "n0", "n1"}).status, 0);
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  EXPECT_EQ(ReadOut("slurm-1.out"), "this value argument\n" + cluster_.Path("out") + "\nscript\n");
}

TEST_F(SlurmScriptTest, StepsRunTheirTasksBesideOneAnother) {
  EXPECT_EQ(
      Submit("#SBATCH --ntasks=2 --gres=gpu:2 -o steps.txt\n"
             "srun -l sh -c 'echo rank $SLURM_PROCID local $SLURM_LOCALID of $SLURM_NTASKS' | "
             "sort\n"
             "echo hello | srun cat\n"
             "srun -n1 sh -c 'echo step $SLURM_STEP_ID of $SLURM_JOB_NUM_NODES'\n"
             "srun --gpus-per-task=1 -l sh -c 'echo gpu $CUDA_VISIBLE_DEVICES' | sort\n"
             "(for i in 1 2; do srun -n1 --gpus=1 sh -c 'echo side $CUDA_VISIBLE_DEVICES; "
             "sleep 0.5' & done; wait) | sort\n"
             "X=0 srun -n1 --export=NONE,X=5 sh -c 'echo $X ${SUBMITTED-none}'\n"
             "echo rank ${RANK-none} of ${WORLD_SIZE-none}\n"
             "srun -o 'task-%t.txt' sh -c 'echo file of $SLURM_PROCID'\n"
             "scontrol show hostnames $SLURM_JOB_NODELIST | wc -l\n")
          .err,
      "");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  EXPECT_EQ(ReadOut("steps.txt"),
            "0: rank 0 local 0 of 2\n1: rank 1 local 1 of 2\nhello\nhello\nstep 2 of 1\n0: gpu "
            "0\n1: gpu 1\nside 0\nside 1\n5 none\nrank none of none\n1\n");
  EXPECT_EQ(ReadOut("task-0.txt"), "file of 0\n");
  EXPECT_EQ(ReadOut("task-1.txt"), "file of 1\n");
}

TEST_F(SlurmScriptTest, AStepEndsAsSrunDoes) {
  EXPECT_EQ(
      Submit("#SBATCH --ntasks=2 --gres=gpu:2 -o ends.txt\n"
             "srun sh -c 'exit $((SLURM_PROCID * 3))'; echo $?\n"
             "srun -n1 sh -c 'kill -9 $$'; echo $?\n"
             "srun -n1 no-such-program; echo $?\n"
             "srun -n 1000 true; echo $?\n"
             "srun -K sh -c 'if [ $SLURM_PROCID = 0 ]; then exit 5; else exec sleep 1000; fi'\n"
             "echo $?\n"
             "(sleep 0.3; kill -USR1 $$) & :\n"
             "exit 7\n")
          .err,
      "");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::FAILED));
  EXPECT_EQ(cluster_.StatusOf(1).exit_code(), 7);
  const std::string text = ReadOut("ends.txt");
  for (const char* const part :
       {"task 1: Exited with exit code 3\n3\n", "task 0: Killed\n137\n",
        "slurmstepd: error: execve(): no-such-program: No such file or directory\n",
        "Exited with exit code 2\n2\n",
        "Unable to create step for job 1: More processors requested than permitted\n1\n",
        "task 1: Terminated\n143\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(SlurmScriptTest, TheNoticeIsTheSignalThatIsAskedFor) {
  EXPECT_EQ(Submit("#SBATCH -G1 --signal=B:USR1@5 -o notice.txt\n"
                   "trap 'echo got USR1; exit 0' USR1\n"
                   "trap 'echo got TERM; exit 1' TERM\n"
                   "echo ready\nwhile :; do sleep 0.05; done\n")
                .err,
            "");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::RUNNING));
  ASSERT_TRUE(Eventually([this] { return ReadOut("notice.txt") == "ready\n"; }));
  EXPECT_EQ(cluster_.Ask({"cancel", "1"}).status, 0);
  EXPECT_TRUE(Eventually([this] { return ReadOut("notice.txt") == "ready\ngot USR1\n"; }))
      << ReadOut("notice.txt");
}

// Each worker runs the script, and none is a step of another's.
TEST_F(SlurmScriptTest, TheNoticeReachesTheScriptOfEachWorker) {
  EXPECT_EQ(Submit("#SBATCH -N1 -G2 --signal=B:USR1@5\n"
                   "trap 'echo USR1 >got-$RANK; exit 0' USR1\n"
                   "echo ready >got-$RANK\nwhile :; do sleep 0.05; done\n",
                   {"--workers", "per-gpu"})
                .err,
            "");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::RUNNING));
  const auto both_have = [this](const std::string& text) {
    return Eventually(
        [this, &text] { return ReadOut("got-0") == text && ReadOut("got-1") == text; });
  };
  ASSERT_TRUE(both_have("ready\n"));
  EXPECT_EQ(cluster_.Ask({"cancel", "1"}).status, 0);
  EXPECT_TRUE(both_have("USR1\n")) << ReadOut("got-0") << ReadOut("got-1");
}

// The nodes beside the first are held for as long as the script runs, and no longer.
TEST_F(SlurmScriptTest, TheOtherNodesAreHeldUntilTheScriptEnds) {
  EXPECT_EQ(Submit("#SBATCH -N2 --gpus-per-node=2\n"
                   "while ! [ -e go ]; do sleep 0.05; done\n")
                .err,
            "");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::RUNNING));
  EXPECT_EQ(Submit("#SBATCH -G1\ntrue\n").err, "");
  EXPECT_EQ(cluster_.StatusOf(2).state(), v1::WAITING);
  std::ofstream(cluster_.Path("out/go")) << '\n';
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  ASSERT_TRUE(cluster_.AwaitState(2, v1::COMPLETED));
  // One that is cancelled leaves no node behind either.
  EXPECT_EQ(Submit("#SBATCH -N2 --gpus-per-node=2\nsleep 1000\n").err, "");
  ASSERT_TRUE(cluster_.AwaitState(3, v1::RUNNING));
  EXPECT_EQ(cluster_.Ask({"cancel", "3"}).status, 0);
  EXPECT_EQ(Submit("#SBATCH -N2 --gpus-per-node=2\nexit 3\n").err, "");
  ASSERT_TRUE(cluster_.AwaitState(4, v1::FAILED));
  EXPECT_EQ(cluster_.StatusOf(4).exit_code(), 3);
}

TEST_F(SlurmScriptTest, WhatIsIgnoredAndWhatWouldNotRunIsSaidAtSubmission) {
  const Answer listed = Submit("#SBATCH --gres=gpu:k80:1,lscratch:2 --hold\ntrue\n");
  EXPECT_EQ(listed.status, 0);
  EXPECT_THAT(listed.err,
              HasSubstr("ignored, as no such resource is given out here: lscratch:2 ("));
  EXPECT_EQ(cluster_.StatusOf(1).request().gpus(), 1);
  EXPECT_THAT(cluster_.StatusOf(1).request().gpu_types(), ElementsAre("k80"));
  EXPECT_THAT(Submit("#SBATCH -G1\nsdiag\n").err, HasSubstr("the script calls sdiag ("));
  const Answer grace = Submit("#SBATCH -G1 --hold\ntrue\n", {"--grace", "10h"});
  EXPECT_THAT(grace.err, HasSubstr("grace 10h00m is more than the cluster gives"));
}

// It is a script of Slurm's by a line of sbatch's at its head, or as sbatch is called.
TEST_F(SlurmScriptTest, AScriptWithoutLinesIsACommandLikeOthers) {
  const std::string path = cluster_.Path("plain.sh");
  std::ofstream(path) << "#!/bin/sh\ntrue\n";
  const Answer plain = cluster_.Ask({"submit", path});
  EXPECT_EQ(plain.status, 2);
  EXPECT_THAT(plain.err, HasSubstr("--gpus is missing"));
  EXPECT_THAT(plain.err, HasSubstr("plain.sh' has no #SBATCH line at its head"));
  EXPECT_EQ(cluster_.Ask({"submit", "--gpus", "1", path}).status, 0);
}

TEST_F(SlurmScriptTest, WhatTheControllerRefusesIsToldWithItsLine) {
  const Answer many = Submit("#SBATCH --time=2\n#SBATCH --gres=gpu:99\n");
  EXPECT_NE(many.status, 0);
  EXPECT_THAT(many.err, HasSubstr("s.sh:4: it asks for 99 GPUs; the cluster has 4"));
  EXPECT_THAT(Submit("#SBATCH -G1\n#SBATCH -d afterok:77\n").err,
              HasSubstr("s.sh:4: there is no earlier job 77"));
  EXPECT_THAT(Submit("#SBATCH -G1\n", {"--gpus", "99"}).err, Not(HasSubstr("s.sh")));
}

TEST_F(SlurmScriptTest, ListsOfJobsAndNodesAreTaken) {
  EXPECT_EQ(
      cluster_.Ask({"submit", "--hold", "--gpus", "1", "--array", "0-9999,0-9999", "--", "true"})
          .out,
      "job 1 submitted, held\n");
  EXPECT_EQ(cluster_.Ask({"cancel", "1_[0-2,7],1_9"}).status, 0);
  for (const int job : {1, 2, 3, 8, 10}) {
    EXPECT_EQ(cluster_.StateOf(job), v1::CANCELLED) << job;
  }
  EXPECT_EQ(cluster_.StateOf(4), v1::WAITING);
  const Answer both = cluster_.Ask({"status", "4,5"});
  EXPECT_THAT(both.out, HasSubstr("1_3"));
  EXPECT_THAT(both.out, HasSubstr("1_4"));
  EXPECT_EQ(cluster_.Ask({"drain", "n[0-1]"}).status, 0);
  EXPECT_EQ(cluster_.Ask({"undrain", "n0,n1"}).status, 0);
  EXPECT_NE(cluster_.Ask({"drain", "n[0-9]"}).status, 0);
}

}  // namespace
}  // namespace trainyard
