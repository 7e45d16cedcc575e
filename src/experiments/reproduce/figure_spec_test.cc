// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/figure_spec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/text.h"
#include "experiments/reproduce/cell_data.h"
#include "experiments/reproduce/loader_scenario.h"
#include "io/csv_reader.h"
#include "support/reference.h"
#include "support/small_figure.h"

namespace trainyard::experiments {
namespace {

TEST(FigureSpecTest, TakesPanelsAndPublishedValues) {
  const FigureSpec spec = SmallFigure();
  ASSERT_EQ(spec.panels.size(), 2U);
  EXPECT_EQ(spec.panels[0].quantity,
            (Quantity{.metric = "jct_mean", .base = "A", .base_first = false}));
  EXPECT_EQ(spec.panels[0].divide, 2);
  EXPECT_EQ(spec.panels[1].form, PanelForm::kCdf);
  ASSERT_EQ(spec.published.size(), 8U);
  EXPECT_EQ(spec.published[1].run, "A");
  EXPECT_EQ(spec.published[1].place, (Place{{"trace", "two"}}));
  EXPECT_EQ(spec.published[1].value, 200);
  EXPECT_FALSE(spec.published[1].artifact);
  EXPECT_TRUE(spec.published[4].artifact);
  EXPECT_EQ(spec.published[5].not_run, "another program");
  EXPECT_EQ(spec.published[6].unlike, "other settings");
  ASSERT_EQ(spec.differences.size(), 1U);
  const Quantity jct{.metric = "jct_mean", .base = "", .base_first = false};
  EXPECT_TRUE(spec.differences[0].Applies(jct, "B", {{"trace", "two"}}));
  EXPECT_FALSE(spec.differences[0].Applies(jct, "A", {{"trace", "two"}}));
  EXPECT_FALSE(spec.differences[0].Applies(jct, "B", {{"trace", "three"}}));
  EXPECT_FALSE(spec.differences[0].Applies(jct, "B", {}));
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
        {"kind = \"artifact\"", "kind = \"guess\"", "expected 'source'"},
        {"kind = \"artifact\"\nunlike", "unlike", "'unlike' of a value of the paper"},
        {"metric = \"jct_mean\"\nsource = \"a log\"", "metric = \"makespan\"\nsource = \"a log\"",
         "a second value of 'A'"},
        {"cause = \"testbed\"", "cause = \"moon\"", "unknown cause 'moon'"},
        {"text = \"measured on <machines>\"", "", "no 'text'"},
        {"runs = [\"B\"]\ntrace = [\"one\", \"two\"]", "metric = \"makespan\"",
         "the reason of no value of the paper"}}) {
    const std::string text =
        base::ReplaceAll(std::string(kSmallFigure), mistake.right, mistake.wrong);
    ASSERT_NE(text, kSmallFigure) << mistake.right;
    const Result<FigureSpec> spec = ParseFigure("x/small", "small.toml", text, "/ref");
    ASSERT_FALSE(spec.ok()) << mistake.wrong;
    EXPECT_NE(spec.error().message.find(mistake.complaint), std::string::npos)
        << spec.error().message;
    EXPECT_EQ(spec.error().message.substr(0, 11), "small.toml:") << spec.error().message;
  }
}

TEST(FigureSpecTest, DrawsAreNoPlaces) {
  const FigureSpec spec = FigureOfText(kDrawnFigure);
  EXPECT_EQ(spec.Find("B", {}), 3U);
  EXPECT_TRUE(spec.IsFirstDraw(3));
  EXPECT_FALSE(spec.IsFirstDraw(4));
  const std::string text =
      base::ReplaceAll(std::string(kDrawnFigure), "source", "draw = 1\nsource");
  const Result<FigureSpec> wrong = ParseFigure("x/drawn", "drawn.toml", text, "/ref");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("draw"), std::string::npos) << wrong.error().message;
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
      EXPECT_TRUE(value ? FindMetric(metric) != nullptr : IsDataCurve(metric))
          << id << ": " << metric;
    }
    for (const PublishedValue& value : spec.published) {
      EXPECT_NE(FindMetric(value.quantity.metric), nullptr) << id << ": " << value.quantity.metric;
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

// A row of golden/paper_values.csv of the reference folder.
struct KnownValue {
  std::string figure;
  std::string metric;  // "jct_mean", "jct_mean / Gandiva"
  std::string run;
  std::string place;  // "cluster01 n64g8"; may say more than the experiment needs
  std::optional<double> paper;
  std::optional<double> artifact;

  [[nodiscard]] bool IsOf(const std::string& id, const PublishedValue& value) const {
    const std::string& base = value.quantity.base;
    return figure == id && run == value.run &&
           metric == value.quantity.metric + (base.empty() ? "" : " / " + base) &&
           std::all_of(value.place.begin(), value.place.end(), [this](const auto& at) {
             return (place + " ").starts_with(at.second + " ");
           });
  }
};

std::vector<KnownValue> ReadKnownValues(const std::string& path) {
  std::vector<KnownValue> known;
  const Result<io::CsvTable> table = io::CsvTable::Open(path);
  EXPECT_TRUE(table.ok()) << table.error().message;
  const auto column = [&table](const char* name) { return table.value().Require({name}).value(); };
  const Status read = table.value().ForEach([&](const io::CsvRow& row) {
    const auto text = [&](const char* name) { return std::string(row.Text(column(name))); };
    known.push_back({.figure = text("figure"),
                     .metric = text("metric"),
                     .run = text("series"),
                     .place = text("x"),
                     .paper = base::ToNumber(text("paper_value")),
                     .artifact = base::ToNumber(text("artifact_value"))});
    return Status();
  });
  EXPECT_TRUE(read.ok()) << read.error().message;
  return known;
}

std::string Described(const std::string& id, const PublishedValue& value) {
  std::string text = id + " " + value.quantity.metric + " " + value.run;
  for (const auto& at : value.place) {
    text += " " + at.second;
  }
  return text;
}

// Nothing stands under the paper's heading that the paper does not print, and nothing that is known
// of the paper and its artifact is missing or different.
TEST(FiguresTest, ValuesOfThePaperAndItsArtifactAreThoseThatAreKnown) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string reference = Reference();
  std::vector<KnownValue> known = ReadKnownValues(reference + "/golden/paper_values.csv");
  EXPECT_GT(known.size(), 400U);
  for (const std::string& id : FigureIds()) {
    const std::string system = id.substr(0, id.find('/'));
    if (system == "gavel" || system == "pollux" || system == "sia") {
      continue;  // below
    }
    const Result<FigureSpec> spec = ReadFigure(id, reference);
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    for (const PublishedValue& value : spec.value().published) {
      const auto row = std::find_if(known.begin(), known.end(), [&](const KnownValue& candidate) {
        return candidate.IsOf(id, value);
      });
      if (row == known.end()) {
        EXPECT_TRUE(value.artifact) << Described(id, value) << " is no value of the paper";
        continue;
      }
      std::optional<double>& expected = value.artifact ? row->artifact : row->paper;
      EXPECT_EQ(expected, value.value) << Described(id, value);
      expected.reset();
    }
  }
  for (const KnownValue& value : known) {
    EXPECT_FALSE(value.paper) << value.figure << " " << value.run << " " << value.place;
    EXPECT_FALSE(value.artifact) << value.figure << " " << value.run << " " << value.place;
  }
}

// The rows of a table of printed values, as `text` puts them.
template <typename Text>
std::set<std::string> ReadPrinted(const std::string& path, Text text) {
  std::set<std::string> printed;
  const Result<io::CsvTable> table = io::CsvTable::Open(path);
  EXPECT_TRUE(table.ok()) << table.error().message;
  const Status read = table.value().ForEach([&](const io::CsvRow& row) {
    const auto field = [&](const char* name) {
      return std::string(row.Text(table.value().Require({name}).value()));
    };
    printed.insert(text(field));
    return Status();
  });
  EXPECT_TRUE(read.ok()) << read.error().message;
  return printed;
}

// Each published value of the system's figures, as `text` puts it, is among those that are printed.
template <typename Text>
void ExpectPrinted(const std::string& system, const std::set<std::string>& printed, int values,
                   Text text) {
  int checked = 0;
  for (const std::string& id : FigureIds()) {
    if (!id.starts_with(system + "/")) {
      continue;
    }
    const Result<FigureSpec> spec = ReadFigure(id, Reference());
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    for (const PublishedValue& value : spec.value().published) {
      EXPECT_TRUE(printed.contains(text(id, value)))
          << Described(id, value) << ": " << text(id, value);
      ++checked;
    }
  }
  EXPECT_GE(checked, values);
}

// What the notebooks print that draw Gavel's figures, to two digits: "LINE AT VALUE".
TEST(FiguresTest, ValuesOfGavelAreThoseThatItsNotebooksPrint) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::set<std::string> printed =
      ReadPrinted(Reference() + "/golden/gavel/published.csv", [](const auto& field) {
        const auto at = base::ToNumber(field("x"));
        const auto value = base::ToNumber(field("value"));
        const std::string metric = field("metric");
        return at && value && (metric == "mean_jct_h" || metric == "makespan_h")
                   ? fmt::format("{} {} {:.2f}", field("policy"), *at, *value)
                   : std::string();
      });
  const std::map<std::string, std::string> lines{
      {"min_total_duration_perf", "Gavel"}, {"gandiva", "Gandiva"}, {"fifo", "FIFO"}};
  ExpectPrinted("gavel", printed, 80, [&lines](const std::string& id, const PublishedValue& value) {
    const std::string& line = id == "gavel/makespan" ? lines.at(value.run) : value.run;
    return fmt::format("{} {} {:.2f}", line, value.place.back().second, value.value);
  });
}

// A label as these tables name the policy.
std::string InLowerCase(std::string label) {
  label[0] = static_cast<char>(std::tolower(label[0]));
  return label;
}

// What the simulations of Pollux's artifact logged, to two digits.
TEST(FiguresTest, ValuesOfPolluxAreThoseThatItsSimulationsLogged) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::set<std::string> printed =
      ReadPrinted(Reference() + "/golden/pollux/published_osdi21.csv", [](const auto& field) {
        return fmt::format("{} {} {} {} {:.2f}", field("study"), field("setting"),
                           field("workload"), field("policy"),
                           base::ToNumber(field("avg_jct_s")).value_or(-1));
      });
  const std::map<std::string, std::string> settings{
      {"30", "30s"}, {"60", "1m"}, {"120", "2m"}, {"240", "4m"}, {"480", "8m"}};
  ExpectPrinted("pollux", printed, 30, [&](const std::string& id, const PublishedValue& value) {
    const std::string& at = value.place.back().second;
    const std::string place = id == "pollux/osdi21" ? "jobload 1.0 workload-" + at
                              : id == "pollux/load" ? "jobload " + at + " workload-6"
                                                    : "period " + settings.at(at) + " workload-6";
    return fmt::format("{} {} {:.2f}", place, InLowerCase(value.run), value.value);
  });
}

// What Sia's paper has in its tables.
TEST(FiguresTest, ValuesOfSiaAreThoseOfItsTables) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::set<std::string> printed =
      ReadPrinted(Reference() + "/golden/sia/published.csv", [](const auto& field) {
        return fmt::format("sia/{} {} {} {} {:.1f}", field("source"), field("workload"),
                           field("policy"), field("metric"),
                           base::ToNumber(field("value")).value_or(-1));
      });
  const std::map<std::string, std::string> metrics{{"jct_mean_hours", "avg_jct_h"},
                                                   {"makespan_hours", "makespan_h"},
                                                   {"gpu_hours_mean", "gpu_h_per_job"}};
  ExpectPrinted("sia", printed, 40, [&](const std::string& id, const PublishedValue& value) {
    return fmt::format("{} {} {} {} {:.1f}", id, value.place.back().second, InLowerCase(value.run),
                       metrics.at(value.quantity.metric), value.value);
  });
}

}  // namespace
}  // namespace trainyard::experiments
