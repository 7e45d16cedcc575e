// SPDX-License-Identifier: Apache-2.0
#include "live/live_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

TEST_F(LiveWorldTest, AJobWaitsForANodeAndRunsToItsEnd) {
  const std::uint64_t job = Submit(2);
  EXPECT_EQ(job, 1U);
  EXPECT_EQ(StateOf(job), v1::WAITING);
  Hello(10, "a");
  EXPECT_EQ(KindsHeard(10), "welcome start ");
  EXPECT_EQ(StateOf(job), v1::STARTING);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  EXPECT_EQ(StateOf(job), v1::RUNNING);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(job), v1::COMPLETED);
  EXPECT_EQ(KindsHeard(10), "forget ");
}

TEST_F(LiveWorldTest, AStartSaysWhatAWorkerNeeds) {
  Hello(10, "a");
  Hello(11, "b");
  Submit(3);
  Heard(10);
  const std::vector<v1::ControllerMessage> heard = Heard(11);
  ASSERT_EQ(heard.size(), 2U);
  const v1::StartAttempt& start = heard[1].start();
  EXPECT_EQ(heard[1].epoch(), 7U);
  EXPECT_EQ(start.world_size(), 3);
  EXPECT_EQ(start.first_rank(), 2);
  EXPECT_EQ(start.node_rank(), 1);
  EXPECT_EQ(start.nodes(), 2);
  ASSERT_EQ(start.node_workers_size(), 2);
  EXPECT_EQ(start.node_workers(0), 2);
  EXPECT_EQ(start.node_workers(1), 1);
  EXPECT_EQ(start.master_address(), "a.example");
  EXPECT_EQ(start.gpus_size(), 1);
  EXPECT_EQ(start.job_name(), "job-1");
  EXPECT_EQ(start.launch().command(0), "train");
}

// The next job must not wait for the time at which the first was expected to end.
TEST_F(LiveWorldTest, AnEndThatComesSoonerThanExpectedIsAnEnd) {
  Hello(10, "a");
  Submit(2);
  Submit(2);
  Heard(10);
  Step(seconds(3));
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(KindsHeard(10), "start forget ");
}

TEST_F(LiveWorldTest, AResizedJobStopsBeforeItStartsAgain) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Heard(10);
  v1::ClientRequest request;
  request.mutable_resize()->set_job(1);
  request.mutable_resize()->set_gpus(2);
  EXPECT_EQ(Call(request).resize().status().request().gpus(), 2);
  EXPECT_EQ(KindsHeard(10), "stop ");
  EXPECT_EQ(StateOf(1), v1::STARTING);
  now_ += seconds(4);
  v1::AttemptReport left = Report(1, 1, v1::AttemptReport::EXITED);
  left.set_finished(false);  // it has had notice
  left.set_lost(true);
  Tell(10, left);
  const std::vector<v1::ControllerMessage> heard = Heard(10);
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0].start().gpus_size(), 2);
  EXPECT_EQ(heard[0].start().id().attempt(), 2U);
  EXPECT_EQ(heard[1].forget().id().attempt(), 1U);
  now_ += seconds(2);
  Tell(10, Report(1, 2, v1::AttemptReport::RUNNING));
  const v1::JobStatus status = controller_->world().StatusOf(JobAt(0));
  EXPECT_DOUBLE_EQ(status.stop_took_s(), 4);
  EXPECT_DOUBLE_EQ(status.start_took_s(), 6);  // from the grant: it had to wait for the old attempt
  EXPECT_EQ(status.resizes(), 1U);
  EXPECT_EQ(status.preemptions(), 0U);
}

TEST_F(LiveWorldTest, AJobThatFinishesAfterItsNoticeIsDone) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest request;
  request.mutable_resize()->set_job(1);
  request.mutable_resize()->set_gpus(2);
  Call(request);
  Heard(10);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED);
  Tell(10, report);
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(KindsHeard(10), "forget ");
}

TEST_F(LiveWorldTest, ACancelledJobIsStoppedAndStaysSo) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Heard(10);
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  EXPECT_EQ(Call(request).cancel().status().state(), v1::CANCELLED);
  EXPECT_EQ(KindsHeard(10), "stop ");
  EXPECT_EQ(ErrorOf(request), "") << "the same call once more";
  EXPECT_FALSE(StatusOf(1).has_exit_code());  // nobody knows yet
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  EXPECT_EQ(StateOf(1), v1::CANCELLED);
  EXPECT_EQ(StatusOf(1).exit_code(), 143);
  Open();
  EXPECT_FALSE(StatusOf(1).has_exit_code());  // no journal has it
}

TEST_F(LiveWorldTest, ACancelledGangHasTheFirstExitCodeThatIsNotZero) {
  Hello(10, "a");
  Hello(11, "b");
  Submit(4);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  Call(request);
  v1::AttemptReport saved = Report(1, 1, v1::AttemptReport::EXITED);
  saved.set_finished(false);
  Tell(10, saved);
  EXPECT_TRUE(StatusOf(1).has_exit_code());
  EXPECT_EQ(StatusOf(1).exit_code(), 0);
  Tell(11, Report(1, 1, v1::AttemptReport::EXITED, 137));
  EXPECT_EQ(StatusOf(1).exit_code(), 137);
}

TEST_F(LiveWorldTest, AJobThatIsCancelledBeforeItHasRunHasNoExitCode) {
  Submit(1);
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  EXPECT_FALSE(Call(request).cancel().status().has_exit_code());
}

TEST_F(LiveWorldTest, ACancelIsNoPreemption) {
  Hello(10, "a");
  const auto drain = [this](bool on) {
    v1::ClientRequest request;
    request.mutable_drain()->set_node("a");
    request.mutable_drain()->set_drain(on);
    Call(request);
    Step(seconds(1));
  };
  const auto cancel = [this](std::uint64_t job) {
    v1::ClientRequest request;
    request.mutable_cancel()->set_job(job);
    Call(request);
    Step(seconds(1));
  };
  v1::AttemptReport left = Report(1, 1, v1::AttemptReport::EXITED, 143);
  left.set_lost(true);
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  drain(true);
  Tell(10, left);
  cancel(1);  // as it waits
  drain(false);
  Submit(1);
  Tell(10, Report(2, 1, v1::AttemptReport::RUNNING));
  Step(seconds(1));
  cancel(2);  // as it runs
  EXPECT_EQ(StatusOf(1).preemptions(), 1U);
  EXPECT_EQ(StatusOf(2).preemptions(), 0U);
  Open();
  EXPECT_EQ(StatusOf(1).preemptions(), 1U);
  EXPECT_EQ(StatusOf(2).preemptions(), 0U);
}

TEST_F(LiveWorldTest, HowLongAStartOrStopTookIsSaidOnlyIfItWasSeen) {
  Hello(10, "a");
  Submit(1);
  Step(seconds(2));
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  EXPECT_DOUBLE_EQ(StatusOf(1).start_took_s(), 2);
  Open();
  Step(seconds(9));  // without a controller, say
  Hello(12, "a", {Report(1, 1, v1::AttemptReport::RUNNING)});
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_FALSE(StatusOf(1).has_start_took_s());
  v1::ClientRequest request;
  request.mutable_cancel()->set_job(1);
  Call(request);
  controller_->world().OnAgentGone(12);
  Step(seconds(20));
  Hello(13, "a", {Report(1, 1, v1::AttemptReport::EXITED, 137)});
  EXPECT_EQ(StatusOf(1).exit_code(), 137);
  EXPECT_FALSE(StatusOf(1).has_stop_took_s());
}

TEST_F(LiveWorldTest, AnEndWithoutNoticeIsNoStop) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(StatusOf(1).exit_code(), 0);
  EXPECT_FALSE(StatusOf(1).has_stop_took_s());
}

TEST_F(LiveWorldTest, ANodeWithoutContactLosesItsJobsWhenItsLeaseIsOver) {
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Hello(11, "b");
  Step(seconds(74));
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_number(1);
  controller_->world().OnAgent(11, beat);
  Step();
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Heard(11);
  Step(seconds(1));  // lease, grace and margin
  EXPECT_EQ(said_.closed, std::vector<std::uint64_t>{10});
  EXPECT_EQ(KindsHeard(11), "start ");
  Hello(13, "a", {Report(1, 1, v1::AttemptReport::RUNNING)});  // a partition has ended
  EXPECT_EQ(KindsHeard(13), "welcome stop ");
  EXPECT_EQ(StateOf(1), v1::STARTING);
}

TEST_F(LiveWorldTest, ASilentNodeKeepsItsJobsAndGetsNoOthers) {
  Hello(10, "a");
  Hello(11, "b");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  KindsHeard(10);
  KindsHeard(11);
  controller_->world().OnAgentGone(10);
  Step(seconds(1));
  Step(seconds(1));  // an agent that is started anew is back in this time
  Hello(12, "a", {Report(1, 1, v1::AttemptReport::RUNNING)});
  EXPECT_EQ(KindsHeard(12), "welcome ");
  controller_->world().OnAgentGone(12);
  Step();
  Step(std::chrono::milliseconds(2001));
  Submit(1);
  EXPECT_EQ(KindsHeard(11), "start ");
  Submit(2);
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_EQ(StateOf(3), v1::WAITING);
  EXPECT_THAT(StatusOf(3).reason(), testing::EndsWith("; silent: a"));
  Open();  // another controller knows it, too
  Hello(13, "b", {Report(2, 1, v1::AttemptReport::RUNNING)});
  EXPECT_EQ(StateOf(3), v1::WAITING);
  Hello(14, "a", {Report(1, 1, v1::AttemptReport::RUNNING)});
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  EXPECT_EQ(StateOf(3), v1::STARTING);  // one GPU of each
}

TEST_F(LiveWorldTest, ANodeIsSilentAfterTwoHeartbeatsAndHeardByTheNext) {
  Hello(10, "a");
  Hello(11, "b");
  Step(seconds(10));
  StepHearing(11, seconds(1));
  KindsHeard(10);
  KindsHeard(11);
  Submit(1);
  EXPECT_EQ(KindsHeard(10), "");
  EXPECT_EQ(KindsHeard(11), "start ");
  StepHearing(10, seconds(0));
  Submit(1);
  EXPECT_EQ(KindsHeard(10), "heartbeat start ");
}

// To close the node its jobs would have to leave it.
TEST_F(LiveWorldTest, ASilentNodeStaysOpenWhereGpusAreShared) {
  policy_traits_.may.share = true;
  Open();
  Hello(10, "a");
  Hello(11, "b");
  controller_->world().OnAgentGone(10);
  Step();
  Step(seconds(3));
  KindsHeard(11);
  Submit(1);
  EXPECT_EQ(KindsHeard(11), "");
  EXPECT_EQ(StateOf(1), v1::STARTING);  // on a
}

// A node that the controller has found silent is drained, undrained and given up like any other.
TEST_F(LiveWorldTest, ASilentNodeIsDrainedAndGivenUpLikeAnother) {
  Hello(10, "a");
  Hello(11, "b");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  controller_->world().OnAgentGone(10);
  Step();
  Step(seconds(3));
  v1::ClientRequest drain;
  drain.mutable_drain()->add_nodes("a");
  drain.mutable_drain()->set_drain(true);
  drain.mutable_drain()->set_finish(true);
  EXPECT_TRUE(Call(drain).has_drain());
  Hello(12, "a", {Report(1, 1, v1::AttemptReport::RUNNING)});
  Submit(1);
  EXPECT_EQ(KindsHeard(12), "welcome ");  // still drained
  drain.mutable_drain()->set_drain(false);
  EXPECT_TRUE(Call(drain).has_drain());
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  controller_->world().OnAgentGone(12);
  Step();
  Step(seconds(3));
  StepHearing(11, seconds(73));
  EXPECT_NE(StateOf(1), v1::RUNNING);  // it starts again on b when that is heard
}

TEST_F(LiveWorldTest, AStrayAttemptKeepsItsGpusFromOthers) {
  Hello(10, "a", {Report(5, 1, v1::AttemptReport::RUNNING)});  // of which nobody knows here
  EXPECT_EQ(KindsHeard(10), "welcome stop ");
  Submit(1);
  EXPECT_EQ(KindsHeard(10), "");
  Tell(10, Report(5, 1, v1::AttemptReport::EXITED));
  EXPECT_EQ(KindsHeard(10), "start forget ");
}

// The order to start may have been lost with the controller that gave it.
TEST_F(LiveWorldTest, AnAttemptThatItsAgentDoesNotKnowIsStartedAgain) {
  Hello(10, "a");
  Submit(1);
  Open();
  Hello(12, "a");
  EXPECT_EQ(KindsHeard(12), "welcome start ");
}

TEST_F(LiveWorldTest, AgentsThatDoNotBelongAreRefused) {
  Hello(10, "c");
  ASSERT_EQ(said_.messages[10].size(), 1U);
  EXPECT_EQ(said_.messages[10][0].refusal().message(),
            "node 'c' is not in the controller's cluster; 'trainyard node add' adds it");
  Hello(11, "a", {}, 8);
  EXPECT_EQ(said_.messages[11][0].refusal().message(),
            "node 'a' has 8 GPUs; expected 2 as the configuration says");
  EXPECT_EQ(said_.closed, (std::vector<std::uint64_t>{10, 11}));
}

}  // namespace
}  // namespace trainyard::live
