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

TEST_F(ChangesTest, AnotherPolicyServesTheQueueInItsOrder) {
  const std::string before = Times("[[changes]]\nat = 5000\npolicy = 'sjf'\n");
  const std::string after = Times("[[changes]]\nat = 50\npolicy = 'sjf'\n");
  EXPECT_LT(before.find("c 2"), before.find("d 3")) << before;
  EXPECT_THAT(after, HasSubstr("d 1")) << "the shortest is next";
  const Result<results::RunResult> one = Run("[[changes]]\nat = 50\npolicy = 'sjf'\n");
  const Result<results::RunResult> again = Run("[[changes]]\nat = 50\npolicy = 'sjf'\n");
  EXPECT_EQ(one.value().journal_digest, again.value().journal_digest);
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
