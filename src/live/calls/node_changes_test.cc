// SPDX-License-Identifier: Apache-2.0
#include "live/calls/node_changes.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace trainyard::live
