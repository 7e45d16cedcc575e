// SPDX-License-Identifier: Apache-2.0
#include "io/find_program.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/scratch_folder.h"

namespace trainyard::io {
namespace {

TEST(FindProgramTest, TheFirstFolderThatMayRunItCounts) {
  const ScratchFolder scratch;
  const std::string a = scratch.path() + "/as";
  const std::string b = scratch.path() + "/bs";
  std::filesystem::create_directory(a);
  std::filesystem::create_directory(b);
  const std::string data = scratch.Write("as/tool", "");
  const std::string tool = scratch.Write("bs/tool", "");
  std::filesystem::permissions(data, std::filesystem::perms::owner_read);
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  EXPECT_EQ(FindProgram("tool", a + ":" + b), tool);
  EXPECT_EQ(FindProgram("tool", a), "");
  EXPECT_EQ(FindProgram("other", a + ":" + b), "");
  EXPECT_EQ(FindProgram("tool", ""), "");
}

}  // namespace
}  // namespace trainyard::io
