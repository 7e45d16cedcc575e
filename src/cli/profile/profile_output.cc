// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/profile_output.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/try.h"
#include "io/json.h"
#include "results/write/figure.h"
#include "results/write/table.h"

namespace trainyard::cli {
namespace {

using Json = nlohmann::ordered_json;
using results::Figure;
using results::FigureSeries;
using Lines = std::vector<std::vector<std::string>>;

Json JsonOf(const profiler::Estimate& estimate) {
  return {{"mean", estimate.mean}, {"ci95", estimate.half_width}};
}

std::string Text(double value) { return fmt::format("{:.4g}", value); }
std::string Text(const profiler::Estimate& estimate) {
  return estimate.half_width > 0
             ? fmt::format("{:.4g} +- {:.2g}", estimate.mean, estimate.half_width)
             : Text(estimate.mean);
}

struct Shown {
  const char* verb;
  Json json;
  Lines table;
  std::string use;  // what to do with the profile
  Figure figure;
};

// The table or the JSON, and the figure.
Status Show(const ProfileTarget& target, const Shown& shown) {
  const std::string path = fmt::format("{}/{}-{}", target.folder, shown.verb, target.model);
  ASSIGN_OR_RETURN(const results::Drawn drawn, results::DrawFigure(shown.figure, path));
  if (target.json) {
    fmt::print("{}\n", shown.json.dump(2));
    return {};
  }
  for (const std::string& line : results::AlignedLines(shown.table, 0)) {
    fmt::print("{}\n", line);
  }
  if (drawn == results::Drawn::kYes) {
    fmt::print("plot: {}.svg\n", path);
  }
  fmt::print("{}\n", shown.use);
  return {};
}

Figure LinesOf(const std::string& title, const std::string& x, const std::string& y) {
  return {.form = Figure::Form::kLines, .title = title, .x_label = x, .y_label = y};
}

}  // namespace

Status ShowThroughput(const ProfileTarget& target,
                      const std::vector<profiler::ThroughputCell>& cells) {
  Json json{{"model", target.model}};
  Lines table{{"batch", "GPUs", "s/iteration", "iterations/s", "useful maximum"}};
  std::map<std::int64_t, FigureSeries> series;
  for (const profiler::ThroughputCell& cell : cells) {
    const int most = profiler::UsefulMaximum(cells, cell.batch);
    json["cells"].push_back({{"batch_size", cell.batch},
                             {"gpus", cell.gpus},
                             {"iteration_s", JsonOf(cell.iteration_s)},
                             {"iterations_per_second", cell.rate()},
                             {"useful_maximum", most}});
    table.push_back({std::to_string(cell.batch), std::to_string(cell.gpus), Text(cell.iteration_s),
                     Text(cell.rate()), std::to_string(most)});
    FigureSeries& line = series[cell.batch];
    line.name = fmt::format("batch {}", cell.batch);
    line.points.emplace_back(cell.gpus, cell.rate());
  }
  Figure figure = LinesOf(target.model, "GPUs", "iterations/s");
  for (auto& [batch, line] : series) {
    figure.series.push_back(std::move(line));
  }
  return Show(target, {.verb = "throughput",
                       .json = std::move(json),
                       .table = std::move(table),
                       .use = fmt::format("profile: {}/throughput.csv; use it as --profiles {}",
                                          target.folder, target.folder),
                       .figure = std::move(figure)});
}

Status ShowStages(const ProfileTarget& target, const std::vector<profiler::StageRow>& rows) {
  Json json{{"model", target.model}};
  Lines table{{"GPUs", "s/iteration", "load s", "GPU s", "network s"}};
  Figure figure{.form = Figure::Form::kBars, .title = target.model, .y_label = "seconds"};
  figure.categories = {"load", "GPU", "network"};
  for (const profiler::StageRow& row : rows) {
    json["rows"].push_back(
        {{"gpus", row.gpus}, {"iteration_s", JsonOf(row.iteration_s)}, {"stages_s", row.stages_s}});
    table.push_back({std::to_string(row.gpus), Text(row.iteration_s), Text(row.stages_s[0]),
                     Text(row.stages_s[1]), Text(row.stages_s[2])});
    figure.series.push_back({.name = fmt::format("{} GPUs", row.gpus),
                             .bars = {row.stages_s[0], row.stages_s[1], row.stages_s[2]}});
  }
  return Show(target, {.verb = "stages",
                       .json = std::move(json),
                       .table = std::move(table),
                       .use = fmt::format("profile: {}/stages.csv; use it as --profiles {}",
                                          target.folder, target.folder),
                       .figure = std::move(figure)});
}

Status ShowOverhead(const ProfileTarget& target,
                    const std::vector<profiler::ChangeTimes>& changes) {
  Json json{{"model", target.model}};
  Lines table{{"from", "to GPUs", "seconds", "of which stopping"}};
  Figure figure{.form = Figure::Form::kBars, .title = target.model, .y_label = "seconds"};
  FigureSeries bars;
  for (const profiler::ChangeTimes& change : changes) {
    json["changes"].push_back({{"from", change.from},
                               {"to", change.to},
                               {"seconds", JsonOf(change.seconds)},
                               {"stop_s", JsonOf(change.stop_s)}});
    const std::string from = change.from == 0 ? "start" : std::to_string(change.from);
    table.push_back({from, std::to_string(change.to), Text(change.seconds),
                     change.from == 0 ? "-" : Text(change.stop_s)});
    figure.categories.push_back(fmt::format("{}-{}", from, change.to));
    bars.bars.emplace_back(change.seconds.mean);
  }
  figure.series.push_back(std::move(bars));
  return Show(target,
              {.verb = "overhead",
               .json = std::move(json),
               .table = std::move(table),
               .use = fmt::format("profile: {}/overhead.toml; use it as --preset {}/overhead.toml",
                                  target.folder, target.folder),
               .figure = std::move(figure)});
}

Status ShowSensitivity(const ProfileTarget& target, const profiler::CpuCurve& curve,
                       const SavedRuns& saved) {
  Json json{{"model", target.model},
            {"runs_saved", saved.runs_saved},
            {"minutes_saved", saved.minutes_saved}};
  Lines table{{"CPUs", "s/iteration", "by"}};
  FigureSeries measured{.name = "measured"};
  FigureSeries all{.name = "interpolated", .values_of = results::ValuesOf::kSound};
  for (const auto& [cpus, seconds] : curve.seconds) {
    const auto at = curve.measured.find(cpus);
    const bool was_measured = at != curve.measured.end();
    Json point{{"cpus", cpus}, {"iteration_s", seconds}, {"measured", was_measured}};
    if (was_measured) {
      point["ci95"] = at->second.half_width;
      measured.points.emplace_back(cpus, seconds);
    }
    all.points.emplace_back(cpus, seconds);
    json["points"].push_back(std::move(point));
    table.push_back({std::to_string(cpus), was_measured ? Text(at->second) : Text(seconds),
                     was_measured ? "measured" : "interpolated"});
  }
  Figure figure = LinesOf(target.model, fmt::format("CPUs, of {} GPUs", saved.gpus), "s/iteration");
  figure.series = {std::move(measured), std::move(all)};
  return Show(target,
              {.verb = "sensitivity",
               .json = std::move(json),
               .table = std::move(table),
               .use = fmt::format(
                   "measured {} of {} points: {:g} runs and {:.1f} minutes less than all\nprofile: "
                   "{}/model_profiles.csv; use it as --profiles {}",
                   curve.measured.size(), curve.seconds.size(), saved.runs_saved,
                   saved.minutes_saved, target.folder, target.folder),
               .figure = std::move(figure)});
}

Status ShowLoader(const ProfileTarget& target, const std::vector<loader::MeasuredRun>& runs,
                  const loader::LoaderFit& fit) {
  Json json{{"model", target.model}};
  Lines table{{"batch", "workers", "s/iteration", "of it loading", "predicted"}};
  std::map<double, FigureSeries> series;
  for (const loader::MeasuredRun& run : runs) {
    const double gpu = fit.model.IterationSeconds(run.size, run.shape);
    const double loading = run.shape.batch / fit.model.LoaderRate(run.workers);
    const double predicted = std::max(gpu, loading);
    json["runs"].push_back({{"batch_size", run.shape.batch},
                            {"workers", run.workers},
                            {"iteration_s", run.iteration_seconds},
                            {"loading_s", run.loading_seconds},
                            {"predicted_s", predicted}});
    table.push_back({Text(run.shape.batch), std::to_string(run.workers),
                     Text(run.iteration_seconds),
                     fmt::format("{:.0f} %", 100 * run.loading_seconds / run.iteration_seconds),
                     Text(predicted)});
    FigureSeries& line = series[run.shape.batch];
    line.name = fmt::format("batch {:g}", run.shape.batch);
    line.points.emplace_back(run.workers, run.Rate());
  }
  const auto side = [&json](const char* name, const loader::SideReport& report) {
    json[name]["runs"] = report.runs;
    for (const loader::MethodQuality& method : report.methods) {
      json[name][std::string(loader::NameOf(method.method))] = {
          {"r2", method.seen.r2},
          {"mape", method.seen.error},
          {"r2_unseen", method.unseen.r2},
          {"mape_unseen", method.unseen.error}};
    }
  };
  side("gpu", fit.gpu);
  side("loader", fit.loader);
  Figure figure = LinesOf(target.model, "loader workers", "samples/s");
  for (auto& [batch, line] : series) {
    figure.series.push_back(std::move(line));
  }
  return Show(target,
              {.verb = "loader",
               .json = std::move(json),
               .table = std::move(table),
               .use = fmt::format(
                   "fitted to {} runs that wait for the loader and {} that do not "
                   "(`trainyard loader fit {}/runs.csv` says how well)\nprofile: {}/models.csv "
                   "and loader_model.csv; use them as --profiles {}",
                   fit.loader.runs, fit.gpu.runs, target.folder, target.folder, target.folder),
               .figure = std::move(figure)});
}

}  // namespace trainyard::cli
