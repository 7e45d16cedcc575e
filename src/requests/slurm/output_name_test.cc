// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/output_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace trainyard::requests {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// The name that the shell makes of the pattern for this environment.
std::string ShellName(const std::string& pattern, const std::string& environment) {
  const Result<std::string> word = OutputWord(pattern);
  if (!word.ok()) {
    return word.error().message;
  }
  std::string quoted;
  for (const char c : "printf %s " + word.value()) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  std::FILE* const shell =
      popen(("env -i PATH=\"$PATH\" " + environment + " /bin/sh -c '" + quoted + "'").c_str(), "r");
  std::string name;
  std::array<char, 256> part{};
  while (shell != nullptr && std::fgets(part.data(), part.size(), shell) != nullptr) {
    name += part.data();
  }
  EXPECT_EQ(pclose(shell), 0);
  return name;
}

constexpr const char* kTask =
    "TRAINYARD_JOB=12 TRAINYARD_ARRAY_JOB_ID=9 TRAINYARD_ARRAY_TASK_ID=83 SLURM_JOB_NAME='a b' "
    "NODE_RANK=1 RANK=3";
// Of a script that runs once: who its tasks are is for those to say that it starts.
constexpr const char* kJob = "TRAINYARD_JOB=7 SLURM_JOB_NAME=bert";

TEST(OutputNameTest, EachPlaceholderIsWhatSlurmMakesOfIt) {
  EXPECT_EQ(ShellName("%x-%j.out", kTask), "a b-12.out");
  EXPECT_EQ(ShellName("%A/%a", kTask), "9/83");
  EXPECT_EQ(ShellName("%b %t %n %s %J %%", kTask), "3 3 1 batch 12 %");
  EXPECT_EQ(ShellName("slurm-%A_%a.out", kJob), "slurm-7_4294967294.out");
  EXPECT_THAT(ShellName("%u@%N", kJob), MatchesRegex("[^@.]+@[^@.]+"));
}

TEST(OutputNameTest, NoLetterBehindAPlaceholderIsLost) {
  for (const char letter : std::string("jJAabxuNnts%")) {
    const std::string alone = ShellName(std::string("%") + letter, kTask);
    EXPECT_FALSE(alone.empty()) << letter;
    for (const std::string behind :
         {"_", "x", "Z", "7", "_train.out", ".log", "-", "[0]", "}", ":"}) {
      EXPECT_EQ(ShellName(std::string("a%") + letter + behind, kTask), "a" + alone + behind)
          << letter;
    }
  }
  EXPECT_EQ(ShellName("%j%j_%a%A", kTask), "1212_839");
}

TEST(OutputNameTest, WidthsPadNumbersWithZeros) {
  EXPECT_EQ(ShellName("%4j_%4a", kTask), "0012_0083");
  EXPECT_EQ(ShellName("%A_%1a%0j", kTask), "9_8312");
  EXPECT_EQ(ShellName("%3J", kTask), "012");
  EXPECT_EQ(ShellName("%2t%3n", kTask), "03001");
  EXPECT_EQ(ShellName("%10j", kTask), "0000000012");
  EXPECT_EQ(ShellName("%99j", kTask), "0000000012") << "10 places at most, as in Slurm";
  EXPECT_EQ(ShellName("%5x.%9s", kTask), "a b.batch") << "of numbers only";
}

TEST(OutputNameTest, AScriptThatRunsOnceIsTheFirstTaskOnTheFirstNode) {
  EXPECT_EQ(ShellName("%t_%j.txt", kJob), "0_7.txt");
  EXPECT_EQ(ShellName("%n_%j", kJob), "0_7");
  EXPECT_EQ(ShellName("a%2t%3n%j", kJob), "a000007");
}

TEST(OutputNameTest, WhatTheShellWouldExpandStaysAsItIs) {
  EXPECT_EQ(ShellName("$HOME `id` \"q\" \\n 'x' *", kTask), "$HOME `id` \"q\" \\n 'x' *");
}

TEST(OutputNameTest, UnknownPlaceholdersAreRefused) {
  for (const char* const pattern : {"%y", "a%", "%4", "%4_", "%-4j", "%z.out", "%j%q", "% j"}) {
    const Result<std::string> word = OutputWord(pattern);
    ASSERT_FALSE(word.ok()) << pattern;
    EXPECT_THAT(word.error().message, HasSubstr("is no placeholder; expected %j %J %A")) << pattern;
  }
  EXPECT_THAT(OutputWord("%A_%4y.out").error().message, testing::StartsWith("'%4y' is no"));
}

TEST(OutputNameTest, TasksOfAnArrayDifferByJobOrIndex) {
  EXPECT_TRUE(DiffersByTask("%A_%a.out"));
  EXPECT_TRUE(DiffersByTask("x%4j"));
  EXPECT_TRUE(DiffersByTask("/dev/null"));
  EXPECT_FALSE(DiffersByTask("%x-%A_%N.out"));
  EXPECT_FALSE(DiffersByTask("%%a"));
  EXPECT_FALSE(DiffersByTask("results.txt"));
}

}  // namespace
}  // namespace trainyard::requests
