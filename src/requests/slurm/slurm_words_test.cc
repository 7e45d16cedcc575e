// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/slurm_words.h"

#include <gtest/gtest.h>

#include "requests/slurm/sbatch_options.h"

namespace trainyard::requests {
namespace {

std::string TwinOf(const std::vector<std::string_view>& words) { return InsteadOfCommand(words); }

TEST(SlurmWordsTest, CommandsHaveTheirTwins) {
  EXPECT_EQ(TwinOf({"squeue", "-u", "ann"}), "trainyard status");
  EXPECT_EQ(TwinOf({"sbatch", "a.sh"}), "trainyard submit");
  EXPECT_EQ(TwinOf({"scancel"}), "trainyard cancel");
  EXPECT_EQ(TwinOf({"sinfo"}), "trainyard nodes");
  EXPECT_EQ(TwinOf({"sacct"}), "trainyard status --all");
  EXPECT_EQ(TwinOf({"scontrol", "hold", "3"}), "trainyard hold JOB");
  EXPECT_EQ(TwinOf({"scontrol", "show", "job", "3"}), "trainyard status JOB");
  EXPECT_EQ(TwinOf({"scontrol", "show", "node"}), "trainyard nodes");
  EXPECT_EQ(TwinOf({"scontrol", "update", "NodeName=n3"}), "trainyard drain NODE");
  EXPECT_EQ(TwinOf({"scontrol", "update", "nodename=n3", "state=resume"}),
            "trainyard undrain NODE");
  EXPECT_EQ(TwinOf({"scontrol", "reconfigure"}), "trainyard config apply FILE");
  EXPECT_EQ(TwinOf({"scontrol", "update", "JobId=3"}), "trainyard update ... JOB");
  EXPECT_NE(TwinOf({"scontrol"}), "");
  EXPECT_EQ(TwinOf({"status"}), "");
  EXPECT_EQ(TwinOf({}), "");
}

TEST(SlurmWordsTest, OptionsOfSbatchHaveTheirTwins) {
  EXPECT_EQ(InsteadOfOption("--partition"), "it is --queue here");
  EXPECT_EQ(InsteadOfOption("--partition=long"), "it is --queue here");
  EXPECT_EQ(InsteadOfOption("-p"), "it is --queue here");
  EXPECT_EQ(InsteadOfOption("-J"), "it is --name here");
  EXPECT_EQ(InsteadOfOption("-N2"), InsteadOfOption("--nodes=2"));
  EXPECT_EQ(InsteadOfOption("--comment"),
            "only #SBATCH lines and 'sbatch' take it; it is shown by 'trainyard status JOB', and "
            "decides nothing");
  for (const char* const option :
       {"--mem", "--parsable", "--wrap", "-n", "-c", "-A", "--qos", "-o"}) {
    EXPECT_NE(InsteadOfOption(option), "") << option;
  }
  for (const SbatchOption& option : SbatchOptions()) {
    EXPECT_NE(option.here, "") << option.name;
  }
  for (const char* const option : {"--", "-", "", "partition", "--part", "-Z", "--lr"}) {
    EXPECT_EQ(InsteadOfOption(option), "") << option;
  }
}

TEST(SlurmWordsTest, OptionsThatChooseJobsHaveTheirTwins) {
  EXPECT_EQ(InsteadOfSelection("-u"), "it is --user here");
  EXPECT_EQ(InsteadOfSelection("--states=PD"), "it is --state here");
  EXPECT_EQ(InsteadOfSelection("-t"), "it is --state here");
  EXPECT_EQ(InsteadOfSelection("-Z"), "");
}

TEST(SlurmWordsTest, StatesHaveTheirTwins) {
  EXPECT_EQ(InsteadOfState("pending"), "waiting");
  EXPECT_EQ(InsteadOfState("PD"), "waiting");
  EXPECT_EQ(InsteadOfState("R"), "running");
  EXPECT_EQ(InsteadOfState("TIMEOUT"), "failed");
  EXPECT_EQ(InsteadOfState("runing"), "");
  EXPECT_EQ(InsteadOfState(""), "");
}

// "srun:3 scontrol:1"
std::string CallsOf(std::string_view script) {
  std::string text;
  for (const SlurmCall& call : SlurmCallsIn(script)) {
    text += (text.empty() ? "" : " ") + call.command + ":" + std::to_string(call.line);
  }
  return text;
}

TEST(SlurmWordsTest, CallsInScriptsAreFoundWhereAShellLooksForCommands) {
  EXPECT_EQ(CallsOf("#!/bin/sh\n\nsrun python x.py\nsrun again\n"), "srun:3");
  for (const char* const line :
       {"  srun a",        "\tsrun",           "exec srun a",        "time srun a",
        "A=1 B=2 srun a",  "x && srun a",      "x; srun a",          "x | srun a",
        "if srun a; then", "(srun a)",         "X=$(srun hostname)", "X=`srun a`",
        "/usr/bin/srun a", "bash -c 'srun a'", "CMD=\"srun a\"",     "for i in 1; do srun a; done",
        "! srun a",        "x || srun a &",    "{ srun a; }",        "sudo srun a"}) {
    EXPECT_EQ(CallsOf(line), "srun:1") << line;
  }
  for (const char* const line : {"# srun a", "echo srun", "x # srun a", "srunner a", "my-srun a",
                                 "python srun.py", "echo \"no srun here\"", "which srun",
                                 "a \\\n  srun", "echo ${A:-srun} srun", "x --srun"}) {
    EXPECT_EQ(CallsOf(line), "") << line;
  }
  EXPECT_EQ(CallsOf("N=$(scontrol show hostnames $L)\nsbatch next.sh\nsqueue"),
            "scontrol:1 sbatch:2 squeue:3");
}

}  // namespace
}  // namespace trainyard::requests
