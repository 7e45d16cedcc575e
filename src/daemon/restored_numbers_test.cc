// SPDX-License-Identifier: Apache-2.0
#include "daemon/restored_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "support/scratch_folder.h"

namespace trainyard::daemon {
namespace {

using testing::HasSubstr;

constexpr double kDay = 24 * 3600;
constexpr double kNow = 1'795'000'000;  // in November 2026

class RestoredNumbersTest : public testing::Test {
 protected:
  RestoredNumbersTest() {
    Result<std::unique_ptr<store::Store>> opened = store::OpenStore(state_);
    EXPECT_TRUE(opened.ok());
    store_ = std::move(opened).value();
  }
  void Mark() const { std::ofstream(state_ + "/" + kCopyMark); }
  [[nodiscard]] bool is_marked() const { return std::filesystem::exists(state_ + "/" + kCopyMark); }
  // As a start with so many jobs does, at that time.
  Status Start(std::size_t jobs, double unix_now) {
    numbers_ = KeptNumbers(*store_).value();
    return RenumberCopy({.folder = state_, .jobs = jobs, .unix_now = unix_now}, *store_, numbers_,
                        [this](const std::string& line) { log_ = line; });
  }

  const ScratchFolder folder_;
  const std::string state_ = folder_.path() + "/state";
  std::unique_ptr<store::Store> store_;
  model::JobNumbers numbers_;
  std::string log_;
};

TEST_F(RestoredNumbersTest, OnlyACopyIsNumberedAnewAndOnce) {
  ASSERT_TRUE(Start(7, kNow).ok());
  EXPECT_EQ(numbers_.Of(JobAt(7)), 8U);
  Mark();
  ASSERT_TRUE(Start(7, kNow).ok());
  const std::uint64_t first = FirstNumberAt(kNow);
  EXPECT_EQ(numbers_.Of(JobAt(6)), 7U);
  EXPECT_EQ(numbers_.Of(JobAt(7)), first);
  EXPECT_THAT(log_, HasSubstr("the next job is " + std::to_string(first)));
  EXPECT_FALSE(is_marked());
  ASSERT_TRUE(Start(9, kNow + kDay).ok());
  EXPECT_EQ(numbers_.Of(JobAt(9)), first + 2) << "as the store has kept it";
}

TEST_F(RestoredNumbersTest, NumbersAreAboveThoseOfAnotherCopyThatWasPutBackBefore) {
  EXPECT_GE(FirstNumberAt(kNow + kDay) - FirstNumberAt(kNow), 100'000'000U);
  EXPECT_EQ(FirstNumberAt(0), 1U) << "a clock that has never been set";
}

TEST_F(RestoredNumbersTest, AClockThatHasGoneBackIsRefusedAndTheCopyStaysOne) {
  Mark();
  ASSERT_TRUE(Start(7, kNow).ok());
  Mark();
  const Status status = Start(9, kNow - kDay);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("expected a clock that is right"));
  EXPECT_TRUE(is_marked());
  EXPECT_TRUE(Start(9, kNow + kDay).ok());
  EXPECT_EQ(numbers_.Of(JobAt(9)), FirstNumberAt(kNow + kDay));
}

}  // namespace
}  // namespace trainyard::daemon
