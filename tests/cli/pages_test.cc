// SPDX-License-Identifier: Apache-2.0
// The commands of README.md, and of pages for researchers and for users of other systems, work as
// written and print what the pages show; docs/metrics.md has every quantity.
// (docs/adding-a-policy.md: tests/plugin/page_test.cc)
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/text.h"
#include "cli_tests/command.h"
#include "cli_tests/page.h"
#include "support/reference.h"

namespace trainyard {
namespace {

// Whether what a block says that it needs, beside the program and the bundled data, is there. Only
// the published inputs may be absent, and only if the run was told so.
bool IsThere(const std::string& needed) {
  if (needed == "reference" && Reference().empty()) {
    EXPECT_TRUE(RunsWithoutReference()) << "no published inputs: set TRAINYARD_REFERENCE";
    return false;
  }
  if (needed == "reference") {
    setenv("TRAINYARD_REFERENCE", Reference().c_str(), 1);
  } else {
    EXPECT_TRUE(needed.empty() || needed == "gnuplot") << needed;
  }
  return true;
}

void RunPage(const std::string& page, std::vector<Step> steps) {
  const std::string folder = ScratchPath("page");
  MakeSourceFolder(folder, TRAINYARD_BUILD_DIR);
  const std::string out = ScratchPath("step.out");
  const std::string err = ScratchPath("step.err");
  for (const Step& step : steps) {
    if (!IsThere(step.needs)) {
      continue;
    }
    ASSERT_EQ(RunStep(folder, step, out, err), 0) << page << ": " << step.command << "\n"
                                                  << ReadText(out) << ReadText(err);
    if (step.shown) {
      EXPECT_TRUE(Matches(step.output, ReadText(out)))
          << page << ": " << step.command << "\nshown:\n"
          << step.output << "printed:\n"
          << ReadText(out);
    }
  }
}

std::vector<Block> ConsoleBlocks(const std::string& path) {
  std::vector<Block> blocks = BlocksOf(path);
  std::erase_if(blocks, [](const Block& block) { return block.kind != "console"; });
  return blocks;
}

TEST(MatchesTest, DotsStandForAnyLines) {
  EXPECT_TRUE(Matches("a\nb\n", "a\nb\n"));
  EXPECT_FALSE(Matches("a\nb\n", "a\nb\nc\n"));
  EXPECT_FALSE(Matches("a\nb\n", "a\n"));
  EXPECT_TRUE(Matches("a\n...\n", "a\nb\nc\n"));
  EXPECT_TRUE(Matches("a\n...\nc\n", "a\nb\nc\n"));
  EXPECT_TRUE(Matches("...\nc\n", "a\nb\nc\n"));
  EXPECT_FALSE(Matches("a\n...\nb\n", "a\nb\nc\n"));
  EXPECT_FALSE(Matches("a\n...\nx\n...\n", "a\nb\nc\n"));
  EXPECT_TRUE(Matches("a\n...\nb\n...\n", "a\nb\nc\n"));
}

TEST(PagesTest, CommandsOfTheReadme) {
  const std::vector<Step> steps = StepsOf(ConsoleBlocks(TRAINYARD_SOURCE_DIR "/README.md"));
  EXPECT_GE(steps.size(), 2U);
  RunPage("README.md", steps);
}

TEST(PagesTest, OutcomesOfRequests) {
  const std::vector<Step> steps = StepsOf(BlocksOf(TRAINYARD_SOURCE_DIR "/docs/requests.md"));
  EXPECT_GE(steps.size(), 18U);
  RunPage("requests.md", steps);
}

TEST(PagesTest, CommandsOfTheTutorial) {
  const std::vector<Step> steps = StepsOf(BlocksOf(TRAINYARD_SOURCE_DIR "/docs/tutorial.md"));
  EXPECT_GE(steps.size(), 8U);
  RunPage("docs/tutorial.md", steps);
}

TEST(PagesTest, CommandsOfThePresets) {
  const std::vector<Step> steps = StepsOf(BlocksOf(TRAINYARD_SOURCE_DIR "/docs/presets.md"));
  EXPECT_GE(steps.size(), 4U);
  RunPage("docs/presets.md", steps);
}

TEST(PagesTest, CommandsOfTheMetrics) {
  const std::vector<Step> steps = StepsOf(BlocksOf(TRAINYARD_SOURCE_DIR "/docs/metrics.md"));
  EXPECT_GE(steps.size(), 1U);
  RunPage("docs/metrics.md", steps);
}

TEST(PagesTest, CommandsOfTheProfiling) {
  const std::vector<Step> steps = StepsOf(BlocksOf(TRAINYARD_SOURCE_DIR "/docs/profiling.md"));
  EXPECT_GE(steps.size(), 4U);
  RunPage("docs/profiling.md", steps);
}

// What else is on these pages starts live clusters.
TEST(PagesTest, SimulationsOfThePagesForUsersOfOtherSystems) {
  for (const std::string system : {"torchloader", "muri", "elasticflow", "blox", "synergy"}) {
    const std::string page = "docs/from/" + system + ".md";
    const std::vector<Step> steps = StepsOf(ConsoleBlocks(TRAINYARD_SOURCE_DIR "/" + page));
    EXPECT_GE(steps.size(), 2U) << page;
    RunPage(page, steps);
  }
}

std::string HeaderOf(const std::string& path) {
  const std::string text = ReadText(path);
  return text.substr(0, text.find('\n'));
}

TEST(PagesTest, MetricsDefineEveryFieldOfARun) {
  const std::string page = ReadText(TRAINYARD_SOURCE_DIR "/docs/metrics.md");
  const std::string out = ScratchPath("fields");
  // Under a preset whose original registers ends of its own.
  ASSERT_EQ(RunTrainyard("simulate data/example_trace.csv --cluster data/example_cluster.toml "
                         "--preset tiresias --policy fifo --placement count --out " +
                         out)
                .status,
            0);
  std::vector<std::string> fields;
  for (const char* name : {"jobs.csv", "timeline.csv"}) {
    const std::string header = HeaderOf(out + "/" + name);
    for (const std::string_view column : base::Split(header, ",")) {
      fields.emplace_back(column);
    }
  }
  const auto summary = nlohmann::json::parse(ReadText(out + "/summary.json"));
  for (const auto& [key, value] : summary.items()) {
    fields.push_back(key);
  }
  EXPECT_GT(fields.size(), 50U);
  for (const std::string& field : fields) {
    EXPECT_NE(page.find('`' + field + '`'), std::string::npos) << field;
  }
}

// "`metrics.cc` `Jct`": the function that computes a quantity.
TEST(PagesTest, TheSourcesThatMetricsNameAreThere) {
  const std::string page = ReadText(TRAINYARD_SOURCE_DIR "/docs/metrics.md");
  const std::regex source("`(src/[a-z/_]+\\.cc)` `([A-Za-z:]+)`");
  std::size_t named = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), source), end; at != end; ++at, ++named) {
    const std::string code = ReadText(TRAINYARD_SOURCE_DIR "/" + (*at)[1].str());
    EXPECT_NE(code.find((*at)[2].str() + "("), std::string::npos) << at->str();
  }
  EXPECT_GE(named, 10U);
}

}  // namespace
}  // namespace trainyard
