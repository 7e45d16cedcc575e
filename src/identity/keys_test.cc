// SPDX-License-Identifier: Apache-2.0
#include "identity/keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "identity/secret_file.h"
#include "support/scratch_folder.h"

namespace trainyard::identity {
namespace {

TEST(KeysTest, WhatOneKeySignsItsPublicKeyVerifies) {
  const KeyPair key = KeyPair::Make();
  const std::string signature = key.Sign("job 7 is ann's");
  EXPECT_EQ(key.public_key().size(), kPublicKeyBytes);
  EXPECT_EQ(signature.size(), kSignatureBytes);
  EXPECT_TRUE(Verify(key.public_key(), "job 7 is ann's", signature));
  EXPECT_TRUE(Verify(key.public_key(), "", key.Sign("")));
}

TEST(KeysTest, AnyChangedBitIsSeen) {
  const KeyPair key = KeyPair::Make();
  const std::string text = "job 7 is ann's";
  const std::string signature = key.Sign(text);
  const auto flipped = [](std::string bytes, std::size_t bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    return bytes;
  };
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    EXPECT_FALSE(Verify(key.public_key(), flipped(text, bit), signature)) << bit;
  }
  for (std::size_t bit = 0; bit < 8 * signature.size(); ++bit) {
    EXPECT_FALSE(Verify(key.public_key(), text, flipped(signature, bit))) << bit;
  }
  for (std::size_t bit = 0; bit < 8 * kPublicKeyBytes; ++bit) {
    EXPECT_FALSE(Verify(flipped(key.public_key(), bit), text, signature)) << bit;
  }
}

TEST(KeysTest, AnotherKeyAndPartsAreRefused) {
  const KeyPair key = KeyPair::Make();
  const std::string signature = key.Sign("text");
  EXPECT_FALSE(Verify(KeyPair::Make().public_key(), "text", signature));
  EXPECT_FALSE(Verify("", "text", signature));
  EXPECT_FALSE(Verify(key.public_key(), "text", ""));
  EXPECT_FALSE(Verify(key.public_key(), "text", signature + "x"));
  EXPECT_FALSE(Verify(key.public_key(), "text", signature.substr(1)));
}

// RFC 8032, section 7.1, test 2.
TEST(KeysTest, AgreesWithTheStandard) {
  const std::string key =
      FromHex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const std::string signature = FromHex(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(Verify(key, "\x72", signature));
  EXPECT_FALSE(Verify(key, "\x73", signature));
}

TEST(KeysTest, AFileIsMadeOnceAndReadAgain) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/key.pem";
  const Result<KeyPair> made = KeyPair::OpenOrMake(path);
  ASSERT_TRUE(made.ok()) << made.error().message;
  struct stat found {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
  const Result<KeyPair> read = KeyPair::OpenOrMake(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().public_key(), made.value().public_key());
  EXPECT_TRUE(Verify(made.value().public_key(), "a", read.value().Sign("a")));
}

TEST(KeysTest, AFileThatOthersMayReadIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/key.pem";
  ASSERT_TRUE(KeyPair::OpenOrMake(path).ok());
  chmod(path.c_str(), 0640);
  const Result<KeyPair> read = KeyPair::OpenOrMake(path);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("has the mode 0640"), std::string::npos)
      << read.error().message;
}

TEST(KeysTest, AFileWithoutAKeyOrWithAnotherKindIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/key.pem";
  ASSERT_TRUE(WriteSecretFile(path, "no key").ok());
  const Result<KeyPair> read = KeyPair::OpenOrMake(path);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("expected one of Ed25519"), std::string::npos);
}

TEST(KeysTest, ALinkInPlaceOfASecretFileIsRefused) {
  const ScratchFolder folder;
  ASSERT_TRUE(WriteSecretFile(folder.path() + "/real", "secret").ok());
  std::filesystem::create_symlink(folder.path() + "/real", folder.path() + "/link");
  EXPECT_TRUE(ReadSecretFile(folder.path() + "/real").ok());
  EXPECT_FALSE(ReadSecretFile(folder.path() + "/link").ok());
  EXPECT_FALSE(ReadSecretFile(folder.path()).ok());
  EXPECT_FALSE(ReadSecretFile(folder.path() + "/none").ok());
}

TEST(KeysTest, PublicKeysGoThroughPem) {
  const std::string key = KeyPair::Make().public_key();
  const Result<std::string> read = PublicKeyOf(PublicKeyPem(key), "key.pub");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), key);
  EXPECT_EQ(PublicKeyOf("x", "key.pub").error().message,
            "key.pub: holds no public key; expected one of Ed25519 in PEM");
}

TEST(KeysTest, SecretsDifferAndAreKeptAsHashes) {
  const std::string one = NewSecret();
  EXPECT_EQ(one.size(), 64U);
  EXPECT_NE(one, NewSecret());
  EXPECT_NE(HashOfSecret(one), one);
  EXPECT_EQ(HashOfSecret("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(SameBytes("ab", "ab"));
  EXPECT_FALSE(SameBytes("ab", "ac"));
  EXPECT_FALSE(SameBytes("ab", "abc"));
}

TEST(KeysTest, HexGoesBothWays) {
  const std::string bytes = RandomBytes(33);
  EXPECT_EQ(FromHex(ToHex(bytes)), bytes);
  EXPECT_EQ(FromHex("0g"), "");
  EXPECT_EQ(FromHex("abc"), "");
}

}  // namespace
}  // namespace trainyard::identity
