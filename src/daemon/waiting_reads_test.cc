// SPDX-License-Identifier: Apache-2.0
#include "daemon/waiting_reads.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

namespace trainyard::daemon {
namespace {

v1::ClientRequest Asking(std::uint32_t wait, const std::string& since = "1-1") {
  v1::ClientRequest request;
  request.mutable_jobs()->set_since(since);
  request.mutable_jobs()->set_wait(wait);
  return request;
}

// A cluster of which a call learns as many jobs as have changed.
class WaitingReadsTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kLong = 60'000;

  void Change(int jobs) {
    {
      const std::lock_guard lock(mutex_);
      changed_ = jobs;
    }
    reads_.NoteStep();
  }
  [[nodiscard]] bool HasAnswered(std::uint64_t call) {
    const std::lock_guard lock(mutex_);
    return answers_.contains(call);
  }
  // Waits for the answer.
  [[nodiscard]] int JobsTold(std::uint64_t call) {
    std::unique_lock lock(mutex_);
    come_.wait(lock, [&] { return answers_.contains(call); });
    return answers_[call];
  }

  std::mutex mutex_;
  std::condition_variable come_;
  int changed_ = 0;
  std::map<std::uint64_t, int> answers_;
  WaitingReads reads_{[this](const v1::ClientRequest& /*request*/) {
                        const std::lock_guard lock(mutex_);
                        v1::ClientReply reply;
                        reply.mutable_jobs();
                        for (int i = 0; i < changed_; ++i) {
                          reply.mutable_jobs()->add_jobs();
                        }
                        return reply;
                      },
                      [this](std::uint64_t call, const v1::ClientReply& reply) {
                        const std::lock_guard lock(mutex_);
                        answers_[call] = reply.jobs().jobs_size();
                        come_.notify_all();
                      }};
};

TEST_F(WaitingReadsTest, OnlyCallsForChangesWait) {
  EXPECT_TRUE(WaitingReads::Waits(Asking(5)));
  EXPECT_FALSE(WaitingReads::Waits(Asking(0)));
  EXPECT_FALSE(WaitingReads::Waits(Asking(5, "")));
  v1::ClientRequest nodes;
  nodes.mutable_nodes();
  EXPECT_FALSE(WaitingReads::Waits(nodes));
}

TEST_F(WaitingReadsTest, WhatThereIsIsAnsweredAtOnce) {
  changed_ = 2;
  reads_.Add(7, Asking(kLong));
  ASSERT_TRUE(HasAnswered(7));
  EXPECT_EQ(JobsTold(7), 2);
}

TEST_F(WaitingReadsTest, AStepThatChangesSomethingAnswersAllThatWait) {
  reads_.Add(1, Asking(kLong));
  reads_.Add(2, Asking(kLong));
  reads_.NoteStep();  // nothing has changed
  EXPECT_FALSE(HasAnswered(1));
  Change(3);
  EXPECT_EQ(JobsTold(1), 3);
  EXPECT_EQ(JobsTold(2), 3);
}

TEST_F(WaitingReadsTest, AWaitThatIsOverIsAnsweredWithNothing) {
  reads_.Add(1, Asking(1));
  EXPECT_EQ(JobsTold(1), 0);
}

TEST_F(WaitingReadsTest, WhoHasGoneIsNotAnswered) {
  reads_.Add(1, Asking(kLong));
  reads_.Add(2, Asking(kLong));
  reads_.Drop(1);
  Change(1);
  EXPECT_EQ(JobsTold(2), 1);
  reads_.Stop();
  EXPECT_FALSE(HasAnswered(1));
}

TEST_F(WaitingReadsTest, AfterAStopNobodyWaits) {
  reads_.Add(1, Asking(kLong));
  reads_.Stop();
  EXPECT_FALSE(HasAnswered(1));
  reads_.Add(2, Asking(kLong));
  EXPECT_TRUE(HasAnswered(2));
}

TEST_F(WaitingReadsTest, OnlySoManyCallsWait) {
  for (std::uint64_t call = 0; call < WaitingReads::kMostCalls; ++call) {
    reads_.Add(call, Asking(kLong));
  }
  reads_.Add(10'000, Asking(kLong));
  EXPECT_TRUE(HasAnswered(10'000));
  EXPECT_FALSE(HasAnswered(0));
}

}  // namespace
}  // namespace trainyard::daemon
