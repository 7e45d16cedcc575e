// SPDX-License-Identifier: Apache-2.0
#include "live/view/statuses.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "support/live_world.h"

namespace trainyard::live {
namespace {

using std::chrono::seconds;

TEST_F(LiveWorldTest, UnknownJobsHideNoOthers) {
  Submit(1);
  v1::ClientRequest request;
  for (const std::uint64_t job : {7U, 1U, 0U}) {
    request.mutable_jobs()->add_jobs(job);
  }
  const v1::JobsReply reply = Call(request).jobs();
  ASSERT_EQ(reply.jobs_size(), 1);
  EXPECT_EQ(reply.jobs(0).job(), 1U);
  EXPECT_EQ(reply.unknown_size(), 2);
}

TEST_F(LiveWorldTest, WorkersThatDoNotLeaveAreNamed) {
  Hello(10, "a");
  Submit(2);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::RUNNING);
  report.add_gpus(1);
  Tell(10, report);
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  Call(drain);
  Step(seconds(14));
  report.set_state(v1::AttemptReport::STOPPING);
  Tell(10, report);
  Step(seconds(2));
  EXPECT_EQ(StatusOf(1).reason(),
            "had notice 16.0s ago and has not left a within 10.0s; the agent's output there says "
            "why");
  Step(seconds(20));
  EXPECT_EQ(StatusOf(1).reason(), "had notice 36.0s ago; no word from a");
  Tell(10, report);
  v1::ClientRequest cancel;
  cancel.mutable_cancel()->set_job(1);
  Call(cancel);
  drain.mutable_drain()->set_drain(false);
  Call(drain);
  Submit(1);
  EXPECT_EQ(StateOf(2), v1::STARTING);
  EXPECT_EQ(StatusOf(2).reason(), "job 1 has not left a yet");
  report.set_state(v1::AttemptReport::EXITED);
  Tell(10, report);
  EXPECT_EQ(StatusOf(2).reason(), "");
}

TEST_F(LiveWorldTest, RunTimeIsTimeWithGpus) {
  const auto run_time = [this] { return controller_->world().StatusOf(JobAt(0)).run_s(); };
  Submit(1);
  Step(seconds(100));
  EXPECT_EQ(run_time(), 0);
  Hello(10, "a");
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Step(seconds(30));
  EXPECT_EQ(run_time(), 30);
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  Call(drain);
  Step(seconds(2));
  EXPECT_EQ(StateOf(1), v1::STOPPING);
  EXPECT_EQ(StatusOf(1).reason(),
            "had notice 2.0s ago: it saves itself and leaves, or is killed after 10.0s");
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED, 143));
  Step(seconds(50));
  EXPECT_EQ(run_time(), 30);
  drain.mutable_drain()->set_drain(false);
  Call(drain);
  Tell(10, Report(1, 2, v1::AttemptReport::RUNNING));
  Step(seconds(5));
  Tell(10, Report(1, 2, v1::AttemptReport::EXITED));
  Step(seconds(50));
  EXPECT_EQ(StateOf(1), v1::COMPLETED);
  EXPECT_EQ(run_time(), 35);
}

TEST_F(LiveWorldTest, ASilentNodeIsShownSo) {
  const auto silent = [this] {
    v1::ClientRequest request;
    request.mutable_nodes();
    return Call(request).nodes().nodes(0).silent();
  };
  v1::ClientRequest nodes;
  nodes.mutable_nodes();
  EXPECT_EQ(Call(nodes).nodes().nodes(0).last_heard(), 0);
  EXPECT_FALSE(silent());  // it is down
  Hello(10, "a");
  Submit(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  Step(seconds(10));
  EXPECT_FALSE(silent());
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(), "");
  Step(seconds(1));  // more than two heartbeats
  EXPECT_TRUE(silent());
  EXPECT_TRUE(Call(nodes).nodes().nodes(0).up());
  EXPECT_EQ(controller_->world().StatusOf(JobAt(0)).reason(), "no word from a");
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_number(1);
  controller_->world().OnAgent(10, beat);
  EXPECT_FALSE(silent());
  controller_->world().OnAgentGone(10);
  EXPECT_TRUE(silent());  // at once
}

class WhyItWaitsTest : public LiveWorldTest {
 protected:
  // Nobody overtakes.
  class Strict final : public Ordering {
   public:
    [[nodiscard]] std::string_view name() const override { return "strict"; }
    [[nodiscard]] OrderingTraits traits() const override {
      return {.walk = {.misfit = Misfit::kStop, .preempt = false}};
    }
    [[nodiscard]] Standing StandingOf(const JobView& /*job*/, TimePoint /*now*/,
                                      const Memory* /*memory*/) const override {
      return {};
    }
  };
  WhyItWaitsTest() {
    bundle_.ordering = &strict_;
    store_ = FailingStore();
    Open();
    Hello(10, "a");
    Hello(11, "b");
  }
  ~WhyItWaitsTest() override { controller_.reset(); }
  [[nodiscard]] std::string ReasonOf(std::uint64_t job) {
    return controller_->world().StatusOf(JobAt(job - 1)).reason();
  }

  Strict strict_;
};

TEST_F(WhyItWaitsTest, BehindABlockedHead) {
  Submit(3);
  Submit(4);
  Submit(1);
  Submit(2);
  EXPECT_EQ(ReasonOf(1), "");
  const std::string behind =
      "behind job 2, which asks for 4 GPUs: not enough free GPUs: 1 of 4 free, it asks for 4";
  EXPECT_EQ(ReasonOf(2),
            "not enough free GPUs: 1 of 4 free, it asks for 4; it is the next in line");
  EXPECT_EQ(ReasonOf(3), behind);
  EXPECT_EQ(ReasonOf(4), behind);
  Open();  // and after a restart
  EXPECT_EQ(ReasonOf(3), behind);
}

TEST_F(WhyItWaitsTest, NodesThatAreAwayAreNamed) {
  v1::ClientRequest drain;
  drain.mutable_drain()->set_node("a");
  drain.mutable_drain()->set_drain(true);
  Call(drain);
  Submit(4);
  EXPECT_EQ(ReasonOf(1),
            "not enough free GPUs: 2 of 2 free, it asks for 4; it is the next in line; drained: a");
  controller_->world().OnAgentGone(11);
  Step(seconds(75));
  EXPECT_EQ(ReasonOf(1),
            "not enough free GPUs: 0 of 0 free, it asks for 4; it is the next in line; drained: a; "
            "down: b");
}

TEST_F(WhyItWaitsTest, BehindAHeadThatAvoidsNodes) {
  Submit(2);
  Submit(2);
  v1::AttemptReport failed = Report(1, 1, v1::AttemptReport::EXITED, 126);
  failed.set_cause(v1::AttemptReport::DEVICE);
  failed.set_message("GPU 0: is lost");
  Tell(10, failed);
  Submit(1);
  EXPECT_TRUE(ReasonOf(1).ends_with("; avoids a: GPU 0: is lost")) << ReasonOf(1);
  const std::string why = base::ReplaceAll(ReasonOf(1), "it is the next in line; ", "");
  EXPECT_EQ(ReasonOf(3), "behind job 1, which asks for 2 GPUs: " + why);
}

TEST_F(WhyItWaitsTest, OneGpuIsOne) {
  Submit(4);
  Submit(1);
  Submit(2);
  EXPECT_EQ(ReasonOf(3),
            "behind job 2, which asks for 1 GPU: not enough free GPUs: 0 of 4 free, it asks for 1");
}

TEST_F(LiveWorldTest, AJobThatAdvancesNoMoreSaysSo) {
  Hello(10, "a");
  Call(Submission(1));
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::RUNNING);
  const auto advance = [&](double iterations) {
    report.set_iterations(iterations);
    Tell(10, report);
  };
  const auto wait = [&](std::uint64_t connection, int time) {  // the agent lives on
    for (int i = 0; i < time; ++i) {
      now_ += seconds(1);
      Tell(connection, report);
    }
  };
  advance(0);
  wait(10, 1200);
  EXPECT_EQ(StatusOf(1).reason(), "");  // it has never said anything: it may not be able to
  EXPECT_FALSE(StatusOf(1).has_progressed());
  advance(118);  // 20 minutes after its start
  wait(10, 1);
  advance(119);
  EXPECT_DOUBLE_EQ(StatusOf(1).progressed(), Seconds(now_));
  wait(10, 3599);
  EXPECT_EQ(StatusOf(1).reason(), "");
  wait(10, 1);
  EXPECT_EQ(StatusOf(1).reason(), "no progress for 1h00m (iteration 119)");
  advance(120);
  EXPECT_EQ(StatusOf(1).reason(), "");

  Open();  // how long its steps take is forgotten, and what it said
  Hello(12, "a", {report});
  wait(12, 59);
  EXPECT_EQ(StatusOf(1).reason(), "");
  wait(12, 1);
  EXPECT_EQ(StatusOf(1).reason(), "no progress for 1m00s (iteration 120)");
}

TEST_F(LiveWorldTest, AJobThatKeepsOthersWaitingSaysSoForAsLongAsItDoes) {
  Hello(10, "a");
  Call(Submission(1));
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::RUNNING);
  report.set_late("stage load goes on for too long");
  Tell(10, report);
  EXPECT_EQ(StatusOf(1).reason(), "stage load goes on for too long");
  report.clear_late();
  Tell(10, report);
  EXPECT_EQ(StatusOf(1).reason(), "");
}

}  // namespace
}  // namespace trainyard::live
