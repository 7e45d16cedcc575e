// SPDX-License-Identifier: Apache-2.0
#include "daemon/mailbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace trainyard::daemon {
namespace {

TEST(MailboxTest, EachTaskOfManyThreadsIsTakenOnceAndInTheOrderOfItsThread) {
  constexpr int kThreads = 8;
  constexpr int kTasks = 2000;
  Mailbox mailbox;
  std::vector<int> next(kThreads, 0);
  int out_of_order = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int task = 0; task < kTasks; ++task) {
        mailbox.Put([&, thread, task] {
          out_of_order += next[static_cast<std::size_t>(thread)]++ == task ? 0 : 1;
        });
      }
    });
  }
  int taken = 0;
  while (taken < kThreads * kTasks) {
    for (const Mailbox::Task& task : mailbox.Take(std::nullopt)) {
      task();
      ++taken;
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(out_of_order, 0);
  EXPECT_EQ(next, std::vector<int>(kThreads, kTasks));
}

TEST(MailboxTest, TakeComesBackAtItsTimeAndWhenClosed) {
  Mailbox mailbox;
  EXPECT_TRUE(mailbox.Take(std::chrono::steady_clock::now()).empty());
  std::thread closer([&mailbox] { mailbox.Close(); });
  EXPECT_TRUE(mailbox.Take(std::nullopt).empty());
  EXPECT_TRUE(mailbox.closed());
  closer.join();
}

}  // namespace
}  // namespace trainyard::daemon
