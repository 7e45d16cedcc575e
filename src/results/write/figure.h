// SPDX-License-Identifier: Apache-2.0
// Figures in the form of a paper: bars, lines or steps, with the values of the paper, of its
// artifact, of a preset ("ours") and of sound mode side by side on the same axes. Drawn by gnuplot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::results {

// Whose values a series has.
enum class ValuesOf : std::uint8_t { kPaper, kArtifact, kOurs, kSound, kTrace };
[[nodiscard]] std::string_view Name(ValuesOf values_of);

struct FigureSeries {
  std::string name;  // such as a policy; "" where there is one for each ValuesOf
  ValuesOf values_of = ValuesOf::kOurs;
  std::vector<std::optional<double>> bars;        // one for each category
  std::vector<std::pair<double, double>> points;  // ascending x
  // Of several draws: the least and the greatest, whose mean is the bar or the y of the point. One
  // for each bar or point, or empty.
  std::vector<std::pair<double, double>> ranges;
};

struct Figure {
  enum class Form : std::uint8_t { kBars, kLines, kSteps };
  Form form = Form::kBars;
  std::string title;
  std::string x_label;
  std::string y_label;                  // with the unit
  std::vector<std::string> categories;  // of bars
  std::vector<FigureSeries> series;
  bool log_x = false;
  std::optional<double> x_max;
};

// Columns values_of, series, x, y (bars: x is the category), low and high (of a range, else empty),
// in the order of the series.
[[nodiscard]] std::string FigureCsv(const Figure& figure);

// What gnuplot reads: the data, and how to draw them to `svg`. Bars begin at zero; all parts of a
// figure have the same axes.
[[nodiscard]] std::string FigureScript(const Figure& figure, const std::string& svg);

enum class Drawn : std::uint8_t { kYes, kNoProgram, kNothing };

// Writes PATH.csv, PATH.gnuplot and, if there is a gnuplot (kNoProgram: not), PATH.svg. kNothing:
// the figure has no value, only the two others are written. Errors: a file cannot be written,
// gnuplot fails.
[[nodiscard]] Result<Drawn> DrawFigure(const Figure& figure, const std::string& path);

}  // namespace trainyard::results
