// SPDX-License-Identifier: Apache-2.0
// `trainyard reproduce` as a user runs it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "cli_tests/command.h"
#include "support/reference.h"

namespace trainyard {
namespace {

using Json = nlohmann::json;

constexpr int kWrongUsage = 2;

std::size_t FilesOfFigures() {
  std::size_t files = 0;
  for (const auto& system :
       std::filesystem::directory_iterator(TRAINYARD_SOURCE_DIR "/experiments")) {
    if (system.is_directory()) {
      const std::filesystem::directory_iterator inside(system.path());
      files += static_cast<std::size_t>(std::distance(begin(inside), end(inside)));
    }
  }
  return files;
}

TEST(ReproduceTest, ListsEveryFigureAndWhatIsMissing) {
  const CommandResult result = RunTrainyard("reproduce list --json --reference /nowhere");
  ASSERT_EQ(result.status, 0) << result.err;
  const Json figures = Json::parse(result.out);
  EXPECT_EQ(figures.size(), FilesOfFigures());
  for (const Json& figure : figures) {
    EXPECT_FALSE(figure["missing"].empty()) << figure["id"];
    EXPECT_FALSE(figure["title"].get<std::string>().empty());
  }
  const CommandResult table = RunTrainyard("reproduce list --reference /nowhere");
  EXPECT_NE(table.out.find("https://github.com/microsoft/elasticflow-traces"), std::string::npos);
}

// What is published is shown, but nothing was reproduced: a script must not take it for done.
TEST(ReproduceTest, WithoutInputsItFailsAndShowsWhatIsPublished) {
  const std::string out = ScratchPath("figures");
  const CommandResult result =
      RunTrainyard("reproduce elasticflow/fig8a --reference /nowhere --out " + out);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("nothing was run: no input is below /nowhere"), std::string::npos)
      << result.err;
  EXPECT_NE(result.out.find("not run, missing trace /nowhere/"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("0.728"), std::string::npos);
  EXPECT_NE(ReadText(out + "/index.html").find("Not run, missing trace"), std::string::npos);
  EXPECT_NE(ReadText(out + "/values.csv")
                .find("elasticflow/fig8a,deadline_ratio,,ElasticFlow,,0.728,0.7282,,,,0,"),
            std::string::npos);
}

TEST(ReproduceTest, AnUnknownFigureIsWrongUsage) {
  const CommandResult result = RunTrainyard("reproduce muri/fig99");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("unknown figure 'muri/fig99'"), std::string::npos) << result.err;
}

// As `profile throughput` and `profile overhead` write them: a published model, and one's own.
std::string Measurements() {
  const std::string folder = ScratchPath("measurements");
  std::filesystem::create_directories(folder);
  (void)WriteScratch("measurements/profiling.csv", "model,seconds\nbert,300\nnet,45.5\n");
  (void)WriteScratch(
      "measurements/changes.csv",
      "model,from_gpus,to_gpus,seconds,ci95,stop_s\nbert,1,2,5,0.5,1\nbert,8,8,3.2,0,1\n"
      "net,0,1,2.25,0.25,0\n");
  return folder;
}

TEST(ReproduceTest, WhatIsMeasuredStandsBesideWhatIsPublished) {
  const std::string out = ScratchPath("fig12");
  const CommandResult result = RunTrainyard("reproduce elasticflow/fig12 --json --measured " +
                                            Measurements() + " --out " + out);
  ASSERT_EQ(result.status, 0) << result.err;
  const Json figure = Json::parse(result.out).at(0);
  EXPECT_EQ(figure["id"], "elasticflow/fig12");
  EXPECT_EQ(figure["values"].size(), 6U + 6 * 5 + 2);
  const std::string values = ReadText(out + "/values.csv");
  const std::string id = "\nelasticflow/fig12,";
  EXPECT_NE(values.find(id + "profiling_seconds,,bert,,305.462,,300,"), std::string::npos)
      << values;
  EXPECT_NE(values.find(id + "change_seconds,,bert,1 to 2 GPUs,3.904,,5,4.5,5.5,"),
            std::string::npos);
  EXPECT_NE(values.find(id + "change_seconds,,bert,8 GPUs elsewhere,3.191,,3.2,"),
            std::string::npos);
  EXPECT_NE(values.find(id + "change_seconds,,net,start on 1 GPU,,,2.25,2,2.5,"),
            std::string::npos);
  EXPECT_NE(values.find(id + "change_seconds,,gpt2,2 to 1 GPU,"), std::string::npos);
  const std::string page = ReadText(out + "/index.html");
  EXPECT_NE(page.find("ElasticFlow, figure 12"), std::string::npos);
  EXPECT_NE(page.find("on nodes with 8 A100"), std::string::npos);
  EXPECT_EQ(page.find("Not run"), std::string::npos);
  const std::string panel = ReadText(out + "/elasticflow/fig12-2.csv");
  EXPECT_NE(panel.find("1 to 2 GPUs,bert,5"), std::string::npos) << panel;
  EXPECT_NE(panel.find("1 to 2 GPUs,bert,3.904"), std::string::npos) << panel;
}

TEST(ReproduceTest, WithoutMeasurementsOnlyWhatIsPublishedIsShown) {
  const CommandResult result =
      RunTrainyard("reproduce elasticflow/fig12 --out " + ScratchPath("unmeasured"));
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("nothing was reproduced: no measurements: name the folders of"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.out.find("549.759"), std::string::npos) << result.out;
}

TEST(ReproduceTest, WrongMeasurementsAreRefused) {
  const std::string fig12 = "reproduce elasticflow/fig12 --out " + ScratchPath("wrong");
  const std::string empty = ScratchPath("no-measurements");
  std::filesystem::create_directories(empty);
  EXPECT_NE(RunTrainyard(fig12 + " --measured " + empty)
                .err.find("neither profiling.csv nor changes.csv is there"),
            std::string::npos);
  const std::string folder = Measurements();
  (void)WriteScratch("measurements/changes.csv",
                     "model,from_gpus,to_gpus,seconds,ci95\nnet,0,1,soon,0\n");
  EXPECT_NE(RunTrainyard(fig12 + " --measured " + folder).err.find("changes.csv:2: "),
            std::string::npos);
  const CommandResult other = RunTrainyard("reproduce muri/table3 --measured " + folder);
  EXPECT_EQ(other.status, kWrongUsage);
  EXPECT_NE(other.err.find("--measured is for elasticflow/fig12"), std::string::npos) << other.err;
}

// One run of the program for all that is looked at: it takes a while.
class Reproduced {
 public:
  Reproduced() {
    const CommandResult result = RunTrainyard(
        "reproduce elasticflow/fig6a elasticflow/fig6b elasticflow/fig7 chronus muri/table3 "
        "tiresias/small tiresias/placement synergy/static torchloader --json --out " +
        out_);
    EXPECT_EQ(result.status, 0) << result.err;
    error_ = result.err;
    figures_ = Json::parse(result.out, nullptr, false);
  }

  [[nodiscard]] const Json& Figure(const std::string& id) const {
    static const Json none;
    for (const Json& figure : figures_) {
      if (figure["id"] == id) {
        return figure;
      }
    }
    ADD_FAILURE() << "no figure " << id;
    return none;
  }

  // Per cent of the value of the paper, or of its artifact.
  [[nodiscard]] double DifferenceOf(const std::string& id, const std::string& run,
                                    const std::string& metric,
                                    const char* against = "paper_difference") const {
    for (const Json& row : Figure(id)["values"]) {
      if (row["run"] == run && row["metric"] == metric && row[against].is_number()) {
        return row[against];
      }
    }
    ADD_FAILURE() << id << " has no " << metric << " of " << run;
    return 100;
  }

  void EveryRunEndedWell() const {
    EXPECT_EQ(figures_.size(), 10U);
    for (const Json& figure : figures_) {
      EXPECT_EQ(figure["failed"].size(), 0U) << figure["id"];
      EXPECT_EQ(figure["ok"], figure["cells"]) << figure["id"];
    }
  }

  // Where the reference says that the original gives the published digits again.
  void PresetsGiveThePublishedDigits() const {
    for (const char* id : {"chronus/elasticflow-copy", "tiresias/small", "tiresias/placement",
                           "synergy/static", "torchloader/allocation"}) {
      EXPECT_GT(Figure(id)["artifact"]["compared"], 0) << id;
      EXPECT_EQ(Figure(id)["artifact"]["agree"], Figure(id)["artifact"]["compared"]) << id;
      EXPECT_EQ(Figure(id)["paper"]["values"], 0) << id;
    }
    for (const char* run : {"EDF", "Tiresias", "Themis"}) {
      EXPECT_NEAR(DifferenceOf("elasticflow/fig6a", run, "deadline_ratio"), 0, 1e-6) << run;
    }
    EXPECT_NEAR(DifferenceOf("elasticflow/fig6b", "EDF", "deadline_ratio"), 0, 0.1);
    EXPECT_NEAR(
        DifferenceOf("elasticflow/fig7", "ElasticFlow", "deadlines_met", "artifact_difference"), 0,
        1e-6);
    // The original simulator is this close to its testbed (reference muri 13).
    for (const char* run : {"SRTF", "SRSF", "Muri-S"}) {
      EXPECT_NEAR(DifferenceOf("muri/table3", run, "jct_mean"), 0, 2.5) << run;
    }
  }

  // The testbed is the reason for all that the simulation does not give.
  void DifferencesHaveTheirReasons() const {
    EXPECT_GT(Figure("elasticflow/fig6b")["above_5_percent"], 0);
    for (const Json& figure : figures_) {
      EXPECT_EQ(figure["unknown"], 0) << figure["id"];
    }
  }

  // What has ended is durable at once and is not run again: so goes on what was killed.
  void RunsThatHaveEndedAreNotRunAgain() const {
    const CommandResult again =
        RunTrainyard("reproduce tiresias/small tiresias/placement --out " + out_);
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_NE(again.err.find("20 of 20 runs are in " + out_ + " already"), std::string::npos)
        << again.err;
    EXPECT_NE(again.out.find("1556.5"), std::string::npos) << again.out;
  }

  void ThereIsAnImageOfEachPanelAndOnePage() const {
    const std::string page = ReadText(out_ + "/index.html");
    EXPECT_NE(page.find("ElasticFlow, figure 6a"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(out_ + "/elasticflow/fig6a.csv"));
    EXPECT_TRUE(std::filesystem::exists(out_ + "/elasticflow/fig7-2.gnuplot"));
    EXPECT_NE(ReadText(out_ + "/summary.csv").find("\nelasticflow/fig6b,"), std::string::npos);
    if (error_.find("no gnuplot") == std::string::npos) {
      EXPECT_NE(ReadText(out_ + "/elasticflow/fig6a.svg").find("Pollux"), std::string::npos);
      EXPECT_NE(page.find("<figure tabindex=\"0\" style=\"--drawn: "), std::string::npos);
    }
  }

 private:
  const std::string out_ = ScratchPath("reproduced");
  std::string error_;
  Json figures_;
};

TEST(ReproduceTest, FiguresWhoseInputsAreAtHandComeOut) {
  TRAINYARD_NEEDS_REFERENCE();
  const Reproduced reproduced;
  reproduced.EveryRunEndedWell();
  reproduced.PresetsGiveThePublishedDigits();
  reproduced.DifferencesHaveTheirReasons();
  reproduced.ThereIsAnImageOfEachPanelAndOnePage();
  reproduced.RunsThatHaveEndedAreNotRunAgain();
}

}  // namespace
}  // namespace trainyard
