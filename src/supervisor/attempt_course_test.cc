// SPDX-License-Identifier: Apache-2.0
#include "supervisor/attempt_course.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainyard::supervisor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = AttemptCourse::Clock;

class AttemptCourseTest : public testing::Test {
 protected:
  AttemptCourseTest() {
    start_.mutable_id()->set_job(7);
    start_.mutable_id()->set_attempt(2);
    start_.set_node("n1");
    start_.set_grace(30'000);
    start_.set_report_every(2'000);
  }
  // A worker has ended; the course has asked how.
  bool End(int exit_code) {
    bool asked = false;
    course_.NoteEnd(exit_code, 100, [&] {
      asked = true;
      return "rank 0 has ended with " + std::to_string(exit_code);
    });
    return asked;
  }
  AttemptCourse::Todo Decide(bool workers_run = true, bool childless = false) {
    return course_.Decide(workers_run, childless, training_, now_);
  }
  std::optional<AttemptCourse::Change> Change() {
    return course_.TakeChange(training_, stages_, now_);
  }
  v1::AttemptReport Last() { return course_.LastReport(training_, stages_); }

  v1::StartAttempt start_;
  Training training_;
  StageDesk::Seconds stages_{};
  Clock::time_point now_ = Clock::time_point(seconds(1000));
  AttemptCourse course_{start_, now_};
};

TEST_F(AttemptCourseTest, WorkersThatAllEndHaveFinished) {
  course_.NoteStarted();
  EXPECT_EQ(Change()->report.state(), v1::AttemptReport::RUNNING);
  EXPECT_FALSE(Decide().kill);
  EXPECT_FALSE(End(0));
  EXPECT_FALSE(course_.is_killing());
  EXPECT_FALSE(Decide(false, true).kill) << "nothing is left";
  EXPECT_TRUE(course_.is_killing());
  EXPECT_TRUE(Last().finished());
  EXPECT_EQ(Last().exit_code(), 0);
  EXPECT_FALSE(Last().lost());
  EXPECT_EQ(Last().id().attempt(), 2U);
}

TEST_F(AttemptCourseTest, TheFirstFailureIsTheReasonAndGivesTheOthersNotice) {
  course_.NoteStarted();
  EXPECT_TRUE(End(3));
  const AttemptCourse::Todo todo = Decide();
  ASSERT_TRUE(todo.notice.has_value());
  EXPECT_TRUE(todo.notice->is_first);
  EXPECT_TRUE(todo.notice->has_time);
  EXPECT_EQ(todo.notice->end, now_ + seconds(30));
  EXPECT_FALSE(todo.kill);
  EXPECT_EQ(course_.next_due(), now_ + seconds(30));
  EXPECT_FALSE(Decide().notice.has_value()) << "once";
  now_ += seconds(1);
  EXPECT_FALSE(End(9)) << "it had notice";
  now_ += seconds(29);
  EXPECT_TRUE(Decide().kill);
  EXPECT_EQ(Last().exit_code(), 3);
  EXPECT_EQ(Last().message(), "rank 0 has ended with 3");
  EXPECT_EQ(Last().failed_at(), 100);
  EXPECT_FALSE(Last().finished());
  EXPECT_FALSE(Last().lost()) << "nobody asked it to leave";
  EXPECT_EQ(Last().note(), "") << "nor has it ignored a notice";
}

TEST_F(AttemptCourseTest, ALaterNoticeOnlyShortensTheTime) {
  course_.NoteStarted();
  EXPECT_EQ(course_.AskToLeave(10'000, now_)->end, now_ + seconds(10));
  now_ += seconds(1);
  EXPECT_FALSE(course_.AskToLeave(20'000, now_).has_value());
  const auto shorter = course_.AskToLeave(2'000, now_);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_FALSE(shorter->is_first);
  EXPECT_EQ(shorter->end, now_ + seconds(2));
  EXPECT_EQ(Change()->report.state(), v1::AttemptReport::STOPPING);
  const auto none = course_.AskToLeave(-5, now_);
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->has_time);
  EXPECT_TRUE(Decide().kill) << "at once";
  EXPECT_FALSE(course_.AskToLeave(0, now_).has_value()) << "it is being killed";
}

TEST_F(AttemptCourseTest, WhoLeavesWithinItsNoticeIsLostAndNotFinished) {
  course_.NoteStarted();
  EXPECT_TRUE(course_.AskToLeave(10'000, now_).has_value());
  now_ += seconds(3);
  EXPECT_FALSE(End(0));
  Decide(false, true);
  EXPECT_TRUE(Last().lost());
  EXPECT_FALSE(Last().finished());
  EXPECT_EQ(Last().note(), "");
  training_.finished = true;  // it said so in its last second
  EXPECT_TRUE(Last().finished());
  EXPECT_FALSE(Last().lost());
}

TEST_F(AttemptCourseTest, WhoIgnoresItsNoticeIsNamed) {
  course_.NoteStarted();
  training_.checkpointed_iterations = 40;
  EXPECT_TRUE(course_.AskToLeave(5'000, now_).has_value());
  now_ += seconds(5);
  EXPECT_TRUE(Decide().kill);
  EXPECT_EQ(Last().note(),
            "did not leave within 5 s of its notice and was killed: what came after its checkpoint "
            "of iteration 40 is lost; a job that heeds SIGTERM or 'stop' saves a checkpoint and "
            "leaves");
}

TEST_F(AttemptCourseTest, KillsAreRepeatedWithGrowingPausesUntilNothingIsLeft) {
  course_.NoteStarted();
  std::vector<std::int64_t> pauses;
  const Clock::time_point end = now_ + seconds(4);
  while (now_ < end) {
    EXPECT_TRUE(Decide(false).kill);
    EXPECT_FALSE(Decide(false).kill) << "not yet";
    pauses.push_back(std::chrono::duration_cast<milliseconds>(course_.next_due() - now_).count());
    now_ = course_.next_due();
  }
  EXPECT_EQ(pauses.front(), 5);
  EXPECT_EQ(pauses[1], 10);
  EXPECT_EQ(pauses.back(), 500);
  EXPECT_FALSE(Decide(false, true).kill);
}

TEST_F(AttemptCourseTest, ProgressIsToldAsOftenAsIsAskedForAndStatesAtOnce) {
  course_.NoteStarted();
  EXPECT_TRUE(Change().has_value());
  EXPECT_FALSE(Change().has_value());
  training_.iterations = 5;
  ASSERT_TRUE(Change().has_value());
  training_.iterations = 6;
  training_.checkpointed_iterations = 6;
  EXPECT_FALSE(Change().has_value());
  EXPECT_EQ(course_.next_due(), now_ + seconds(2));
  now_ += seconds(2);
  const auto saved = Change();
  ASSERT_TRUE(saved.has_value());
  EXPECT_TRUE(saved->is_saved);
  EXPECT_EQ(saved->report.iterations(), 6);
  training_.metrics["loss"] = 0.5;
  EXPECT_FALSE(Change().has_value());
  EXPECT_TRUE(course_.AskToLeave(9'000, now_).has_value());
  const auto stopping = Change();
  ASSERT_TRUE(stopping.has_value());
  EXPECT_FALSE(stopping->is_saved);
  EXPECT_EQ(stopping->report.metrics_size(), 1);
}

TEST_F(AttemptCourseTest, WhatCouldNotBeStartedIsToldByItsLastReportAlone) {
  course_.NoteNotStarted({.exit_code = 127,
                          .message = "command 'x': it is not on the PATH",
                          .cause = v1::AttemptReport::NO_PROGRAM},
                         100);
  EXPECT_FALSE(Change().has_value());
  EXPECT_TRUE(Decide().kill) << "those that were";
  EXPECT_EQ(Last().exit_code(), 127);
  EXPECT_EQ(Last().cause(), v1::AttemptReport::NO_PROGRAM);
  EXPECT_EQ(Last().message(), "command 'x': it is not on the PATH");
}

TEST_F(AttemptCourseTest, AProcessThatTheKernelKillsEndsTheAttempt) {
  course_.NoteStarted();
  course_.NoteMemoryKill(100, {.most = std::int64_t{4} << 30, .limit = std::int64_t{4} << 30});
  EXPECT_TRUE(Decide().kill);
  EXPECT_EQ(Last().exit_code(), 137);
  EXPECT_EQ(Last().message(), "out of memory: 4 GiB of 4 GiB on n1; submit it with more --memory");
}

}  // namespace
}  // namespace trainyard::supervisor
