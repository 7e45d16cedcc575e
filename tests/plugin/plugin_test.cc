// SPDX-License-Identifier: Apache-2.0
// Plug-ins from outside: what the one of docs/adding-a-policy.md does (built by page_test), and how
// others are refused.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli_tests/command.h"
#include "trainyard/plugin.h"

namespace trainyard {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

const std::string kSlack = TRAINYARD_PAGE_DIR "/out/slack/slack.so";
const std::string kExample =
    "data/example_trace.csv --cluster data/example_cluster.toml --profiles "
    "data/example_profiles.csv";

std::string Variant(const std::string& name) { return TRAINYARD_TEST_PLUGINS "/" + name + ".so"; }

std::string DigestOf(const CommandResult& result) {
  EXPECT_EQ(result.status, 0) << result.err;
  const std::size_t at = result.out.find("\"journal_digest\": \"");
  EXPECT_NE(at, std::string::npos) << result.out;
  return at == std::string::npos ? "" : result.out.substr(at, 84);
}

std::string SimulateSlack(const std::string& more) {
  return "simulate " + kExample + " --policy slack --json " + more;
}

// ------------------------------------------------------------------------------------ the example

TEST(PluginTest, RunsAsAnyPolicyWithItsOptions) {
  const std::string plain = DigestOf(RunTrainyard("--plugin " + kSlack + " " + SimulateSlack("")));
  const std::string margin = DigestOf(RunTrainyard("--plugin " + kSlack + " simulate " + kExample +
                                                   " --policy slack:margin=14400 --json"));
  EXPECT_NE(plain, margin);
  const CommandResult wrong =
      RunTrainyard("--plugin " + kSlack + " simulate " + kExample + " --policy slack:margn=1");
  EXPECT_EQ(wrong.status, kWrongUsage);
  EXPECT_EQ(wrong.err,
            "policy 'slack': unknown option 'margn'; did you mean 'margin'?; known: margin\n");
}

TEST(PluginTest, TheOptionMayFollowTheCommandAndTheVariableDoesTheSame) {
  const std::string first = DigestOf(RunTrainyard("--plugin " + kSlack + " " + SimulateSlack("")));
  EXPECT_EQ(DigestOf(RunTrainyard(SimulateSlack("--plugin " + kSlack))), first);
  setenv("TRAINYARD_PLUGINS", (":" + Variant("none") + "::" + kSlack).c_str(), 1);
  EXPECT_EQ(DigestOf(RunTrainyard(SimulateSlack(""))), first);
  EXPECT_EQ(RunTrainyard("policies --plugin " + kSlack).status, 0) << "loaded once";
  unsetenv("TRAINYARD_PLUGINS");
}

TEST(PluginTest, TheDigestDoesNotDependOnWhereThePluginLies) {
  const std::string copy = ScratchPath("copy.so");
  std::filesystem::copy_file(kSlack, copy);
  EXPECT_EQ(DigestOf(RunTrainyard("--plugin " + kSlack + " " + SimulateSlack(""))),
            DigestOf(RunTrainyard("--plugin " + copy + " " + SimulateSlack(""))));
}

TEST(PluginTest, ASweepTellsOfResultsOfAnotherPlugin) {
  const std::string plugin = ScratchPath("changing.so");
  std::filesystem::copy_file(kSlack, plugin, std::filesystem::copy_options::overwrite_existing);
  // The paths in an experiment are relative to its folder.
  const auto data = [](const std::string& name) {
    return " = '" TRAINYARD_SOURCE_DIR "/data/" + name + "'\n";
  };
  const std::string experiment = WriteScratch(
      "slack.toml", "[[trace]]\nname = 'a'\npath" + data("example_trace.csv") +
                        "[[cluster]]\nname = 'a'\nspec" + data("example_cluster.toml") +
                        "[[run]]\nlabel = 'a'\npolicy = 'slack'\nprofiles" +
                        data("example_profiles.csv"));
  const auto sweep = [&] {
    const CommandResult result =
        RunTrainyard("sweep " + experiment + " --out " + ScratchPath("sweep"));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out + result.err;
  };
  const std::string told = "1 of them come from another build of the program";
  setenv("TRAINYARD_PLUGINS", plugin.c_str(), 1);
  (void)sweep();
  EXPECT_EQ(sweep().find(told), std::string::npos);
  std::ofstream(plugin, std::ios::app) << "x";
  EXPECT_NE(sweep().find(told), std::string::npos);
  unsetenv("TRAINYARD_PLUGINS");
}

TEST(PluginTest, WorksUnderEveryPresetAndWithEveryPlacement) {
  for (const std::string preset : {"sound", "tiresias", "elasticflow"}) {
    DigestOf(RunTrainyard("--plugin " + kSlack + " " + SimulateSlack("--preset " + preset)));
  }
  for (const std::string placement : {"consolidated", "buddy", "first-fit", "count"}) {
    DigestOf(RunTrainyard("--plugin " + kSlack + " " + SimulateSlack("--placement " + placement)));
  }
}

TEST(PluginTest, IsComparedWithThePoliciesOfTheProgram) {
  const std::string out = ScratchPath("compare");
  const CommandResult result = RunTrainyard("compare " + kExample + " --plugin " + kSlack +
                                            " --policy edf --policy slack --out " + out);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("\nslack "), std::string::npos) << result.out;
  EXPECT_TRUE(std::filesystem::exists(out + "/slack/jobs.csv"));
}

TEST(PluginTest, IsListedWithItsFile) {
  const CommandResult text = RunTrainyard("policies --plugin " + kSlack);
  EXPECT_NE(text.out.find(" [plug-in " + kSlack + "]\n    margin=600 "), std::string::npos)
      << text.out;
  const CommandResult json = RunTrainyard("policies --json --plugin " + kSlack);
  EXPECT_NE(json.out.find("\"plugin\": \"" + kSlack + "\""), std::string::npos) << json.out;
  EXPECT_EQ(RunTrainyard("policies").out.find("plug-in"), std::string::npos);
}

TEST(PluginTest, TwoPluginsGoTogether) {
  const CommandResult result =
      RunTrainyard("--plugin " + kSlack + " --plugin " + Variant("none") + " policies");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("\nslack "), std::string::npos);
  EXPECT_NE(result.out.find("\nvariant "), std::string::npos);
}

// All functions that the public headers declare are there, also those the program does not call.
TEST(PluginTest, MayCallAllThatThePublicHeadersDeclare) {
  const std::string arguments = "--plugin " + Variant("none") + " simulate " + kExample;
  EXPECT_EQ(RunTrainyard(arguments + " --policy variant").status, 0);
  const CommandResult wrong = RunTrainyard(arguments + " --policy variant:numbers=4");
  EXPECT_EQ(wrong.status, kFailed);
  EXPECT_EQ(wrong.err, "the numbers are wrong; expected 5 as their sum\n");
}

TEST(PluginTest, WhatThePageShowsInPartsRunsToo) {
  for (const std::string policy : {"patience", "turns", "even-share"}) {
    const std::string arguments =
        "--plugin " + Variant("page_fragments") + " simulate " + kExample + " --json --policy ";
    EXPECT_EQ(DigestOf(RunTrainyard(arguments + policy)),
              DigestOf(RunTrainyard(arguments + policy)));
  }
  const CommandResult placed = RunTrainyard(
      "--plugin " + Variant("page_fragments") +
      " simulate " TRAINYARD_SOURCE_DIR
      "/data/example_trace.csv --cluster 8x16 --json --policy fifo --placement fullest-node");
  EXPECT_NE(DigestOf(placed), "");
}

// --------------------------------------------------------------------------------------- refusals

void ExpectRefused(const std::string& path, const std::string& message) {
  const CommandResult result = RunTrainyard("--plugin " + path + " policies");
  EXPECT_EQ(result.status, kWrongUsage) << path;
  EXPECT_EQ(result.out, "") << path;
  EXPECT_EQ(result.err, "plug-in '" + path + "': " + message + "\n");
}

TEST(RefusedPluginTest, AFileThatIsMissing) {
  ExpectRefused("nowhere.so", "no such file; expected a shared object with components");
  ExpectRefused("data", "no such file; expected a shared object with components");
}

TEST(RefusedPluginTest, AFileThatIsNoSharedObject) {
  const std::string text = WriteScratch("text.so", std::string(4096, 'x'));
  ExpectRefused(text,
                "cannot be loaded: invalid ELF header; expected a shared object that is built for "
                "this program");
}

TEST(RefusedPluginTest, AFunctionThatTheProgramDoesNotHave) {
  ExpectRefused(Variant("missing_function"),
                "cannot be loaded: undefined symbol: _ZN9trainyard17NobodyDefinesThisEv; expected "
                "a shared object that is built for this program");
}

TEST(RefusedPluginTest, NoSymbol) {
  ExpectRefused(Variant("no_symbol"),
                "has no symbol 'trainyard_plugin'; expected TRAINYARD_PLUGIN(...) in one of its "
                "sources");
}

TEST(RefusedPluginTest, AnotherVersion) {
  ExpectRefused(Variant("other_version"),
                "is built for 'trainyard 0.0.1, of long ago'; expected '" TRAINYARD_PLUGIN_STAMP
                "': build it again with the headers and the compiler of this program");
}

TEST(RefusedPluginTest, TypesOfOtherSizes) {
  ExpectRefused(Variant("other_layout"),
                "is built with types of other sizes; expected the headers of this program and the "
                "same mode of the standard library: build it again");
}

TEST(RefusedPluginTest, ANameThatExists) {
  ExpectRefused(Variant("taken_name"),
                "policy 'las' exists already (built in); expected another name");
  ExpectRefused(
      Variant("preset_name"),
      "policy 'dlas-gpu' exists already (in preset 'elasticflow'); expected another name");
  const std::string copy = ScratchPath("same.so");
  std::filesystem::copy_file(kSlack, copy);
  const CommandResult twice =
      RunTrainyard("--plugin " + kSlack + " --plugin " + copy + " policies");
  EXPECT_EQ(twice.status, kWrongUsage);
  EXPECT_EQ(twice.err, "plug-in '" + copy + "': policy 'slack' exists already (from " + kSlack +
                           "); expected another name\n");
}

TEST(RefusedPluginTest, AnEntryThatCannotBeUsed) {
  ExpectRefused(Variant("bad_name"),
                "policy 'My policy' has no usable name; expected a-z, 0-9 and '-'");
  ExpectRefused(Variant("bad_default"),
                "policy 'variant': option 'numbers' is 'soon'; expected numbers >= 0 separated by "
                "'/'");
  const CommandResult empty = RunTrainyard("--plugin " + Variant("no_component") + " simulate " +
                                           kExample + " --policy variant");
  EXPECT_EQ(empty.status, kFailed);
  EXPECT_EQ(empty.err, "policy 'variant' made no component; expected one of its kind\n");
}

TEST(RefusedPluginTest, AKeyThatIsNotANumber) {
  const CommandResult result = RunTrainyard("--plugin " + Variant("not_a_number") + " simulate " +
                                            kExample + " --policy variant");
  EXPECT_EQ(result.status, kFailed);
  EXPECT_NE(result.err.find("its key has a component that is not a number; expected numbers, "
                            "infinity among them"),
            std::string::npos)
      << result.err;
}

TEST(RefusedPluginTest, TheVariableIsJudgedAsTheOption) {
  setenv("TRAINYARD_PLUGINS", "nowhere.so", 1);
  const CommandResult result = RunTrainyard("policies");
  unsetenv("TRAINYARD_PLUGINS");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_EQ(result.err,
            "plug-in 'nowhere.so': no such file; expected a shared object with components\n");
}

TEST(RefusedPluginTest, AMistypedCommandIsStillExplained) {
  const CommandResult result = RunTrainyard("--plugin " + kSlack + " simulat x");
  EXPECT_EQ(result.status, kWrongUsage);
  EXPECT_NE(result.err.find("did you mean 'simulate'?"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace trainyard
