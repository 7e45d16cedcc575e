// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launch_command.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "supervisor/worker_environment.h"

namespace trainyard::supervisor {
namespace {

using v1::LaunchSpec;

// The second of three nodes, with GPUs 4 and 6 of it.
v1::StartAttempt SecondNode(LaunchSpec::Launcher launcher) {
  v1::StartAttempt start;
  start.mutable_id()->set_job(7);
  start.mutable_id()->set_attempt(2);
  start.mutable_launch()->add_command("python3");
  start.mutable_launch()->add_command("train.py");
  start.mutable_launch()->set_working_directory("/data/ann");
  start.mutable_launch()->set_launcher(launcher);
  start.add_gpus(4);
  start.add_gpus(6);
  start.set_first_rank(2);
  start.set_world_size(5);
  start.set_node_rank(1);
  start.set_nodes(3);
  for (const int workers : {2, 2, 1}) {
    start.add_node_workers(workers);
  }
  start.set_master_address("10.0.0.1");
  start.set_master_port(23456);
  return start;
}

v1::StartAttempt FirstNode(LaunchSpec::Launcher launcher) {
  v1::StartAttempt start = SecondNode(launcher);
  start.set_node_rank(0);
  start.set_first_rank(0);
  return start;
}

AttemptFolder FolderOf(const v1::StartAttempt& start) { return {"/state", start.id()}; }

std::vector<std::string> EnvironmentOf(const v1::StartAttempt& start) {
  return ProcessEnvironment(start, 0, FolderOf(start), "/state/job.sock");
}

std::string CommandOf(const v1::StartAttempt& start, int number = 0) {
  return fmt::format("{}", fmt::join(LaunchCommand(start, number, FolderOf(start), "/bin/trainyard",
                                                   EnvironmentOf(start)),
                                     " "));
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool HasVariable(const std::vector<std::string>& environment, const std::string& name) {
  return std::any_of(environment.begin(), environment.end(), [&name](const std::string& variable) {
    return variable.starts_with(name + "=");
  });
}

TEST(LaunchCommandTest, PlainIsTheJobsCommandForEachWorker) {
  const v1::StartAttempt start = SecondNode(LaunchSpec::PLAIN);
  EXPECT_EQ(ProcessesOf(start), 2);
  EXPECT_EQ(CommandOf(start, 1), "python3 train.py");
}

TEST(LaunchCommandTest, TorchrunStartsTheWorkersOfItsNode) {
  v1::StartAttempt start = SecondNode(LaunchSpec::TORCHRUN);
  EXPECT_EQ(ProcessesOf(start), 1);
  EXPECT_EQ(CommandOf(start),
            "python3 -m torch.distributed.run --nnodes 3 --node_rank 1 --nproc_per_node 2 "
            "--master_addr 10.0.0.1 --master_port 23456 --no_python python3 train.py");
  start.mutable_launch()->set_workers(LaunchSpec::PER_NODE);
  EXPECT_NE(CommandOf(start).find("--nproc_per_node 1 "), std::string::npos);
}

// torchrun sets what differs between its workers in its own way only.
TEST(LaunchCommandTest, UnderTorchrunNoVariableIsThatOfAnotherWorker) {
  const std::vector<std::string> environment = EnvironmentOf(SecondNode(LaunchSpec::TORCHRUN));
  EXPECT_FALSE(HasVariable(environment, "dist_rank"));
  EXPECT_FALSE(HasVariable(environment, "HOROVOD_RANK"));
  EXPECT_TRUE(Has(environment, "CUDA_VISIBLE_DEVICES=4,6"));
  EXPECT_TRUE(Has(environment, "world_size=5"));
  EXPECT_TRUE(Has(environment, "PET_REDIRECTS=9:1"));
  v1::StartAttempt many = SecondNode(LaunchSpec::TORCHRUN);
  while (many.gpus_size() < 10) {
    many.add_gpus(10 + many.gpus_size());
  }
  EXPECT_FALSE(HasVariable(EnvironmentOf(many), "PET_REDIRECTS"));
}

TEST(LaunchCommandTest, MpirunStartsAllWorkersFromTheFirstNode) {
  EXPECT_EQ(ProcessesOf(FirstNode(LaunchSpec::MPI)), 1);
  EXPECT_EQ(CommandOf(FirstNode(LaunchSpec::MPI)),
            "mpirun --hostfile /state/attempts/7-2/hostfile -np 5 --map-by slot --bind-to none "
            "--leave-session-attached --mca plm rsh --mca plm_rsh_agent /bin/trainyard launch rsh "
            "--mca plm_rsh_no_tree_spawn 1 /bin/trainyard launch rank python3 train.py");
  EXPECT_EQ(CommandOf(SecondNode(LaunchSpec::MPI)), "/bin/trainyard launch daemon");
  v1::StartAttempt alone = FirstNode(LaunchSpec::MPI);
  alone.set_nodes(1);
  EXPECT_EQ(CommandOf(alone).find("plm_rsh"), std::string::npos);
}

TEST(LaunchCommandTest, TheHostfileHasTheWorkersOfEachNode) {
  EXPECT_EQ(Hostfile(FirstNode(LaunchSpec::MPI)),
            "localhost slots=2\nnode1 slots=2\nnode2 slots=1\n");
}

// What mpirun has in its own environment it hands to all nodes.
TEST(LaunchCommandTest, MpirunKeepsItsFilesWhereTheyGoWithTheAttempt) {
  const v1::StartAttempt start = FirstNode(LaunchSpec::MPI);
  const AttemptFolder folder = FolderOf(start);
  const std::vector<std::string> mpirun = EnvironmentOf(start);
  EXPECT_TRUE(Has(mpirun, "TMPDIR=/state/attempts/7-2"));
  EXPECT_FALSE(HasVariable(mpirun, "OMPI_MCA_btl_vader_backing_directory"));
  EXPECT_FALSE(HasVariable(mpirun, "OMPI_MCA_btl"));  // the nodes are several machines
  EXPECT_EQ(HasVariable(mpirun, "OMPI_ALLOW_RUN_AS_ROOT"), geteuid() == 0);
  const std::vector<std::string> worker = WorkerEnvironment(start, 1, folder, "/s");
  EXPECT_TRUE(Has(worker, "OMPI_MCA_btl_vader_backing_directory=" + folder.SharedMemoryFolder()));
  EXPECT_TRUE(Has(worker, "HOROVOD_RANK=1"));
  EXPECT_FALSE(HasVariable(worker, "HOROVOD_GLOO_RENDEZVOUS_ADDR"));
  v1::StartAttempt up = start;
  up.set_master_address("127.0.0.1");
  EXPECT_TRUE(Has(EnvironmentOf(up), "OMPI_MCA_btl=self,tcp"));
}

// ------------------------------------------------------------------------------------- containers

v1::StartAttempt Contained(LaunchSpec::Launcher launcher) {
  v1::StartAttempt start = SecondNode(launcher);
  start.mutable_launch()->mutable_container()->set_image("localhost/train:2");
  return start;
}

// The words after each option of that name.
std::vector<std::string> LaunchOptions(const v1::StartAttempt& start, const std::string& name,
                                       int number = 0) {
  const std::vector<std::string> words =
      LaunchCommand(start, number, FolderOf(start), "/bin/trainyard", EnvironmentOf(start));
  const auto image = std::find(words.begin(), words.end(), start.launch().container().image());
  std::vector<std::string> found;
  for (auto word = words.begin(); word != image; ++word) {
    if (*word == name) {
      found.push_back(*(word + 1));
    }
  }
  return found;
}

using Texts = std::vector<std::string>;

TEST(ContainerCommandTest, EachWorkerRunsInAContainerOfItsOwnThatIsRemoved) {
  const v1::StartAttempt start = Contained(LaunchSpec::PLAIN);
  const std::string name = "trainyard-" + FolderOf(start).UniqueName();
  EXPECT_EQ(ProcessesOf(start), 2);
  EXPECT_TRUE(CommandOf(start, 1).starts_with(
      "podman run --rm --conmon-pidfile /state/attempts/7-2/conmon-1 --name " + name + "-3 "));
  EXPECT_TRUE(CommandOf(start).ends_with(" localhost/train:2 python3 train.py"));
  EXPECT_EQ(
      RemovalCommand(start, FolderOf(start)),
      (Texts{"podman", "rm", "--force", "--ignore", "--time", "0", name + "-2", name + "-3"}));
  EXPECT_EQ(RemovalCommand(SecondNode(LaunchSpec::PLAIN), FolderOf(start)), Texts());
  EXPECT_EQ(SignalCommand(start, 1, FolderOf(start), SIGTERM),
            (Texts{"podman", "kill", "--signal", "15", name + "-3"}));
}

TEST(ContainerCommandTest, OnlyTheJobsFirstWorkerHasATerminal) {
  v1::StartAttempt start = Contained(LaunchSpec::PLAIN);
  EXPECT_EQ(LaunchOptions(start, "--log-driver"), Texts{"passthrough"});
  start.mutable_launch()->set_input(LaunchSpec::TERMINAL);
  EXPECT_EQ(LaunchOptions(start, "--log-driver"), Texts{"passthrough"}) << "it is the second node";
  start.set_node_rank(0);
  EXPECT_EQ(LaunchOptions(start, "--log-driver"), Texts{"none"}) << "podman refuses the other one";
  EXPECT_EQ(LaunchOptions(start, "--detach-keys"), Texts{""});
  EXPECT_EQ(LaunchOptions(start, "--log-driver", 1), Texts{"passthrough"});
}

TEST(ContainerCommandTest, SessionsRunInTheContainerOfTheirWorker) {
  const v1::StartAttempt start = Contained(LaunchSpec::PLAIN);
  const std::string name = "trainyard-" + FolderOf(start).UniqueName() + "-3";
  v1::AttachRequest request;
  request.set_session("5e55");
  EXPECT_EQ(ExecCommand(start, 1, FolderOf(start), request),
            (Texts{"podman", "exec", "--env", "TRAINYARD_SESSION=5e55", "--interactive", name,
                   "/bin/sh"}));
  request.set_terminal(true);
  request.add_command("top");
  EXPECT_EQ(ExecCommand(start, 1, FolderOf(start), request),
            (Texts{"podman", "exec", "--env", "TRAINYARD_SESSION=5e55", "--interactive", "--tty",
                   "--detach-keys", "", "--env", "TERM", name, "top"}));
}

TEST(ContainerCommandTest, WhatTheJobNeedsIsMounted) {
  v1::StartAttempt start = Contained(LaunchSpec::PLAIN);
  const Texts own = {"/state/attempts/7-2/job.sock:/run/trainyard/job.sock",
                     "/state/checkpoints/7:/state/checkpoints/7", "/data/ann:/data/ann"};
  EXPECT_EQ(LaunchOptions(start, "--volume"), own);
  EXPECT_EQ(LaunchOptions(start, "--workdir"), Texts{"/data/ann"});
  v1::Container& container = *start.mutable_launch()->mutable_container();
  container.add_mounts("/a+b:/data:ro+rprivate");
  container.add_mounts("/c:/c");
  container.set_workdir("/data");
  Texts all = own;
  all.insert(all.end(), {"/a+b:/data:ro,rprivate", "/c:/c"});
  EXPECT_EQ(LaunchOptions(start, "--volume"), all);
  EXPECT_EQ(LaunchOptions(start, "--workdir"), Texts{"/data"});
  start.mutable_launch()->set_working_directory("/");  // cannot be mounted over the image
  all.erase(all.begin() + 2);
  EXPECT_EQ(LaunchOptions(start, "--volume"), all);
}

TEST(ContainerCommandTest, TheDataSetIsMountedToBeRead) {
  v1::StartAttempt start = Contained(LaunchSpec::PLAIN);
  const std::size_t own = LaunchOptions(start, "--volume").size();
  start.mutable_data_set()->set_home("/store/pets");
  Texts volumes = LaunchOptions(start, "--volume");
  EXPECT_EQ(volumes.size(), own + 1);
  EXPECT_EQ(std::count(volumes.begin(), volumes.end(), "/store/pets:/store/pets:ro"), 1);
  start.set_data_folder("/copies/pets");
  volumes = LaunchOptions(start, "--volume");
  EXPECT_EQ(std::count(volumes.begin(), volumes.end(), "/copies/pets:/copies/pets:ro"), 1);
  start.mutable_data_set()->set_home("n3");  // nothing that is a folder
  EXPECT_EQ(LaunchOptions(start, "--volume").size(), own);
}

TEST(ContainerCommandTest, NamesBeginAsTheUserSaysAndStayUnique) {
  v1::StartAttempt start = Contained(LaunchSpec::PLAIN);
  start.mutable_launch()->mutable_container()->set_name("resnet");
  const std::string name = LaunchOptions(start, "--name").front();
  EXPECT_TRUE(name.starts_with("resnet-7-2-")) << name;
  const AttemptFolder elsewhere("/other", start.id());
  EXPECT_FALSE(
      Has(LaunchCommand(start, 0, elsewhere, "/bin/trainyard", EnvironmentOf(start)), name));
}

TEST(ContainerCommandTest, VariablesAreHandedOnByNameButThosePodmanNeedsForItself) {
  v1::StartAttempt start = Contained(LaunchSpec::PLAIN);
  for (const auto& [name, value] : {std::pair{"SECRET", "s3cret"}, std::pair{"HOME", "/inside"}}) {
    v1::EnvironmentVariable& variable = *start.mutable_launch()->add_environment();
    variable.set_name(name);
    variable.set_value(value);
  }
  const Texts names = LaunchOptions(start, "--env");
  for (const char* const name : {"SECRET", "RANK", "TRAINYARD_SOCKET", "TRAINYARD_ATTEMPT_FOLDER",
                                 "HOROVOD_RANK", "HOME=/inside"}) {
    EXPECT_TRUE(Has(names, name)) << name;
  }
  EXPECT_FALSE(Has(names, "PATH"));
  EXPECT_EQ(CommandOf(start).find("s3cret"), std::string::npos);
  const Texts environment = EnvironmentOf(start);
  EXPECT_TRUE(Has(environment, "SECRET=s3cret"));
  EXPECT_FALSE(Has(environment, "HOME=/inside"));
  EXPECT_TRUE(Has(environment, std::string("TRAINYARD_SOCKET=") + kSocketInContainer));
}

// The driver counts anew within a container that sees only some GPUs.
TEST(ContainerCommandTest, GpusThatTheDriverHasCountedAreHandedOver) {
  v1::StartAttempt start = Contained(LaunchSpec::PLAIN);
  EXPECT_EQ(LaunchOptions(start, "--device"), Texts());
  EXPECT_TRUE(Has(EnvironmentOf(start), "CUDA_VISIBLE_DEVICES=4,6"));
  start.set_nvidia(true);
  EXPECT_EQ(LaunchOptions(start, "--device"), (Texts{"nvidia.com/gpu=4", "nvidia.com/gpu=6"}));
  EXPECT_TRUE(Has(EnvironmentOf(start), "CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_TRUE(Has(EnvironmentOf(start), "TRAINYARD_GPUS=4,6"));
}

TEST(ContainerCommandTest, TorchrunRunsWithinTheContainer) {
  const v1::StartAttempt start = Contained(LaunchSpec::TORCHRUN);
  EXPECT_EQ(ProcessesOf(start), 1);
  EXPECT_NE(CommandOf(start).find(" localhost/train:2 python3 -m torch.distributed.run "),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::supervisor
