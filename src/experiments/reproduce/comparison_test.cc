// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/comparison.h"

#include <gtest/gtest.h>

#include "support/small_figure.h"

namespace trainyard::experiments {
namespace {

TEST(ComparisonTest, APlaceHasOneRowForThePaperItsArtifactOursAndSoundMode) {
  const std::vector<ComparisonRow> rows = SmallOutcome().rows;
  ASSERT_EQ(rows.size(), 9U);
  EXPECT_EQ(rows[0].run, "A");
  EXPECT_EQ(rows[0].place, "one");
  EXPECT_EQ(rows[0].paper->value, 100);
  EXPECT_EQ(rows[0].paper->source, "table 1");
  EXPECT_EQ(rows[0].artifact->value, 100.02);
  EXPECT_EQ(rows[0].ours->value, 100.04);
  EXPECT_EQ(rows[0].sound->value, 110);
  EXPECT_TRUE(rows[0].Agrees(*rows[0].paper));
  EXPECT_FALSE(rows[0].Agrees(*rows[0].artifact));
  EXPECT_DOUBLE_EQ(*rows[0].SoundDifference(), (110 / 100.04 - 1) * 100);
  EXPECT_EQ(rows[1].run, "B");
  EXPECT_DOUBLE_EQ(*rows[1].PaperDifference(), -20);
  EXPECT_FALSE(rows[1].artifact);
  EXPECT_EQ(rows[1].note, "no counterpart in sound mode");
  EXPECT_FALSE(rows[2].ours);
  EXPECT_EQ(rows[2].note, "missing trace /ref/two.csv: somewhere");
  EXPECT_EQ(rows.back().run, "C");
  EXPECT_EQ(rows.back().artifact->value, 900);
  EXPECT_EQ(rows.back().note, "another program");
}

TEST(ComparisonTest, ARunThatIsNotMadeAsPublishedMayBeThereInSoundMode) {
  const Result<FigureSpec> spec =
      ParseFigure("x/one", "one.toml",
                  "[[trace]]\nname = \"t\"\npath = \"t.csv\"\n[[cluster]]\nname = \"c\"\n"
                  "spec = \"2x4\"\n[[run]]\nlabel = \"D (sound)\"\n[[panel]]\n"
                  "metric = \"jct_mean\"\n[[published]]\nmetric = \"jct_mean\"\nsource = \"s\"\n"
                  "digits = 0\n[published.values]\nD = 5\n[published.not_run]\nD = \"not there\"\n",
                  "/ref");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  FigureData data(1);
  data[0].emplace().numbers["jct_mean"] = 4;
  const std::vector<CellResult> results(1);
  const std::vector<ComparisonRow> rows = RowsOf(spec.value(), data, results);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].paper->value, 5);
  EXPECT_EQ(rows[0].sound->value, 4);
  EXPECT_FALSE(rows[0].ours);
  EXPECT_EQ(rows[0].note, "not there");
}

// A re-run with other settings is shown, and nothing is made of it.
TEST(ComparisonTest, AnArtifactWithOtherSettingsIsNotComparedWithOurs) {
  const std::vector<ComparisonRow> rows = SmallOutcome().rows;
  EXPECT_EQ(rows[5].run, "B");
  EXPECT_EQ(rows[5].artifact->value, 700);
  EXPECT_EQ(rows[5].ours->value, 800);
  EXPECT_FALSE(rows[5].ArtifactDifference());
  EXPECT_FALSE(rows[5].paper);
}

TEST(ComparisonTest, ANotableDifferenceHasItsReasonOrCountsAsUnknown) {
  FigureOutcome outcome = SmallOutcome();
  EXPECT_EQ(outcome.rows[0].cause, "");
  EXPECT_EQ(outcome.rows[1].cause, "testbed");
  EXPECT_EQ(outcome.rows[1].reason, "measured on <machines>");
  EXPECT_EQ(AgreementOf(outcome.rows).notable, 1U);
  EXPECT_EQ(AgreementOf(outcome.rows).unknown, 0U);
  outcome.spec.differences.clear();
  outcome.rows = RowsOf(outcome.spec, outcome.data, SmallResults());
  EXPECT_EQ(outcome.rows[1].cause, "unknown");
  EXPECT_EQ(AgreementOf(outcome.rows).unknown, 1U);
  EXPECT_EQ(DifferencesText(std::span(&outcome, 1)),
            "2 values of ours have one of the paper to compare with; 1 differ from it by more than "
            "5 %. Causes: unknown 1.");
}

TEST(ComparisonTest, CountsWhatAgrees) {
  const FigureOutcome outcome = SmallOutcome();
  const Agreement agreement = AgreementOf(outcome.rows);
  EXPECT_EQ(agreement.paper.values, 4U);
  EXPECT_EQ(agreement.paper.compared, 2U);
  EXPECT_EQ(agreement.paper.agree, 1U);
  EXPECT_NEAR(*agreement.paper.median, 10.02, 1e-9);
  EXPECT_NEAR(*agreement.paper.largest, 20, 1e-9);
  EXPECT_EQ(agreement.artifact.values, 4U);
  EXPECT_EQ(agreement.artifact.compared, 2U);
  EXPECT_EQ(agreement.artifact.agree, 1U);
  ASSERT_NE(agreement.headline, nullptr);
  EXPECT_EQ(agreement.headline->run, "B");
}

TEST(ComparisonTest, DigitsAreThoseOfThePublishedValue) {
  const Printed published{.value = 0.287, .digits = 3, .source = {}, .unlike = {}};
  ComparisonRow row{.ours = Measured{.value = 0.28718}};
  EXPECT_TRUE(row.Agrees(published));
  row.ours->value = 0.2864;
  EXPECT_FALSE(row.Agrees(published));
  row.ours->value = 2.5;
  EXPECT_TRUE(row.Agrees({.value = 2, .digits = 0, .source = {}, .unlike = {}}));
}

TEST(ComparisonTest, DrawsAreOneRowWithMeanLeastAndGreatest) {
  const FigureOutcome outcome = DrawnOutcome();
  ASSERT_EQ(outcome.rows.size(), 2U);
  const ComparisonRow& row = outcome.rows[0];
  EXPECT_EQ(row.place, "");
  EXPECT_DOUBLE_EQ(row.ours->value, 0.6);
  EXPECT_EQ(row.ours->low, 0.5);
  EXPECT_EQ(row.ours->high, 0.7);
  EXPECT_EQ(row.ours->draws, 3U);
  EXPECT_EQ(ValueText(row.ours, row), "0.60 (0.50 to 0.70)");
  EXPECT_DOUBLE_EQ(outcome.rows[1].ours->value, 0.45);
  EXPECT_EQ(outcome.rows[1].ours->draws, 2U);
}

TEST(ComparisonTest, TheDrawIsTheReasonOnlyOfAValueAmongTheDraws) {
  const FigureOutcome outcome = DrawnOutcome();
  EXPECT_TRUE(outcome.rows[0].Agrees(*outcome.rows[0].paper));
  EXPECT_EQ(outcome.rows[0].cause, "draw");
  EXPECT_FALSE(outcome.rows[1].Agrees(*outcome.rows[1].paper));
  EXPECT_EQ(outcome.rows[1].cause, "unknown");
}

TEST(ComparisonTest, TablesShowThePaperTheArtifactOursAndSound) {
  const FigureOutcome outcome = SmallOutcome();
  const std::string table = FigureTable(outcome);
  EXPECT_NE(table.find("mean JCT (s)  A"), std::string::npos) << table;
  EXPECT_NE(table.find("paper  artifact"), std::string::npos) << table;
  EXPECT_NE(table.find("100.02"), std::string::npos) << table;
  EXPECT_NE(table.find("-20.0 %"), std::string::npos) << table;
  EXPECT_NE(table.find("\n  testbed: measured on <machines>"), std::string::npos) << table;
  EXPECT_NE(table.find("not run, missing trace /ref/two.csv: somewhere"), std::string::npos)
      << table;
  EXPECT_NE(table.find("C: another program"), std::string::npos) << table;
  const std::string summary = SummaryTable(std::span(&outcome, 1));
  EXPECT_NE(summary.find("x/small"), std::string::npos);
  EXPECT_NE(summary.find("1 of 2"), std::string::npos) << summary;
  EXPECT_NE(summary.find("Causes: testbed 1."), std::string::npos) << summary;
}

TEST(ComparisonTest, CsvHasEveryRow) {
  const FigureOutcome outcome = SmallOutcome();
  const std::string values = ValuesCsv(std::span(&outcome, 1));
  EXPECT_EQ(std::count(values.begin(), values.end(), '\n'), 10);
  EXPECT_NE(values.find("x/small,jct_mean,,B,one,50,,40,40,40,1,,,,-20.000,,,testbed,measured on "
                        "<machines>,no counterpart in sound mode,table 1,,\n"),
            std::string::npos)
      << values;
  const std::string summary = SummaryCsv(std::span(&outcome, 1));
  EXPECT_NE(summary.find("x/small,A <small> figure,4,2,1,10.020,20.000,1,0,4,2,1,"),
            std::string::npos)
      << summary;
  EXPECT_NE(FiguresJson(std::span(&outcome, 1)).find("\"above_5_percent\": 1"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::experiments
