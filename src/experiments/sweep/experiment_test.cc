// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/experiment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainyard::experiments {
namespace {

// A smallest experiment with `more` behind it.
std::string With(const std::string& more) {
  return "[[trace]]\nname = \"t\"\npath = \"t.csv\"\n[[cluster]]\nname = \"c\"\nspec = \"2x4\"\n"
         "[[run]]\nlabel = \"r\"\npolicy = \"las\"\n" +
         more;
}

Experiment Parsed(const std::string& text) {
  Result<Experiment> experiment = ParseExperiment("dir/e.toml", text, "/ref");
  EXPECT_TRUE(experiment.ok()) << (experiment.ok() ? "" : experiment.error().message);
  return experiment.ok() ? std::move(experiment).value() : Experiment{};
}

std::string ErrorOf(const std::string& text) {
  const Result<Experiment> experiment = ParseExperiment("e.toml", text, "/ref");
  return experiment.ok() ? "no error" : experiment.error().message;
}

std::vector<std::string> IdsOf(const Experiment& experiment) {
  std::vector<std::string> ids;
  for (const Cell& cell : experiment.cells) {
    ids.push_back(cell.id);
  }
  return ids;
}

TEST(ExperimentTest, CellsAreAllCombinationsTheLastAxisFastest) {
  const Experiment experiment = Parsed(
      With("[[run]]\nlabel = \"q\"\npolicy = \"fifo\"\n[axes]\nload = [4, 6.5]\nkind = [\"x\"]\n"));
  EXPECT_EQ(experiment.axes, (std::vector<std::string>{"trace", "cluster", "run", "load", "kind"}));
  EXPECT_EQ(IdsOf(experiment),
            (std::vector<std::string>{"t/c/r/4/x", "t/c/r/6.5/x", "t/c/q/4/x", "t/c/q/6.5/x"}));
  EXPECT_EQ(experiment.AxisAt("load"), 3U);
  EXPECT_EQ(experiment.AxisAt("none"), std::nullopt);
}

TEST(ExperimentTest, PlaceholdersStandForAxesAndTheReference) {
  const Experiment experiment = Parsed(R"(
[[trace]]
name = "made"
generate = {style = "mix", jobs = 50, load = "{load}", one-gpu = true, profiles = "p/{load}"}
[[trace]]
name = "read"
path = "{reference}/{load}.csv"
time_unit = 60
map = "gpus={load}"
obtain = "ask"
[[cluster]]
name = "c"
spec = "my.toml"
[[run]]
label = "r"
policy = "tiresias:x={load},y={z"
preset = "blox:run={run}"
profiles = "{reference}/profiles"
seed = "{seed}"
until = "1h"
[axes]
load = [0.5]
seed = [7]
)");
  ASSERT_EQ(experiment.cells.size(), 2U);
  const Cell& made = experiment.cells[0];
  EXPECT_EQ(made.trace.path, "");
  EXPECT_EQ(made.trace.generate, (GenerateOptions{{"style", "mix"},
                                                  {"jobs", "50"},
                                                  {"load", "0.5"},
                                                  {"one-gpu", "1"},
                                                  {"profiles", "dir/p/0.5"}}));
  EXPECT_EQ(made.names.policy, "tiresias:x=0.5,y={z");
  EXPECT_EQ(made.names.preset, "blox:run=r");
  EXPECT_EQ(made.profiles, "/ref/profiles");
  EXPECT_EQ(made.cluster, "dir/my.toml");
  EXPECT_EQ(made.seed, 7U);
  EXPECT_EQ(made.until, 3600);
  const Cell& read = experiment.cells[1];
  EXPECT_EQ(read.trace.path, "/ref/0.5.csv");
  EXPECT_EQ(read.trace.time_unit, 60);
  EXPECT_EQ(read.trace.map, "gpus=0.5");
  EXPECT_EQ(read.trace.obtain, "ask");
}

TEST(ExperimentTest, ARunsProfilesGoBeforeTheTraces) {
  const std::string trace =
      "[[trace]]\nname = \"t\"\npath = \"t.csv\"\nprofiles = \"own\"\n[[cluster]]\nname = \"c\"\n"
      "spec = \"2x4\"\n";
  const Experiment experiment = Parsed(trace +
                                       "[[run]]\nlabel = \"a\"\n[[run]]\nlabel = \"b\"\n"
                                       "profiles = \"other\"\n[[run]]\nlabel = \"c\"\n"
                                       "profiles = \"none\"\n");
  ASSERT_EQ(experiment.cells.size(), 3U);
  EXPECT_EQ(experiment.cells[0].profiles, "dir/own");
  EXPECT_EQ(experiment.cells[1].profiles, "dir/other");
  EXPECT_EQ(experiment.cells[2].profiles, "");
  EXPECT_EQ(experiment.cells[0].cluster, "2x4");
}

TEST(ExperimentTest, ARunMayReadTheJobsInAnotherForm) {
  const std::string trace =
      "[[trace]]\nname = \"t\"\ngenerate = {style = \"mix\"}\nformat = \"native\"\nmap = "
      "\"gpus=n\"\n"
      "[[cluster]]\nname = \"c\"\nspec = \"2x4\"\n[[run]]\nlabel = \"a\"\n[[run]]\nlabel = \"b\"\n";
  const Experiment experiment = Parsed(trace + "path = \"other.csv\"\nformat = \"sia\"\n");
  ASSERT_EQ(experiment.cells.size(), 2U);
  EXPECT_EQ(experiment.cells[0].trace.path, "");
  EXPECT_FALSE(experiment.cells[0].trace.generate.empty());
  EXPECT_EQ(experiment.cells[1].trace.path, "dir/other.csv");
  EXPECT_EQ(experiment.cells[1].trace.format, "sia");
  EXPECT_TRUE(experiment.cells[1].trace.generate.empty());
  EXPECT_EQ(experiment.cells[1].trace.map, "");
  EXPECT_NE(ErrorOf(trace + "format = \"sia\"\n").find("expected 'path' beside it"),
            std::string::npos);
}

TEST(ExperimentTest, OnlyAndExcludeLeaveCombinationsOut) {
  const std::string axes = "[axes]\na = [1, 2, 3]\nb = [\"x\", \"y\"]\n";
  EXPECT_EQ(IdsOf(Parsed(With(axes + "[[only]]\na = 1\n[[only]]\na = [2, 3]\nb = \"y\"\n"))),
            (std::vector<std::string>{"t/c/r/1/x", "t/c/r/1/y", "t/c/r/2/y", "t/c/r/3/y"}));
  EXPECT_EQ(IdsOf(Parsed(With(axes + "[[exclude]]\na = [1, 2]\n[[exclude]]\nb = \"x\"\n"))),
            (std::vector<std::string>{"t/c/r/3/y"}));
}

TEST(ExperimentTest, TablesOfFiguresAreKept) {
  const Experiment experiment =
      Parsed(With("[[panel]]\nx = \"load\"\n[[published]]\nvalue = 1.5\nat = {load = 4}\n"));
  ASSERT_EQ(experiment.panels.size(), 1U);
  ASSERT_EQ(experiment.published.size(), 1U);
  EXPECT_EQ(experiment.published[0].Find("value")->value.AsText(), "1.5");
}

TEST(ExperimentTest, MistakesAreNamedWithLineAndNearestName) {
  EXPECT_EQ(ErrorOf(With("[[rum]]\n")).substr(0, 57),
            "e.toml:10: unknown top-level key 'rum'; did you mean 'run");
  EXPECT_EQ(ErrorOf(With("polcy = \"x\"\n")).substr(0, 60),
            "e.toml:10: unknown [[run]] key 'polcy'; did you mean 'policy");
  EXPECT_EQ(ErrorOf(With("placement = \"{lod}\"\n[axes]\nload = [1]\n")),
            "e.toml:10: 'placement': unknown placeholder 'lod'; did you mean 'load'?; known: "
            "cluster, load, reference, run, trace");
  EXPECT_EQ(ErrorOf(With("seed = -1\n")), "e.toml:10: 'seed' is '-1'; expected an integer >= 0");
  EXPECT_EQ(ErrorOf(With("until = \"soon\"\n")),
            "e.toml:10: 'until' is 'soon'; expected seconds from 0 to 9000000000, or a time such "
            "as 12h");
  EXPECT_EQ(ErrorOf(With("[[run]]\nlabel = \"r\"\n")),
            "e.toml:11: a second 'r' on axis 'run'; expected another");
  EXPECT_EQ(ErrorOf(With("[[run]]\npolicy = \"las\"\n")),
            "e.toml:10: [[run]]: no 'label'; expected one");
  EXPECT_EQ(ErrorOf(With("[[exclude]]\nrun = \"s\"\n")),
            "e.toml:11: unknown value on axis 'run' 's'; did you mean 'r'?; known: r");
  EXPECT_EQ(ErrorOf(With("[[exclude]]\nlod = 1\n[axes]\nload = [1]\n")).substr(0, 61),
            "e.toml:11: unknown [[exclude]] key 'lod'; did you mean 'load'");
  EXPECT_EQ(ErrorOf(With("[axes]\nload = 4\n")),
            "e.toml:11: axis 'load' has no list of values; expected one");
  EXPECT_EQ(ErrorOf(With("[axes]\nrun = [4]\n")).substr(0, 24), "e.toml:11: an axis 'run'");
  EXPECT_EQ(ErrorOf(With("[axes]\nstatus = [4]\n")).substr(0, 27), "e.toml:11: an axis 'status'");
  EXPECT_EQ(ErrorOf(With("[axes]\nload = [\"a\\nb\"]\n")).substr(0, 55),
            "e.toml:11: a value on axis 'load' has a line end or ano");
  EXPECT_EQ(ErrorOf(With("[axes]\nload = [1]\n[[exclude]]\nload = 1\n")),
            "e.toml: every combination is left out; expected a run at least");
  EXPECT_EQ(ErrorOf("title = \"x\"\n"), "e.toml: no [[trace]]; expected one at least");
  EXPECT_EQ(ErrorOf(With("[[trace]]\nname = \"u\"\n")),
            "e.toml:10: [[trace]]: expected one of 'path' and 'generate'");
  EXPECT_EQ(ErrorOf(With("[[run]]\nlabel = \"a:b\"\n[[run]]\nlabel = \"a-b\"\n")),
            "e.toml: 't/c/a:b' and 't/c/a-b' differ only in signs; expected names that differ in "
            "letters or digits");
}

TEST(ExperimentTest, FoldersOfCellsHaveNoStrangeSigns) {
  const Experiment experiment = Parsed(With("[axes]\np = [\"las:quantum=1;x=2/3\"]\n"));
  EXPECT_EQ(FolderOf(experiment.cells.at(0)), "t/c/r/las-quantum=1-x=2-3");
}

}  // namespace
}  // namespace trainyard::experiments
