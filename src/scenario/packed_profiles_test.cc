// SPDX-License-Identifier: Apache-2.0
#include "scenario/packed_profiles.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/file.h"
#include "support/scratch_folder.h"

namespace trainyard::scenario {
namespace {

TEST(PackedProfilesTest, AFolderComesBackAsItWas) {
  const ScratchFolder scratch;
  std::filesystem::create_directories(scratch.path() + "/p/more");
  const std::string binary("a\0b", 3);
  (void)scratch.Write("p/vgg.csv", binary);
  (void)scratch.Write("p/more/samples", "1\n2\n");
  const Result<std::string> packed = PackProfiles(scratch.path() + "/p");
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  std::string where;
  {
    const auto unpacked = UnpackedProfiles::Make(packed.value());
    ASSERT_TRUE(unpacked.ok()) << unpacked.error().message;
    where = unpacked.value()->path();
    EXPECT_EQ(io::ReadBytes(where + "/vgg.csv").value(), binary);
    EXPECT_EQ(io::ReadBytes(where + "/more/samples").value(), "1\n2\n");
    EXPECT_EQ(PackProfiles(where).value(), packed.value());
  }
  EXPECT_FALSE(std::filesystem::exists(where));
  (void)scratch.Write("p/vgg.csv", "other");
  EXPECT_NE(PackProfiles(scratch.path() + "/p").value(), packed.value());
}

TEST(PackedProfilesTest, AFileKeepsItsName) {
  const ScratchFolder scratch;
  const Result<std::string> packed = PackProfiles(scratch.Write("models.csv", "model\n"));
  ASSERT_TRUE(packed.ok());
  const auto unpacked = UnpackedProfiles::Make(packed.value());
  ASSERT_TRUE(unpacked.ok());
  EXPECT_EQ(std::filesystem::path(unpacked.value()->path()).filename(), "models.csv");
  EXPECT_EQ(io::ReadBytes(unpacked.value()->path()).value(), "model\n");
}

TEST(PackedProfilesTest, WhatIsNoneIsRefused) {
  EXPECT_FALSE(PackProfiles("no such folder").ok());
  EXPECT_FALSE(UnpackedProfiles::Make("x").ok());
  EXPECT_FALSE(UnpackedProfiles::Make("").ok());
}

}  // namespace
}  // namespace trainyard::scenario
