// SPDX-License-Identifier: Apache-2.0
#include "live/attempts/slurm_variables.h"

#include <gtest/gtest.h>

#include <map>

namespace trainyard::live {
namespace {

using Map = std::map<std::string, std::string>;

Map Of(const SlurmJob& job, std::size_t place) {
  const auto variables = SlurmVariables(job, place);
  return {variables.begin(), variables.end()};
}

// The job that was measured with Slurm 22.05: two nodes, two tasks on each, array 3-5:2.
SlurmJob Measured() {
  return {.number = 8,
          .name = "a",
          .user = "ann",
          .queue = "gpu",
          .cluster = "c",
          .address = "127.0.0.1",
          .states_tasks = true,
          .task = SlurmTask{.array = 7, .index = 5, .indices = "3-5:2%1"},
          .places = {{.node = "n0", .workers = 2, .gpus = {2, 3}, .cpus = 6, .memory_mib = 4096},
                     {.node = "n1", .workers = 2, .gpus = {0, 1}, .cpus = 6, .memory_mib = 4096}}};
}

TEST(SlurmVariablesTest, TheyAreThoseThatSlurmSets) {
  EXPECT_EQ(Of(Measured(), 0), (Map{{"SLURM_JOB_ID", "8"},
                                    {"SLURM_JOBID", "8"},
                                    {"SLURM_JOB_NAME", "a"},
                                    {"SLURM_JOB_USER", "ann"},
                                    {"SLURM_JOB_PARTITION", "gpu"},
                                    {"SLURM_CLUSTER_NAME", "c"},
                                    {"SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"},
                                    {"SLURM_ARRAY_JOB_ID", "7"},
                                    {"SLURM_ARRAY_TASK_ID", "5"},
                                    {"SLURM_ARRAY_TASK_COUNT", "2"},
                                    {"SLURM_ARRAY_TASK_MIN", "3"},
                                    {"SLURM_ARRAY_TASK_MAX", "5"},
                                    {"SLURM_ARRAY_TASK_STEP", "2"},
                                    {"SLURM_JOB_NODELIST", "n[0-1]"},
                                    {"SLURM_NODELIST", "n[0-1]"},
                                    {"SLURM_JOB_NUM_NODES", "2"},
                                    {"SLURM_NNODES", "2"},
                                    {"SLURM_TASKS_PER_NODE", "2(x2)"},
                                    {"SLURM_NTASKS", "4"},
                                    {"SLURM_NPROCS", "4"},
                                    {"SLURMD_NODENAME", "n0"},
                                    {"SLURM_GPUS_ON_NODE", "2"},
                                    {"SLURM_JOB_GPUS", "2,3"},
                                    {"SLURM_CPUS_ON_NODE", "6"},
                                    {"SLURM_JOB_CPUS_PER_NODE", "6(x2)"},
                                    {"SLURM_MEM_PER_NODE", "4096"}}));
  EXPECT_EQ(Of(Measured(), 1).at("SLURMD_NODENAME"), "n1");
  EXPECT_EQ(Of(Measured(), 1).at("SLURM_JOB_GPUS"), "0,1");
}

TEST(SlurmVariablesTest, WhatIsNotAskedForIsNotSet) {
  SlurmJob job = Measured();
  job.states_tasks = false;
  job.task.reset();
  job.queue = "";
  job.attempt = 3;
  job.places.resize(1);
  job.places.front() = {.node = "head", .workers = 1, .gpus = {0}};
  const Map variables = Of(job, 0);
  for (const char* const name :
       {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
        "SLURM_JOB_PARTITION", "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE"}) {
    EXPECT_FALSE(variables.contains(name)) << name;
  }
  EXPECT_EQ(variables.at("SLURM_RESTART_COUNT"), "2");
  EXPECT_EQ(variables.at("SLURM_JOB_NODELIST"), "head");
  EXPECT_EQ(variables.at("SLURM_TASKS_PER_NODE"), "1");
}

TEST(SlurmVariablesTest, ListsHaveAStepOfTheirRangesOnly) {
  SlurmJob job = Measured();
  for (const auto& [indices, step] :
       {std::pair("1,5,9", "1"), std::pair("1-9:4", "4"), std::pair("0-9", "1"),
        std::pair("0-4:2,10-14:3", "1"), std::pair("0-4:2,10-14:2%3", "2")}) {
    job.task->indices = indices;
    EXPECT_EQ(Of(job, 0).at("SLURM_ARRAY_TASK_STEP"), step) << indices;
  }
}

}  // namespace
}  // namespace trainyard::live
