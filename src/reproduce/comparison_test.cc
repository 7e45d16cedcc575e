// SPDX-License-Identifier: Apache-2.0
#include "reproduce/comparison.h"

#include <gtest/gtest.h>

#include "reproduce/small_figure.h"

namespace trainyard {
namespace {

TEST(ComparisonTest, EveryPublishedValueHasARow) {
  const std::vector<ComparisonRow> rows = SmallOutcome().rows;
  ASSERT_EQ(rows.size(), 9U);
  EXPECT_EQ(rows[0].run, "A");
  EXPECT_EQ(rows[0].place, "one");
  EXPECT_EQ(rows[0].published, 100);
  EXPECT_EQ(rows[0].preset, 100.04);
  EXPECT_EQ(rows[0].sound, 110);
  EXPECT_TRUE(rows[0].DigitsEqual());
  EXPECT_EQ(rows[1].run, "B");
  EXPECT_DOUBLE_EQ(*rows[1].PresetDifference(), -20);
  EXPECT_FALSE(rows[1].DigitsEqual());
  EXPECT_EQ(rows[1].note, "no counterpart in sound mode");
  EXPECT_FALSE(rows[2].preset);
  EXPECT_EQ(rows[2].note, "missing trace /ref/two.csv: somewhere");
  // Nothing was published of B's makespan; C is not run.
  EXPECT_FALSE(rows[5].published);
  EXPECT_EQ(rows[5].preset, 800);
  EXPECT_EQ(rows.back().run, "C");
  EXPECT_EQ(rows.back().published, 900);
  EXPECT_EQ(rows.back().note, "another program");
}

TEST(ComparisonTest, CountsWhatAgrees) {
  const FigureOutcome outcome = SmallOutcome();
  const Agreement agreement = AgreementOf(outcome.rows);
  EXPECT_EQ(agreement.published, 6U);
  EXPECT_EQ(agreement.compared, 3U);
  EXPECT_EQ(agreement.digits_equal, 2U);
  EXPECT_NEAR(*agreement.preset_median, 0.04, 1e-9);
  EXPECT_NEAR(*agreement.preset_largest, 20, 1e-9);
  EXPECT_NEAR(*agreement.sound_median, 10, 1e-9);
  ASSERT_NE(agreement.headline, nullptr);
  EXPECT_EQ(agreement.headline->run, "B");
}

TEST(ComparisonTest, DigitsAreThoseOfThePublishedValue) {
  ComparisonRow row{.published = 0.287, .digits = 3, .preset = 0.28718};
  EXPECT_TRUE(row.DigitsEqual());
  row.preset = 0.2864;
  EXPECT_FALSE(row.DigitsEqual());
  row = {.published = 2, .digits = 0, .preset = 2.5};
  EXPECT_TRUE(row.DigitsEqual());
}

TEST(ComparisonTest, TablesShowAllThree) {
  const FigureOutcome outcome = SmallOutcome();
  const std::string table = FigureTable(outcome);
  EXPECT_NE(table.find("mean JCT (s)  A"), std::string::npos) << table;
  EXPECT_NE(table.find("100.0"), std::string::npos) << table;
  EXPECT_NE(table.find("-20.0 %"), std::string::npos) << table;
  EXPECT_NE(table.find("re-run"), std::string::npos) << table;
  EXPECT_NE(table.find("not run, missing trace /ref/two.csv: somewhere"), std::string::npos)
      << table;
  EXPECT_NE(table.find("C: another program"), std::string::npos) << table;
  const std::string summary = SummaryTable(std::span(&outcome, 1));
  EXPECT_NE(summary.find("x/small"), std::string::npos);
  EXPECT_NE(summary.find("2 of 3"), std::string::npos) << summary;
}

TEST(ComparisonTest, CsvHasEveryRow) {
  const FigureOutcome outcome = SmallOutcome();
  const std::string values = ValuesCsv(std::span(&outcome, 1));
  EXPECT_EQ(std::count(values.begin(), values.end(), '\n'), 10);
  EXPECT_NE(values.find("x/small,jct_mean,,B,one,50,paper,40,-20.000,,,no counterpart in sound "
                        "mode,table 1\n"),
            std::string::npos)
      << values;
  const std::string summary = SummaryCsv(std::span(&outcome, 1));
  EXPECT_NE(summary.find("x/small,A <small> figure,6,3,2,"), std::string::npos) << summary;
  EXPECT_NE(FiguresJson(std::span(&outcome, 1)).find("\"digits_equal\": 2"), std::string::npos);
}

}  // namespace
}  // namespace trainyard
