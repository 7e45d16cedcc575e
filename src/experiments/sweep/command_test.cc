// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/command.h"

#include <gtest/gtest.h>

namespace trainyard::experiments {
namespace {

TEST(CommandTest, WhatAProgramSaysAndItsStatusComeBack) {
  const Result<CommandOutput> run =
      RunCommand({"sh", "-c", "echo \"$1\"; echo no >&2; exit 3", "sh", "it's $HOME"});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run.value().status, 3);
  EXPECT_EQ(run.value().output, "it's $HOME\n");
  EXPECT_EQ(run.value().errors, "no");
  EXPECT_EQ(RunCommand({"sh", "-c", "kill -9 $$"}).value().status, 137);
}

TEST(CommandTest, AProgramThatIsNotThereIsAnError) {
  const Result<CommandOutput> run = RunCommand({"no-such-program-here"});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().message,
            "no-such-program-here: cannot be started: No such file or directory");
}

TEST(CommandTest, QuotedWordsReachAProgramUnchanged) {
  const std::string word = "a 'b' \"c\" $d \\ *";
  const Result<CommandOutput> run = RunCommand({"sh", "-c", "printf %s " + QuotedForShell(word)});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().output, word);
}

}  // namespace
}  // namespace trainyard::experiments
