// SPDX-License-Identifier: Apache-2.0
#include "launcher/credential.h"

#include <gtest/gtest.h>

#include <random>

namespace trainyard::launcher {
namespace {

const std::string kSignature(64, '\x5a');

Credential Example() {
  return {.job = 7,
          .attempt = 2,
          .user = "anna",
          .uid = 1001,
          .node = "n1",
          .gpus = {0, 3},
          .epoch = 5,
          .expires = 1'790'000'000,
          .launch = "9f86"};
}

std::string Signed(const Credential& credential) {
  return WithSignature(credential.ToText(), kSignature);
}

TEST(CredentialTest, WhatIsWrittenIsRead) {
  const Result<SignedCredential> read = ReadCredential(Signed(Example()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Credential& credential = read.value().credential;
  EXPECT_EQ(read.value().text, Example().ToText());
  EXPECT_EQ(read.value().signature, kSignature);
  EXPECT_EQ(credential.job, 7U);
  EXPECT_EQ(credential.attempt, 2U);
  EXPECT_EQ(credential.user, "anna");
  EXPECT_EQ(credential.uid, 1001U);
  EXPECT_EQ(credential.node, "n1");
  EXPECT_EQ(credential.gpus, (std::vector<int>{0, 3}));
  EXPECT_EQ(credential.epoch, 5U);
  EXPECT_EQ(credential.expires, 1'790'000'000);
  EXPECT_EQ(credential.launch, "9f86");
}

TEST(CredentialTest, WithoutGpusItIsReadToo) {
  Credential none = Example();
  none.gpus.clear();
  const Result<SignedCredential> read = ReadCredential(Signed(none));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(read.value().credential.gpus.empty());
}

// A user "x\nuid 0" would write a line of its own.
TEST(CredentialTest, ANameThatBreaksALineIsNotWritten) {
  for (const char* const name : {"x\nuid 0", "a b", "", "a\tb", "\x7f", "\xc3\xa4"}) {
    Credential bad = Example();
    bad.user = name;
    EXPECT_EQ(bad.ToText(), "") << name;
  }
}

TEST(CredentialTest, OnlyTheOneTextOfACredentialIsRead) {
  const std::string good = Signed(Example());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"job 7", "job 07"},
           {"job 7", "job +7"},
           {"job 7", "job  7"},
           {"uid 1001", "uid 4294968297"},  // 1001 after an overflow
           {"uid 1001", "uid -1"},
           {"gpus 0,3", "gpus 0,3,"},
           {"gpus 0,3", "gpus 0,,3"},
           {"gpus 0,3", "gpus 0 3"},
           {"job 7\n", "job 7\r\n"},
           {"job 7\n", "job 7\njob 7\n"},
           {"attempt 2\n", ""},
           {"epoch 5", "epoch 5 "},
           {"credential 1", "credential 2"},
           {"launch 9f86\n", "launch 9f86\nuid 0\n"},
           {"signature 5a", "signature 5A"},
           {"signature 5a", "signature "},
           {"signature", "signed"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_FALSE(ReadCredential(bad).ok()) << to;
  }
  EXPECT_FALSE(ReadCredential(good + "x").ok());
  EXPECT_FALSE(ReadCredential(good + good).ok());
  EXPECT_FALSE(ReadCredential(good.substr(0, good.size() - 1)).ok());
  EXPECT_FALSE(ReadCredential("").ok());
  EXPECT_FALSE(ReadCredential(std::string(kMaxCredentialBytes + 1, 'x')).ok());
}

TEST(CredentialTest, WhateverIsChangedNothingElseIsReadAsTheSame) {
  const std::string good = Signed(Example());
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int change = 0; change < changes; ++change) {
      bad[random() % bad.size()] = static_cast<char>(random() % 256);
    }
    const Result<SignedCredential> read = ReadCredential(bad);
    if (read.ok()) {
      EXPECT_EQ(WithSignature(read.value().text, read.value().signature), bad);
    }
  }
}

}  // namespace
}  // namespace trainyard::launcher
