// SPDX-License-Identifier: Apache-2.0
#include "cli/live/status/array_lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace trainyard::cli {
namespace {

using testing::ElementsAre;

class ArrayLinesTest : public testing::Test {
 protected:
  v1::JobStatus& Task(std::int64_t index, v1::JobState state, std::uint64_t array = 5) {
    v1::JobStatus& job = jobs_.emplace_back();
    job.set_job(array + static_cast<std::uint64_t>(index));
    job.set_array_job(array);
    job.set_array_index(index);
    job.set_state(state);
    job.mutable_request()->set_array("0-199%4");
    return job;
  }
  [[nodiscard]] std::vector<std::string> Texts() const {
    std::vector<const v1::JobStatus*> jobs;
    for (const v1::JobStatus& job : jobs_) {
      jobs.push_back(&job);
    }
    std::vector<std::string> texts;
    for (const JobLine& line : LinesOf(jobs)) {
      texts.push_back(TextOf(line));
    }
    return texts;
  }
  std::deque<v1::JobStatus> jobs_;
};

TEST_F(ArrayLinesTest, TasksThatWaitAreALine) {
  for (int i = 0; i < 3; ++i) {
    Task(i, v1::RUNNING);
  }
  for (int i = 3; i < 200; ++i) {
    Task(i, v1::WAITING);
  }
  jobs_.emplace_back().set_job(900);
  EXPECT_THAT(Texts(), ElementsAre("5_0", "5_1", "5_2", "5_[3-199%4]", "900"));
}

TEST_F(ArrayLinesTest, TasksWhoseTermsDifferAreApart) {
  for (int i = 0; i < 6; ++i) {
    Task(i, v1::WAITING);
  }
  jobs_[1].mutable_request()->set_name("other");
  jobs_[3].mutable_request()->set_time_s(60);
  jobs_[4].mutable_request()->set_time_s(60);
  EXPECT_THAT(Texts(), ElementsAre("5_[0,2,5%4]", "5_1", "5_[3-4%4]"));
}

TEST_F(ArrayLinesTest, ByStateAndHeldOrNotAndExitCode) {
  Task(0, v1::WAITING);
  Task(1, v1::WAITING).set_held(true);
  Task(2, v1::WAITING);
  Task(3, v1::COMPLETED);
  Task(4, v1::FAILED).set_exit_code(1);
  Task(5, v1::FAILED).set_exit_code(137);
  Task(6, v1::FAILED).set_exit_code(1);
  Task(7, v1::COMPLETED);
  Task(0, v1::WAITING, 100);
  EXPECT_THAT(Texts(), ElementsAre("5_[0,2%4]", "5_1", "5_[3,7]", "5_[4,6]", "5_5", "100_0"));
}

TEST_F(ArrayLinesTest, HeldTasksNameTheCommandThatReleasesAllOfThem) {
  for (int i = 0; i < 3; ++i) {
    v1::JobStatus& job = Task(i, v1::WAITING);
    job.set_held(i > 0);
    job.set_reason(i == 0 ? "not enough free GPUs"
                          : fmt::format("held by ann; 'trainyard release 5_{}' lets it go on", i));
  }
  const auto reason_of = [](std::vector<const v1::JobStatus*> jobs) {
    return ReasonOf(LinesOf(jobs).front());
  };
  EXPECT_EQ(reason_of({&jobs_[0]}), "not enough free GPUs");
  EXPECT_EQ(reason_of({&jobs_[1]}), "held by ann; 'trainyard release 5_1' lets it go on");
  EXPECT_EQ(reason_of({&jobs_[1], &jobs_[2]}), "held by ann; 'trainyard release 5' lets it go on");
}

TEST_F(ArrayLinesTest, ALongListIsCut) {
  for (int i = 0; i < 200; i += 2) {
    Task(i, v1::COMPLETED);
  }
  ASSERT_EQ(Texts().size(), 1U);
  EXPECT_LT(Texts().front().size(), 80U);
  EXPECT_THAT(Texts().front(), testing::EndsWith(",... 100 in all]"));
}

}  // namespace
}  // namespace trainyard::cli
