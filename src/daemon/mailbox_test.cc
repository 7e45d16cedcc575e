// SPDX-License-Identifier: Apache-2.0
#include "daemon/mailbox.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace trainyard {
namespace {

TEST(MailboxTest, EachLetterOfManyThreadsIsTakenOnceAndInTheOrderOfItsThread) {
  constexpr int kThreads = 8;
  constexpr int kLetters = 2000;
  Mailbox mailbox;
  std::vector<int> next(kThreads, 0);
  int out_of_order = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int letter = 0; letter < kLetters; ++letter) {
        mailbox.Put([&, thread, letter] {
          out_of_order += next[static_cast<std::size_t>(thread)]++ == letter ? 0 : 1;
        });
      }
    });
  }
  int taken = 0;
  while (taken < kThreads * kLetters) {
    for (const Mailbox::Letter& letter : mailbox.Take(std::nullopt)) {
      letter();
      ++taken;
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(out_of_order, 0);
  EXPECT_EQ(next, std::vector<int>(kThreads, kLetters));
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
}  // namespace trainyard
