// SPDX-License-Identifier: Apache-2.0
#include "supervisor/steps/step_log.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/scratch_folder.h"

namespace trainyard::supervisor {
namespace {

v1::StepRecord RecordOf(int number, const std::string& name) {
  v1::StepRecord record;
  record.set_number(number);
  record.set_name(name);
  return record;
}

class StepLogTest : public testing::Test {
 protected:
  ScratchFolder folder_;
  StepLog log_{folder_.path() + "/" + kStepLog};
};

TEST_F(StepLogTest, TheLastRecordOfAStepCounts) {
  EXPECT_FALSE(log_.Read()) << "there is none";
  WriteStepRecord(folder_.path(), RecordOf(1, "b"));
  WriteStepRecord(folder_.path(), RecordOf(0, "a"));
  EXPECT_TRUE(log_.Read());
  EXPECT_FALSE(log_.Read()) << "nothing new";
  v1::StepRecord ended = RecordOf(1, "b");
  ended.set_ended(7);
  WriteStepRecord(folder_.path(), ended);
  EXPECT_TRUE(log_.Read());
  ASSERT_EQ(log_.records().size(), 2);
  EXPECT_EQ(log_.records()[0].name(), "a");
  EXPECT_FALSE(log_.records()[0].has_ended());
  EXPECT_EQ(log_.records()[1].ended(), 7);
}

// A job may write to the file what it likes.
TEST_F(StepLogTest, NoMoreIsKeptThanIsMeant) {
  WriteStepRecord(folder_.path(), RecordOf(kMostSteps, "late"));
  EXPECT_FALSE(log_.Read()) << "of those nothing is written";
  WriteStepRecord(folder_.path(), RecordOf(-1, "none"));
  v1::StepRecord large = RecordOf(3, std::string(100'000, 'x'));
  large.set_node_list(std::string(100'000, 'n'));
  large.GetReflection()->MutableUnknownFields(&large)->AddLengthDelimited(
      900, std::string(100'000, 'u'));
  WriteStepRecord(folder_.path(), large);
  EXPECT_TRUE(log_.Read());
  ASSERT_EQ(log_.records().size(), 1);
  EXPECT_EQ(log_.records()[0].name().size(), 64U);
  EXPECT_EQ(log_.records()[0].node_list().size(), 256U);
  EXPECT_LT(log_.records()[0].ByteSizeLong(), 400U);
}

// Each change of a step is one of the journal.
TEST_F(StepLogTest, AStepBeginsOnceAndEndsOnce) {
  v1::StepRecord step = RecordOf(0, "first");
  step.clear_ended();
  WriteStepRecord(folder_.path(), step);
  step.set_name("again");
  WriteStepRecord(folder_.path(), step);
  step.set_ended(9);
  step.set_exit_code(3);
  WriteStepRecord(folder_.path(), step);
  step.set_ended(10);
  step.set_exit_code(4);
  WriteStepRecord(folder_.path(), step);
  EXPECT_TRUE(log_.Read());
  ASSERT_EQ(log_.records().size(), 1);
  EXPECT_EQ(log_.records()[0].name(), "first");
  EXPECT_EQ(log_.records()[0].ended(), 9);
  EXPECT_EQ(log_.records()[0].exit_code(), 3);
}

TEST_F(StepLogTest, WhatIsNotWholeYetIsReadLater) {
  WriteStepRecord(folder_.path(), RecordOf(0, "first"));
  const std::string path = folder_.path() + "/" + kStepLog;
  std::string bytes;
  std::getline(std::ifstream(path), bytes, '\0');
  std::ofstream(path, std::ios::app) << bytes.substr(0, 3);
  EXPECT_TRUE(log_.Read());
  EXPECT_FALSE(log_.Read());
  std::ofstream(path, std::ios::app) << bytes.substr(3);
  EXPECT_TRUE(log_.Read());
  EXPECT_EQ(log_.records().size(), 1);
}

TEST_F(StepLogTest, StepsAreNumberedFromZero) {
  EXPECT_EQ(TakeStepNumber(folder_.path()), 0);
  EXPECT_EQ(TakeStepNumber(folder_.path()), 1);
}

}  // namespace
}  // namespace trainyard::supervisor
