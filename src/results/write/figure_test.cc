// SPDX-License-Identifier: Apache-2.0
#include "results/write/figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/scratch_folder.h"

namespace trainyard::results {
namespace {

Figure Bars() {
  return {.form = Figure::Form::kBars,
          .title = "Deadlines met, <all> & more",
          .y_label = "share",
          .categories = {"EDF", "Elastic \"Flow\""},
          .series = {{.values_of = ValuesOf::kPaper, .bars = {0.1, 0.7}},
                     {.values_of = ValuesOf::kOurs, .bars = {0.2, std::nullopt}},
                     {.values_of = ValuesOf::kSound, .bars = {std::nullopt, 0.9}}}};
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(FigureTest, CsvHasEveryValueOnce) {
  EXPECT_EQ(FigureCsv(Bars()),
            "values_of,series,x,y,low,high\n"
            "paper,,EDF,0.1,,\n"
            "paper,,\"Elastic \"\"Flow\"\"\",0.7,,\n"
            "ours,,EDF,0.2,,\n"
            "sound,,\"Elastic \"\"Flow\"\"\",0.9,,\n");
}

TEST(FigureTest, BarsBeginAtZeroAndShareAxesWhereEachSourceHasOneSeries) {
  const std::string script = FigureScript(Bars(), "x.svg");
  EXPECT_NE(script.find("set yrange [0:0.945]"), std::string::npos) << script;
  EXPECT_NE(script.find("\"EDF\" 0.1 0.2 ?\n"), std::string::npos) << script;
  EXPECT_NE(script.find("\"Elastic \\\"Flow\\\"\" 0.7 ? 0.9\n"), std::string::npos) << script;
  EXPECT_EQ(script.find("$part1"), std::string::npos) << script;
}

TEST(FigureTest, NamedSeriesHaveAPartForEachSource) {
  Figure figure{.form = Figure::Form::kLines, .title = "t", .x_label = "load"};
  figure.series = {{.name = "A", .values_of = ValuesOf::kOurs, .points = {{1, 2}, {2, 3}}},
                   {.name = "B", .values_of = ValuesOf::kSound, .points = {{1, 8}}},
                   {.name = "B", .values_of = ValuesOf::kPaper}};
  const std::string script = FigureScript(figure, "x.svg");
  EXPECT_NE(script.find("$part0_0 << EOD\n1 2\n2 3\nEOD"), std::string::npos) << script;
  EXPECT_NE(script.find("$part1_0 << EOD\n1 8\nEOD"), std::string::npos) << script;
  // The same axis for both, and a key with the name that only the second has.
  EXPECT_NE(script.find("set yrange [0:8.4]"), std::string::npos) << script;
  EXPECT_NE(script.find("set label 11 \"B\" at screen"), std::string::npos) << script;
  EXPECT_EQ(script.find("$part2"), std::string::npos) << script;
}

TEST(FigureTest, RangesAreDrawnAndWritten) {
  Figure bars = Bars();
  bars.series[1].ranges = {{0.15, 1.2}, {0, 0}};
  EXPECT_NE(FigureCsv(bars).find("ours,,EDF,0.2,0.15,1.2\n"), std::string::npos);
  const std::string script = FigureScript(bars, "x.svg");
  // The axis has room for the greatest; bars without a range have none.
  EXPECT_NE(script.find("set yrange [0:1.26]"), std::string::npos) << script;
  EXPECT_NE(script.find("\"EDF\" 0.1 NaN NaN 0.2 0.15 1.2 ? ? ?\n"), std::string::npos) << script;
  EXPECT_NE(script.find("using 5:6:7:xtic(1)"), std::string::npos) << script;
  const ScratchFolder folder;
  const Result<Drawn> drawn = DrawFigure(bars, folder.path() + "/ranges");
  EXPECT_TRUE(drawn.ok()) << drawn.error().message;

  Figure lines{.form = Figure::Form::kLines, .title = "t"};
  lines.series = {
      {.name = "A", .values_of = ValuesOf::kOurs, .points = {{1, 2}}, .ranges = {{1, 3}}},
      {.name = "A", .values_of = ValuesOf::kPaper, .points = {{1, 2}}}};
  const std::string of_lines = FigureScript(lines, "x.svg");
  EXPECT_NE(of_lines.find("1 2 1 3\n"), std::string::npos) << of_lines;
  EXPECT_NE(of_lines.find("with yerrorlines"), std::string::npos) << of_lines;
  EXPECT_NE(of_lines.find("with linespoints"), std::string::npos) << of_lines;
}

TEST(FigureTest, FourPartsStandInTwoRows) {
  Figure figure{.form = Figure::Form::kLines, .title = "t", .x_label = "load"};
  for (const ValuesOf source :
       {ValuesOf::kPaper, ValuesOf::kArtifact, ValuesOf::kOurs, ValuesOf::kSound}) {
    figure.series.push_back({.name = "A", .values_of = source, .points = {{1, 2}}});
    figure.series.push_back({.name = "B", .values_of = source, .points = {{1, 2}}});
  }
  const ScratchFolder folder;
  const Result<Drawn> drawn = DrawFigure(figure, folder.path() + "/four");
  ASSERT_TRUE(drawn.ok()) << drawn.error().message;
  // As wide as three parts in a row.
  EXPECT_NE(FigureScript(figure, "x.svg").find("size 1260,"), std::string::npos);
}

TEST(FigureTest, OnePointIsDrawn) {
  const ScratchFolder folder;
  Figure figure{.form = Figure::Form::kLines, .title = "t"};
  figure.series = {{.name = "A", .values_of = ValuesOf::kOurs, .points = {{7, 2}}}};
  const Result<Drawn> drawn = DrawFigure(figure, folder.path() + "/one");
  EXPECT_TRUE(drawn.ok()) << drawn.error().message;
}

TEST(FigureTest, DrawsAWholeImageWithAllSeries) {
  const ScratchFolder folder;
  const Result<Drawn> drawn = DrawFigure(Bars(), folder.path() + "/bars");
  ASSERT_TRUE(drawn.ok()) << drawn.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/bars.csv"));
  ASSERT_NE(drawn.value(), Drawn::kNoProgram) << "install gnuplot (./dev setup)";
  const std::string svg = ReadAll(folder.path() + "/bars.svg");
  EXPECT_NE(svg.find("<title>Deadlines met, &lt;all> &amp; more</title>"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  for (const char* text : {"EDF", "paper", "ours", "sound", "share"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

TEST(FigureTest, AFigureWithoutValuesIsNotDrawn) {
  const ScratchFolder folder;
  Figure figure = Bars();
  for (FigureSeries& series : figure.series) {
    series.bars = {std::nullopt, std::nullopt};
  }
  const Result<Drawn> drawn = DrawFigure(figure, folder.path() + "/none");
  ASSERT_TRUE(drawn.ok()) << drawn.error().message;
  EXPECT_EQ(drawn.value(), Drawn::kNothing);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/none.svg"));
}

TEST(FigureTest, SaysWhereItCannotWrite) {
  const Result<Drawn> drawn = DrawFigure(Bars(), "/nowhere/bars");
  ASSERT_FALSE(drawn.ok());
  EXPECT_NE(drawn.error().message.find("/nowhere/bars"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::results
