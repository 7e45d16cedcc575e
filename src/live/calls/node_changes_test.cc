// SPDX-License-Identifier: Apache-2.0
#include "live/calls/node_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "model/conditions.h"
#include "support/live_world.h"

namespace trainyard::live {
namespace {

TEST_F(LiveWorldTest, ADrainedNodeSaysWhoDrainedItWhenAndWhy) {
  Hello(10, "a");
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  drain.mutable_drain()->set_reason("new disk");
  EXPECT_EQ(Call(As(drain, 1003, v1::Caller::OPERATOR)).drain().status().changed_by(),
            "drained by user1003 (uid 1003, operator) at 1970-01-01T00:00:00Z: new disk");
  Step(std::chrono::hours(30));
  drain.mutable_drain()->set_drain(false);
  drain.mutable_drain()->clear_reason();
  EXPECT_EQ(Call(As(drain, 0, v1::Caller::ADMIN)).drain().status().changed_by(),
            "undrained by user0 (uid 0, admin) at 1970-01-02T06:00:00Z");
  drain.mutable_drain()->set_reason(std::string(201, 'x'));
  EXPECT_EQ(ErrorOf(drain), "the reason has 201 bytes; expected at most 200");
}

TEST_F(LiveWorldTest, ADrainedNodeGivesItsJobsAway) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Hello(11, "b");
  Heard(10);
  Heard(11);
  v1::ClientRequest request;
  request.mutable_drain()->set_node("a");
  request.mutable_drain()->set_drain(true);
  EXPECT_TRUE(Call(request).drain().status().drained());
  EXPECT_EQ(KindsHeard(10), "stop ");
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(KindsHeard(11), "start ");
  Submit(2);
  EXPECT_EQ(StateOf(2), v1::WAITING);
  request.mutable_drain()->set_drain(false);
  Call(request);
  EXPECT_EQ(StateOf(2), v1::STARTING);
}

// What is said of a node at one time holds in the order in which it was said.
TEST_F(LiveWorldTest, ANodeThatIsDrainedAsItJoinsGetsNoJobs) {
  controller_->world().OnAgent(10, HelloOf("a"));
  v1::ClientRequest request;
  request.mutable_drain()->set_node("a");
  request.mutable_drain()->set_drain(true);
  EXPECT_TRUE(Call(request).drain().status().drained());
  Submit(1);
  EXPECT_EQ(StateOf(1), v1::WAITING);
  request.mutable_drain()->set_drain(false);
  controller_->world().OnCall(100, request);
  request.mutable_drain()->set_drain(true);
  controller_->world().OnCall(101, request);
  Step();
  EXPECT_EQ(StateOf(1), v1::WAITING);
  Open();  // and so does the next controller
  Hello(12, "a");
  EXPECT_EQ(StateOf(1), v1::WAITING);
}

// Two jobs of one GPU on node a, of which both run; b is there, too.
class FinishingTest : public LiveWorldTest {
 protected:
  FinishingTest() {
    Hello(10, "a");
    for (std::uint64_t job = 1; job <= 2; ++job) {
      EXPECT_EQ(Submit(1), job);
      Tell(10, Report(job, 1, v1::AttemptReport::RUNNING));
    }
    Heard(10);
  }
  static v1::ClientRequest Drain(bool finish, double deadline_s = 0) {
    v1::ClientRequest request;
    request.mutable_drain()->set_node("a");
    request.mutable_drain()->set_drain(true);
    request.mutable_drain()->set_finish(finish);
    request.mutable_drain()->set_deadline_s(deadline_s);
    return request;
  }
  static v1::ClientRequest Undrain() {
    v1::ClientRequest request;
    request.mutable_drain()->set_node("a");
    return request;
  }
  v1::NodeStatus NodeA() { return controller_->world().NodeStatuses()[0]; }
  // Agents are heard of, so that no lease is over.
  void Pass(Duration time) {
    for (Duration left = time; left > Duration{0}; left -= std::chrono::seconds(10)) {
      v1::AgentMessage beat;
      beat.mutable_heartbeat();
      Hear(10, beat);
      Step(std::min(left, Duration(std::chrono::seconds(10))));
    }
  }
};

TEST_F(FinishingTest, JobsRunUntilTheyEndAndNoneComesBehindThem) {
  const v1::NodeStatus status = Call(As(Drain(true), 1003, v1::Caller::OPERATOR)).drain().status();
  EXPECT_TRUE(status.drained());
  EXPECT_TRUE(status.finishing());
  EXPECT_EQ(status.jobs_size(), 2);
  EXPECT_EQ(
      status.changed_by(),
      "drained by user1003 (uid 1003, operator) at 1970-01-01T00:00:00Z; jobs on it run until "
      "they end");
  EXPECT_EQ(KindsHeard(10), "");
  EXPECT_EQ(Submit(1), 3U);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 0));
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(StateOf(2), v1::RUNNING);
  EXPECT_EQ(StateOf(3), v1::WAITING);
  EXPECT_EQ(NodeA().jobs_size(), 1);
  Call(Undrain());
  EXPECT_EQ(StateOf(2), v1::RUNNING) << "it goes on as it was";
  EXPECT_EQ(StateOf(3), v1::STARTING);
}

TEST_F(FinishingTest, AtTheDeadlineThoseThatAreLeftHaveNotice) {
  EXPECT_EQ(Call(Drain(true, 120)).drain().status().finish_until(), 120);
  Pass(std::chrono::seconds(119));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Open();  // a restart does not forget it
  Hello(10, "a",
        {Report(1, 1, v1::AttemptReport::RUNNING), Report(2, 1, v1::AttemptReport::RUNNING)});
  Heard(10);
  EXPECT_EQ(NodeA().finish_until(), 120);
  Pass(std::chrono::seconds(2));
  EXPECT_NE(KindsHeard(10).find("stop stop "), std::string::npos);
  EXPECT_FALSE(NodeA().finishing());
  EXPECT_TRUE(NodeA().drained());
}

TEST_F(FinishingTest, AnotherWayOfADrainKeepsItsReason) {
  v1::ClientRequest first = Drain(true);
  first.mutable_drain()->set_reason("a new fan: at last");
  Call(As(first, 1003, v1::Caller::OPERATOR));
  EXPECT_THAT(Call(As(Drain(true, 120), 0, v1::Caller::ADMIN)).drain().status().changed_by(),
              testing::EndsWith(": a new fan: at last"));
  v1::ClientRequest other = Drain(true, 120);
  other.mutable_drain()->set_reason("a new board");
  EXPECT_THAT(Call(As(other, 0, v1::Caller::ADMIN)).drain().status().changed_by(),
              testing::EndsWith(": a new board"));
  EXPECT_EQ(NodeA().jobs_size(), 2) << "nothing else changes";
  Call(As(Undrain(), 0, v1::Caller::ADMIN));
  EXPECT_THAT(Call(As(Drain(false), 0, v1::Caller::ADMIN)).drain().status().changed_by(),
              testing::Not(testing::HasSubstr("fan")));
  other.mutable_drain()->clear_deadline_s();
  EXPECT_THAT(Call(As(other, 0, v1::Caller::ADMIN)).drain().status().changed_by(),
              testing::EndsWith("at 1970-01-01T00:00:00Z: a new board"))
      << "its jobs have had notice";
}

TEST_F(FinishingTest, AJobSaysWhenItHasToLeaveAndWhyItHasLeft) {
  Call(As(Drain(true, 120), 1003, v1::Caller::OPERATOR));
  EXPECT_EQ(StatusOf(1).reason(),
            "a is draining until 1970-01-01T00:02:00Z: then the job goes on elsewhere");
  Step(std::chrono::seconds(1));
  Call(As(Drain(false), 1003, v1::Caller::OPERATOR));
  v1::ClientRequest asked;
  asked.mutable_jobs()->add_jobs(1);
  asked.mutable_jobs()->set_history(true);
  const v1::JobStatus status = Call(asked).jobs().jobs(0);
  ASSERT_GT(status.history_size(), 0) << status.ShortDebugString();
  EXPECT_EQ(status.history().rbegin()->what(), "preempted");
  EXPECT_EQ(status.history().rbegin()->by(),
            "drained by user1003 (uid 1003, operator) at 1970-01-01T00:00:01Z");
}

TEST_F(FinishingTest, TheNextDrainCountsUnlessItSaysTheSame) {
  Call(Drain(true));
  const std::string digest = controller_->digest();
  Call(Drain(true));
  EXPECT_EQ(controller_->digest(), digest);
  EXPECT_EQ(Call(Drain(true, 60)).drain().status().finish_until(), 60);
  EXPECT_EQ(Call(Drain(true)).drain().status().finish_until(), 0);
  EXPECT_EQ(KindsHeard(10), "");
  EXPECT_FALSE(Call(Drain(false)).drain().status().finishing());
  EXPECT_EQ(KindsHeard(10), "stop stop ");
  EXPECT_FALSE(Call(Drain(true)).drain().status().finishing()) << "nothing is left to finish";
}

TEST_F(FinishingTest, WhatIsLostThereGoesOnElsewhere) {
  Call(Drain(true));
  Hello(11, "b");
  Heard(11);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));  // somebody has killed it
  v1::ClientRequest requeue;
  requeue.mutable_requeue()->set_job(2);
  Call(requeue);
  Tell(10, Report(2, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(StateOf(2), v1::STARTING);
  EXPECT_EQ(KindsHeard(11).find("start "), 0U);
}

TEST_F(FinishingTest, OneThatIsNoDeadlineIsRefused) {
  EXPECT_EQ(ErrorOf(Drain(true, -1)).find("the deadline of a drain is -1"), 0U);
  EXPECT_EQ(ErrorOf(Drain(false, 60)).find("the deadline of a drain is 60"), 0U);
  EXPECT_EQ(ErrorOf(Drain(true, std::nan(""))).find("the deadline of a drain is nan"), 0U);
}

// A job that is not to be requeued, beside those of the fixture.
class NoRequeueTest : public FinishingTest {
 protected:
  NoRequeueTest() {
    Hello(11, "b");
    v1::ClientRequest request = Submission(2);
    request.mutable_submit()->mutable_job()->set_no_requeue(true);
    EXPECT_EQ(Call(request).submit().job(), 3U);
    Tell(11, Report(3, 1, v1::AttemptReport::RUNNING));
    Heard(11);
  }
};

TEST_F(NoRequeueTest, IsNotRequeuedOrResizedByItsUser) {
  v1::ClientRequest request;
  request.mutable_requeue()->set_job(3);
  EXPECT_EQ(ErrorOf(request),
            "job 3 was submitted with --no-requeue and does not start again; 'trainyard cancel 3' "
            "ends it");
  request.mutable_resize()->set_job(3);
  request.mutable_resize()->set_gpus(1);
  EXPECT_EQ(ErrorOf(request),
            "job 3 was submitted with --no-requeue and would have to start again; expected a job "
            "that waits");
  EXPECT_EQ(StateOf(3), v1::RUNNING);
  EXPECT_EQ(KindsHeard(11), "");
}

TEST_F(NoRequeueTest, HasFailedWhenItsNodeIsLostAndDoesNotWaitAgain) {
  Pass(std::chrono::seconds(120));  // nothing is heard of b
  const v1::JobStatus status = StatusOf(3);
  EXPECT_EQ(status.state(), v1::FAILED) << status.ShortDebugString();
  EXPECT_EQ(status.reason(), model::kLostNoRequeue);
  EXPECT_EQ(status.reason_code(), "NodeDown");
  Open();  // it is so after a restart, too
  EXPECT_EQ(StateOf(3), v1::FAILED);
  EXPECT_EQ(StatusOf(3).reason(), model::kLostNoRequeue);
}

TEST_F(NoRequeueTest, IsEndedByADrainThatDoesNotWaitAndNotByOneThatDoes) {
  v1::ClientRequest drain = Drain(true);
  drain.mutable_drain()->set_node("b");
  Call(drain);
  EXPECT_EQ(StateOf(3), v1::RUNNING);
  EXPECT_EQ(KindsHeard(11), "");
  drain.mutable_drain()->set_finish(false);
  Call(drain);
  EXPECT_EQ(KindsHeard(11), "stop ");
  EXPECT_EQ(StateOf(3), v1::FAILED);
  EXPECT_EQ(StatusOf(3).reason(), model::kLostNoRequeue);
}

}  // namespace
}  // namespace trainyard::live
