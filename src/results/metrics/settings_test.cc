// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/settings.h"

#include <gtest/gtest.h>

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

TEST(SettingsTest, SoundModeNeedsNoWords) {
  RunResult run = HandMadeRun();
  EXPECT_TRUE(SettingsOf(run).empty());
  run.preset = "sound";
  EXPECT_TRUE(SettingsOf(run).empty());
  EXPECT_EQ(SettingsText({&run, 1}), "");
  EXPECT_EQ(SettingsText({}), "");
}

TEST(SettingsTest, NameEveryPartThatDiffers) {
  RunResult run = HandMadeRun();
  run.label = "mine";
  run.candidates = {"las all consolidated", "fifo all consolidated"};
  run.placement = "first-fit";
  run.admission = "deadline";
  run.grouping = "interleave";
  run.tuning = "loader";
  run.preset = "muri";
  EXPECT_EQ(SettingsText({&run, 1}),
            "mine: policy srtf, choosing among las all consolidated | fifo all consolidated, "
            "placement first-fit, admission deadline, grouping interleave, tuning loader, preset "
            "muri");
}

TEST(SettingsTest, ManyCandidatesAreCounted) {
  RunResult run = HandMadeRun();
  run.candidates.assign(9, "las all");
  EXPECT_EQ(SettingsText({&run, 1}), "srtf: choosing among 9 combinations");
}

TEST(SettingsTest, WhatAllRunsShareIsSaidOnce) {
  std::vector<RunResult> runs(3, HandMadeRun());
  for (RunResult& run : runs) {
    run.grouping = "interleave";
  }
  runs[1].label = "packed";
  runs[1].placement = "first-fit";
  EXPECT_EQ(SettingsText(runs),
            "all runs: grouping interleave\n"
            "packed: policy srtf, placement first-fit");
}

TEST(SettingsTest, APublishedProgramHasOnlyItsName) {
  RunResult run = RunOf({{.name = "a"}});
  run.ends_only = true;
  run.label = run.policy = "ef-accessctrl";
  run.preset = "elasticflow";
  EXPECT_EQ(SettingsOf(run),
            (std::vector<RunSetting>{{.name = "program", .value = "elasticflow"}}));
  EXPECT_EQ(SettingsText({&run, 1}), "");
}

}  // namespace
}  // namespace trainyard::results
