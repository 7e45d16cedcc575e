// SPDX-License-Identifier: Apache-2.0
#include "cli/output_paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

class OutputPathsTest : public testing::Test {
 protected:
  OutputPathsTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "inner");
    std::ofstream(folder_ / "trace.csv") << "job_id\n";
    std::ofstream(folder_ / "inner" / "profile.csv") << "model\n";
  }
  ~OutputPathsTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }

  // What the user is told of an output beside the inputs of this test; empty: nothing is wrong.
  [[nodiscard]] std::string MessageFor(const std::string& output) const {
    return MessageFor({{.name = "--out", .path = output}});
  }
  [[nodiscard]] std::string MessageFor(const std::vector<NamedPath>& outputs) const {
    const Status status = CheckOutputs({{.name = "TRACE", .path = Path("trace.csv")},
                                        {.name = "--cluster", .path = "16x8"},
                                        {.name = "--profiles", .path = Path("inner")}},
                                       outputs);
    return status.ok() ? "" : status.error().message;
  }

 private:
  const fs::path folder_ =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(OutputPathsTest, AnInputIsNotWrittenOverWhateverItIsCalled) {
  EXPECT_EQ(MessageFor(Path("trace.csv")),
            Path("trace.csv") + ": --out would write over this file, which is an input (TRACE " +
                Path("trace.csv") + "); expected another place for the output");
  EXPECT_NE(MessageFor(Path("inner/../trace.csv")), "");
  fs::create_symlink(Path("trace.csv"), Path("link.csv"));
  EXPECT_NE(MessageFor(Path("link.csv")), "");
  fs::create_hard_link(Path("trace.csv"), Path("hard.csv"));
  EXPECT_NE(MessageFor(Path("hard.csv")), "");
}

TEST_F(OutputPathsTest, TheFilesOfAnInputFolderAreInputs) {
  EXPECT_NE(MessageFor(Path("inner/profile.csv")).find("(--profiles "), std::string::npos);
  EXPECT_EQ(MessageFor(Path("inner/new.csv")), "");
}

TEST_F(OutputPathsTest, WhatIsNoFileOfTheInputsIsFree) {
  EXPECT_EQ(MessageFor(Path("other.csv")), "");
  EXPECT_EQ(MessageFor(Path("nowhere/trace.csv")), "");
  EXPECT_EQ(MessageFor("16x8"), "");
  EXPECT_EQ(MessageFor(""), "");
}

TEST_F(OutputPathsTest, TwoOutputsAreTwoFiles) {
  EXPECT_EQ(MessageFor({{.name = "--journal", .path = Path("a")},
                        {.name = "--html", .path = Path("inner/../a")}}),
            Path("inner/../a") +
                ": --journal and --html would both write this file; expected different files");
  EXPECT_NE(
      MessageFor({{.name = "--out", .path = Path("a")}, {.name = "--out", .path = Path("a")}}), "");
  EXPECT_EQ(
      MessageFor({{.name = "--journal", .path = Path("a")}, {.name = "--html", .path = Path("b")}}),
      "");
  EXPECT_EQ(MessageFor({{.name = "--journal", .path = "/dev/null"},
                        {.name = "--html", .path = "/dev/null"}}),
            "");
}

}  // namespace
}  // namespace trainyard::cli
