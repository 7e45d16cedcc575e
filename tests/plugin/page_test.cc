// SPDX-License-Identifier: Apache-2.0
// docs/adding-a-policy.md does what it says: its commands run in order, print what is shown, and
// the files that it shows whole are those of examples/plugin-policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

const std::string kPage = TRAINYARD_SOURCE_DIR "/docs/adding-a-policy.md";

struct Block {
  std::string kind;  // "sh", "console", "cpp", ...
  std::string text;
};

std::vector<Block> BlocksOf(const std::string& path) {
  std::istringstream text(ReadText(path));
  std::vector<Block> blocks;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = !inside;
      if (inside) {
        blocks.push_back({.kind = line.substr(3), .text = ""});
      }
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

struct Step {
  std::string command;
  std::string output;
  bool shown = false;  // the output is on the page
};

// The lines of ```sh blocks, and those of ```console blocks that begin with "$ " with what stands
// below them. A line that ends with '\' goes on.
std::vector<Step> StepsOf(const std::vector<Block>& blocks) {
  std::vector<Step> steps;
  for (const Block& block : blocks) {
    const bool console = block.kind == "console";
    std::istringstream text(block.text);
    bool goes_on = false;
    for (std::string line; std::getline(text, line);) {
      const bool command = block.kind == "sh" || (console && line.rfind("$ ", 0) == 0);
      if (goes_on) {
        steps.back().command += "\n" + line;
      } else if (command) {
        steps.push_back(
            {.command = console ? line.substr(2) : line, .output = "", .shown = console});
      } else if (console) {
        steps.back().output += line + "\n";
      }
      goes_on = (goes_on || command) && line.ends_with("\\");
    }
  }
  return steps;
}

// A folder that looks like the source folder with a release build in it, and nothing else built.
void MakeFolder(const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder / "build");
  fs::create_directories(folder / "bin");
  for (const std::string name : {"include", "cmake", "examples", "data"}) {
    fs::create_directory_symlink(fs::path(TRAINYARD_SOURCE_DIR) / name, folder / name);
  }
  fs::create_directory_symlink(TRAINYARD_BUILD_DIR, folder / "build" / "release");
  fs::create_symlink(TRAINYARD_PROGRAM, folder / "bin" / "trainyard");
}

fs::path OutputOf(std::size_t step) {
  return fs::path(TRAINYARD_PAGE_DIR) / ("step" + std::to_string(step) + ".out");
}

// Before all other tests of this folder (see CMakeLists.txt): they use what it leaves.
TEST(PageTest, EveryCommandWorks) {
  const fs::path folder = TRAINYARD_PAGE_DIR;
  MakeFolder(folder);
  const std::vector<Step> steps = StepsOf(BlocksOf(kPage));
  EXPECT_GE(steps.size(), 8U);
  const std::string err = ScratchPath("err");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string script = WriteScratch(
        "step.sh", "cd '" + folder.string() + "' && PATH=\"$PWD/bin:$PATH\" || exit\n" +
                       steps[i].command + "\n");
    const std::string out = OutputOf(i).string();
    const int status = std::system(("sh " + script + " >'" + out + "' 2>'" + err + "'").c_str());
    ASSERT_EQ(status, 0) << steps[i].command << "\n" << ReadText(out) << ReadText(err);
  }
}

TEST(PageTest, EveryCommandPrintsWhatIsShown) {
  const std::vector<Step> steps = StepsOf(BlocksOf(kPage));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].shown) {
      EXPECT_EQ(ReadText(OutputOf(i).string()), steps[i].output) << steps[i].command;
    }
  }
}

TEST(PageTest, FilesShownWholeAreThoseOfTheExample) {
  const std::vector<Block> blocks = BlocksOf(kPage);
  for (const std::string name : {"slack.cc", "CMakeLists.txt"}) {
    const std::string file = ReadText(TRAINYARD_SOURCE_DIR "/examples/plugin-policy/" + name);
    ASSERT_FALSE(file.empty()) << name;
    const bool found = std::any_of(blocks.begin(), blocks.end(),
                                   [&file](const Block& block) { return block.text == file; });
    EXPECT_TRUE(found) << "docs/adding-a-policy.md has no block that equals " << name;
  }
}

std::string WithoutIndentation(const std::string& text) {
  std::istringstream in(text);
  std::string lines;
  for (std::string line; std::getline(in, line);) {
    lines += line.substr(std::min(line.find_first_not_of(' '), line.size())) + "\n";
  }
  return lines;
}

TEST(PageTest, AllCodeThatIsShownIsCompiledInATest) {
  const std::string fragments =
      WithoutIndentation(ReadText(TRAINYARD_SOURCE_DIR "/tests/plugin/page_fragments.cc") +
                         ReadText(TRAINYARD_SOURCE_DIR "/examples/plugin-policy/slack.cc"));
  for (const Block& block : BlocksOf(kPage)) {
    if (block.kind == "cpp") {
      EXPECT_NE(fragments.find(WithoutIndentation(block.text)), std::string::npos) << block.text;
    }
  }
}

}  // namespace
}  // namespace trainyard
