// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/cell_result.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainyard::experiments {
namespace {

CellOutcome Good() {
  return {.status = CellStatus::kOk,
          .reason = {},
          .metrics = {{.name = "jct_mean", .text = "0.1"},
                      {.name = "jct_p50", .text = ""},
                      {.name = "policy", .text = "las:x=1,y=2", .is_text = true},
                      {.name = "events", .text = "12345678901"}},
          .extra = "[1, 2]"};
}

TEST(CellResultTest, AnOutcomeComesBackFromItsText) {
  const Result<CellOutcome> read = ParseOutcome(OutcomeJson(Good(), "abc"), "abc");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().status, CellStatus::kOk);
  EXPECT_EQ(read.value().metrics, Good().metrics);
  EXPECT_EQ(read.value().extra, "[1, 2]");
}

TEST(CellResultTest, ATextCutShortOrOfAnotherCellIsRefused) {
  const std::string text = OutcomeJson(Good(), "abc");
  EXPECT_FALSE(ParseOutcome(text.substr(0, text.size() - 1), "abc").ok());
  EXPECT_FALSE(ParseOutcome(text, "abd").ok());
  EXPECT_FALSE(ParseOutcome("", "abc").ok());
}

TEST(CellResultTest, NumbersAreTakenByName) {
  CellResult result;
  static_cast<CellOutcome&>(result) = Good();
  EXPECT_EQ(result.Number("jct_mean"), 0.1);
  EXPECT_EQ(result.Number("jct_p50"), std::nullopt);
  EXPECT_EQ(result.Number("policy"), std::nullopt);
  EXPECT_EQ(result.Number("none"), std::nullopt);
}

TEST(CellResultTest, AxesWithNothingButNumbersAreNumbers) {
  const std::vector<std::vector<std::string>> cells{{"t", "1", "0.5", "8"},
                                                    {"u", "x", "1e3", "08"}};
  const std::vector<bool> numeric = NumericAxes(4, cells);
  EXPECT_EQ(numeric, (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(AxesJson({"trace", "mixed", "load", "text"}, cells[0], numeric),
            R"({"trace":"t","mixed":"1","load":0.5,"text":"8"})");
}

TEST(CellResultTest, OtherMetricsComeBehindThoseOfRuns) {
  CellResult result;
  result.status = CellStatus::kOk;
  result.metrics = {{.name = "throughput", .text = "12.5"}};
  result.values = {"a"};
  const std::string csv = ResultsCsv({"run"}, {result});
  EXPECT_NE(csv.find(",throughput\n"), std::string::npos) << csv;
  EXPECT_TRUE(csv.ends_with(",12.5\n")) << csv;
}

TEST(CellResultTest, TheCsvHasOneRowForEachCellAndNoCosts) {
  CellResult good;
  static_cast<CellOutcome&>(good) = Good();
  good.values = {"t", "las:x=1,y=2"};
  CellResult failed;
  failed.status = CellStatus::kFailed;
  failed.reason = "no \"x\"";
  failed.values = {"t", "b"};
  const std::string csv = ResultsCsv({"trace", "policy"}, {good, failed});
  EXPECT_TRUE(csv.starts_with("trace,policy,status,reason,jobs,completed,")) << csv;
  EXPECT_EQ(csv.find("wall_seconds"), std::string::npos);
  EXPECT_EQ(csv.find(",policy", 12), std::string::npos) << "an axis of that name is there";
  EXPECT_NE(csv.find("\nt,\"las:x=1,y=2\",ok,,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nt,b,failed,\"no \"\"x\"\"\",,"), std::string::npos) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

}  // namespace
}  // namespace trainyard::experiments
