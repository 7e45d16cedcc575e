// SPDX-License-Identifier: Apache-2.0
// docs/adding-a-policy.md does what it says: its commands run in order, print what is shown, and
// the files that it shows whole are those of examples/plugin-policy.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli_tests/command.h"
#include "cli_tests/page.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

const std::string kPage = TRAINYARD_SOURCE_DIR "/docs/adding-a-policy.md";

fs::path OutputOf(std::size_t step) {
  return fs::path(TRAINYARD_PAGE_DIR) / ("step" + std::to_string(step) + ".out");
}

// Before all other tests of this folder (see CMakeLists.txt): they use what it leaves.
TEST(PageTest, EveryCommandWorks) {
  const std::string folder = TRAINYARD_PAGE_DIR;
  MakeSourceFolder(folder, TRAINYARD_BUILD_DIR);
  const std::vector<Step> steps = StepsOf(BlocksOf(kPage));
  EXPECT_GE(steps.size(), 8U);
  const std::string err = ScratchPath("err");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string out = OutputOf(i).string();
    const int status = RunStep(folder, steps[i], out, err);
    ASSERT_EQ(status, 0) << steps[i].command << "\n" << ReadText(out) << ReadText(err);
  }
}

TEST(PageTest, EveryCommandPrintsWhatIsShown) {
  const std::vector<Step> steps = StepsOf(BlocksOf(kPage));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].shown) {
      const std::string printed = ReadText(OutputOf(i).string());
      EXPECT_TRUE(Matches(steps[i].output, printed)) << steps[i].command << "\n" << printed;
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

// The fields of a struct of a public header.
std::vector<std::string> FieldsOf(const std::string& header, const std::string& name) {
  std::istringstream text(ReadText(TRAINYARD_SOURCE_DIR "/include/trainyard/" + header));
  std::vector<std::string> fields;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    inside = inside ? line != "};" : line == "struct " + name + " {";
    const std::size_t equals = line.find(" = ");
    if (inside && line.rfind("  ", 0) == 0 && line.rfind("  //", 0) != 0 &&
        line.rfind("  friend", 0) != 0 && equals != std::string::npos) {
      const std::size_t begin = line.rfind(' ', equals - 1) + 1;
      fields.push_back(line.substr(begin, equals - begin));
    }
  }
  return fields;
}

TEST(PageTest, AllTraitsAndAllOfTheWalkAreListed) {
  const std::string page = ReadText(kPage);
  for (const auto& [header, name] :
       {std::pair("component.h", "Requires"), std::pair("component.h", "May"),
        std::pair("plan.h", "Walk")}) {
    const std::vector<std::string> fields = FieldsOf(header, name);
    EXPECT_GE(fields.size(), 5U) << name;
    for (const std::string& field : fields) {
      EXPECT_NE(page.find("\n| `" + field + "`"), std::string::npos) << field;
    }
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
