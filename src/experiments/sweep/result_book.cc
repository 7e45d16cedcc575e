// SPDX-License-Identifier: Apache-2.0
#include "experiments/sweep/result_book.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "base/try.h"
#include "results/write/output.h"
#include "results/write/output_file.h"

namespace trainyard::experiments {
namespace {

namespace fs = std::filesystem;

}  // namespace

ResultBook::ResultBook(const Experiment& experiment, std::vector<PlannedCell> cells,
                       const BookOptions& options)
    : experiment_(&experiment),
      options_(options),
      cells_(std::move(cells)),
      counts_{.cells = cells_.size()} {
  for (const PlannedCell& cell : cells_) {
    if (cell.digest.empty()) {
      Count(cell);
    }
  }
}

Result<ResultBook> ResultBook::Open(const Experiment& experiment, std::vector<PlannedCell> cells,
                                    const BookOptions& options) {
  ResultBook book(experiment, std::move(cells), options);
  if (!options.folder.empty()) {
    RETURN_IF_ERROR(book.OpenStore());
  }
  book.FindOpen();
  return book;
}

Status ResultBook::OpenStore() {
  RETURN_IF_ERROR(results::MakeOutputDirectory(options_.folder));
  ASSIGN_OR_RETURN(std::unique_ptr<store::ResultStore> store,
                   store::OpenResults((fs::path(options_.folder) / "results.sqlite").string()));
  store_ = std::move(store);
  if (options_.fresh) {
    RETURN_IF_ERROR(store_->Clear());
  }
  RETURN_IF_ERROR(Reuse());
  return SetCells();
}

// Runs of earlier sweeps that came out well. Those that failed are tried again: the reason may have
// been the machine.
Status ResultBook::Reuse() {
  ASSIGN_OR_RETURN(const std::vector<store::StoredRun> runs, store_->Runs());
  std::map<std::string_view, const store::StoredRun*> by_digest;
  for (const store::StoredRun& run : runs) {
    if (run.status == Name(CellStatus::kOk) && (!options_.needs_extra || !run.extra.empty())) {
      by_digest[run.digest] = &run;
    }
  }
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const auto found = by_digest.find(cells_[i].digest);
    std::error_code ignored;
    if (cells_[i].digest.empty() || found == by_digest.end() ||
        (!options_.runs_folder.empty() &&
         !fs::exists(fs::path(RunFolder(i)) / "summary.json", ignored))) {
      continue;
    }
    Result<std::vector<CellMetric>> metrics = ParseMetrics(found->second->metrics);
    if (!metrics.ok()) {
      return BadInput(options_.folder + "/results.sqlite: " + metrics.error().message);
    }
    SetOutcome(i, {.status = CellStatus::kOk,
                   .reason = {},
                   .metrics = std::move(metrics).value(),
                   .extra = found->second->extra});
    ++counts_.reused;
    counts_.other_build += found->second->program == options_.program ? 0U : 1U;
  }
  return {};
}

Status ResultBook::SetCells() {
  std::vector<std::vector<std::string>> values;
  for (const PlannedCell& cell : cells_) {
    values.push_back(cell.cell->values);
  }
  const std::vector<bool> numeric = NumericAxes(experiment_->axes.size(), values);
  std::vector<store::StoredCell> stored;
  stored.reserve(cells_.size());
  for (const PlannedCell& cell : cells_) {
    const bool runs = !cell.digest.empty();
    stored.push_back({.id = cell.cell->id,
                      .digest = cell.digest,
                      .status = runs ? "" : std::string(Name(cell.outcome.status)),
                      .reason = runs ? "" : cell.outcome.reason,
                      .axes = AxesJson(experiment_->axes, cell.cell->values, numeric)});
  }
  std::vector<std::string> metrics;
  std::vector<CellMetric> all = MetricsOf(results::RunResult());
  for (const std::string& name : options_.more_metrics) {
    all.push_back({.name = name});
  }
  for (const CellMetric& metric : all) {
    if (!experiment_->AxisAt(metric.name)) {
      metrics.push_back(metric.name);
    }
  }
  return store_->SetCells(stored, experiment_->axes, metrics);
}

void ResultBook::FindOpen() {
  std::map<std::string_view, std::size_t> first;
  followers_.resize(cells_.size());
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].digest.empty() || cells_[i].outcome.status == CellStatus::kOk) {
      continue;
    }
    const auto [leader, is_new] = first.try_emplace(cells_[i].digest, i);
    if (is_new || !options_.runs_folder.empty()) {
      open_.push_back(i);
    } else {
      followers_[leader->second].push_back(i);
    }
  }
}

void ResultBook::SetOutcome(std::size_t cell, CellOutcome outcome) {
  cells_[cell].outcome = std::move(outcome);
  Count(cells_[cell]);
}

void ResultBook::Count(const PlannedCell& cell) {
  switch (cell.outcome.status) {
    case CellStatus::kOk:
      ++counts_.ok;
      break;
    case CellStatus::kFailed:
      ++counts_.failed;
      break;
    case CellStatus::kNotRun:
      ++counts_.not_run;
      break;
  }
}

std::string ResultBook::RunFolder(std::size_t cell) const {
  return options_.runs_folder.empty()
             ? std::string()
             : (fs::path(options_.runs_folder) / FolderOf(*cells_[cell].cell)).string();
}

Status ResultBook::Put(std::span<const std::pair<std::size_t, CellOutcome>> outcomes) {
  std::vector<store::StoredRun> runs;
  for (const auto& [cell, outcome] : outcomes) {
    SetOutcome(cell, outcome);
    for (const std::size_t follower : followers_[cell]) {
      SetOutcome(follower, outcome);
    }
    runs.push_back({.digest = cells_[cell].digest,
                    .status = std::string(Name(outcome.status)),
                    .reason = outcome.reason,
                    .metrics = MetricsJson(outcome.metrics),
                    .extra = outcome.extra,
                    .program = options_.program});
  }
  return store_ == nullptr || runs.empty() ? Status() : store_->Put(runs);
}

std::vector<CellResult> ResultBook::Results() const {
  std::vector<CellResult> results;
  results.reserve(cells_.size());
  for (const PlannedCell& cell : cells_) {
    CellResult result;
    static_cast<CellOutcome&>(result) = cell.outcome;
    result.id = cell.cell->id;
    result.values = cell.cell->values;
    result.digest = cell.digest;
    results.push_back(std::move(result));
  }
  return results;
}

Status ResultBook::WriteCsv() const {
  return options_.folder.empty()
             ? Status()
             : results::WriteTextFile((fs::path(options_.folder) / "results.csv").string(),
                                      ResultsCsv(experiment_->axes, Results()));
}

}  // namespace trainyard::experiments
