// SPDX-License-Identifier: Apache-2.0
// Plots of a trace's statistics.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/figure.h"
#include "report/trace_statistics.h"

namespace trainyard {

// Figures and the names of their files, without an ending: submits, hour_of_day, sizes,
// duration_cdf, demand; none is that of a table of WriteStatisticsCsv. Long times are drawn with at
// most 1,000 steps, each the mean of its part.
[[nodiscard]] std::vector<std::pair<std::string, Figure>> StatisticsFigures(
    const TraceStatistics& statistics, const TraceSource& source);

// Draws them into a folder, which is made. Errors: those of DrawFigure; there is no gnuplot.
[[nodiscard]] Status DrawStatistics(const TraceStatistics& statistics, const TraceSource& source,
                                    const std::string& folder);

// The files that it may write there.
[[nodiscard]] std::vector<std::string> FilesOfFigures(const std::string& folder);

}  // namespace trainyard
