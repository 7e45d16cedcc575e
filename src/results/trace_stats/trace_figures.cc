// SPDX-License-Identifier: Apache-2.0
#include "base/try.h"
#include "results/trace_stats/trace_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

namespace trainyard::results {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;

// Of the files, without an ending.
constexpr std::array kNames{"submits", "hour_of_day", "sizes", "duration_cdf", "demand"};

using Points = std::vector<std::pair<double, double>>;
using TimeBin = TraceStatistics::TimeBin;

// Values of the bins over the days since the first one.
Points OverDays(const std::vector<TimeBin>& bins, double width,
                const std::function<double(const TimeBin& bin)>& value) {
  constexpr std::size_t kMostSteps = 1000;
  const std::size_t together = bins.size() / kMostSteps + 1;
  Points points;
  for (std::size_t from = 0; from < bins.size(); from += together) {
    const std::size_t end = std::min(from + together, bins.size());
    double sum = 0;
    for (std::size_t i = from; i < end; ++i) {
      sum += value(bins[i]);
    }
    points.emplace_back((bins[from].start - bins.front().start) / kDay,
                        sum / static_cast<double>(end - from));
  }
  if (!points.empty()) {  // the last step has a width, too
    const double end = bins.back().start + width - bins.front().start;
    points.emplace_back(end / kDay, points.back().second);
  }
  return points;
}

FigureSeries Series(std::string name, Points points) {
  return {.name = std::move(name),
          .values_of = ValuesOf::kTrace,
          .bars = {},
          .points = std::move(points)};
}

double Percent(double part, double all) { return all > 0 ? 100 * part / all : 0; }

Figure Submits(const TraceStatistics& statistics) {
  std::vector<TimeBin> bins = statistics.OverTime();
  while (!bins.empty() && bins.back().start > statistics.last_submit()) {
    bins.pop_back();  // jobs run on, but none is submitted
  }
  const double hours = statistics.bin_seconds() / kHour;
  return {.form = Figure::Form::kSteps,
          .title = "Jobs submitted",
          .x_label = "Days since the first submission",
          .y_label = "Jobs per hour",
          .series = {Series("submitted",
                            OverDays(bins, statistics.bin_seconds(),
                                     [hours](const TimeBin& bin) { return bin.jobs / hours; }))}};
}

Figure Hours(const TraceStatistics& statistics) {
  Figure figure{.form = Figure::Form::kBars,
                .title = "Jobs by hour of the day",
                .x_label = "Hour of the trace's clock",
                .y_label = "Share of the jobs (%)"};
  FigureSeries series{.name = "jobs", .values_of = ValuesOf::kTrace};
  for (std::size_t hour = 0; hour < statistics.by_hour().size(); ++hour) {
    figure.categories.push_back(std::to_string(hour));
    series.bars.push_back(Percent(static_cast<double>(statistics.by_hour().at(hour)),
                                  static_cast<double>(statistics.all().jobs)));
  }
  figure.series.push_back(std::move(series));
  return figure;
}

Figure GpusFigure(const TraceStatistics& statistics) {
  Figure figure{.form = Figure::Form::kBars,
                .title = "Jobs and GPU-hours by GPUs asked for",
                .x_label = "GPUs",
                .y_label = "Share (%)"};
  FigureSeries jobs{.name = "jobs", .values_of = ValuesOf::kTrace};
  FigureSeries work{.name = "GPU-hours", .values_of = ValuesOf::kTrace};
  for (const auto& [gpus, group] : statistics.by_gpus()) {
    figure.categories.push_back(std::to_string(gpus));
    jobs.bars.push_back(
        Percent(static_cast<double>(group.jobs), static_cast<double>(statistics.all().jobs)));
    work.bars.push_back(Percent(group.gpu_seconds, statistics.all().gpu_seconds));
  }
  figure.series = {std::move(jobs), std::move(work)};
  return figure;
}

// Shares of jobs and GPU-hours that are no longer than x.
Figure Durations(const TraceStatistics& statistics) {
  constexpr std::size_t kSteps = 200;
  Points jobs;
  const std::vector<double> durations = statistics.Durations();
  for (std::size_t step = 1; step <= kSteps && !durations.empty(); ++step) {
    const std::size_t at = (durations.size() * step + kSteps - 1) / kSteps - 1;
    jobs.emplace_back(durations[at], 100.0 * static_cast<double>(step) / kSteps);
  }
  Points work;
  double upto = 0;
  for (const TraceStatistics::DurationBin& bin : statistics.DurationBins()) {
    upto += bin.jobs.gpu_seconds;
    work.emplace_back(bin.to, Percent(upto, statistics.all().gpu_seconds));
  }
  return {.form = Figure::Form::kSteps,
          .title = "Durations",
          .x_label = "Seconds",
          .y_label = "Share that is not longer (%)",
          .series = {Series("jobs", std::move(jobs)), Series("GPU-hours", std::move(work))},
          .log_x = true};
}

Figure DemandFigure(const TraceStatistics& statistics, int cluster_gpus) {
  const std::vector<TimeBin> bins = statistics.OverTime();
  const double width = statistics.bin_seconds();
  Figure figure{.form = Figure::Form::kSteps,
                .title = "GPUs that the jobs would hold, each from its submission on",
                .x_label = "Days since the first submission",
                .y_label = "GPUs",
                .series = {Series("demand", OverDays(bins, width, [width](const TimeBin& bin) {
                                    return bin.demand / width;
                                  }))}};
  if (cluster_gpus > 0 && !bins.empty()) {
    const double days = (bins.back().start + width - bins.front().start) / kDay;
    figure.series.push_back(
        Series("cluster", {{0, cluster_gpus}, {days, static_cast<double>(cluster_gpus)}}));
  }
  return figure;
}

}  // namespace

std::vector<std::pair<std::string, Figure>> StatisticsFigures(const TraceStatistics& statistics,
                                                              const TraceSource& source) {
  return {{kNames[0], Submits(statistics)},
          {kNames[1], Hours(statistics)},
          {kNames[2], GpusFigure(statistics)},
          {kNames[3], Durations(statistics)},
          {kNames[4], DemandFigure(statistics, source.cluster_gpus)}};
}

Status DrawStatistics(const TraceStatistics& statistics, const TraceSource& source,
                      const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);  // else the first file says what is wrong
  for (const auto& [name, figure] : StatisticsFigures(statistics, source)) {
    ASSIGN_OR_RETURN(const Drawn drawn,
                     DrawFigure(figure, (std::filesystem::path(folder) / name).string()));
    if (drawn == Drawn::kNoProgram) {
      return Failed(
          fmt::format("{}: data and scripts are written, but there is no gnuplot to draw "
                      "them; expected the package gnuplot-nox",
                      folder));
    }
  }
  return {};
}

std::vector<std::string> FilesOfFigures(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string name : kNames) {
    for (const char* const ending : {".csv", ".gnuplot", ".svg"}) {
      files.push_back((std::filesystem::path(folder) / (name + ending)).string());
    }
  }
  return files;
}

}  // namespace trainyard::results
