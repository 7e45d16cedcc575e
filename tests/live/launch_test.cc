// SPDX-License-Identifier: Apache-2.0
// Jobs whose workers are started by torchrun and mpirun, over several nodes of `up` and of agents;
// and, where the kernel lets podman run, in containers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "live_tests/cluster.h"
#include "live_tests/podman.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// Debian's Python has torch and mpi4py; another one may stand before it on the PATH.
const Words kDebian = {"--env", "PATH=/usr/bin:/bin"};

Words With(const Words& options) {
  Words words = kDebian;
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

std::string File(const LiveCluster& cluster, const std::string& name, const std::string& text) {
  std::ofstream(cluster.Path(name)) << text;
  return cluster.Path(name);
}

// By rank. Fails the test if a rank has said it twice.
std::map<int, std::string> ByRank(const LiveCluster& cluster, int job, const std::string& kind) {
  std::map<int, std::string> said;
  for (const WorkerLine& line : cluster.LinesOf(job, kind)) {
    EXPECT_TRUE(said.emplace(line.rank, line.rest).second) << kind << " " << line.rank;
  }
  return said;
}

// What runs there; the parts of an attempt have their node's folder in their environment.
std::vector<pid_t> Pids(const LiveCluster& cluster, const std::string& program) {
  std::vector<pid_t> pids;
  for (const auto& [pid, command] : cluster.Processes()) {
    if (command.starts_with(program + " ")) {
      pids.push_back(pid);
    }
  }
  return pids;
}

TEST(LaunchTest, TorchrunStartsTheWorkersOfAllNodes) {
  LiveCluster cluster;
  cluster.StartUp();
  const std::string program = File(cluster, "train.py", R"(
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
print(dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"], os.environ["GROUP_RANK"],
      int(total.item()))
)");
  const int job = cluster.SubmitWorker(With({"--gpus", "4", "--launcher", "torchrun"}),
                                       "say sum $(python3 " + program + ")");
  ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << cluster.StatusOf(job).DebugString();
  EXPECT_THAT(ByRank(cluster, job, "sum"),
              ElementsAre(std::pair(0, "0 4 0 0 6"), std::pair(1, "1 4 1 0 6"),
                          std::pair(2, "2 4 0 1 6"), std::pair(3, "3 4 1 1 6")));
}

TEST(LaunchTest, TasksAreWorkersOfTheirNodes) {
  LiveCluster cluster;
  cluster.StartUp();
  const std::string say =
      "say task $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK $CUDA_VISIBLE_DEVICES";
  const int job = cluster.SubmitWorker({"--gpus", "4", "--nodes", "2", "--tasks", "6"}, say);
  ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << cluster.StatusOf(job).DebugString();
  EXPECT_THAT(ByRank(cluster, job, "task"),
              ElementsAre(std::pair(0, "0/6 0/3 0 0,1"), std::pair(1, "1/6 1/3 0 0,1"),
                          std::pair(2, "2/6 2/3 0 0,1"), std::pair(3, "3/6 0/3 1 0,1"),
                          std::pair(4, "4/6 1/3 1 0,1"), std::pair(5, "5/6 2/3 1 0,1")));
  const int on_cpus = cluster.SubmitWorker({"--gpus", "0", "--tasks-per-node", "2"}, say);
  ASSERT_TRUE(cluster.AwaitState(on_cpus, v1::COMPLETED));
  EXPECT_THAT(ByRank(cluster, on_cpus, "task"),
              ElementsAre(std::pair(0, "0/2 0/2 0"), std::pair(1, "1/2 1/2 0")));
  const Answer refused = cluster.Ask(
      {"submit", "--gpus", "4", "--workers", "per-gpu", "--tasks", "4", "--", "/bin/true"});
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("--tasks and --workers both say how many workers there are"));
}

// -------------------------------------------------------------------------------------------
// mpirun

constexpr const char* kSum = R"(
import os
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.rank, world.size, world.allreduce(world.rank), os.environ["WORLD_SIZE"],
      os.environ["LOCAL_RANK"], os.environ["NODE_RANK"], os.environ["HOROVOD_CROSS_SIZE"])
)";

TEST(LaunchTest, MpirunStartsTheWorkersOfAllNodes) {
  LiveCluster cluster({.nodes = 3});
  cluster.StartUp();
  const int job = cluster.SubmitWorker(
      With({"--gpus", "5", "--launcher", "mpi"}),
      "say place $OMPI_MCA_btl_vader_backing_directory ${TMPDIR-none}; say node "
      "$TRAINYARD_ATTEMPT_FOLDER; say sum $(python3 " +
          File(cluster, "sum.py", kSum) + ")");
  ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << cluster.StatusOf(job).DebugString();
  EXPECT_THAT(ByRank(cluster, job, "sum"),
              ElementsAre(std::pair(0, "0 5 10 5 0 0 3"), std::pair(1, "1 5 10 5 1 0 2"),
                          std::pair(2, "2 5 10 5 0 1 3"), std::pair(3, "3 5 10 5 1 1 2"),
                          std::pair(4, "4 5 10 5 0 2 3")));
  // Each rank is a worker of its node's part, whose supervisor stands by it.
  std::set<std::string> nodes;
  for (const auto& [rank, folder] : ByRank(cluster, job, "node")) {
    nodes.insert(folder);
  }
  EXPECT_THAT(nodes, SizeIs(3));
  for (const auto& [rank, place] : ByRank(cluster, job, "place")) {
    EXPECT_THAT(place, testing::StartsWith("/dev/shm/trainyard-"));
    EXPECT_THAT(place, testing::Not(HasSubstr("attempts"))) << "the job's own TMPDIR";
    const std::string segments = place.substr(0, place.find(' '));
    EXPECT_TRUE(Eventually([&segments] { return !fs::exists(segments); }));
  }
}

TEST(LaunchTest, MpirunOnOneNodeNeedsNoDaemon) {
  LiveCluster cluster({.nodes = 1});
  cluster.StartUp();
  const int job = cluster.SubmitWorker(With({"--gpus", "2", "--launcher", "mpi"}),
                                       "say sum $(python3 " + File(cluster, "sum.py", kSum) + ")");
  ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED)) << cluster.StatusOf(job).DebugString();
  EXPECT_THAT(ByRank(cluster, job, "sum"),
              ElementsAre(std::pair(0, "0 2 1 2 0 0 1"), std::pair(1, "1 2 1 2 1 0 1")));
}

TEST(LaunchTest, TheExitCodeIsThatOfMpirun) {
  LiveCluster cluster;
  cluster.StartUp();
  const int job = cluster.SubmitWorker(With({"--gpus", "4", "--launcher", "mpi"}),
                                       "[ $RANK != 3 ] || exit 7; while true; do sleep 0.05; done");
  ASSERT_TRUE(cluster.AwaitState(job, v1::FAILED));
  EXPECT_EQ(cluster.StatusOf(job).exit_code(), 7);
}

// mpirun would kill its workers a second after a SIGTERM of its own.
TEST(LaunchTest, ANoticeReachesTheWorkersOfMpirunAndLeavesThemTheirGrace) {
  LiveCluster cluster({.grace = 100});
  cluster.StartUp();
  const std::string trainer =
      "trap 'sleep 3; say saved; exit 0' TERM; say ready; while true; do sleep 0.05; done";
  const int job = cluster.SubmitWorker(With({"--gpus", "4", "--launcher", "mpi"}), trainer);
  ASSERT_TRUE(cluster.AwaitLines(job, "ready", 4));
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(job)}).status, 0);
  EXPECT_TRUE(cluster.AwaitLines(job, "saved", 4));
  EXPECT_TRUE(Eventually([&] { return Pids(cluster, "orted").empty(); }));
  EXPECT_TRUE(cluster.AwaitState(job, v1::CANCELLED));
}

// Every process of the attempt is found and ended, whichever of them is killed.
TEST(LaunchTest, NothingIsLeftOfMpirunWhicheverProcessIsKilled) {
  LiveCluster cluster({.grace = 1});
  cluster.Start();
  const Words options = With({"--gpus", "4", "--launcher", "mpi"});
  const std::string deaf = "trap '' TERM; say ready; while true; do sleep 0.05; done";
  for (const std::string victim : {"mpirun", "orted", "supervisor", "worker"}) {
    const int job = cluster.SubmitWorker(options, deaf);
    ASSERT_TRUE(cluster.AwaitLines(job, "ready", 4)) << victim;
    const std::vector<WorkerLine> workers = cluster.LinesOf(job, "ready");
    pid_t pid = workers.back().pid;
    for (const auto& [other, command] : cluster.Processes()) {
      const bool supervises = command.find(" supervise ") != std::string::npos;
      if (victim == "supervisor" ? supervises : command.starts_with(victim + " ")) {
        pid = other;
      }
    }
    ASSERT_EQ(kill(pid, SIGKILL), 0) << victim;
    EXPECT_TRUE(Eventually([&] {
      return std::none_of(workers.begin(), workers.end(),
                          [](const WorkerLine& worker) { return IsAlive(worker.pid); });
    })) << victim;
    if (victim == "supervisor") {  // no fault of the job: it starts again
      EXPECT_TRUE(cluster.AwaitLines(job, "ready", 8));
      EXPECT_EQ(cluster.Ask({"cancel", std::to_string(job)}).status, 0);
      EXPECT_TRUE(cluster.AwaitState(job, v1::CANCELLED));
    } else {
      EXPECT_TRUE(cluster.AwaitState(job, v1::FAILED)) << victim;
    }
    EXPECT_TRUE(Eventually([&] {
      return Pids(cluster, "mpirun").empty() && Pids(cluster, "orted").empty();
    })) << victim;
  }
}

// -------------------------------------------------------------------------------------
// environments

TEST(LaunchTest, AVirtualEnvironmentIsTheJobs) {
  LiveCluster cluster;
  cluster.StartUp();
  const std::string venv = cluster.Path("venv");
  ASSERT_EQ(std::system(("/usr/bin/python3 -m venv --without-pip " + venv).c_str()), 0);
  const int job = cluster.SubmitWorker({"--gpus", "1", "--venv", venv},
                                       "say prefix $(python -c 'import sys; print(sys.prefix)')");
  ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED));
  EXPECT_THAT(ByRank(cluster, job, "prefix"), ElementsAre(std::pair(0, venv)));
  const int other = cluster.SubmitWorker({"--gpus", "1", "--venv", cluster.Path("none")}, "true");
  ASSERT_TRUE(cluster.AwaitState(other, v1::FAILED));
  EXPECT_THAT(cluster.StatusOf(other).reason(), HasSubstr("it has no program bin/python here"));
}

// ---------------------------------------------------------------------------------------
// containers

TEST(LaunchTest, WorkersRunInContainersOfWhichNoneIsLeft) {
  LiveCluster cluster({.grace = 3});
  const Podman podman(cluster);
  TRAINYARD_NEEDS_CONTAINERS(podman);
  cluster.Start();
  const auto options = [&podman](Words words) {
    const Words more = podman.Options();
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string program = File(cluster, "in.py", R"(
import os, socket
connection = socket.socket(socket.AF_UNIX)
connection.connect(os.environ["TRAINYARD_SOCKET"])
connection.sendall(b"progress 17\n")
print(os.getcwd(), open("/etc/image").read().strip(),
      os.path.isdir(os.environ["TRAINYARD_CHECKPOINT_DIR"]))
)");
  const int job = cluster.SubmitWorker(
      options({"--gpus", "4", "--cwd", cluster.Path("shared"), "--container-name", "mine"}),
      "say in $(python3 " + program + ")");
  ASSERT_TRUE(cluster.AwaitState(job, v1::COMPLETED))
      << cluster.StatusOf(job).DebugString() << cluster.Ask({"logs", std::to_string(job)}).out;
  EXPECT_EQ(cluster.StatusOf(job).iterations_done(), 17);
  const std::map<int, std::string> said = ByRank(cluster, job, "in");
  EXPECT_THAT(said, SizeIs(4));
  for (const auto& [rank, text] : said) {
    EXPECT_EQ(text, cluster.Path("shared") + " of trainyard's test True");
  }
  EXPECT_EQ(podman.Containers(), "");

  const int told = cluster.SubmitWorker(
      options({"--gpus", "4", "--grace", "60"}),
      "trap 'say saved; exit 0' TERM; say ready; while true; do sleep 0.05; done");
  ASSERT_TRUE(cluster.AwaitLines(told, "ready", 4));
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(told)}).status, 0);
  EXPECT_TRUE(cluster.AwaitLines(told, "saved", 4));
  EXPECT_TRUE(cluster.AwaitState(told, v1::CANCELLED));

  const std::string deaf = "trap '' TERM; say ready; while true; do sleep 0.05; done";
  const int killed = cluster.SubmitWorker(options({"--gpus", "2"}), deaf);
  ASSERT_TRUE(cluster.AwaitLines(killed, "ready", 2));
  EXPECT_NE(podman.Containers(), "");
  EXPECT_EQ(cluster.Ask({"cancel", std::to_string(killed)}).status, 0);
  EXPECT_TRUE(Eventually([&] { return podman.Containers().empty(); }));

  const int orphaned = cluster.SubmitWorker(options({"--gpus", "2"}), deaf);
  ASSERT_TRUE(cluster.AwaitLines(orphaned, "ready", 2));
  const std::vector<WorkerLine> workers = cluster.LinesOf(orphaned, "ready");
  EXPECT_EQ(cluster.Ask({"drain", "n0", "n1"}).status, 0);  // not to start again
  for (const auto& [pid, command] : cluster.Processes()) {
    if (command.find(" supervise ") != std::string::npos) {
      kill(pid, SIGKILL);
    }
  }
  EXPECT_TRUE(Eventually([&] {
    return podman.Containers().empty() && !IsAlive(workers[0].pid) && !IsAlive(workers[1].pid);
  }));
}

}  // namespace
}  // namespace trainyard
