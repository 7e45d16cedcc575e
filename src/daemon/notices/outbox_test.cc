// SPDX-License-Identifier: Apache-2.0
#include "daemon/notices/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "io/file.h"
#include "store/store.h"
#include "support/scratch_folder.h"

namespace trainyard::daemon {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

live::Notice NoticeOf(std::uint64_t job, std::int64_t at, const std::string& event = "end") {
  return {.job = job,
          .name = "bert \"large\"",
          .user = "ann",
          .event = event,
          .at = TimePoint{Duration{at}},
          .time = 1.5,
          .state = "completed",
          .reason = ""};
}

class OutboxTest : public testing::Test {
 protected:
  // As at each start of a controller. Nothing arrives while `broken_`.
  void Open(std::size_t most = 100, milliseconds patience = std::chrono::hours(1)) {
    Close();
    Result<std::unique_ptr<store::Store>> store = store::OpenStore(folder_.path() + "/state");
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = std::move(store).value();
    Result<std::unique_ptr<Outbox>> opened = Outbox::Open(
        {.name = "test",
         .former_file = former_file_,
         .log =
             [this](const std::string& line) {
               const std::lock_guard lock(mutex_);
               log_ += line + "\n";
             },
         .arrived = [this] { ++saves_due_; },
         .most = most,
         .first_pause = milliseconds(1),
         .longest_pause = milliseconds(4),
         .patience = patience},
        store_->notices(), [this](const live::Notice& notice, const std::string& json) -> Status {
          const std::lock_guard lock(mutex_);
          ++tries_;
          if (broken_) {
            return Failed("nobody is there");
          }
          arrived_.push_back(notice.job);
          last_ = json;
          return {};
        });
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    outbox_ = std::move(opened).value();
  }
  void Close() {
    outbox_.reset();
    store_.reset();
  }
  template <class Condition>
  bool Comes(const Condition& condition) {
    for (int i = 0; i < 30'000; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (condition()) {
          return true;
        }
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }
  bool Arrive(std::size_t count) {
    return Comes([&] { return arrived_.size() >= count; });
  }

  // The rows of the store, but the mark.
  [[nodiscard]] std::size_t Kept() const {
    const auto rows = store_->notices().Of("test");
    EXPECT_TRUE(rows.ok());
    std::size_t kept = 0;
    for (const store::StoredNotice& row : rows.value()) {
      kept += row.number > 0 ? 1 : 0;
    }
    return kept;
  }

  ScratchFolder folder_;
  const std::string former_file_ = folder_.path() + "/url";
  std::mutex mutex_;
  std::vector<std::uint64_t> arrived_;
  std::string last_;
  std::string log_;
  int tries_ = 0;
  std::atomic<int> saves_due_ = 0;
  std::atomic<bool> broken_ = false;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Outbox> outbox_;  // last: its thread uses the rest
};

TEST_F(OutboxTest, NoticesArriveInTheirOrder) {
  Open();
  outbox_->Begin();
  for (std::uint64_t job = 1; job <= 5; ++job) {
    outbox_->Put(NoticeOf(job, 10));
  }
  ASSERT_TRUE(Arrive(5));
  EXPECT_THAT(arrived_, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(last_, R"({"job":5,"name":"bert \"large\"","user":"ann","event":"end","time":1.5,)"
                   R"("state":"completed","reason":""})");
}

TEST_F(OutboxTest, WhatHasNotArrivedIsTriedAgainAndLogged) {
  broken_ = true;
  Open();
  outbox_->Begin();
  outbox_->Put(NoticeOf(1, 10));
  ASSERT_TRUE(Comes([&] { return tries_ >= 3; }));
  broken_ = false;
  ASSERT_TRUE(Arrive(1));
  ASSERT_TRUE(Comes([&] { return log_.find("has arrived now") != std::string::npos; }));
  EXPECT_THAT(log_, HasSubstr("test: the notice of job 1 (end) has not arrived: nobody is there; "
                              "trying again\n"));
}

TEST_F(OutboxTest, AfterARestartItGoesOnAndKnowsWhatWasPut) {
  broken_ = true;
  Open();
  outbox_->Begin();
  outbox_->Put(NoticeOf(1, 10));
  outbox_->Put(NoticeOf(2, 20));
  Open();
  broken_ = false;
  ASSERT_TRUE(Arrive(2));
  outbox_->Put(NoticeOf(1, 10));  // the controller goes through its journal
  outbox_->Put(NoticeOf(2, 20));
  outbox_->Put(NoticeOf(2, 20, "preempt"));
  outbox_->Put(NoticeOf(3, 30));
  ASSERT_TRUE(Arrive(4));
  Open();
  outbox_->Put(NoticeOf(3, 30));
  outbox_->Put(NoticeOf(4, 30));
  ASSERT_TRUE(Arrive(5));
  EXPECT_THAT(arrived_, ElementsAre(1, 2, 2, 3, 4));
}

TEST_F(OutboxTest, ANewOneDoesNotTellOfThePast) {
  Open();
  outbox_->Put(NoticeOf(1, 10));
  outbox_->Begin();
  outbox_->Put(NoticeOf(2, 20));
  ASSERT_TRUE(Arrive(1));
  EXPECT_THAT(arrived_, ElementsAre(2));
}

TEST_F(OutboxTest, WithoutRoomTheOldestAreGivenUp) {
  broken_ = true;
  Open(2);
  outbox_->Begin();
  for (std::uint64_t job = 1; job <= 4; ++job) {
    outbox_->Put(NoticeOf(job, 10));
  }
  EXPECT_THAT(log_, HasSubstr("more than 2 notices are on their way; that of job 1"));
  broken_ = false;
  ASSERT_TRUE(Arrive(2));
  EXPECT_TRUE(Comes([&] { return arrived_.back() == 4; }));
}

TEST_F(OutboxTest, ANoticeIsGivenUpAfterSomeTime) {
  broken_ = true;
  Open(100, milliseconds(0));
  outbox_->Begin();
  outbox_->Put(NoticeOf(1, 10));
  ASSERT_TRUE(Comes([&] { return log_.find("is given up") != std::string::npos; }));
}

TEST_F(OutboxTest, WhatHasArrivedLeavesTheStoreAtTheNextSave) {
  Open();
  outbox_->Begin();
  outbox_->Put(NoticeOf(1, 10));
  outbox_->Put(NoticeOf(2, 20));
  ASSERT_TRUE(Arrive(2));
  ASSERT_TRUE(Comes([&] { return saves_due_ == 2; }));
  outbox_->Save();
  EXPECT_EQ(Kept(), 0U);
  broken_ = true;
  outbox_->Put(NoticeOf(3, 30));
  EXPECT_EQ(Kept(), 0U) << "a notice costs no write of its own";
  outbox_->Save();
  EXPECT_EQ(Kept(), 1U);
}

// As when the controller dies: what it has put since the last save is told again by its journal.
TEST_F(OutboxTest, WithoutASaveNothingIsLost) {
  broken_ = true;
  const std::string state = folder_.path() + "/state";
  const std::string copy = folder_.path() + "/copy";
  Open();
  outbox_->Begin();
  outbox_->Put(NoticeOf(1, 10));
  outbox_->Save();
  outbox_->Put(NoticeOf(2, 20));
  std::filesystem::copy(state, copy, std::filesystem::copy_options::recursive);
  Close();
  std::filesystem::remove_all(state);
  std::filesystem::rename(copy, state);
  broken_ = false;
  Open();
  outbox_->Put(NoticeOf(1, 10));
  outbox_->Put(NoticeOf(2, 20));
  outbox_->Begin();
  outbox_->Put(NoticeOf(3, 30));
  ASSERT_TRUE(Arrive(3));
  EXPECT_THAT(arrived_, ElementsAre(1, 2, 3));
}

// Of 0.2.0: its mark, a notice that has arrived, one that has not, a line that is none, and one
// that was not written to its end.
TEST_F(OutboxTest, TheFileOf020IsTakenOver) {
  const auto line = [](int job, int at) {
    return R"({"job":)" + std::to_string(job) + R"(,"name":"a","user":"ann","event":"end",)" +
           R"("time":1.5,"state":"completed","reason":"","at":)" + std::to_string(at) + "}\n";
  };
  const std::string cut = line(6, 60);
  std::ofstream(former_file_) << R"({"mark":20,"keys":["2 end"]})"
                              << "\n"
                              << line(3, 30) << line(4, 40)
                              << "{\"done\":1}\nnonsense\n{\"job\":7}\n"
                              << line(5, 50) << cut.substr(0, cut.size() - 9);
  broken_ = true;
  Open();
  EXPECT_FALSE(std::filesystem::exists(former_file_));
  EXPECT_EQ(Kept(), 2U);
  Open();  // from the store
  broken_ = false;
  for (int job = 1; job <= 6; ++job) {
    outbox_->Put(NoticeOf(static_cast<std::uint64_t>(job), job * 10));
  }
  ASSERT_TRUE(Arrive(3));
  EXPECT_THAT(arrived_, ElementsAre(4, 5, 6)) << "6 was never whole, the others were put before";
}

// It was interrupted before it could remove the file.
TEST_F(OutboxTest, TheFileOf020IsTakenOverOnce) {
  Open();
  outbox_->Begin();
  std::ofstream(former_file_)
      << R"({"job":1,"name":"","user":"","event":"end","time":1,"state":"","reason":"","at":5})"
      << "\n";
  Open();
  EXPECT_EQ(Kept(), 0U);
  EXPECT_FALSE(std::filesystem::exists(former_file_));
}

TEST_F(OutboxTest, AProgramGetsTheNoticeByItsInputAndItsEnvironment) {
  const std::string program = folder_.Write(
      "hook", "#!/bin/sh\ncat >" + folder_.path() +
                  "/in\necho \"$TRAINYARD_JOB $TRAINYARD_EVENT $TRAINYARD_NAME\" >>" +
                  folder_.path() +
                  "/said\n[ \"$TRAINYARD_JOB\" != 9 ] || { echo broken >&2; exit 3; }\n");
  std::filesystem::permissions(program, std::filesystem::perms(0755));
  ASSERT_TRUE(CheckDestinations(program, "").ok());
  const Outbox::Deliver deliver = ByProgram(program);
  const live::Notice notice = NoticeOf(8, 10);
  EXPECT_TRUE(deliver(notice, JsonOf(notice)).ok());
  EXPECT_EQ(io::ReadBytes(folder_.path() + "/in").value(), JsonOf(notice) + "\n");
  EXPECT_EQ(io::ReadBytes(folder_.path() + "/said").value(), "8 end bert \"large\"\n");
  const Status failed = deliver(NoticeOf(9, 10), "{}");
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("has ended with status 3: broken"));
}

TEST_F(OutboxTest, WrongDestinationsAreRefused) {
  EXPECT_FALSE(CheckDestinations("hook", "").ok());
  EXPECT_FALSE(CheckDestinations("/no/such/hook", "").ok());
  EXPECT_FALSE(CheckDestinations("", "ftp://x/").ok());
  EXPECT_FALSE(CheckDestinations("", "http://x y/").ok());
  EXPECT_TRUE(CheckDestinations("", "").ok());
  const Status nobody = ByUrl("http://127.0.0.1:1/")(NoticeOf(1, 1), "{}");
  EXPECT_FALSE(nobody.ok());
}

}  // namespace
}  // namespace trainyard::daemon
