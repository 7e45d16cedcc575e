// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "supervisor/steps/slurm_tools.h"
#include "supervisor/steps/step_channel.h"
#include "supervisor/steps/step_claims.h"
#include "supervisor/steps/step_files.h"
#include "supervisor/steps/step_layout.h"
#include "supervisor/steps/step_options.h"
#include "supervisor/unix_socket.h"
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
                                                {"SLURM_JOB_NUM_NODES", "1"},
                                                {"SLURM_JOB_NODELIST", "n0"},
                                                {"SLURM_NTASKS", "4"}};
};

TEST_F(StepOptionsTest, TasksAreTheJobsUnlessOptionsSayOthers) {
  EXPECT_EQ(TasksOf({}), 4);
  EXPECT_EQ(TasksOf({"-n2"}), 2);
  EXPECT_EQ(TasksOf({"--ntasks=3"}), 3);
  EXPECT_EQ(TasksOf({"-n", "8"}), 8);
  EXPECT_EQ(TasksOf({"-w", "n0", "-n", "1"}), 1);
  variables_["SLURM_NTASKS"] = "";
  EXPECT_EQ(TasksOf({}), 1);
  EXPECT_EQ(TasksOf({"-N1", "--ntasks-per-node=2"}), 2);
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
  EXPECT_EQ(ErrorOf({"-N2", "true"}), "Only allocated 1 nodes asked for 2");
  EXPECT_EQ(ErrorOf({"-w", "n7", "true"}),
            "Unable to create step for job 7: Requested node configuration is not available");
  EXPECT_EQ(ErrorOf({"--nonsense", "true"}), "unrecognized option '--nonsense'");
  EXPECT_EQ(ErrorOf({"-n", "many", "true"}), "Invalid numeric value \"many\" for --ntasks.");
  EXPECT_EQ(ErrorOf({"-r1", "true"}), "Invalid numeric value \"1\" for --relative.");
  EXPECT_EQ(ErrorOf({"-n", "2"}), "No command given to execute.");
}

// As a real Slurm says them.
TEST_F(StepOptionsTest, NodesAndTasksThatDoNotGoTogetherAreTold) {
  variables_["SLURM_JOB_NUM_NODES"] = "2";
  variables_["SLURM_JOB_NODELIST"] = "n[0-1]";
  variables_["SLURM_NTASKS_PER_NODE"] = "2";
  const auto notes = [this](std::vector<std::string> words) {
    words.emplace_back("true");
    return Read(words).value().notes;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(notes({}), Lines());
  EXPECT_EQ(notes({"-n1"}), (Lines{"Warning: can't run 1 processes on 2 nodes, setting nnodes to "
                                   "1"}));
  EXPECT_EQ(Read({"-n1", "true"}).value().nodes, 1);
  EXPECT_EQ(notes({"-N2", "-n2"}), Lines());
  EXPECT_EQ(notes({"-n3"}),
            (Lines{"Warning: can't honor --ntasks-per-node set to 2 which doesn't match the "
                   "requested tasks 3 with the number of requested nodes 2. Ignoring "
                   "--ntasks-per-node."}));
  EXPECT_EQ(TasksOf({"--ntasks-per-node=1"}), 4) << "those of the job count";
}

TEST_F(StepOptionsTest, GpusAreOfTheStepOrOfEachTask) {
  EXPECT_EQ(Read({"--gpus=2", "true"}).value().gpus, 2);
  EXPECT_EQ(Read({"-G", "a100:2", "true"}).value().gpus, 2);
  EXPECT_EQ(Read({"--gres=gpu:a100:3", "true"}).value().gpus_per_node, 3);
  EXPECT_EQ(Read({"--gpus-per-node=2", "true"}).value().gpus_per_node, 2);
  EXPECT_EQ(Read({"--gres=none", "true"}).value().gpus_per_node, 0);
  EXPECT_EQ(Read({"--gpus-per-task=1", "true"}).value().gpus_per_task, 1);
  EXPECT_EQ(Read({"true"}).value().gpus_per_task, 0);
  variables_["SLURM_GPUS_PER_TASK"] = "a100:2";
  EXPECT_EQ(Read({"true"}).value().gpus_per_task, 2) << "as the script's lines say";
  EXPECT_EQ(Read({"-G1", "true"}).value().gpus_per_task, 0) << "the step's own go before them";
}

TEST_F(StepOptionsTest, WhatWouldBeAnotherProgramIsRefused) {
  EXPECT_EQ(ErrorOf({"--pty", "bash"}), "'--pty' is not here; expected a step of tasks");
  EXPECT_EQ(ErrorOf({"-Y", "true"}), "invalid option -- 'Y'");
  EXPECT_NE(ErrorOf({"-n1", "a", ":", "-n1", "b"}), "");
}

TEST_F(StepOptionsTest, AFileSaysWhatEachTaskRuns) {
  const ScratchFolder folder;
  const std::string path = folder.Write("programs", "0 master\n* worker %t\n");
  const StepOptions step = Read({"-n2", "-J", "both", "--multi-prog", path, "fast"}).value();
  using Programs = std::vector<std::vector<std::string>>;
  EXPECT_EQ(step.programs, (Programs{{"master", "fast"}, {"worker", "1", "fast"}}));
  EXPECT_EQ(step.name, "both");
  EXPECT_EQ(Read({path}).value().programs, Programs());
  EXPECT_EQ(ErrorOf({"--multi-prog", "/none"}), "Could not open multi_prog config file /none");
  EXPECT_EQ(ErrorOf({"--multi-prog"}), "No command given to execute.");
}

class StepLayoutTest : public testing::Test {
 protected:
  [[nodiscard]] StepClaims Claims() const { return StepClaims(folder_.path() + "/claims"); }
  // "n0: 0,1 (0); n1: 2 (1)": ranks, and places of GPUs; or what is wrong.
  std::string Placed(const StepOptions& step, StepClaims& claims) const {
    const Result<StepLayout> layout = PlaceStep(step, nodes_, claims);
    if (!layout.ok()) {
      return layout.error().message;
    }
    std::string text;
    for (const NodePart& part : layout.value().parts) {
      text += (text.empty() ? "" : "; ") + nodes_[static_cast<std::size_t>(part.node)].name + ":";
      for (const int rank : part.ranks) {
        text += " " + std::to_string(rank);
      }
      for (const int gpu : part.gpus) {
        text += " g" + std::to_string(gpu);
      }
    }
    return text;
  }
  std::string Alone(const StepOptions& step) const {
    StepClaims claims = Claims();
    return Placed(step, claims);
  }

  ScratchFolder folder_;
  std::vector<JobNode> nodes_{{.name = "n0", .cpus = 2, .gpus = 2},
                              {.name = "n1", .cpus = 2, .gpus = 2}};
};

TEST_F(StepLayoutTest, TasksOfANodeFollowOneAnother) {
  EXPECT_EQ(Alone({.tasks = 4, .nodes = 2}), "n0: 0 1; n1: 2 3");
  EXPECT_EQ(Alone({.tasks = 3, .nodes = 2}), "n0: 0 1; n1: 2");
  EXPECT_EQ(Alone({.tasks = 4, .nodes = 2, .cyclic = true}), "n0: 0 2; n1: 1 3");
  EXPECT_EQ(Alone({.tasks = 1, .nodes = 1, .node_list = {"n1"}}), "n1: 0");
  EXPECT_EQ(Alone({.tasks = 1, .nodes = 1, .excluded = {"n0"}}), "n1: 0");
  EXPECT_EQ(Alone({.tasks = 1, .nodes = 1, .first_node = 1}), "n1: 0");
  nodes_[1].cpus = 4;
  EXPECT_EQ(Alone({.tasks = 4, .nodes = 1}), "n1: 0 1 2 3") << "where there is room";
  EXPECT_EQ(Alone({.tasks = 6, .nodes = 2}), "n0: 0 1; n1: 2 3 4 5");
}

TEST_F(StepLayoutTest, GpusAreOfTasksOfNodesOrOfTheStep) {
  EXPECT_EQ(Alone({.tasks = 4, .nodes = 2, .gpus_per_task = 1}), "n0: 0 1 g0 g1; n1: 2 3 g0 g1");
  EXPECT_EQ(Alone({.tasks = 2, .nodes = 2, .gpus_per_node = 1}), "n0: 0 g0; n1: 1 g0");
  EXPECT_EQ(Alone({.tasks = 2, .nodes = 2, .gpus = 3}), "n0: 0 g0 g1; n1: 1 g0");
}

TEST_F(StepLayoutTest, WhatTheJobNeverHasIsToldInSlurmsWords) {
  EXPECT_EQ(Alone({.tasks = 5, .nodes = 2}), "More processors requested than permitted");
  EXPECT_EQ(Alone({.tasks = 5, .nodes = 2, .overcommits = true}), "n0: 0 1 2; n1: 3 4");
  EXPECT_EQ(Alone({.tasks = 2, .nodes = 2, .gpus = 5}),
            "Invalid generic resource (gres) specification");
  EXPECT_EQ(Alone({.tasks = 2, .nodes = 2, .excluded = {"n0"}}),
            "Requested node configuration is not available");
}

TEST_F(StepLayoutTest, StepsSideBySideShareOutTheNodes) {
  StepClaims first = Claims();
  StepClaims second = Claims();
  StepClaims third = Claims();
  const StepOptions one{.tasks = 1, .nodes = 1, .gpus_per_task = 2};
  EXPECT_EQ(Placed(one, first), "n0: 0 g0 g1");
  EXPECT_EQ(Placed(one, second), "n1: 0 g0 g1");
  EXPECT_EQ(Placed(one, third), "Requested nodes are busy");
  EXPECT_EQ(Alone({.tasks = 1, .nodes = 1, .gpus = 1, .overlaps = true}), "n0: 0 g0");
  EXPECT_EQ(Alone({.tasks = 2, .nodes = 2}), "n0: 0; n1: 1") << "CPUs are left";
  first.ReleaseAll();
  EXPECT_EQ(Placed(one, third), "n0: 0 g0 g1");
}

TEST_F(StepLayoutTest, StepsThatBeginAtOnceFindTheRoomThatThereIs) {
  constexpr int kSteps = 8;
  nodes_ = {{.name = "n0", .cpus = kSteps / 2, .gpus = kSteps / 2},
            {.name = "n1", .cpus = kSteps / 2, .gpus = kSteps / 2}};
  for (int round = 0; round < 20; ++round) {
    std::vector<StepClaims> claims;
    for (int i = 0; i < kSteps; ++i) {
      claims.push_back(Claims());
    }
    std::array<std::string, kSteps> placed;
    std::barrier start(kSteps);
    std::vector<std::jthread> threads;
    threads.reserve(kSteps);
    for (std::size_t i = 0; i < kSteps; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        placed[i] = Placed({.tasks = 1, .nodes = 1, .gpus_per_task = 1}, claims[i]);
      });
    }
    threads.clear();
    std::sort(placed.begin(), placed.end());
    EXPECT_THAT(placed, testing::ElementsAre("n0: 0 g0", "n0: 0 g1", "n0: 0 g2", "n0: 0 g3",
                                             "n1: 0 g0", "n1: 0 g1", "n1: 0 g2", "n1: 0 g3"))
        << "none is told that the nodes are busy";
  }
}

class StepChannelTest : public testing::Test {
 protected:
  void Connect(const std::string& of_srun, const std::string& of_tasks) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    srun_.emplace(io::Descriptor(ends[0]), StepChannel::Side::kSrun, of_srun);
    tasks_.emplace(io::Descriptor(ends[1]), StepChannel::Side::kTasks, of_tasks);
  }
  // What one side has said arrives.
  static std::optional<v1::StepMessage> Pass(StepChannel& from, StepChannel& to) {
    std::optional<v1::StepMessage> message;
    for (int round = 0; round < 4 && !message; ++round) {
      static_cast<void>(from.Transfer());
      static_cast<void>(from.Take());
      static_cast<void>(to.Transfer());
      message = to.Take();
      static_cast<void>(to.Transfer());
    }
    return message;
  }

  std::optional<StepChannel> srun_;
  std::optional<StepChannel> tasks_;
};

TEST_F(StepChannelTest, BothSidesHearOneAnother) {
  Connect("secret", "secret");
  v1::StepMessage message;
  message.mutable_hello()->set_step(3);
  tasks_->Send(message);
  const std::optional<v1::StepMessage> heard = Pass(*tasks_, *srun_);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->hello().step(), 3);
  message.set_signal(15);
  srun_->Send(message);
  srun_->Send(message);
  const std::optional<v1::StepMessage> first = Pass(*srun_, *tasks_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->signal(), 15);
  EXPECT_TRUE(tasks_->Take()) << "the same once more";
}

TEST_F(StepChannelTest, WhoDoesNotKnowTheSecretIsNotHeard) {
  Connect("secret", "guessed");
  v1::StepMessage message;
  message.mutable_start()->add_command("rm");
  srun_->Send(message);
  EXPECT_FALSE(Pass(*srun_, *tasks_));
  EXPECT_FALSE(tasks_->Transfer());
  message.mutable_hello();
  tasks_->Send(message);
  EXPECT_FALSE(Pass(*tasks_, *srun_));
}

// Somebody on the network, whom both take for the other side.
class ManInTheMiddle {
 public:
  ManInTheMiddle() {
    srun_.emplace(Pair(to_srun_), StepChannel::Side::kSrun, "secret");
    tasks_.emplace(Pair(to_tasks_), StepChannel::Side::kTasks, "secret");
    Deliver(to_srun_, Heard(to_tasks_));
    Deliver(to_tasks_, Heard(to_srun_));
    EXPECT_FALSE(srun_->Take());
    EXPECT_FALSE(tasks_->Take());
  }
  // Two signals of srun's, each in its frame.
  std::array<std::string, 2> Signals() {
    std::array<std::string, 2> frames;
    for (std::string& frame : frames) {
      v1::StepMessage message;
      message.set_signal(10);
      srun_->Send(message);
      frame = Heard(to_srun_);
    }
    return frames;
  }
  // How many messages the tasks take from these bytes.
  int TakenByTasks(const std::string& bytes) { return Take(*tasks_, to_tasks_, bytes); }
  int TakenBySrun(const std::string& bytes) { return Take(*srun_, to_srun_, bytes); }

 private:
  static io::Descriptor Pair(io::Descriptor& other) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    other = io::Descriptor(ends[1]);
    return io::Descriptor(ends[0]);
  }
  // What that side has said.
  std::string Heard(const io::Descriptor& from) {
    EXPECT_TRUE(srun_->Flush() && tasks_->Flush());
    std::array<char, 4096> bytes{};
    const ssize_t got = recv(from.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got))};
  }
  void Deliver(const io::Descriptor& to, const std::string& bytes) {
    EXPECT_EQ(send(to.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    EXPECT_TRUE(srun_->Transfer() && tasks_->Transfer());
  }
  int Take(StepChannel& channel, const io::Descriptor& to, const std::string& bytes) {
    Deliver(to, bytes);
    int taken = 0;
    while (channel.Take()) {
      ++taken;
    }
    EXPECT_EQ(channel.Transfer(), !channel.is_broken());
    return taken;
  }

  io::Descriptor to_srun_;
  io::Descriptor to_tasks_;
  std::optional<StepChannel> srun_;
  std::optional<StepChannel> tasks_;
};

TEST(StepSecrecyTest, WhatIsHandedOnAsItIsIsTaken) {
  ManInTheMiddle man;
  const auto [first, second] = man.Signals();
  EXPECT_EQ(man.TakenByTasks(first + second), 2);
}

TEST(StepSecrecyTest, NothingIsTakenTwice) {
  ManInTheMiddle man;
  const auto [first, second] = man.Signals();
  EXPECT_EQ(man.TakenByTasks(first + first + second), 1);
}

TEST(StepSecrecyTest, NothingIsTakenInAnotherOrder) {
  ManInTheMiddle man;
  const auto [first, second] = man.Signals();
  EXPECT_EQ(man.TakenByTasks(second + first), 0);
}

TEST(StepSecrecyTest, NothingIsTakenOfAnotherConnectionOrBackwards) {
  ManInTheMiddle man;
  ManInTheMiddle other;
  const auto [first, second] = man.Signals();
  EXPECT_EQ(other.TakenByTasks(first), 0);
  EXPECT_EQ(man.TakenBySrun(first), 0);
}

TEST(StepSecrecyTest, NothingIsTakenThatHasBeenChanged) {
  for (std::size_t place = 4; place < 20; ++place) {
    ManInTheMiddle man;
    auto [first, second] = man.Signals();
    first[std::min(place, first.size() - 1)] ^= 1;
    EXPECT_EQ(man.TakenByTasks(first), 0) << place;
  }
}

TEST(StepSecrecyTest, SrunKeepsLittleOfWhatStrangersSend) {
  ManInTheMiddle man;
  const std::string begun = Framed(v1::StepFrame()) + std::string("\0\0\x0f\0", 4);
  EXPECT_EQ(man.TakenBySrun(begun + std::string(5000, 'x')), 0);
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

TEST(StepFileTest, FilesOfTasksAreTold) {
  EXPECT_TRUE(IsOfEachTask("step-%j-%4t.txt"));
  EXPECT_TRUE(IsOfEachTask("%N.out"));
  EXPECT_FALSE(IsOfEachTask("slurm-%j.out"));
  EXPECT_FALSE(IsOfEachTask("100%%t"));
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
