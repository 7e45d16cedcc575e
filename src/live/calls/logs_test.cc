// SPDX-License-Identifier: Apache-2.0
// What calls for a job's logs are answered.
#include <gtest/gtest.h>

#include "support/live_world.h"

namespace trainyard::live {
namespace {

TEST_F(LiveWorldTest, LogsAreThoseOfTheLastAttemptThatHasStarted) {
  Hello(10, "a");
  Submit(1);
  v1::ClientRequest logs;
  logs.mutable_logs()->set_job(1);
  Tell(10, Report(1, 1, v1::AttemptReport::RUNNING));
  v1::ClientRequest resize;
  resize.mutable_resize()->set_job(1);
  resize.mutable_resize()->set_gpus(2);
  Call(resize);  // the second attempt waits for the first to leave
  Heard(10);
  Call(logs);
  EXPECT_EQ(Heard(10).front().read_log().id().attempt(), 1U);
  Tell(10, Report(1, 1, v1::AttemptReport::EXITED));  // it has finished: there will be no second
  Heard(10);
  Call(logs);
  EXPECT_EQ(Heard(10).front().read_log().id().attempt(), 1U);
  Submit(2);
  Submit(2);
  logs.mutable_logs()->set_job(3);
  EXPECT_EQ(ErrorOf(logs), "job 3 has not started: it is waiting (not enough free GPUs; down: b)");
}

TEST_F(LiveWorldTest, WhoHasNoLogLearnsHowTheJobStands) {
  Hello(10, "a");
  Submit(1);
  v1::AttemptReport report = Report(1, 1, v1::AttemptReport::EXITED, 127);
  report.set_cause(v1::AttemptReport::NO_PROGRAM);
  report.set_message("virtual environment '/venv': it has no program bin/python here");
  Tell(10, report);
  Heard(10);
  v1::ClientRequest logs;
  logs.mutable_logs()->set_job(1);
  Call(logs);
  const auto asked = Heard(10);
  ASSERT_FALSE(asked.empty());
  v1::AgentMessage none;
  none.mutable_log()->set_call(asked.front().read_log().call());
  none.mutable_log()->mutable_error()->set_message("job 1: no log of rank 0 of attempt 1");
  controller_->world().OnAgent(10, none);
  Step();
  EXPECT_EQ(said_.replies[calls_].error().message(),
            "job 1: no log of rank 0 of attempt 1; it is " + StateText(StateOf(1)) + " (" +
                StatusOf(1).reason() + ")");
}

}  // namespace
}  // namespace trainyard::live
