// SPDX-License-Identifier: Apache-2.0
#include "requests/job_tasks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "requests/job_file.h"
#include "support/scratch_folder.h"

namespace trainyard::requests {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

// What `submit` makes of its options: "4 of a node, 16/node, 32G/node, on 2", or what is wrong.
std::string Settled(const Options& options, v1::JobRequest job = {}) {
  for (const auto& [key, text] : options) {
    if (const Status set = SetJobOption(key, text, job); !set.ok()) {
      return set.error().message;
    }
  }
  if (const Status settled = SettleTasks(job); !settled.ok()) {
    return settled.error().message;
  }
  const bool per_node = job.launch().workers() == v1::LaunchSpec::PER_NODE;
  return fmt::format("{} of a {}, {}, {}, on {}", job.launch().workers_per_node(),
                     per_node ? "node" : "GPU", job.cpus(), job.memory(), job.nodes());
}

TEST(JobTasksTest, TasksBecomeWorkersAndAmountsOfNodes) {
  EXPECT_EQ(Settled({{"gpus", "8"}, {"tasks_per_node", "4"}}), "4 of a node, , , on ");
  EXPECT_EQ(Settled({{"cpus", "4/task"},
                     {"memory", "8G/task"},
                     {"tasks", "8"},
                     {"nodes", "2"},
                     {"gpus", "8"}}),
            "4 of a node, 16/node, 32G/node, on 2");
  EXPECT_EQ(Settled({{"gpus", "8"}, {"tasks", "8"}, {"tasks_per_node", "4"}, {"cpus", "0.5/task"}}),
            "4 of a node, 2/node, , on 2");
  EXPECT_EQ(Settled({{"gpus", "0"}, {"tasks", "3"}, {"cpus", "2/task"}, {"memory", "100"}}),
            "3 of a node, 6/node, 100M, on ");
  EXPECT_EQ(
      Settled({{"gpus", "8"}, {"tasks", "8"}}),
      "nothing says on how many nodes its 8 tasks are; expected one number of nodes with them "
      "(1: all of them on one), or how many are on each node");
}

TEST(JobTasksTest, AmountsOfTasksAreThoseOfWorkersWhereNoTasksAreStated) {
  const std::pair<std::string, std::string> cpus{"cpus", "4/task"};
  EXPECT_EQ(Settled({{"gpus", "8"}, cpus}), "0 of a GPU, 4/gpu, , on ");
  EXPECT_EQ(Settled({{"gpus", "0"}, cpus}), "0 of a GPU, 4/node, , on ");
  EXPECT_EQ(Settled({{"gpus", "8"}, {"workers", "per-node"}, cpus}), "0 of a node, 4/node, , on ");
  EXPECT_EQ(Settled({{"gpus", "8"}, {"workers", "once"}, cpus}),
            "--workers once has one worker for all nodes of the job, and CPUs or memory are stated "
            "for each task; expected them for the job (8), or for each node (16/node)");
}

TEST(JobTasksTest, WhatIsNoNumberOfTasksIsRefused) {
  EXPECT_EQ(Settled({{"tasks", "0"}}), "--tasks is '0'; expected an integer from 1 to 6400000");
  EXPECT_EQ(Settled({{"tasks_per_node", "5000"}}),
            "--tasks-per-node is '5000'; expected an integer from 1 to 4096");
  EXPECT_EQ(
      Settled({{"cpus", "4/node/task"}}),
      "--cpus is '4/node/task'; expected CPUs for the whole job (8), or for each of its nodes "
      "(16/node) or GPUs (4/gpu); N/task is for each of its tasks");
}

TEST(JobTasksTest, ScriptsSayTheirTasksThemselves) {
  v1::JobRequest script;
  script.mutable_launch()->mutable_batch();
  const std::string refused =
      "a script with #SBATCH lines says what its tasks are as for Slurm; expected -n, "
      "--ntasks-per-node, --cpus-per-task or --mem-per-cpu in its lines or of sbatch, and no "
      "--tasks, --tasks-per-node or amounts for each task";
  EXPECT_EQ(Settled({{"gpus", "8"}, {"tasks_per_node", "4"}}, script), refused);
  EXPECT_EQ(Settled({{"gpus", "8"}, {"memory", "4G/task"}}, script), refused);
  EXPECT_EQ(Settled({{"gpus", "8"}, {"memory", "4G/node"}}, script), "0 of a GPU, , 4G/node, on ");
}

TEST(JobTasksTest, WorkersAreStatedOnce) {
  EXPECT_TRUE(CheckTaskKeys({"tasks", "tasks_per_node", "nodes"}).ok());
  EXPECT_EQ(CheckTaskKeys({"workers", "gpus", "tasks"}).error().message,
            "--tasks and --workers both say how many workers there are; expected one of them");
  EXPECT_EQ(CheckTaskKeys({"tasks_per_node", "workers"}).error().message,
            "--tasks-per-node and --workers both say how many workers there are; expected one of "
            "them");
  const ScratchFolder folder;
  for (const auto& [name, text] :
       {std::pair("job.toml", "workers = 'per-gpu'\ntasks = 4\n"),
        std::pair("job.json", R"({"workers": "per-gpu", "tasks": 4})")}) {
    v1::JobRequest job;
    const Status read = ReadJobFile(folder.Write(name, text), job);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
    EXPECT_TRUE(read.error().message.ends_with(
        std::string(name) +
        ": 'tasks' and 'workers' both say how many workers there are; expected one of them"))
        << read.error().message;
  }
}

TEST(JobTasksTest, OptionsOverrideWhatAFileSaysOfWorkers) {
  const ScratchFolder folder;
  v1::JobRequest job;
  ASSERT_TRUE(ReadJobFile(folder.Write("job.toml", "gpus = 4\nworkers = 'once'\n"), job).ok());
  EXPECT_EQ(Settled({{"tasks_per_node", "2"}}, job), "2 of a node, , , on ");
  v1::JobRequest other;
  ASSERT_TRUE(ReadJobFile(folder.Write("job.json", R"({"gpus": 4, "tasks": 4})"), other).ok());
  EXPECT_EQ(Settled({{"workers", "per-gpu"}}, other), "0 of a GPU, , , on ");
}

}  // namespace
}  // namespace trainyard::requests
