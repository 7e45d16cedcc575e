// SPDX-License-Identifier: Apache-2.0
#include "profiler/overhead.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/try.h"
#include "io/csv_reader.h"
#include "profiler/profile_file.h"
#include "results/write/output_file.h"

namespace trainyard::profiler {
namespace {

constexpr const char* kTable = "/overhead.csv";
constexpr std::array kKinds{"start", "restart", "resize", "migrate"};

struct Costs {
  double start = 0;
  double restart = 0;
  double resize = 0;
};

// Of the changes of one kind the mean: the preset knows no numbers of GPUs.
Costs CostsOf(const std::vector<ChangeTimes>& changes) {
  const auto mean = [&changes](auto is_of_it) {
    std::vector<double> seconds;
    for (const ChangeTimes& change : changes) {
      if (is_of_it(change)) {
        seconds.push_back(change.seconds.mean);
      }
    }
    return EstimateOf(seconds).mean;
  };
  Costs costs{.start = mean([](const ChangeTimes& c) { return c.from == 0; }),
              .restart = mean([](const ChangeTimes& c) { return c.from == c.to; }),
              .resize = mean([](const ChangeTimes& c) { return c.from > 0 && c.from != c.to; })};
  costs.resize = costs.resize > 0 ? costs.resize : costs.restart;
  return costs;
}

}  // namespace

Changes ChangesAmong(const std::vector<int>& gpus) {
  Changes changes;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    changes.emplace_back(0, gpus[i]);
    changes.emplace_back(gpus[i], gpus[i]);
    if (i + 1 < gpus.size()) {
      changes.emplace_back(gpus[i], gpus[i + 1]);
      changes.emplace_back(gpus[i + 1], gpus[i]);
    }
  }
  return changes;
}

Result<std::vector<ChangeTimes>> MeasureOverhead(const Subject& subject, const Changes& changes,
                                                 Measurer& measurer) {
  std::vector<ChangeTimes> times;
  for (const auto& [from, to] : changes) {
    ASSIGN_OR_RETURN(Trial trial, TrialOf(subject, {.gpus = to, .until_notice = true}));
    if (from > 0) {
      ASSIGN_OR_RETURN(Trial before, TrialOf(subject, {.gpus = from, .until_notice = true}));
      before.iterations = 0;
      trial.before.push_back(std::move(before));
    }
    trial.name = from == 0    ? fmt::format("start on {}", to)
                 : from == to ? fmt::format("go on with {}", to)
                              : fmt::format("go on with {} after {}", to, from);
    trial.name += (from == 0 || from == to ? to : from) == 1 ? " GPU" : " GPUs";
    ASSIGN_OR_RETURN(
        const Measured measured,
        measurer.Measure(trial, from == 0 ? Measurer::StartSeconds : Measurer::ChangeSeconds));
    ChangeTimes change{.from = from,
                       .to = to,
                       .seconds = from == 0 ? measured.start_s : measured.change_s,
                       .stop_s = from == 0 ? Estimate() : measured.stop_s};
    change.seconds.mean = std::max(0.0, change.seconds.mean - measured.iteration_s.mean);
    times.push_back(change);
  }
  return times;
}

Status WriteOverhead(const std::string& folder, const std::string& model,
                     const std::vector<ChangeTimes>& changes) {
  const Costs costs = CostsOf(changes);
  const auto text = [](double seconds) { return fmt::format("{:.4g}", seconds); };
  Rows rows;
  for (const ChangeTimes& change : changes) {
    rows.push_back({model, std::to_string(change.from), std::to_string(change.to),
                    ProfileNumber(change.seconds.mean), ProfileNumber(change.seconds.half_width),
                    ProfileNumber(change.stop_s.mean)});
  }
  RETURN_IF_ERROR(AddRows(folder + "/changes.csv",
                          {"model", "from_gpus", "to_gpus", "seconds", "ci95", "stop_s"}, 3, rows));
  // The preset is made from a table of all models.
  RETURN_IF_ERROR(AddRows(
      folder + kTable, {"model", "start", "restart", "resize", "migrate"}, 1,
      {{model, text(costs.start), text(costs.restart), text(costs.resize), text(costs.restart)}}));
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(folder + kTable));
  std::map<std::string, std::vector<double>> by_kind;
  std::string models;
  RETURN_IF_ERROR(table.ForEach([&](const io::CsvRow& row) -> Status {
    models += fmt::format("\n[overhead.models.\"{}\"]\n", row.Text(row.Column("model")));
    for (const char* kind : kKinds) {
      ASSIGN_OR_RETURN(const double seconds, row.Number(row.Column(kind), 0));
      models += fmt::format("{} = {}\n", kind, seconds);
      by_kind[kind].push_back(seconds);
    }
    return {};
  }));
  std::string preset =
      "# Made by `trainyard profile overhead`: what changes of a job cost, in seconds.\n"
      "base = \"sound\"\n\n[overhead]\nmodel = \"table\"\n\n[overhead.fallback]  # the mean of "
      "all\n";
  for (const char* kind : kKinds) {
    preset += fmt::format("{} = {:.4g}\n", kind, EstimateOf(by_kind[kind]).mean);
  }
  return results::WriteTextFile(folder + "/overhead.toml", preset + models);
}

}  // namespace trainyard::profiler
