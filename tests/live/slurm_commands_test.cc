// SPDX-License-Identifier: Apache-2.0
// The program by the names of Slurm's commands, on a cluster of this machine. The tables are those
// that a real Slurm 22.05 prints of the same jobs on the same nodes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr const char* kQueueHeading =
    "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n";

class SlurmCommandsTest : public testing::Test {
 protected:
  SlurmCommandsTest() : cluster_({.nodes = 2, .gpus = 4}) {
    cluster_.Start();
    std::filesystem::create_directory(cluster_.Path("bin"));
    for (const char* const tool :
         {"sacct", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "sstat"}) {
      std::filesystem::create_symlink(TRAINYARD_PROGRAM,
                                      fmt::format("{}/{}", cluster_.Path("bin"), tool));
    }
    setenv("TRAINYARD_CONTROLLER", cluster_.address().c_str(), 1);
  }
  ~SlurmCommandsTest() override { unsetenv("TRAINYARD_CONTROLLER"); }
  SlurmCommandsTest(const SlurmCommandsTest&) = delete;
  SlurmCommandsTest& operator=(const SlurmCommandsTest&) = delete;

  // A line of a shell that finds these commands first.
  [[nodiscard]] Answer Shell(const std::string& line) const {
    const std::string out = cluster_.Path(fmt::format("{}.out", ++lines_));
    const std::string err = cluster_.Path(fmt::format("{}.err", lines_));
    Program shell({"-c", fmt::format("cd {}; PATH={}:$PATH; {}", cluster_.Path(""),
                                     cluster_.Path("bin"), line)},
                  out, err, "/bin/sh");
    const std::optional<int> status = shell.Wait(std::chrono::minutes(5));
    return {.status = status.value_or(-1), .out = ReadAll(out), .err = ReadAll(err)};
  }
  [[nodiscard]] std::string Says(const std::string& line) const { return Shell(line).out; }

  LiveCluster cluster_;
  mutable int lines_ = 0;
};

TEST_F(SlurmCommandsTest, JobsAreSubmittedListedHeldAndCancelledByTheirNames) {
  EXPECT_EQ(Says("sbatch -J long-name-of-job --gres=gpu:4 -t 10 -A proj --wrap 'sleep 600'"),
            "Submitted batch job 1\n");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::RUNNING));
  EXPECT_EQ(Says("sbatch --parsable -N2 --gres=gpu:4 --wrap 'sleep 600'"), "2\n");
  EXPECT_EQ(Says("sbatch -d afterok:1 --gpus=1 --wrap true"), "Submitted batch job 3\n");
  EXPECT_EQ(Says("sbatch -H --gpus=1 --array=3-5 --wrap true"), "Submitted batch job 4\n");
  EXPECT_EQ(Says("squeue -o '%.10i %.9P %.8j %.2t %.6D %R'"),
            "     JOBID PARTITION     NAME ST  NODES NODELIST(REASON)\n"
            "         2       all     wrap PD      2 (Resources)\n"
            "         3       all     wrap PD      1 (Dependency)\n"
            "   4_[3-5]       all     wrap PD      1 (JobHeldUser)\n"
            "         1       all long-nam  R      1 n0\n");
  EXPECT_THAT(Says("squeue"), testing::StartsWith(kQueueHeading));
  EXPECT_EQ(Says("squeue -h -j 1 -o '%A|%a|%b|%l|%T|%r|%m'"),
            "1|proj|gres:gpu:4|10:00|RUNNING|None|0\n");
  EXPECT_EQ(Says("squeue -h --me -t PD -O JobID:8,State:12,Name:.6"),
            "2       PENDING       wrap\n3       PENDING       wrap\n4       PENDING       wrap\n");
  EXPECT_EQ(Says("squeue -hr -t PD -o %i"), "2\n3\n4_3\n4_4\n4_5\n");
  EXPECT_THAT(Says("scontrol show job 1"),
              AllOf(HasSubstr("JobId=1 JobName=long-name-of-job\n   UserId="),
                    HasSubstr("\n   JobState=RUNNING Reason=None Dependency=(null)\n"),
                    HasSubstr(" TimeLimit=00:10:00 "), HasSubstr("\n   NodeList=n0\n"),
                    HasSubstr(" Account=proj QOS=(null)\n")));
  EXPECT_EQ(Shell("scontrol update JobId=2 TimeLimit=30 Name=other").status, 0);
  EXPECT_EQ(Says("squeue -h -j 2 -t all -o '%j %l'"), "other 30:00\n");
  EXPECT_EQ(Shell("scontrol release 4 && scancel 4_4").status, 0);
  EXPECT_EQ(Says("squeue -h -n wrap -o '%i %t' -S i"), "3 PD\n4_[3,5] PD\n");
  EXPECT_EQ(Shell("scancel -t PENDING -n wrap").status, 0);
  EXPECT_EQ(Says("squeue -h -o %i"), "2\n1\n");
  EXPECT_EQ(Shell("scancel --me").status, 0);
  ASSERT_TRUE(cluster_.AwaitState(1, v1::CANCELLED));
  ASSERT_TRUE(cluster_.AwaitState(2, v1::CANCELLED));
  EXPECT_EQ(Says("squeue"), kQueueHeading);
  EXPECT_TRUE(Eventually(  // the last report of its worker may come later
      [this] { return Says("sacct -n -P -X -j 1 -o exitcode") == "0:15\n"; }, 60));
  EXPECT_EQ(Says("sacct -n -P -X -j 1,2,4_4 -o jobid,jobname,timelimit,alloctres,exitcode"),
            "1|long-name-of-job|00:10:00|billing=1,cpu=1,gres/gpu=4,node=1|0:15\n"
            "2|other|00:30:00||0:0\n4_4|wrap|UNLIMITED||0:0\n");
}

TEST_F(SlurmCommandsTest, AScriptOfStandardInputIsWaitedFor) {
  const Answer answer = Shell(
      "printf '#!/bin/sh\\n#SBATCH -o of-%%j.txt\\necho $SLURM_JOB_NAME; exit 7\\n' | sbatch -W "
      "-J "
      "from-pipe; echo $?");
  EXPECT_EQ(answer.out, "Submitted batch job 1\n7\n");
  EXPECT_EQ(ReadAll(cluster_.Path("of-1.txt")), "from-pipe\n");
  EXPECT_EQ(Says("sacct -j 1"),
            "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
            "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
            "1             from-pipe        all                     1     FAILED      7:0 \n"
            "1.batch           batch                                1     FAILED      7:0 \n");
  std::ofstream(cluster_.Path("s.sh"))
      << "#!/bin/sh\n#SBATCH -J lines -t 5 -o %x.txt\necho $# $2\n";
  EXPECT_EQ(Says("sbatch -t 6 s.sh a -J; squeue -h -j 2 -t all -o '%j %l'"),
            "Submitted batch job 2\nlines 6:00\n");
  ASSERT_TRUE(cluster_.AwaitState(2, v1::COMPLETED));
  EXPECT_EQ(ReadAll(cluster_.Path("lines.txt")), "2 -J\n") << "what follows the script is its own";
}

TEST_F(SlurmCommandsTest, NodesAreListedDrainedAndResumed) {
  EXPECT_EQ(Says("sinfo"),
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "all*         up   infinite      2   idle n[0-1]\n");
  EXPECT_EQ(Says("sinfo -N -o '%n %G %t'"), "HOSTNAMES GRES STATE\nn0 gpu:4 idle\nn1 gpu:4 idle\n");
  EXPECT_EQ(Shell("scontrol update NodeName=n1 State=DRAIN Reason='bad fan'").status, 0);
  EXPECT_EQ(Says("sinfo"),
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "all*         up   infinite      1  drain n1\n"
            "all*         up   infinite      1   idle n0\n");
  EXPECT_EQ(Says("sinfo -N"),
            "NODELIST   NODES PARTITION STATE \n"
            "n0             1      all* idle  \n"
            "n1             1      all* drain \n");
  EXPECT_EQ(Says("sinfo -R -o '%20E %N'"),
            "REASON               NODELIST\nbad fan              n1\n");
  EXPECT_THAT(Says("scontrol -o show node n1"),
              AllOf(HasSubstr("NodeName=n1 "), HasSubstr(" State=IDLE+DRAIN "),
                    HasSubstr(" Gres=gpu:4 "), HasSubstr(" Reason=bad fan [")));
  EXPECT_EQ(Shell("scontrol update nodename=n1 state=resume").status, 0);
  EXPECT_EQ(Says("sinfo -h -t idle -o '%D %N'"), "2 n[0-1]\n");
  EXPECT_EQ(Says("scontrol show hostnames 'n[0-1],v0'"), "n0\nn1\nv0\n");
}

TEST_F(SlurmCommandsTest, AScriptSubmitsTheNextOne) {
  EXPECT_EQ(Says("sbatch --parsable -J first -o first.txt --wrap 'squeue -h -j $SLURM_JOB_ID -o "
                 "\"%i %T\"; "
                 "sbatch -d afterok:$SLURM_JOB_ID -J second -o second.txt --wrap \"echo done\"'"),
            "1\n");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::COMPLETED));
  EXPECT_EQ(ReadAll(cluster_.Path("first.txt")), "1 RUNNING\nSubmitted batch job 2\n");
  ASSERT_TRUE(cluster_.AwaitState(2, v1::COMPLETED));
  EXPECT_EQ(ReadAll(cluster_.Path("second.txt")), "done\n");
}

// Exit statuses and messages as they were seen of Slurm 22.05.
TEST_F(SlurmCommandsTest, MistakesAreToldAsSlurmTellsThem) {
  const auto expect = [this](const std::string& line, int status, const std::string& err) {
    const Answer answer = Shell(line);
    EXPECT_EQ(answer.status, status) << line;
    EXPECT_EQ(answer.err, err) << line;
  };
  expect("squeue --foo", 1,
         "squeue: unrecognized option '--foo'\nTry \"squeue --help\" for more information\n");
  expect("squeue -j abc", 1, "squeue: error: Invalid job id: abc\n");
  expect("squeue -j 99", 1, "slurm_load_jobs error: Invalid job id specified\n");
  expect("squeue -u no-such-user", 1, "squeue: error: Invalid user: no-such-user\n");
  expect("squeue -o %_", 1, "squeue: error: Invalid job format specification: _\n");
  expect("scancel", 1, "scancel: error: No job identification provided\n");
  expect("scancel abc", 1, "scancel: error: Invalid job id abc\n");
  expect("scontrol foo", 1, "invalid keyword: foo\n");
  expect("scontrol show", 1, "too few arguments for keyword:show\n");
  expect("scontrol show job 99", 1, "slurm_load_jobs error: Invalid job id specified\n");
  expect("scontrol show node zz", 1, "Node zz not found\n");
  expect("scontrol update job=1 foo=3", 1,
         "Update of this parameter is not supported: foo=3\nRequest aborted\n");
  expect("sbatch --foo s.sh", 255,
         "sbatch: unrecognized option '--foo'\nTry \"sbatch --help\" for more information\n");
  expect("sbatch no-such.sh", 1, "sbatch: error: Unable to open file no-such.sh\n");
  expect("sbatch </dev/null", 1, "sbatch: error: Batch script is empty!\n");
  expect("sacct -o nothing", 1, "sacct: error: Invalid field requested: \"nothing\"\n");
  expect("sinfo --yaml", 1,
         "sinfo: error: --yaml is not here: 'trainyard nodes --json' has the same\n");
  EXPECT_EQ(Shell("sbatch --gpus=99 --wrap true").status, 1);
}

TEST_F(SlurmCommandsTest, AJobThatIsNotRequeuedFailsWithItsNode) {
  ASSERT_EQ(Says("printf '#!/bin/sh\\n#SBATCH --no-requeue --gpus=1\\nsleep 600\\n' > job.sh; "
                 "sbatch job.sh"),
            "Submitted batch job 1\n");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::RUNNING));
  EXPECT_THAT(Says("scontrol show job 1"), HasSubstr(" Requeue=0 Restarts=0 "));
  for (const char* const verb : {"requeue", "requeuehold"}) {
    const Answer refused = Shell(fmt::format("scontrol {} 1", verb));
    EXPECT_EQ(refused.err, "Requested operation is presently disabled for job 1\n");
    EXPECT_EQ(refused.status, 1);
  }
  EXPECT_EQ(Says("sbatch --requeue --hold job.sh"), "Submitted batch job 2\n");
  EXPECT_THAT(Says("scontrol show job 2"), HasSubstr(" Requeue=1 ")) << "options go before lines";
  EXPECT_EQ(Shell("scontrol update nodename=n0 state=down reason=fan").status, 0);
  EXPECT_TRUE(cluster_.AwaitState(1, v1::FAILED));
  EXPECT_EQ(Says("sacct -X -n -P -j 1 -o state,reason"), "NODE_FAIL|NodeDown\n");
  EXPECT_EQ(Says("squeue -h -t NF -o '%i %t %T'"), "1 NF NODE_FAIL\n");
}

TEST_F(SlurmCommandsTest, ATestOnlySaysWhenAndWhereAJobWouldStart) {
  const auto test = [this](const std::string& options) {
    return Shell("sbatch --test-only " + options + " --wrap true");
  };
  const Answer now = test("-N2 -n2 --gres=gpu:1");
  EXPECT_THAT(now.err, MatchesRegex("sbatch: Job 1 to start at 20..-..-..T..:..:.. using [0-9]+ "
                                    "processors on nodes n\\[0-1\\] in partition all\n"));
  EXPECT_EQ(now.out, "");
  EXPECT_EQ(now.status, 0);
  EXPECT_EQ(test("-Q --parsable --gpus=1").err, "");
  EXPECT_EQ(test("--gpus=9").status, 1);
  EXPECT_EQ(Says("sbatch -t 10 -N2 --gres=gpu:4 --wrap 'exec sleep 600'"),
            "Submitted batch job 1\n")
      << "nothing was submitted";
  ASSERT_TRUE(cluster_.AwaitState(1, v1::RUNNING));
  const std::string end = Says("squeue -h -j 1 -o %e").substr(0, 16);  // by its time limit
  const std::string start = "sbatch: Job 2 to start at ";
  const Answer later = test("--gpus=1");
  ASSERT_THAT(later.err, StartsWith(start));
  EXPECT_GE(later.err.substr(start.size(), 16), end);
  const Answer held = test("--hold --gpus=1");
  EXPECT_THAT(held.err, StartsWith("allocation failure: "));
  EXPECT_EQ(held.status, 1);
  EXPECT_EQ(Shell("scancel 1").status, 0);
  EXPECT_TRUE(cluster_.AwaitState(1, v1::CANCELLED));
}

TEST_F(SlurmCommandsTest, StepsAreAccountedFor) {
  std::ofstream(cluster_.Path("steps.sh"))
      << "#!/bin/sh\n#SBATCH -n2 -o steps.txt\n"
         "srun true\n"
         "srun -n1 -J second sh -c 'exit 3'\n"
         "printf '1 echo %%t of %%o\\n* echo rest\\n' >p.conf\n"
         "srun --multi-prog p.conf more | sort\n"
         "srun -n1 sleep 600\n";
  ASSERT_EQ(Says("sbatch steps.sh"), "Submitted batch job 1\n");
  EXPECT_TRUE(Eventually([this] {
    return Says("squeue -h -s -o '%i %j %A %N'") == "1.3 sleep 1 n0\n1.batch batch 1 n0\n";
  })) << Says("squeue -s; cat steps.txt");
  EXPECT_EQ(Says("squeue -h --steps=1.3 -o %i"), "1.3\n");
  EXPECT_EQ(Says("squeue -h -s -j 1 -o %i -S -i"), "1.batch\n1.3\n");
  EXPECT_EQ(Says("sacct -n -P -j 1 -o jobid,jobname,ntasks,nnodes,state,exitcode"),
            "1|steps.sh||1|RUNNING|0:0\n1.batch|batch|1|1|RUNNING|0:0\n"
            "1.0|true|2|1|COMPLETED|0:0\n1.1|second|1|1|FAILED|3:0\n"
            "1.2|p.conf|2|1|COMPLETED|0:0\n1.3|sleep|1|1|RUNNING|0:0\n");
  EXPECT_THAT(ReadAll(cluster_.Path("steps.txt")), HasSubstr("1 of 0 more\nrest more\n"));
  EXPECT_EQ(Says("sacct -X -n -P -o jobid"), "1\n");
  EXPECT_EQ(Says("sacct -n -P -j 1.1,1.batch -o jobid,end"),
            "1.batch|Unknown\n1.1|" + Says("sacct -n -P -j 1.1 -o end"));
  EXPECT_EQ(Says("sstat -a -n -P -j 1 -o jobid,ntasks"), "1.batch|1\n1.3|1\n");
  EXPECT_THAT(Says("squeue --json"), HasSubstr("\"job_state\": \"RUNNING\""));
  EXPECT_THAT(Says("sacct --json"), HasSubstr("\"id\": \"batch\""));
  EXPECT_THAT(Says("sinfo --json"), HasSubstr("\"name\": \"n1\""));
  EXPECT_EQ(Shell("squeue -s 1").err,
            "squeue: error: Invalid job_step id: 1; expected JOB.STEP, such as 12.0\n");
  EXPECT_EQ(Shell("scancel 1").status, 0);
  ASSERT_TRUE(cluster_.AwaitState(1, v1::CANCELLED));
  EXPECT_TRUE(Eventually([this] {  // the last report comes later
    return Says("sacct -n -P -j 1.3,1.batch -o state,exitcode") ==
           "CANCELLED|0:15\nCANCELLED|0:15\n";
  })) << Says("sacct");
  EXPECT_EQ(Says("squeue -h -s"), "");
}

TEST_F(SlurmCommandsTest, WhatRunningJobsUseIsShown) {
  ASSERT_EQ(Says("sbatch --gpus=1 --wrap 'exec sleep 600'; sbatch --hold --gpus=1 --wrap true"),
            "Submitted batch job 1\nSubmitted batch job 2\n");
  ASSERT_TRUE(cluster_.AwaitState(1, v1::RUNNING));
  EXPECT_EQ(Says("sstat -n -P -o jobid,ntasks,nodelist,maxpages -j 1.batch"), "1.batch|1|n0|\n");
  EXPECT_EQ(Says("sstat -o JobID,NTasks%6 1"),
            "JobID        NTasks \n------------ ------ \n"
            "1.batch           1 \n");
  EXPECT_THAT(Says("sstat 1"), StartsWith("JobID         MaxVMSize  MaxVMSizeNode  MaxVMSizeTask "
                                          " AveVMSize     MaxRSS MaxRSSNode MaxRSSTask     AveRSS "
                                          "MaxPages MaxPagesNode   MaxPagesTask   AvePages "));
  EXPECT_TRUE(Eventually([this] {  // once its node has looked at it
    return !Says("sstat -n -P -o maxrss -j 1").starts_with("\n");
  }));
  const Answer waits = Shell("sstat -n -j 2");
  EXPECT_EQ(waits.err, "sstat: error: couldn't get steps for job 2\n");
  EXPECT_EQ(waits.status, 0);
  const Answer none = Shell("sstat");
  EXPECT_EQ(none.err, "sstat: error: You didn't give me any jobs to stat.\n");
  EXPECT_EQ(none.status, 1);
  const Answer wrong = Shell("sstat -o foo -j 1");
  EXPECT_EQ(wrong.err, "sstat: error: Invalid field requested: \"foo\"\n");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(Says("sstat -e"),
              StartsWith("AveCPU              AveCPUFreq          AveDiskRead         "
                         "AveDiskWrite       \nAvePages            AveRSS "));
  EXPECT_EQ(Shell("scancel 1").status, 0);
  EXPECT_TRUE(cluster_.AwaitState(1, v1::CANCELLED));
}

}  // namespace
}  // namespace trainyard
