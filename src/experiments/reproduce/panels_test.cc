// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/panels.h"

#include <gtest/gtest.h>

#include "support/small_figure.h"

namespace trainyard::experiments {
namespace {

const Quantity kRelative{.metric = "jct_mean", .base = "A", .base_first = false};
const Quantity kInverse{.metric = "jct_mean", .base = "A", .base_first = true};

TEST(PanelsTest, RelativeValuesAreToTheRunOfTheSameMode) {
  const FigureSpec spec = SmallFigure();
  const FigureData data = SmallData();
  EXPECT_DOUBLE_EQ(ValueOf(spec, data, 2, kRelative)->value, 40 / 100.04);
  EXPECT_DOUBLE_EQ(ValueOf(spec, data, 2, kInverse)->value, 100.04 / 40);
  EXPECT_DOUBLE_EQ(ValueOf(spec, data, 1, kRelative)->value, 1);
  EXPECT_FALSE(ValueOf(spec, data, 3, kRelative));
}

TEST(PanelsTest, PublishedRatiosFollowFromPublishedValues) {
  const FigureSpec spec = SmallFigure();
  EXPECT_DOUBLE_EQ(*PublishedOf(spec, false, "B", 2, kRelative), 0.5);
  EXPECT_DOUBLE_EQ(*PublishedOf(spec, false, "B", 5, kRelative), 0.75);
  EXPECT_FALSE(PublishedOf(spec, false, "C", 2, kRelative));
  // No ratio of one value of the paper and one of its artifact.
  EXPECT_FALSE(PublishedOf(spec, true, "B", 2, kRelative));
}

TEST(PanelsTest, BarsHaveASeriesForEachRunAndMode) {
  const results::Figure figure = FigureOf(SmallFigure(), SmallFigure().panels[0], SmallData());
  EXPECT_EQ(figure.categories, (std::vector<std::string>{"one", "two"}));
  ASSERT_EQ(figure.series.size(), 7U);
  EXPECT_EQ(figure.series[0].name, "A");
  EXPECT_EQ(figure.series[0].values_of, results::ValuesOf::kPaper);
  EXPECT_EQ(figure.series[0].bars, (std::vector<std::optional<double>>{0.5, 0.5}));
  EXPECT_EQ(figure.series[1].values_of, results::ValuesOf::kArtifact);
  EXPECT_EQ(figure.series[1].bars, (std::vector<std::optional<double>>{0.5, std::nullopt}));
  EXPECT_EQ(figure.series[3].values_of, results::ValuesOf::kSound);
  EXPECT_EQ(figure.series[6].name, "B");
  EXPECT_EQ(figure.series[6].bars,
            (std::vector<std::optional<double>>{40 / 100.04 / 2, std::nullopt}));
  EXPECT_TRUE(figure.series[6].ranges.empty());
}

TEST(PanelsTest, DrawsAreOneBarWithARange) {
  const FigureOutcome drawn = DrawnOutcome();
  const results::Figure figure = FigureOf(drawn.spec, drawn.spec.panels[0], drawn.data);
  EXPECT_EQ(figure.categories, (std::vector<std::string>{"A", "B"}));
  const results::FigureSeries& ours = figure.series.back();
  EXPECT_EQ(ours.values_of, results::ValuesOf::kOurs);
  ASSERT_EQ(ours.bars.size(), 2U);
  EXPECT_DOUBLE_EQ(*ours.bars[0], 0.6);
  EXPECT_EQ(ours.ranges, (std::vector<std::pair<double, double>>{{0.5, 0.7}, {0.4, 0.5}}));
}

TEST(PanelsTest, CurvesAreOfTheRunsThatWereAskedFor) {
  const results::Figure figure = FigureOf(SmallFigure(), SmallFigure().panels[1], SmallData());
  ASSERT_EQ(figure.series.size(), 2U);
  EXPECT_EQ(figure.series[1].values_of, results::ValuesOf::kSound);
  EXPECT_EQ(figure.series[0].points, (std::vector<std::pair<double, double>>{{1, 0.5}, {2, 1}}));
}

TEST(PanelsTest, TheLastWordsOfALabelCanBeItsSeries) {
  FigureSpec spec = SmallFigure();
  for (Cell& cell : spec.experiment.cells) {
    cell.values[2] = IsSound(cell.values[2]) ? "A tune (sound)"
                     : cell.values[2] == "A" ? "A tune"
                                             : "A fair";
  }
  PanelSpec panel{.quantity = {.metric = "jct_mean"}, .place = {{"trace", "one"}}, .split = true};
  const results::Figure figure = FigureOf(spec, panel, SmallData());
  EXPECT_EQ(figure.categories, std::vector<std::string>{"A"});
  EXPECT_EQ(figure.series.back().name, "fair");
  EXPECT_EQ(figure.series.back().bars, std::vector<std::optional<double>>{40});
}

}  // namespace
}  // namespace trainyard::experiments
