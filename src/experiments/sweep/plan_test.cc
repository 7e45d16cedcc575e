// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "support/small_experiment.h"

namespace trainyard::experiments {
namespace {

class PlanTest : public testing::Test {
 protected:
  std::vector<PlannedCell> Plan(const Experiment& experiment) {
    return PlanCells(experiment.cells, experiment.reference, options_);
  }

  SmallExperiment small_;
  PlanOptions options_;
};

TEST_F(PlanTest, TheDigestIsOfWhatIsRunNotOfNames) {
  const Experiment experiment = small_.With(
      "[[run]]\nlabel = \"a\"\npolicy = \"las\"\n[[run]]\nlabel = \"b\"\npolicy = \"las\"\n"
      "[[run]]\nlabel = \"c\"\npolicy = \"fifo\"\n[[run]]\nlabel = \"d\"\npolicy = \"las\"\n"
      "seed = 1\n[[run]]\nlabel = \"e\"\npolicy = \"las\"\nuntil = 5\n");
  const std::vector<PlannedCell> planned = Plan(experiment);
  std::set<std::string> digests;
  for (const PlannedCell& cell : planned) {
    digests.insert(cell.digest);
  }
  EXPECT_EQ(planned[0].digest, planned[1].digest);
  EXPECT_EQ(digests.size(), 4U);
  EXPECT_FALSE(digests.contains(""));
  small_.WriteTrace(2);
  EXPECT_NE(Plan(experiment)[0].digest, planned[0].digest) << "the trace has changed";
}

TEST_F(PlanTest, TheDigestIsOfTheContentOfAPresetFile) {
  for (const auto& [name, text] :
       {std::pair{"a.toml", "base = \"sound\"\n"}, std::pair{"b.toml", "base = \"sound\"\n"},
        std::pair{"c.toml", "base = \"muri\"\n"}}) {
    EXPECT_FALSE(small_.folder().Write(name, text).empty());
  }
  const std::vector<PlannedCell> planned =
      Plan(small_.With("[[run]]\nlabel = \"{file}\"\npreset = \"{file}.toml\"\n[axes]\nfile = "
                       "[\"a\", \"b\", \"c\", \"none\"]\n"));
  ASSERT_EQ(planned.size(), 4U);
  EXPECT_EQ(planned[0].digest, planned[1].digest);
  EXPECT_NE(planned[0].digest, planned[2].digest);
  EXPECT_EQ(planned[3].outcome.status, CellStatus::kFailed) << "there is no such file";
}

TEST_F(PlanTest, AMissingTraceThatMustBeObtainedIsNotRun) {
  const Experiment experiment = small_.Parsed(
      "[[trace]]\nname = \"a\"\npath = \"no.csv\"\nobtain = \"ask X\"\n"
      "[[trace]]\nname = \"b\"\npath = \"{reference}/b.csv\"\n"
      "[[trace]]\nname = \"c\"\npath = \"no.csv\"\n[[run]]\nlabel = \"r\"\n");
  const std::vector<PlannedCell> planned = Plan(experiment);
  EXPECT_EQ(planned[0].outcome.status, CellStatus::kNotRun);
  EXPECT_EQ(planned[0].outcome.reason, "missing trace " + small_.path("no.csv") + ": ask X");
  EXPECT_EQ(planned[1].outcome.reason, "missing trace " + small_.path("reference/b.csv"));
  EXPECT_EQ(planned[2].outcome.status, CellStatus::kFailed);
  EXPECT_EQ(planned[2].digest, "");
}

TEST_F(PlanTest, EveryTraceIsGeneratedOnce) {
  int generated = 0;
  options_ = {.folder = small_.path("inputs"),
              .program = "p",
              .generate = [&](const GenerateOptions& options, const std::string& path) -> Status {
                ++generated;
                if (options.at(0).second == "3") {
                  return InvalidArgument("not 3");
                }
                std::ofstream(path) << options.at(0).second;
                return {};
              }};
  const Experiment experiment = small_.Parsed(
      "[[trace]]\nname = \"g\"\ngenerate = {jobs = \"{n}\"}\n[[run]]\nlabel = \"r\"\n"
      "[[run]]\nlabel = \"s\"\npolicy = \"las\"\n[axes]\nn = [1, 2, 3]\n");
  const std::vector<PlannedCell> planned = Plan(experiment);
  EXPECT_EQ(generated, 3);
  EXPECT_EQ(planned[0].inputs.trace, planned[3].inputs.trace);
  EXPECT_NE(planned[0].inputs.trace, planned[1].inputs.trace);
  EXPECT_TRUE(std::filesystem::exists(planned[0].inputs.trace));
  EXPECT_EQ(planned[2].outcome.reason, "trace generate: not 3");
  EXPECT_EQ(Plan(experiment)[0].digest, planned[0].digest);
  EXPECT_EQ(generated, 4) << "only the one that failed is generated again";
}

}  // namespace
}  // namespace trainyard::experiments
