// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/measured_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/try.h"
#include "io/csv_reader.h"

namespace trainyard::experiments {
namespace {

constexpr const char* kProfiling = "profiling_seconds";
constexpr const char* kChange = "change_seconds";

// As ElasticFlow's drawing scripts have them, measured on nodes with 8 A100.
struct PublishedModel {
  const char* model;
  double profiling_s;
  // From 1 to 2 GPUs, 2 to 1, 8 to 16, 16 to 8, and 8 GPUs elsewhere.
  std::array<double, 5> changes_s;
};
constexpr std::array kChanges{std::pair{1, 2}, std::pair{2, 1}, std::pair{8, 16}, std::pair{16, 8},
                              std::pair{8, 8}};
constexpr std::array kPublished{
    PublishedModel{"resnet50", 549.759, {1.884, 1.659, 1.666, 1.787, 0.887}},
    PublishedModel{"vgg16", 550.011, {1.82, 1.629, 2.407, 2.354, 3.209}},
    PublishedModel{"inception3", 366.84, {1.819, 1.099, 1.738, 1.733, 0.69}},
    PublishedModel{"gpt2", 336.054, {2.344, 3.101, 3.203, 3.198, 2.119}},
    PublishedModel{"bert", 305.462, {3.904, 2.611, 4.239, 4.222, 3.191}},
    // The script repeats bert's changes for it, and carries this row besides.
    PublishedModel{"deepspeech2", 337.726, {1.573, 1.131, 1.757, 1.636, 2.429}}};
constexpr int kDigits = 3;

std::string NameOfChange(int from, int to) {
  const char* const gpus = to == 1 ? "GPU" : "GPUs";
  return from == 0    ? fmt::format("start on {} {}", to, gpus)
         : from == to ? fmt::format("{} {} elsewhere", to, gpus)
                      : fmt::format("{} to {} {}", from, to, gpus);
}

std::vector<ComparisonRow> PublishedRows() {
  std::vector<ComparisonRow> rows;
  const auto add = [&rows](const char* metric, const char* model, std::string place, double value,
                           const char* source) {
    ComparisonRow& row = rows.emplace_back();
    row.run = model;
    row.place = std::move(place);
    row.quantity.metric = metric;
    row.paper = Printed{.value = value, .digits = kDigits, .source = source, .unlike = {}};
  };
  for (const PublishedModel& published : kPublished) {
    add(kProfiling, published.model, "", published.profiling_s, "figure 12a, drawing script");
  }
  for (const PublishedModel& published : kPublished) {
    for (std::size_t i = 0; i < kChanges.size(); ++i) {
      add(kChange, published.model, NameOfChange(kChanges.at(i).first, kChanges.at(i).second),
          published.changes_s.at(i), "figure 12b, drawing script");
    }
  }
  return rows;
}

// The row of that quantity, run and place, a new one behind those of its quantity where there is
// none.
ComparisonRow& RowOf(std::vector<ComparisonRow>& rows, const char* metric, const std::string& model,
                     const std::string& place) {
  const auto known = std::find_if(rows.begin(), rows.end(), [&](const ComparisonRow& row) {
    return row.quantity.metric == metric && row.run == model && row.place == place;
  });
  if (known != rows.end()) {
    return *known;
  }
  const auto last = std::find_if(rows.rbegin(), rows.rend(), [&](const ComparisonRow& row) {
    return row.quantity.metric == metric;
  });
  ComparisonRow& row = *rows.insert(last.base(), ComparisonRow());
  row.run = model;
  row.place = place;
  row.quantity.metric = metric;
  return row;
}

void SetMeasured(ComparisonRow& row, double seconds, double half_width) {
  row.ours = Measured{.value = seconds,
                      .low = std::max(0.0, seconds - half_width),
                      .high = seconds + half_width,
                      .draws = half_width > 0 ? 2U : 1U};
  if (std::abs(row.PaperDifference().value_or(0)) > kNotableDifference) {
    row.cause = "testbed";
    row.reason =
        "The paper measured on nodes with 8 A100; ours was measured by `trainyard profile` on the "
        "machine at hand.";
  }
}

// The columns of a file that must all be there.
Result<std::vector<int>> ColumnsOf(const io::CsvTable& table,
                                   const std::vector<std::string>& names) {
  std::vector<int> columns;
  for (const std::string& name : names) {
    columns.push_back(table.Column({name}));
    if (columns.back() < 0) {
      return table.BadHeader(
          fmt::format("no column '{}'; expected {}, as `trainyard profile` "
                      "writes it",
                      name, fmt::join(names, ",")));
    }
  }
  return columns;
}

Status ReadProfiling(const std::string& path, std::vector<ComparisonRow>& rows) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const std::vector<int> columns, ColumnsOf(table, {"model", "seconds"}));
  return table.ForEach([&](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(const double seconds, row.Number(columns[1], 0));
    SetMeasured(RowOf(rows, kProfiling, std::string(row.Text(columns[0])), ""), seconds, 0);
    return {};
  });
}

Status ReadChanges(const std::string& path, std::vector<ComparisonRow>& rows) {
  ASSIGN_OR_RETURN(const io::CsvTable table, io::CsvTable::Open(path));
  ASSIGN_OR_RETURN(const std::vector<int> columns,
                   ColumnsOf(table, {"model", "from_gpus", "to_gpus", "seconds", "ci95"}));
  return table.ForEach([&](const io::CsvRow& row) -> Status {
    ASSIGN_OR_RETURN(const double from, row.Number(columns[1], 0));
    ASSIGN_OR_RETURN(const double to, row.Number(columns[2], 1));
    ASSIGN_OR_RETURN(const double seconds, row.Number(columns[3], 0));
    ASSIGN_OR_RETURN(const double half_width, row.Number(columns[4], 0));
    SetMeasured(RowOf(rows, kChange, std::string(row.Text(columns[0])),
                      NameOfChange(static_cast<int>(from), static_cast<int>(to))),
                seconds, half_width);
    return {};
  });
}

Status ReadFolder(const std::string& folder, std::vector<ComparisonRow>& rows) {
  const std::filesystem::path profiling = std::filesystem::path(folder) / "profiling.csv";
  const std::filesystem::path changes = std::filesystem::path(folder) / "changes.csv";
  const bool has_profiling = std::filesystem::exists(profiling);
  const bool has_changes = std::filesystem::exists(changes);
  if (has_profiling) {
    RETURN_IF_ERROR(ReadProfiling(profiling.string(), rows));
  }
  if (has_changes) {
    RETURN_IF_ERROR(ReadChanges(changes.string(), rows));
  }
  return has_profiling || has_changes
             ? Status()
             : BadInput(fmt::format(
                   "{}: neither profiling.csv nor changes.csv is there; expected the --out of "
                   "`trainyard profile throughput` or `trainyard profile overhead`",
                   folder));
}

template <typename Value>
void AddOnce(std::vector<Value>& values, const Value& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    values.push_back(value);
  }
}

// Bars for each model: a series for each place, of the paper and of ours.
results::Figure BarsOf(const std::vector<ComparisonRow>& rows, const char* metric,
                       const char* title) {
  results::Figure figure{.title = title, .x_label = "model", .y_label = "seconds"};
  std::vector<std::string> places;
  for (const ComparisonRow& row : rows) {
    if (row.quantity.metric == metric) {
      AddOnce(figure.categories, row.run);
      AddOnce(places, row.place);
    }
  }
  for (const std::string& place : places) {
    results::FigureSeries paper{.name = place, .values_of = results::ValuesOf::kPaper};
    results::FigureSeries ours{.name = place, .values_of = results::ValuesOf::kOurs};
    for (const std::string& model : figure.categories) {
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const ComparisonRow& each) {
        return each.quantity.metric == metric && each.run == model && each.place == place;
      });
      const bool is_there = row != rows.end();
      paper.bars.push_back(is_there && row->paper ? std::optional(row->paper->value)
                                                  : std::nullopt);
      ours.bars.push_back(is_there && row->ours ? std::optional(row->ours->value) : std::nullopt);
    }
    for (results::FigureSeries* const series : {&paper, &ours}) {
      if (std::any_of(series->bars.begin(), series->bars.end(),
                      [](const auto& bar) { return bar.has_value(); })) {
        figure.series.push_back(std::move(*series));
      }
    }
  }
  return figure;
}

}  // namespace

Result<FigureOutcome> MeasuredFigure(std::span<const std::string> folders) {
  FigureOutcome outcome;
  outcome.spec.id = kMeasuredFigure;
  outcome.spec.experiment.title =
      "ElasticFlow, figure 12: what profiling takes (a), and what changes of a job cost (b)";
  outcome.spec.experiment.note =
      "Measured, not simulated: paper is what its authors measured on nodes with 8 A100, ours what "
      "`trainyard profile` has measured, with its 95 % confidence interval. Profiling is the time "
      "of all runs of `profile throughput`; a change is the time in which the job does not train.";
  outcome.spec.experiment.cells.resize(1);
  outcome.rows = PublishedRows();
  for (const std::string& folder : folders) {
    RETURN_IF_ERROR(ReadFolder(folder, outcome.rows));
  }
  if (folders.empty()) {
    outcome.missing.emplace_back(
        "no measurements: name the folders of `trainyard profile throughput` and `trainyard "
        "profile overhead` with --measured");
  } else {
    outcome.ok = 1;
  }
  outcome.drawings = {BarsOf(outcome.rows, kProfiling, "What profiling takes"),
                      BarsOf(outcome.rows, kChange, "What changes of a job cost")};
  return outcome;
}

}  // namespace trainyard::experiments
