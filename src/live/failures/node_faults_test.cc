// SPDX-License-Identifier: Apache-2.0
// What becomes of jobs, and of later ones, when nodes or attempts fail.
#include <gtest/gtest.h>

#include <string>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

class NodeFaultTest : public LiveWorldTest {
 protected:
  NodeFaultTest() {
    Hello(10, "a");
    Hello(11, "b");
  }
  // Could not be started, or ended so.
  void Fail(std::uint64_t connection, std::uint64_t job, std::uint32_t attempt,
            v1::AttemptReport::Cause cause, const std::string& why, double failed_at = 0) {
    v1::AttemptReport report = Report(job, attempt, v1::AttemptReport::EXITED, 126);
    report.set_cause(cause);
    report.set_message(why);
    report.set_failed_at(failed_at);
    Tell(connection, report);
  }
  std::string WhereIs(std::uint64_t job) {
    std::string nodes;
    const v1::JobStatus status = StatusOf(job);
    for (const v1::NodeGrant& grant : status.grants()) {
      nodes += grant.node();
    }
    return nodes;
  }
  void Beat(std::uint64_t connection) {
    v1::AgentMessage beat;
    beat.mutable_heartbeat()->set_number(1);
    controller_->world().OnAgent(connection, beat);
    Step(seconds(1));
  }
};

constexpr const char* kFull = "/s/attempts/1-1: cannot be made: No space left on device";

TEST_F(NodeFaultTest, AJobGoesOnElsewhereIfItsNodeCannotRunIt) {
  Submit(2);
  EXPECT_EQ(WhereIs(1), "a");
  Fail(10, 1, 1, v1::AttemptReport::DISK, kFull);
  EXPECT_EQ(WhereIs(1), "b");
  EXPECT_EQ(StatusOf(1).failures(), 0U);
  EXPECT_EQ(StatusOf(1).attempt(), 2U);
}

TEST_F(NodeFaultTest, OneBadNodeFailsNoneOfManyJobs) {
  for (int job = 1; job <= 6; ++job) {
    Submit(2);
  }
  EXPECT_EQ(WhereIs(1) + WhereIs(2), "ab");
  for (const std::uint64_t job : {1U, 3U, 4U}) {
    Fail(10, job, 1, v1::AttemptReport::DISK, kFull);
  }
  v1::ClientRequest nodes;
  nodes.mutable_nodes();
  const v1::NodeStatus bad = Call(nodes).nodes().nodes(0);
  EXPECT_TRUE(bad.drained());
  EXPECT_EQ(bad.reason(), std::string("3 failures in a row, the last: ") + kFull);
  EXPECT_EQ(bad.changed_by(), "drained by the controller at 1970-01-01T00:00:00Z");
  EXPECT_EQ(StatusOf(1).reason(),
            std::string("not enough free GPUs: 0 of 2 free, it asks for 2; it is the next in "
                        "line; drained: a; avoids a: ") +
                kFull);
  Open();
  Hello(11, "b", {Report(2, 1, v1::AttemptReport::RUNNING)});
  Hello(10, "a");
  const v1::NodeStatus still = Call(nodes).nodes().nodes(0);
  EXPECT_TRUE(still.drained());
  EXPECT_EQ(still.reason(), bad.reason());
  EXPECT_EQ(still.changed_by(), bad.changed_by());
  std::uint64_t running = 2;
  for (const std::uint64_t next : {1U, 3U, 4U, 5U, 6U}) {
    Tell(11, Report(running, StatusOf(running).attempt(), v1::AttemptReport::EXITED));
    EXPECT_EQ(StateOf(running), v1::COMPLETED);
    EXPECT_EQ(WhereIs(next), "b");
    running = next;
  }
}

TEST_F(NodeFaultTest, ANodeThatCannotEndAnAttemptGetsNoFurtherJobs) {
  Submit(2);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(cancel);
  v1::AttemptReport stuck = Report(1, 1, v1::AttemptReport::STOPPING);
  stuck.set_unended("trainyard-launcher has not ended attempt 1 of job 1: no control groups");
  Tell(10, stuck);
  v1::ClientRequest nodes;
  nodes.mutable_nodes();
  EXPECT_TRUE(Call(nodes).nodes().nodes(0).drained());
  EXPECT_EQ(Call(nodes).nodes().nodes(0).reason(), stuck.unended());
  EXPECT_EQ(Call(nodes).nodes().nodes(0).changed_by(),
            "drained by the controller at 1970-01-01T00:00:00Z");
  Submit(2);
  Submit(2);
  EXPECT_EQ(WhereIs(2), "b");
  EXPECT_EQ(StatusOf(3).reason(),
            "not enough free GPUs: 0 of 2 free, it asks for 2; it is the next in line; drained: a");
  // A fault of all nodes does not clear the cluster.
  v1::AttemptReport other = Report(2, 1, v1::AttemptReport::STOPPING);
  other.set_unended(stuck.unended());
  Tell(11, other);
  EXPECT_FALSE(Call(nodes).nodes().nodes(1).drained());
  Open();
  Hello(11, "b", {Report(2, 1, v1::AttemptReport::RUNNING)});
  Hello(10, "a", {stuck});
  EXPECT_EQ(Call(nodes).nodes().nodes(0).reason(), stuck.unended());
  v1::ClientRequest undrain;
  undrain.mutable_drain()->set_node("a");
  Call(undrain);
  Tell(10, stuck);
  EXPECT_TRUE(Call(nodes).nodes().nodes(0).drained()) << "it is not better";
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));
  Call(undrain);
  EXPECT_EQ(WhereIs(3), "a");
}

TEST_F(NodeFaultTest, AnUndrainedNodeIsTriedAgain) {
  Submit(2);
  Submit(2);
  Fail(10, 1, 1, v1::AttemptReport::SPAWN, "no process");
  EXPECT_EQ(StateOf(1), v1::WAITING);
  v1::ClientRequest undrain;
  undrain.mutable_drain()->set_node("a");
  Call(undrain);
  EXPECT_EQ(WhereIs(1), "a");
}

TEST_F(NodeFaultTest, ANodeWithAnotherAgentIsTriedAgainAlsoAfterARestartOfTheController) {
  Submit(4);
  Fail(10, 1, 1, v1::AttemptReport::DEVICE, "GPU 0: is lost");
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "has had notice");
  EXPECT_EQ(StateOf(1), v1::WAITING);
  const std::string reason =
      "no node is left for it; it avoids a: GPU 0: is lost. It may try a "
      "node again after 'undrain NODE' or a restart of its agent";
  EXPECT_EQ(StatusOf(1).reason(), reason);
  Open();
  Hello(12, "a");
  Hello(13, "b");
  EXPECT_EQ(StatusOf(1).reason(), reason);
  controller_->world().OnAgentGone(12);
  v1::AgentMessage renewed = HelloOf("a");
  renewed.mutable_hello()->set_start("second");
  controller_->world().OnAgent(14, renewed);
  Step();
  EXPECT_EQ(WhereIs(1), "ab");
}

TEST_F(NodeFaultTest, NodesThatAreAwayAreNamedBesideThoseThatAJobAvoids) {
  Submit(4);
  Fail(10, 1, 1, v1::AttemptReport::DEVICE, "GPU 0: is lost");
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "has had notice");
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("b");
  drain.mutable_drain()->set_drain(true);
  Call(drain);
  EXPECT_EQ(StatusOf(1).reason(),
            "no node is left for it; it avoids a: GPU 0: is lost. It may try a node again after "
            "'undrain NODE' or a restart of its agent; drained: b");
}

TEST_F(NodeFaultTest, AJobThatWaitsForANodeStandsInNobodysWay) {
  Submit(4);
  Fail(10, 1, 1, v1::AttemptReport::DEVICE, "GPU 0: is lost");
  Submit(2);
  EXPECT_EQ(WhereIs(2), "a");  // though first come is first served
}

TEST_F(NodeFaultTest, ATypoFailsOnTheSecondNode) {
  Submit(2);
  Fail(10, 1, 1, v1::AttemptReport::NO_PROGRAM, "command 'pyton': No such file or directory");
  EXPECT_EQ(WhereIs(1), "b");
  Fail(11, 1, 2, v1::AttemptReport::NO_PROGRAM, "command 'pyton': No such file or directory");
  EXPECT_EQ(StateOf(1), v1::FAILED);
  EXPECT_EQ(StatusOf(1).exit_code(), 126);
}

TEST_F(NodeFaultTest, AGangIsBlamedOnTheNodeThatFailedFirst) {
  Submit(4);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "", 20);  // its peers are gone
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Fail(10, 1, 1, v1::AttemptReport::SUPERVISOR_LOST, "its supervisor is gone");
  EXPECT_EQ(StatusOf(1).failures(), 0U);
  Step(seconds(1));
  EXPECT_NE(StateOf(1), v1::FAILED);
}

TEST_F(NodeFaultTest, AGangsFailureIsItsOwnOnceAllItsNodesHaveBeenHeardOf) {
  Submit(4);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "", 20);
  Beat(11);
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Beat(10);  // it may have been on its way
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Step(seconds(5));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  Beat(10);
  EXPECT_EQ(StateOf(1), v1::FAILED);
}

class ThreeNodesTest : public NodeFaultTest {
 protected:
  ThreeNodesTest() {
    Open();
    Hello(10, "a");
    Hello(11, "b");
    Hello(12, "c");
  }
  [[nodiscard]] ControllerSetup SetUpOf() override {
    ControllerSetup setup = NodeFaultTest::SetUpOf();
    engine::Configuration configuration = *setup.engine.configuration;
    configuration.cluster.nodes.push_back({.name = "c", .gpus = 2});
    setup.engine.configuration = engine::Share(std::move(configuration));
    return setup;
  }
};

// Messages may be many when a pause of the controller is over.
TEST_F(ThreeNodesTest, AGangIsJudgedWhenAllThatHasArrivedIsTaken) {
  Submit(6);
  for (const std::uint64_t connection : {10U, 11U, 12U}) {
    Tell(connection, Report(1, 1, v1::AttemptReport::RUNNING));
  }
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "", 20);
  Step(seconds(6));
  EXPECT_EQ(StateOf(1), v1::RUNNING);
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_number(1);
  controller_->world().OnAgent(10, beat);
  for (const std::uint64_t connection : {12U, 10U}) {
    v1::AgentMessage message;
    v1::AttemptReport& report = *message.mutable_attempt();
    report = Report(1, 1, v1::AttemptReport::EXITED, 1);
    report.set_cause(connection == 10 ? v1::AttemptReport::DEVICE
                                      : v1::AttemptReport::CAUSE_UNSPECIFIED);
    controller_->world().OnAgent(connection, message);
  }
  Step();
  EXPECT_NE(StateOf(1), v1::FAILED);
  EXPECT_EQ(StatusOf(1).failures(), 0U);
}

TEST_F(NodeFaultTest, AGangWhoseNodeDiesIsNotBlamed) {
  Submit(4);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Tell(11, Report(1, 1, v1::AttemptReport::RUNNING));
  controller_->world().OnAgentGone(10);
  Fail(11, 1, 1, v1::AttemptReport::CAUSE_UNSPECIFIED, "", 20);
  for (int beat = 0; beat < 120; ++beat) {
    Beat(11);
  }
  EXPECT_EQ(StateOf(1), v1::WAITING);
  EXPECT_EQ(StatusOf(1).failures(), 0U);
}

TEST_F(NodeFaultTest, AttemptsThatVanishHaveABound) {
  Submit(2);
  for (std::uint32_t attempt = 1; attempt <= 4; ++attempt) {
    ASSERT_EQ(StatusOf(1).attempt(), attempt);
    const std::uint64_t connection = WhereIs(1) == "a" ? 10 : 11;
    Tell(connection, Report(1, attempt, v1::AttemptReport::RUNNING));
    Fail(connection, 1, attempt, v1::AttemptReport::SUPERVISOR_LOST, "its supervisor is gone");
    Step(seconds(1 << (attempt - 1)));
  }
  EXPECT_EQ(StateOf(1), v1::FAILED);
  EXPECT_EQ(StatusOf(1).reason(),
            "its supervisor has vanished in 4 attempts in a row; a job must leave the process that "
            "starts it alone");
}

TEST_F(NodeFaultTest, AReasonOnAllNodesMakesStartsWait) {
  Submit(2);
  Submit(2);
  Fail(10, 1, 1, v1::AttemptReport::DISK, kFull);
  Heard(10);
  Heard(11);
  Fail(11, 2, 1, v1::AttemptReport::DISK, kFull);
  EXPECT_EQ(KindsHeard(10) + KindsHeard(11), "forget ");
  EXPECT_EQ(StateOf(1), v1::STARTING);
  EXPECT_EQ(StatusOf(1).reason(),
            std::string("all starts wait: the same fault on several nodes: ") + kFull);
  Step(seconds(1));
  EXPECT_EQ(KindsHeard(10) + KindsHeard(11), "start start ");
}

TEST_F(LiveWorldTest, AFailureEndsAJobThatMayNotTryAgain) {
  Hello(10, "a");
  const std::uint64_t job = Submit(1);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED, 3);
  report.set_message("worker 0 exited with 3");
  Tell(10, report);
  EXPECT_EQ(StateOf(job), v1::FAILED);
  const v1::JobStatus status = controller_->world().StatusOf(JobAt(0));
  EXPECT_EQ(status.exit_code(), 3);
  EXPECT_EQ(status.reason(), "worker 0 exited with 3");
  store_.DropSnapshots();  // the journal alone says so, too
  Open();
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(), "worker 0 exited with 3");
}

TEST_F(LiveWorldTest, ATimeLimitIsTheReasonWhateverTheAttemptSaysAtItsEnd) {
  Hello(10, "a");
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->set_time_s(60);
  Call(request);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Step(seconds(61));
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED, 137);
  report.set_message("killed after its grace");
  Tell(10, report);
  EXPECT_EQ(StateOf(1), v1::FAILED);
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(),
            "it has reached its time limit of 1m00s");
}

TEST_F(LiveWorldTest, AFailureIsTriedAgainAsOftenAsTheJobSays) {
  Hello(10, "a");
  v1::ClientRequest request = Submission(1);
  request.mutable_submit()->mutable_job()->mutable_launch()->set_max_restarts(1);
  Call(request);
  Heard(10);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 3));
  EXPECT_EQ(KindsHeard(10), "forget ");
  EXPECT_EQ(StatusOf(1).reason(),
            "waits 1 s after failure 1 in a row: a worker failed with exit code 3");
  EXPECT_DOUBLE_EQ(StatusOf(1).next_try(), Seconds(now_ + seconds(1)));
  Step(seconds(1));
  EXPECT_EQ(KindsHeard(10), "start ");
  EXPECT_FALSE(StatusOf(1).has_next_try());
  EXPECT_EQ(StatusOf(1).last_failure(), 3);
  Open();  // the count survives
  Hello(12, "a", {Report(1, 2, v1::AttemptReport::RUNNING)});
  Tell(12, Report(1, 2, v1::AttemptReport::EXITED, 3));
  EXPECT_EQ(StateOf(1), v1::FAILED);
}

TEST_F(LiveWorldTest, LostWorkersAreNobodysFault) {
  Hello(10, "a");
  Submit(1);
  Heard(10);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED, 137);
  report.set_lost(true);
  Tell(10, report);
  EXPECT_EQ(KindsHeard(10), "start forget ");
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).failures(), 0U);
}

}  // namespace
}  // namespace trainyard::live
