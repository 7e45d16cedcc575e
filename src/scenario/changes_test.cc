// SPDX-License-Identifier: Apache-2.0
#include "scenario/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/try.h"
#include "scenario/scenario.h"
#include "support/scratch_folder.h"

namespace trainyard::scenario {
namespace {

using testing::HasSubstr;

// Three jobs of 100 s and one of 20 s on one GPU.
class ChangesTest : public testing::Test {
 protected:
  ChangesTest() {
    paths_.trace = folder_.Write("t.csv",
                                 "job_id,submit_time,gpus,duration\n"
                                 "a,0,1,100\nb,0,1,100\nc,0,1,100\nd,1,1,20\n");
  }
  [[nodiscard]] Result<results::RunResult> Run(const std::string& changes,
                                               const PresetRequest& names = {.policy = "fifo"}) {
    paths_.changes = folder_.Write("changes.toml", changes);
    ASSIGN_OR_RETURN(const Inputs inputs, ReadInputs(paths_));
    return RunScenario(inputs, {.names = names, .keep_allocations = true});
  }
  // When the jobs start and end.
  [[nodiscard]] std::string Times(const std::string& changes,
                                  const PresetRequest& names = {.policy = "fifo"}) {
    const Result<results::RunResult> run = Run(changes, names);
    if (!run.ok()) {
      return run.error().message;
    }
    std::string times;
    for (const results::JobResult& job : run.value().jobs) {
      times += job.spec->name + " " + std::to_string(std::lround(Seconds(*job.start))) + "-" +
               std::to_string(std::lround(Seconds(*job.end))) + " ";
    }
    return times;
  }
  [[nodiscard]] std::string ErrorOf(const std::string& changes) {
    const std::string said = Times(changes);
    const std::size_t name = said.find("changes.toml");
    return name == std::string::npos ? said : said.substr(name);
  }

  ScratchFolder folder_;
  InputPaths paths_{.cluster = "1x1"};
};

TEST_F(ChangesTest, ANodeMoreStartsAJobMore) {
  const PresetRequest fifo{.preset = "tiresias", .policy = "fifo"};  // at no cost of starts
  EXPECT_EQ(Times("[[changes]]\nat = 5000\nadd = ['n0']\n", fifo),
            "a 0-100 b 100-200 c 200-300 d 300-320 ");
  EXPECT_EQ(Times("[[nodes]]\nname = 'x'\ngpus = 1\n[[changes]]\nat = 30\nadd = ['x0']\n", fifo),
            "a 0-100 b 30-130 c 100-200 d 130-150 ");
}

TEST_F(ChangesTest, ADrainedNodeEndsWhatItHasAndARemovedOneDoesNot) {
  paths_.cluster = "2x1";
  const PresetRequest fifo{.preset = "tiresias", .policy = "fifo"};
  EXPECT_EQ(Times("[[changes]]\nat = 50\ndrain = ['n1']\n", fifo),
            "a 0-100 b 0-100 c 100-200 d 200-220 ");
  EXPECT_EQ(Times("[[changes]]\nat = 50\nremove = ['n1']\n", fifo),
            "a 0-100 b 0-150 c 150-250 d 250-270 ");
  EXPECT_EQ(
      Times("[[changes]]\nat = 50\nremove = ['n1']\n[[changes]]\nat = 60\nadd = ['n1']\n", fifo),
      "a 0-100 b 0-110 c 100-200 d 110-130 ");
}

TEST_F(ChangesTest, FailuresAndChangesKeepANodeAwayEachForItself) {
  paths_.cluster = folder_.Write("c.toml",
                                 "[[nodes]]\ngpus = 1\ncount = 2\n"
                                 "[[failures]]\nnode = 'n1'\ndown = 50\nup = 60\n");
  const PresetRequest fifo{.preset = "tiresias", .policy = "fifo", .placement = "first-fit"};
  const std::string without_n1 = "a 0-100 b 0-150 c 150-250 d 250-270 ";
  EXPECT_EQ(Times("[[changes]]\nat = 55\nremove = ['n1']\n", fifo), without_n1);
  EXPECT_EQ(Times("[[changes]]\nat = 55\ndrain = ['n1']\n", fifo), without_n1);
  EXPECT_EQ(Times("[[changes]]\nat = 40\ndrain = ['n1']\n", fifo), without_n1);
  EXPECT_EQ(Times("[[changes]]\nat = 55\nadd = ['n1']\n", fifo),
            "a 0-100 b 0-110 c 100-200 d 110-130 ");
  EXPECT_EQ(
      Times("[[changes]]\nat = 40\nremove = ['n1']\n[[changes]]\nat = 55\nadd = ['n1']\n", fifo),
      "a 0-100 b 0-120 c 100-200 d 120-140 ");
}

TEST_F(ChangesTest, ChangesOfOneInstantFollowTheFile) {
  paths_.cluster = "2x1";
  const PresetRequest fifo{.preset = "tiresias", .policy = "fifo"};
  const std::string remove = "[[changes]]\nat = 50\nremove = ['n1']\n";
  const std::string add = "[[changes]]\nat = 50\nadd = ['n1']\n";
  EXPECT_EQ(Times(remove + add, fifo), "a 0-100 b 0-100 c 100-200 d 100-120 ");
  EXPECT_EQ(Times(add + remove, fifo), "a 0-100 b 0-150 c 150-250 d 250-270 ");
  EXPECT_THAT(ErrorOf("[[changes]]\nat = 1\nadd = ['n1']\ndrain = ['n0', 'n1']\n"),
              HasSubstr("changes.toml:4: node 'n1' is in this change already; expected it once"));
}

TEST_F(ChangesTest, AJobWaitsForItsPartitionToGrow) {
  paths_.cluster = "2x1";
  paths_.trace = folder_.Write("t.csv", "job_id,submit_time,gpus,duration,queue\na,10,2,100,p\n");
  const PresetRequest fifo{.preset = "tiresias", .policy = "fifo"};
  const std::string small = "[[changes]]\nat = 5\npartitions = [{name = 'p', nodes = ['n0']}]\n";
  EXPECT_EQ(Times(small + "[[changes]]\nat = 50\npartitions = [{name = 'p'}]\n", fifo),
            "a 50-150 ");
  EXPECT_THAT(Times(small, fifo), HasSubstr("it asks for 2 GPUs and runs on GPUs of partition"));
}

TEST_F(ChangesTest, AnotherPolicyServesTheQueueInItsOrder) {
  const std::string before = Times("[[changes]]\nat = 5000\npolicy = 'sjf'\n");
  const std::string after = Times("[[changes]]\nat = 50\npolicy = 'sjf'\n");
  EXPECT_LT(before.find("c 2"), before.find("d 3")) << before;
  EXPECT_THAT(after, HasSubstr("d 1")) << "the shortest is next";
  const Result<results::RunResult> one = Run("[[changes]]\nat = 50\npolicy = 'sjf'\n");
  const Result<results::RunResult> again = Run("[[changes]]\nat = 50\npolicy = 'sjf'\n");
  EXPECT_EQ(one.value().journal_digest, again.value().journal_digest);
  EXPECT_EQ(one.value().changes_path, paths_.changes);
  EXPECT_EQ(one.value().changes_sha256.size(), 64U);
}

// n0 for queue long, n1 for queue short.
constexpr const char* kTwoPartitions = R"(
partitions = [{name = 'long', nodes = ['n0'], default = true}, {name = 'short', nodes = ['n1']}]
)";

TEST_F(ChangesTest, PartitionsComeAndGo) {
  paths_.cluster = "2x1";
  paths_.trace = folder_.Write("t.csv",
                               "job_id,submit_time,gpus,duration,queue\n"
                               "a,0,1,100,long\nb,0,1,100,long\nc,60,1,100,long\n"
                               "d,70,1,20,short\ne,300,1,20,other\n");
  const PresetRequest fifo{.preset = "tiresias", .policy = "fifo"};
  const std::string at_50 = std::string("[[changes]]\nat = 50\n") + kTwoPartitions;
  // What runs on n1 ends there; c waits for n0 although n1 is free before it.
  EXPECT_EQ(Times(at_50 + "[[changes]]\nat = 200\npartitions = []\n", fifo),
            "a 0-100 b 0-100 c 100-200 d 100-120 e 300-320 ");
  EXPECT_THAT(Times(at_50, fifo),
              HasSubstr("t.csv:6: job e: there is no partition 'other'; expected a queue that is "
                        "one of: long, short (partitions of "));
}

TEST_F(ChangesTest, APartitionLimitsTheJobsThatComeToIt) {
  paths_.cluster = "2x1";
  const std::string one_minute =
      "[[changes]]\nat = 1\n[[changes.partitions]]\nname = 'p'\ndefault = true\n"
      "default_time = '40s'\n";
  const Result<results::RunResult> run = Run(one_minute, {.preset = "tiresias", .policy = "fifo"});
  ASSERT_TRUE(run.ok()) << run.error().message;
  const auto limit = [&](std::size_t job) {
    const auto& traits = run.value().jobs[job].spec->traits;
    return traits == nullptr ? std::nullopt : traits->time_limit;
  };
  EXPECT_EQ(limit(0), std::nullopt) << "a has come before";
  EXPECT_EQ(limit(3), FromSeconds(40));
}

TEST_F(ChangesTest, OtherProfilesAreOtherSpeeds) {
  const auto profiles = [&](const std::string& name, int rate) {
    return folder_.Write(name, "model,batch_size,gpus,iterations_per_second\nvgg,8,1," +
                                   std::to_string(rate) + "\n");
  };
  paths_.cluster = "2x1";
  paths_.trace = folder_.Write("t.csv",
                               "job_id,submit_time,gpus,iterations,model,batch_size\n"
                               "a,0,1,1000,vgg,8\nb,500,1,1000,vgg,8\n");
  paths_.profiles = profiles("slow.csv", 1);
  static_cast<void>(profiles("fast.csv", 10));
  const PresetRequest fifo{
      .preset = folder_.Write("free.toml", "base = 'sound'\n[debt]\ncharge = 'none'\n"),
      .policy = "fifo"};
  EXPECT_EQ(Times("[[changes]]\nat = 9000\nprofiles = 'fast.csv'\n", fifo), "a 0-1000 b 500-1500 ");
  EXPECT_EQ(Times("[[changes]]\nat = 400\nprofiles = 'fast.csv'\n", fifo), "a 0-460 b 500-600 ");
  EXPECT_EQ(Times("[[changes]]\nat = 400\nprofiles = 'fast.csv'\n"
                  "[[changes]]\nat = 510\nprofiles = 'slow.csv'\npolicy = 'srtf'\n",
                  fifo),
            "a 0-460 b 500-1410 ");
  EXPECT_THAT(Times("[[changes]]\nat = 400\nprofiles = 'nosuch'\n", fifo),
              HasSubstr("changes.toml:1: "));
  static_cast<void>(
      folder_.Write("less.csv", "model,batch_size,gpus,iterations_per_second\nbert,8,1,1\n"));
  EXPECT_THAT(Times("[[changes]]\nat = 400\nprofiles = 'less.csv'\n", fifo),
              HasSubstr("model 'vgg' is not in the profiles"));
  paths_.profiles.clear();
  paths_.trace = folder_.Write("t.csv", "job_id,submit_time,gpus,duration\na,0,1,100\n");
  EXPECT_THAT(Times("[[changes]]\nat = 400\nprofiles = 'fast.csv'\n", fifo),
              HasSubstr("changes.toml:1: the run has no throughput profiles to change"));
}

TEST_F(ChangesTest, WhatIsWrongIsToldWithItsLine) {
  EXPECT_EQ(ErrorOf(""), "changes.toml:1: top-level: no changes; expected a [[changes]] at least");
  EXPECT_THAT(ErrorOf("[[changes]]\nadd = ['n0']\n"),
              HasSubstr("changes.toml:1: [[changes]]: no 'at'"));
  EXPECT_THAT(ErrorOf("[[changes]]\nat = 1\n"),
              HasSubstr("changes.toml:1: [[changes]]: it changes nothing"));
  EXPECT_THAT(ErrorOf("[[changes]]\nat = 1\nadd = ['n7']\n"),
              HasSubstr("changes.toml:3: no node 'n7'; expected one of the cluster"));
  EXPECT_THAT(ErrorOf("[[changes]]\nat = 1\nadd = 'n0'\n"),
              HasSubstr("changes.toml:3: 'add' is no list"));
  EXPECT_THAT(ErrorOf("[[changes]]\nat = 1\npolcy = 'las'\n"), HasSubstr("did you mean 'policy'?"));
  EXPECT_THAT(ErrorOf("[[changes]]\nat = 1\npartitions = 'n0'\n"),
              HasSubstr("changes.toml:3: 'partitions' is no list of tables; expected "
                        "[[changes.partitions]]"));
  EXPECT_THAT(ErrorOf("[[changes]]\nat = 1\n[[changes.partitions]]\nname = 'p'\nnodes = ['n9']\n"),
              HasSubstr("changes.toml:3: [[changes.partitions]]: partition 'p' has node 'n9'"));
  EXPECT_THAT(
      ErrorOf("[[changes]]\nat = 1\npolicy = 'themis'\n[[changes.partitions]]\nname = 'p'\n"
              "nodes = ['n0']\ndefault = true\n[[nodes]]\ngpus = 1\nname = 'x'\n"
              "[[changes]]\nat = 2\nadd = ['x0']\n"),
      HasSubstr("changes.toml:1: policy 'themis' plans as if each job could have every GPU"));
  EXPECT_THAT(ErrorOf("[[nodes]]\ngpus = 1\n[[changes]]\nat = 1\nadd = ['n0']\n"),
              HasSubstr("the cluster has a node 'n0' already"));
  EXPECT_THAT(ErrorOf("[[nodes]]\nname = 'x'\ngpus = 1\n[[changes]]\nat = 1\nremove = ['n0']\n"),
              HasSubstr("node 'x0' is added by no change"));
  EXPECT_THAT(ErrorOf("[[changes]]\nat = 1\npolicy = 'nosuch'\n"), HasSubstr("changes.toml:1: "));
  EXPECT_THAT(
      Times("[[changes]]\nat = 1\npolicy = 'las'\n", {.preset = "tiresias", .policy = "fifo"}),
      testing::AnyOf(HasSubstr("expected sound mode"), HasSubstr("a 0-")));
}

}  // namespace
}  // namespace trainyard::scenario
