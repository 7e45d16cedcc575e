// SPDX-License-Identifier: Apache-2.0
// Presets from users' files, from outside the program.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli_tests/command.h"

namespace trainyard {
namespace {

constexpr int kWrong = 2;
constexpr int kBad = 3;
const std::string kBundled =
    "data/example_trace.csv --cluster data/example_cluster.toml --profiles "
    "data/example_profiles.csv ";

TEST(UserPresetTest, RunsAsTheNamedOneInEveryCommandThatTakesPresets) {
  const auto digest = [](const std::string& command) {
    const CommandResult result = RunTrainyard(command + " --json");
    EXPECT_EQ(result.status, 0) << result.err;
    nlohmann::json run = nlohmann::json::parse(result.out, nullptr, false);
    run = run.contains("runs") ? run["runs"][0] : run.is_array() ? run[0] : run;
    return run.value("journal_digest", "");
  };
  const std::string mine = WriteScratch("mine.toml", "base = \"elasticflow\"\n");
  const std::string run = kBundled + "--policy edf --preset ";
  for (const std::string command : {"simulate ", "replay-live --fast-forward "}) {
    const std::string named = digest(command + run + "elasticflow:slot=240");
    EXPECT_EQ(digest(command + run + mine + ":slot=240"), named) << command;
    EXPECT_FALSE(named.empty()) << command;
  }
  const CommandResult compared =
      RunTrainyard("compare " + kBundled + "--policy edf --policy themis --preset " + mine);
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_NE(compared.out.find("mine.toml (sha256 "), std::string::npos) << compared.out;
}

TEST(UserPresetTest, IsShownWithWhatItTakesFromItsBase) {
  const std::string mine = WriteScratch("mine.toml", "base = \"tiresias\"\n");
  const CommandResult shown = RunTrainyard("presets " + mine);
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_NE(shown.out.find("policy dlas-gpu "), std::string::npos) << shown.out;
  const auto json = nlohmann::json::parse(RunTrainyard("presets --json " + mine).out);
  EXPECT_EQ(json["name"], "mine");
  EXPECT_EQ(json["base"], "tiresias");
  EXPECT_EQ(json["file"], "base = \"tiresias\"\n");
  EXPECT_EQ(json["sha256"].get<std::string>().size(), 64U);
}

TEST(UserPresetTest, MistakesAreBadInputAndUnknownNamesWrongUsage) {
  const std::string typo = WriteScratch("typo.toml", "[clock]\nlenght = 3\n");
  for (const std::string& command : {"simulate " + kBundled + "--preset " + typo, "presets " + typo,
                                     "controller --check-config --cluster 1x1 --preset " + typo}) {
    const CommandResult result = RunTrainyard(command);
    EXPECT_EQ(result.status, kBad) << command << result.err;
    EXPECT_NE(result.err.find("typo.toml:2: unknown [clock] key 'lenght'; did you mean 'length'?"),
              std::string::npos)
        << result.err;
  }
  EXPECT_EQ(RunTrainyard("presets no.toml").status, kBad);
  const CommandResult unknown = RunTrainyard("simulate " + kBundled + "--preset elastiflow");
  EXPECT_EQ(unknown.status, kWrong);
  EXPECT_NE(unknown.err.find("did you mean 'elasticflow'?"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("a file of your own is given by its path: FILE.toml"),
            std::string::npos)
      << unknown.err;
}

TEST(UserPresetTest, OutputsDoNotTakeItsPlace) {
  const std::string folder = ScratchPath("over");
  std::filesystem::create_directories(folder);
  const std::string mine = folder + "/summary.json";
  std::ofstream(mine) << "base = \"sound\"\n";
  const CommandResult result =
      RunTrainyard("simulate " + kBundled + "--preset " + mine + " --out " + folder);
  EXPECT_EQ(result.status, kWrong) << result.err;
  EXPECT_EQ(ReadText(mine), "base = \"sound\"\n");
}

TEST(UserPresetTest, ASweepRunsACellAgainWhenItsFileHasChanged) {
  const std::string folder = ScratchPath("sweep");
  std::filesystem::create_directories(folder + "/rules");
  const auto write = [&folder](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
  };
  write("t.csv", "job_id,submit_time,gpus,duration\na,0,1,100\nb,0,1,100\n");
  write("rules/mine.toml", "base = \"sound\"\n");
  write("e.toml",
        "[[trace]]\nname = \"t\"\npath = \"t.csv\"\n[[cluster]]\nname = \"c\"\nspec = \"1x1\"\n"
        "[[run]]\nlabel = \"mine\"\npreset = \"rules/mine.toml\"\n[[run]]\nlabel = \"free\"\n"
        "preset = \"tiresias\"\n");
  const auto results = [&folder] {
    const CommandResult sweep =
        RunTrainyard("sweep " + folder + "/e.toml --out " + folder + "/out");
    EXPECT_EQ(sweep.status, 0) << sweep.err;
    return ReadText(folder + "/out/results.csv");
  };
  const std::string first = results();
  EXPECT_EQ(results(), first);
  write("rules/mine.toml", "base = \"sound\"\n[overhead.fallback]\nstart = 50\n");
  const std::string changed = results();
  EXPECT_NE(changed, first);
  EXPECT_EQ(changed.substr(changed.find("free")), first.substr(first.find("free")));
}

}  // namespace
}  // namespace trainyard
