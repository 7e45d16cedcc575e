// SPDX-License-Identifier: Apache-2.0
#include "reproduce/figure_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "reproduce/cell_data.h"
#include "reproduce/loader_scenario.h"
#include "reproduce/small_figure.h"

namespace trainyard {
namespace {

TEST(FigureSpecTest, TakesPanelsAndPublishedValues) {
  const FigureSpec spec = SmallFigure();
  ASSERT_EQ(spec.panels.size(), 2U);
  EXPECT_EQ(spec.panels[0].quantity,
            (Quantity{.metric = "jct_mean", .base = "A", .base_first = false}));
  EXPECT_EQ(spec.panels[0].divide, 2);
  EXPECT_EQ(spec.panels[1].form, PanelForm::kCdf);
  ASSERT_EQ(spec.published.size(), 6U);
  EXPECT_EQ(spec.published[1].run, "A");
  EXPECT_EQ(spec.published[1].place, (Place{{"trace", "two"}}));
  EXPECT_EQ(spec.published[1].value, 200);
  EXPECT_FALSE(spec.published[1].rerun);
  EXPECT_TRUE(spec.published[4].rerun);
  EXPECT_EQ(spec.published[5].not_run, "another program");
  EXPECT_EQ(spec.Find("A (sound)", {{"trace", "two"}}), 4U);
  EXPECT_EQ(spec.Find("B (sound)", {{"trace", "two"}}), std::nullopt);
}

struct Mistake {
  const char* right;
  const char* wrong;
  const char* complaint;
};

TEST(FigureSpecTest, SaysWhatIsWrong) {
  for (const Mistake& mistake :
       {Mistake{"form = \"cdf\"", "form = \"pie\"", "unknown form 'pie'"},
        {"x = \"trace\"", "x = \"load\"", "no axis 'load'"},
        {"relative_to = \"A\"", "relative_to = \"Z\"", "no run 'Z'"},
        {"runs = [\"A\"]", "runs = [\"Z\"]", "no run 'Z'"},
        {"divide = 2", "divide = 0", "a number > 0"},
        {"divide = 2", "colour = 2", "colour"},
        {"at = [\"one\", \"two\"]", "at = [\"one\", \"three\"]", "'three'"},
        {"A = [100.0, 200.0]", "A = [100.0]", "one number for each place"},
        {"B = [50.0, 150.0]", "D = [50.0, 150.0]", "of which 0 cells are meant"},
        {"trace = \"one\"\n[published", "[published", "of which 2 cells are meant"},
        {"C = \"another program\"", "D = \"another program\"", "of which 0 cells are meant"},
        {"source = \"table 1\"", "", "expected 'source'"},
        {"kind = \"rerun\"", "kind = \"guess\"", "expected 'source'"}}) {
    const std::string text = ReplaceAll(std::string(kSmallFigure), mistake.right, mistake.wrong);
    ASSERT_NE(text, kSmallFigure) << mistake.right;
    const Result<FigureSpec> spec = ParseFigure("x/small", "small.toml", text, "/ref");
    ASSERT_FALSE(spec.ok()) << mistake.wrong;
    EXPECT_NE(spec.error().message.find(mistake.complaint), std::string::npos)
        << spec.error().message;
    EXPECT_EQ(spec.error().message.substr(0, 11), "small.toml:") << spec.error().message;
  }
}

TEST(FigureSpecTest, AnUnknownFigureGivesTheNearest) {
  const Result<FigureSpec> spec = ReadFigure("elasticflow/fig8aa", "/ref");
  ASSERT_FALSE(spec.ok());
  EXPECT_NE(spec.error().message.find("did you mean 'elasticflow/fig8a'"), std::string::npos);
}

// Every figure that was asked for is there.
TEST(FiguresTest, AllAreKnown) {
  const std::vector<std::string> ids = FigureIds();
  for (const char* id : {"elasticflow/fig6a",
                         "elasticflow/fig6b",
                         "elasticflow/fig7",
                         "elasticflow/fig8a",
                         "elasticflow/fig8b",
                         "elasticflow/fig9",
                         "elasticflow/fig10",
                         "elasticflow/fig11",
                         "muri/table3",
                         "muri/table4",
                         "muri/fig8",
                         "muri/fig9",
                         "muri/fig10",
                         "muri/fig11",
                         "muri/fig12",
                         "muri/fig13",
                         "blox/fig6-7",
                         "blox/fig12",
                         "blox/fig13",
                         "blox/fig14-15",
                         "synergy/static",
                         "synergy/multi",
                         "synergy/loads",
                         "synergy/ratio",
                         "synergy/opt",
                         "tiresias/comparison",
                         "chronus/elasticflow-copy",
                         "chronus/original",
                         "torchloader/allocation"}) {
    EXPECT_TRUE(std::find(ids.begin(), ids.end(), id) != ids.end()) << id;
  }
}

// The files are read, draw what a run gives, and say where each missing trace may be had.
TEST(FiguresTest, AllAreSound) {
  for (const std::string& id : FigureIds()) {
    const Result<FigureSpec> read = ReadFigure(id, "/ref");
    ASSERT_TRUE(read.ok()) << read.error().message;
    const FigureSpec& spec = read.value();
    EXPECT_FALSE(spec.experiment.title.empty()) << id;
    std::set<std::string> titles;
    for (const PanelSpec& panel : spec.panels) {
      EXPECT_TRUE(titles.insert(panel.title).second) << id << ": " << panel.title;
      const std::string& metric = panel.quantity.metric;
      const bool value = panel.form == PanelForm::kBars || panel.form == PanelForm::kLines;
      EXPECT_TRUE(value ? IsDataNumber(metric) : IsDataCurve(metric)) << id << ": " << metric;
    }
    for (const PublishedValue& value : spec.published) {
      EXPECT_TRUE(IsDataNumber(value.quantity.metric)) << id << ": " << value.quantity.metric;
    }
    for (const Cell& cell : spec.experiment.cells) {
      EXPECT_TRUE(!cell.trace.path.empty() || !cell.trace.generate.empty()) << id;
      EXPECT_TRUE(cell.trace.path.empty() || !cell.trace.obtain.empty()) << id << cell.id;
      const bool scenario = cell.trace.format == kLoaderScenario;
      EXPECT_TRUE(scenario || IsSound(cell.values[2]) == cell.names.preset.empty())
          << id << ": " << cell.id;
    }
  }
}

}  // namespace
}  // namespace trainyard
