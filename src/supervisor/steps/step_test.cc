// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step.h"

#include <gtest/gtest.h>

#include <map>

#include "supervisor/steps/slurm_tools.h"
#include "supervisor/steps/step_claims.h"
#include "support/scratch_folder.h"

namespace trainyard::supervisor {
namespace {

class StepOptionsTest : public testing::Test {
 protected:
  Result<StepOptions> Read(const std::vector<std::string>& words) {
    return StepOptions::Read(words, [this](const char* name) { return variables_[name]; });
  }
  int TasksOf(std::vector<std::string> words) {
    words.emplace_back("true");
    const Result<StepOptions> step = Read(words);
    EXPECT_TRUE(step.ok()) << step.error().message;
    return step.ok() ? step.value().tasks : 0;
  }
  std::string ErrorOf(const std::vector<std::string>& words) {
    const Result<StepOptions> step = Read(words);
    return step.ok() ? "" : step.error().message;
  }

  std::map<std::string, std::string> variables_{{"SLURM_JOB_ID", "7"},
                                                {"SLURM_NNODES", "1"},
                                                {"SLURM_NTASKS", "4"},
                                                {"SLURM_CPUS_ON_NODE", "8"},
                                                {"SLURMD_NODENAME", "n0"}};
};

TEST_F(StepOptionsTest, TasksAreTheJobsUnlessOptionsSayOthers) {
  EXPECT_EQ(TasksOf({}), 4);
  EXPECT_EQ(TasksOf({"-n2"}), 2);
  EXPECT_EQ(TasksOf({"--ntasks=3"}), 3);
  EXPECT_EQ(TasksOf({"-N1", "--ntasks-per-node=2"}), 2);
  EXPECT_EQ(TasksOf({"-n", "8"}), 8);
  EXPECT_EQ(TasksOf({"-w", "n0", "-n", "1"}), 1);
  variables_["SLURM_NTASKS"] = "";
  EXPECT_EQ(TasksOf({}), 1);
}

TEST_F(StepOptionsTest, WhatFollowsTheCommandIsItsOwn) {
  const StepOptions step = Read({"-l", "--mpi=none", "--cpu-bind", "none", "--exact", "-K1", "-o",
                                 "a-%t", "python3", "-n", "5"})
                               .value();
  EXPECT_EQ(step.command, (std::vector<std::string>{"python3", "-n", "5"}));
  EXPECT_TRUE(step.label);
  EXPECT_TRUE(step.kill_on_bad_exit);
  EXPECT_EQ(step.output, "a-%t");
  EXPECT_FALSE(Read({"--kill-on-bad-exit=0", "true"}).value().kill_on_bad_exit);
}

TEST_F(StepOptionsTest, WhatTheJobHasNotIsRefusedInSlurmsWords) {
  EXPECT_EQ(ErrorOf({"-n", "9", "true"}),
            "Unable to create step for job 7: More processors requested than permitted");
  EXPECT_EQ(ErrorOf({"-n", "9", "-O", "true"}), "");
  EXPECT_EQ(ErrorOf({"-N2", "true"}),
            "Unable to create step for job 7: Requested node configuration is not available");
  EXPECT_EQ(ErrorOf({"--nonsense", "true"}), "unrecognized option '--nonsense'");
  EXPECT_EQ(ErrorOf({"-n", "many", "true"}), "Invalid numeric value \"many\" for --ntasks.");
  EXPECT_EQ(ErrorOf({"-n", "2"}), "No command given to execute.");
}

TEST_F(StepOptionsTest, GpusAreOfTheStepOrOfEachTask) {
  EXPECT_EQ(Read({"--gpus=2", "true"}).value().gpus, 2);
  EXPECT_EQ(Read({"-G", "a100:2", "true"}).value().gpus, 2);
  EXPECT_EQ(Read({"--gres=gpu:a100:3", "true"}).value().gpus, 3);
  EXPECT_EQ(Read({"--gres=none", "true"}).value().gpus, 0);
  EXPECT_EQ(Read({"--gpus-per-task=1", "true"}).value().gpus_per_task, 1);
  EXPECT_EQ(Read({"true"}).value().gpus_per_task, 0);
  variables_["SLURM_GPUS_PER_TASK"] = "a100:2";
  EXPECT_EQ(Read({"true"}).value().gpus_per_task, 2) << "as the script's lines say";
}

TEST_F(StepOptionsTest, WhatWouldBeAnotherProgramIsRefused) {
  EXPECT_EQ(ErrorOf({"--pty", "bash"}), "'--pty' is not here; expected a step of tasks");
  EXPECT_EQ(ErrorOf({"-Y", "true"}), "invalid option -- 'Y'");
  EXPECT_NE(ErrorOf({"-n1", "a", ":", "-n1", "b"}), "");
}

TEST(StepClaimsTest, WhatOneStepHasIsNotGivenToAnother) {
  const ScratchFolder folder;
  const std::vector<std::string> gpus{"0", "1", "2"};
  std::optional<Claimed> two = TryClaim(folder.path(), "gpu", gpus, 2);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->names, (std::vector<std::string>{"0", "1"}));
  EXPECT_FALSE(TryClaim(folder.path(), "gpu", gpus, 2));
  const std::optional<Claimed> one = TryClaim(folder.path(), "gpu", gpus, 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->names, (std::vector<std::string>{"2"}));
  EXPECT_TRUE(TryClaim(folder.path(), "cpu", gpus, 3)) << "of another kind";
  two.reset();
  EXPECT_TRUE(TryClaim(folder.path(), "gpu", gpus, 2));
}

TEST_F(StepOptionsTest, StepsOnOtherNodesAreNotHereYet) {
  variables_["SLURM_NNODES"] = "2";
  EXPECT_NE(ErrorOf({"true"}).find("is not here yet"), std::string::npos);
  EXPECT_NE(ErrorOf({"-w", "n1", "true"}).find("is not here yet"), std::string::npos);
  EXPECT_EQ(TasksOf({"-N1", "-n1"}), 1);
  const StepOptions one = Read({"-n1", "true"}).value();
  EXPECT_EQ(
      one.notes,
      (std::vector<std::string>{"Warning: can't run 1 processes on 2 nodes, setting nnodes to 1"}));
}

TEST(StepFileTest, PatternsAreThoseOfSlurm) {
  const StepNames names{.job = "7",
                        .array = "5",
                        .index = "2",
                        .name = "bert",
                        .user = "ann",
                        .node = "n0.example",
                        .number = 1,
                        .task = 3};
  EXPECT_EQ(StepFile("step-%j-%t.txt", names), "step-7-3.txt");
  EXPECT_EQ(StepFile("%4j.%s.%J.%N.%n.%x.%u.%A_%a.%%", names), "0007.1.7.1.n0.0.bert.ann.5_2.%");
}

TEST(ScontrolTest, ListsOfNodesAreExpandedAndFolded) {
  EXPECT_EQ(Scontrol({"show", "hostnames"}, "n[0-1],v0").out, "n0\nn1\nv0\n");
  EXPECT_EQ(Scontrol({"show", "hostnames", "a[08-09]"}, "").out, "a08\na09\n");
  EXPECT_EQ(Scontrol({"show", "hostlist", "n0,n1,v0"}, "").out, "n[0-1],v0\n");
  EXPECT_EQ(Scontrol({"show", "hostlistsorted", "n1,n0"}, "").out, "n[0-1]\n");
  EXPECT_EQ(Scontrol({"show", "hostnames"}, "").status, 1);
  EXPECT_EQ(Scontrol({"show", "job", "7"}, "n0").status, 1);
}

}  // namespace
}  // namespace trainyard::supervisor
