// SPDX-License-Identifier: Apache-2.0
#include "live/calls/controller_switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class ControllerSwitchesTest : public LiveWorldTest {
 protected:
  ControllerSwitchesTest() { Open(); }
  [[nodiscard]] ControllerSetup SetUpOf() override {
    ControllerSetup setup = LiveWorldTest::SetUpOf();
    setup.live.log = [this](const std::string& line) { log_.push_back(line); };
    return setup;
  }
  static v1::ClientRequest Paused(bool on, const std::string& reason = "") {
    v1::ClientRequest request;
    request.mutable_switches()->set_paused(on);
    request.mutable_switches()->set_reason(reason);
    return request;
  }
  static v1::ClientRequest Closed(bool on, const std::string& reason = "") {
    v1::ClientRequest request;
    request.mutable_switches()->set_closed(on);
    request.mutable_switches()->set_reason(reason);
    return request;
  }
  v1::Switches OfNodes() {
    v1::ClientRequest request;
    request.mutable_nodes();
    return Call(request).nodes().switches();
  }

  std::vector<std::string> log_;
};

TEST_F(ControllerSwitchesTest, WhilePausedNothingStartsAndWhatRunsGoesOn) {
  Hello(10, "a");
  const std::uint64_t running = Submit(2);
  Tell(10, Report(running, 1, v1::AttemptReport::RUNNING));
  Heard(10);
  const v1::SwitchesReply reply = Call(Paused(true, "a new disk")).switches();
  EXPECT_TRUE(reply.switches().paused().on());
  EXPECT_FALSE(reply.switches().closed().on());
  const std::uint64_t waiting = Submit(1);
  EXPECT_THAT(StatusOf(waiting).reason(), HasSubstr("paused since "));
  Step(seconds(1));
  Tell(10, Report(running, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(running), v1::COMPLETED) << "its end is a fact";
  EXPECT_EQ(KindsHeard(10), "forget ");
  EXPECT_FALSE(controller_->engine().next_wakeup().has_value());
  StepHearing(10, seconds(30));
  Heard(10);
  EXPECT_NE(StateOf(waiting), v1::STARTING);
  EXPECT_FALSE(Call(Paused(false)).switches().switches().paused().on());
  EXPECT_EQ(KindsHeard(10), "start ");
}

TEST_F(ControllerSwitchesTest, ThePauseSurvivesARestartBySnapshotAndByJournal) {
  for (const std::uint64_t entries : {std::uint64_t{0}, std::uint64_t{1}}) {
    snapshots_ = {.entries = entries};
    Open();
    Hello(10, "a");
    Call(Paused(true, "why"));
    const std::uint64_t job = Submit(1);
    Open();
    EXPECT_EQ(controller_->restart().snapshot > 0, entries > 0);
    Hello(11, "a");
    EXPECT_NE(StateOf(job), v1::STARTING);
    EXPECT_TRUE(controller_->engine().is_paused());
    EXPECT_EQ(OfNodes().paused().reason(), "why");
    Call(Paused(false));
    EXPECT_EQ(StateOf(job), v1::STARTING);
  }
}

TEST_F(ControllerSwitchesTest, WhatRunsOutWhilePausedStillEnds) {
  Hello(10, "a");
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->set_time_s(30);
  const std::uint64_t job = Call(request).submit().job();
  Tell(10, Report(job, 1, v1::AttemptReport::RUNNING));
  Call(Paused(true));
  Step(seconds(31));
  EXPECT_EQ(StateOf(job), v1::FAILED) << "its time limit is no decision";
}

TEST_F(ControllerSwitchesTest, AClosedControllerTakesNoJobsButKnowsItsOwn) {
  ASSERT_EQ(Call(Submission(1, "mine")).submit().job(), 1U);
  Call(As(Closed(true, "we move"), 1003, v1::Caller::OPERATOR));
  EXPECT_THAT(
      ErrorOf(Submission(1, "another")),
      testing::AllOf(HasSubstr("the controller takes no jobs: closed by user1003 (uid 1003, "
                               "operator) since "),
                     HasSubstr("Z: we move; expected a submission after 'trainyard "
                               "controller open'")));
  EXPECT_EQ(Call(Submission(1, "mine")).submit().job(), 1U) << "it has been taken before";
  Hello(10, "a");
  EXPECT_EQ(StateOf(1), v1::STARTING) << "decisions are made";
  Call(Closed(false));
  EXPECT_EQ(Call(Submission(1, "another")).submit().job(), 2U);
}

TEST_F(ControllerSwitchesTest, OnlyOperatorsSwitchAndTheFirstIsRemembered) {
  EXPECT_EQ(ErrorOf(As(Paused(true), 1001, v1::Caller::USER)),
            "user1001 (uid 1001) may not pause or close the controller; expected an operator or an "
            "admin");
  EXPECT_FALSE(OfNodes().paused().on());
  Call(As(Paused(true, "first"), 1003, v1::Caller::OPERATOR));
  Step(seconds(10));
  const std::uint64_t entries = store_.size();
  Call(As(Paused(true, "second"), 1004, v1::Caller::OPERATOR));
  EXPECT_EQ(store_.size(), entries) << "it is so already";
  EXPECT_EQ(OfNodes().paused().by(), "user1003 (uid 1003, operator)");
  EXPECT_EQ(OfNodes().paused().reason(), "first");
  EXPECT_THAT(log_, testing::ElementsAre("decisions are paused, jobs are taken; by "
                                         "user1003 (uid 1003, operator): first"));
}

TEST_F(ControllerSwitchesTest, WhatCannotBeIsRefused) {
  v1::ClientRequest request;
  request.mutable_switches();
  EXPECT_EQ(ErrorOf(request), "neither 'paused' nor 'closed' is set; expected one of them");
  EXPECT_EQ(ErrorOf(Paused(true, std::string(201, 'x'))),
            "the reason has 201 bytes; expected at most 200");
}

}  // namespace
}  // namespace trainyard::live
