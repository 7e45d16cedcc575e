// SPDX-License-Identifier: Apache-2.0
// A figure with two traces, two policies in both modes, and published values.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "experiments/reproduce/comparison.h"
#include "experiments/sweep/cell_result.h"

namespace trainyard {

inline constexpr std::string_view kSmallFigure = R"toml(
title = "A <small> figure"
[[trace]]
name = "one"
path = "{reference}/one.csv"
[[trace]]
name = "two"
path = "{reference}/two.csv"
obtain = "somewhere"
[[cluster]]
name = "c"
spec = "1x8"
[[run]]
label = "A"
policy = "fifo"
preset = "tiresias"
[[run]]
label = "A (sound)"
policy = "fifo"
[[run]]
label = "B"
policy = "shortest"
preset = "tiresias"
[[panel]]
title = "Mean JCT"
metric = "jct_mean"
x = "trace"
relative_to = "A"
divide = 2
[[panel]]
title = "JCT"
form = "cdf"
metric = "jct"
trace = "one"
runs = ["A"]
[[published]]
metric = "jct_mean"
source = "table 1"
digits = 1
along = "trace"
at = ["one", "two"]
[published.values]
A = [100.0, 200.0]
B = [50.0, 150.0]
[[published]]
metric = "makespan"
source = "text"
digits = 0
kind = "artifact"
trace = "one"
[published.values]
A = 1000
C = 900
[published.not_run]
C = "another program"
[[published]]
metric = "makespan"
source = "other text"
digits = 0
kind = "artifact"
unlike = "other settings"
along = "trace"
at = ["one", "two"]
[published.values]
B = [700, "-"]
[[published]]
metric = "jct_mean"
source = "a log"
digits = 2
kind = "artifact"
trace = "one"
[published.values]
A = 100.02
[[difference]]
cause = "testbed"
text = "measured on <machines>"
runs = ["B"]
trace = ["one", "two"]
)toml";

// One run, drawn three times.
inline constexpr std::string_view kDrawnFigure = R"toml(
title = "A drawn figure"
[[trace]]
name = "made"
generate = {jobs = 10, seed = "{draw}"}
[[cluster]]
name = "c"
spec = "1x8"
[[run]]
label = "A"
policy = "fifo"
preset = "tiresias"
[[run]]
label = "B"
policy = "fifo"
preset = "tiresias"
[axes]
draw = [1, 2, 3]
[[panel]]
metric = "deadline_ratio"
[[published]]
metric = "deadline_ratio"
source = "figure 1"
digits = 2
[published.values]
A = 0.70
B = 0.10
[[difference]]
cause = "draw"
text = "drawn without a seed"
)toml";

inline experiments::FigureSpec FigureOfText(std::string_view text) {
  Result<experiments::FigureSpec> spec =
      experiments::ParseFigure("x/small", "small.toml", text, "/ref");
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  return std::move(spec).value();
}

inline experiments::FigureSpec SmallFigure() { return FigureOfText(kSmallFigure); }

// A has 0.5, 0.6 and 0.7; of B one draw is not there.
inline experiments::FigureOutcome DrawnOutcome() {
  const auto ratio = [](double value) {
    return experiments::CellData{.numbers = {{"deadline_ratio", value}}, .curves = {}};
  };
  experiments::FigureOutcome outcome{
      .spec = FigureOfText(kDrawnFigure),
      .data = {ratio(0.5), ratio(0.7), ratio(0.6), ratio(0.4), ratio(0.5), {}},
      .images = {}};
  outcome.rows =
      experiments::RowsOf(outcome.spec, outcome.data, std::vector<experiments::CellResult>(6));
  outcome.ok = 5;
  return outcome;
}

// Trace "one" has been run, "two" is missing.
inline experiments::FigureData SmallData() {
  const auto data = [](double jct, double makespan) {
    return experiments::CellData{.numbers = {{"jct_mean", jct}, {"makespan", makespan}},
                                 .curves = {{"jct", {.x = {3600, 7200}, .y = {0.5, 1}}}}};
  };
  return {data(100.04, 1000.4), data(110, 1100), data(40, 800), {}, {}, {}};
}

inline std::vector<experiments::CellResult> SmallResults() {
  std::vector<experiments::CellResult> results(6);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].status = i < 3 ? experiments::CellStatus::kOk : experiments::CellStatus::kNotRun;
    results[i].reason = i < 3 ? "" : "missing trace /ref/two.csv: somewhere";
  }
  return results;
}

inline experiments::FigureOutcome SmallOutcome() {
  experiments::FigureOutcome outcome{.spec = SmallFigure(), .data = SmallData(), .images = {}};
  outcome.rows = experiments::RowsOf(outcome.spec, outcome.data, SmallResults());
  outcome.ok = 3;
  outcome.missing = {"missing trace /ref/two.csv: somewhere"};
  return outcome;
}

}  // namespace trainyard
