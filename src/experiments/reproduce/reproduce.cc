// SPDX-License-Identifier: Apache-2.0
#include "experiments/reproduce/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text.h"
#include "base/try.h"
#include "experiments/reproduce/comparison.h"
#include "experiments/reproduce/loader_scenario.h"
#include "io/file.h"
#include "results/write/output.h"
#include "results/write/output_file.h"

namespace trainyard::experiments {
namespace {

namespace fs = std::filesystem;

// The rows that a cell's numbers are of: its own, or those of its preset.
std::string TrackOf(const Cell& cell) {
  constexpr std::string_view kOption = "track=";
  const std::size_t at = cell.names.preset.find(kOption);
  if (!cell.track.empty() || at == std::string::npos) {
    return cell.track;
  }
  const std::string rest = cell.names.preset.substr(at + kOption.size());
  return rest.substr(0, rest.find_first_of(",;"));
}

std::string ExtraOfRun(const Cell& cell, const results::RunResult& run) {
  std::optional<world::TrackedJobs> tracked;
  if (const std::string track = TrackOf(cell); !track.empty()) {
    // The run itself has gone by it.
    tracked = scenario::ParseTracked(track, "track", run.jobs.size()).value();
  }
  std::optional<profile::ThroughputTable> profiles;
  if (cell.keep_allocations && !cell.profiles.empty()) {
    profiles = profile::ThroughputTable::Read(cell.profiles).value();  // likewise
  }
  return WriteData(DataOf(run, tracked ? &*tracked : nullptr, profiles ? &*profiles : nullptr));
}

// Who holds which GPUs is worth its cost only where it is shown.
bool NeedsAllocations(const FigureSpec& spec) {
  return std::any_of(spec.panels.begin(), spec.panels.end(), [](const PanelSpec& panel) {
    return panel.quantity.metric == "cluster_efficiency";
  });
}

// The cells of all figures as one experiment. Where each of them came from.
struct Together {
  Experiment experiment;
  std::vector<std::pair<std::size_t, std::size_t>> from;  // figure, cell
};

Together Combine(std::span<const FigureSpec> specs, const std::string& reference) {
  Together together;
  together.experiment.path = "experiments";
  together.experiment.reference = reference;
  together.experiment.axes = {"figure", "cell"};
  for (std::size_t figure = 0; figure < specs.size(); ++figure) {
    const std::vector<Cell>& cells = specs[figure].experiment.cells;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Cell cell = cells[i];
      cell.values = {specs[figure].id, cell.id};
      cell.id = specs[figure].id + "/" + cell.id;
      cell.keep_allocations = NeedsAllocations(specs[figure]);
      together.experiment.cells.push_back(std::move(cell));
      together.from.emplace_back(figure, i);
    }
  }
  return together;
}

// Every missing input once, with the cells' wording.
void AddFigureOnce(std::vector<std::string>& texts, const std::string& text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) {
    texts.push_back(text);
  }
}

Result<FigureOutcome> OutcomeOf(FigureSpec spec, std::span<const CellResult> results) {
  FigureOutcome outcome;
  for (const CellResult& result : results) {
    switch (result.status) {
      case CellStatus::kOk: {
        ASSIGN_OR_RETURN(CellData data, ReadData(result.extra));
        outcome.data.emplace_back(std::move(data));
        ++outcome.ok;
        continue;
      }
      case CellStatus::kFailed:
        outcome.failed.push_back(fmt::format("{}: {}", result.id, result.reason));
        break;
      case CellStatus::kNotRun:
        AddFigureOnce(outcome.missing, result.reason);
        break;
    }
    outcome.data.emplace_back(std::nullopt);
  }
  outcome.rows = RowsOf(spec, outcome.data, results);
  outcome.spec = std::move(spec);
  return outcome;
}

// What an earlier call has run is in the book, unless another build did: its results are not ours.
Result<ResultBook> OpenBook(const Together& together, const ReproduceOptions& options) {
  const auto open = [&](bool fresh) {
    return ResultBook::Open(together.experiment,
                            PlanCells(together.experiment.cells, options.reference,
                                      {.folder = (fs::path(options.folder) / "inputs").string(),
                                       .program = options.program,
                                       .generate = options.generate}),
                            {.folder = options.folder,
                             .program = options.program,
                             .fresh = fresh,
                             .needs_extra = true});
  };
  {
    Result<ResultBook> book = open(false);
    if (!book.ok() || book.value().counts().other_build == 0) {
      return book;
    }
  }
  return open(true);
}

Result<std::vector<CellResult>> RunCells(const Together& together,
                                         const ReproduceOptions& options) {
  ASSIGN_OR_RETURN(ResultBook book, OpenBook(together, options));
  if (options.on_open) {
    options.on_open(book.counts());
  }
  ASSIGN_OR_RETURN(const bool ran, RunOpenCells(book, {.parallel = options.parallel,
                                                       .extra = ExtraOfRun,
                                                       .instead = OutcomeOfScenario,
                                                       .on_done = options.on_done,
                                                       .stop = options.stop}));
  return ran ? Result<std::vector<CellResult>>(book.Results())
             : Failed("stopped before all runs had ended; the same command goes on there");
}

std::vector<results::Figure> DrawingsOf(const FigureOutcome& figure) {
  std::vector<results::Figure> drawings = figure.drawings;
  for (const PanelSpec& panel : figure.spec.panels) {
    drawings.push_back(FigureOf(figure.spec, panel, figure.data));
  }
  return drawings;
}

// False: there is no gnuplot.
Result<bool> Draw(FigureOutcome& figure, const std::string& out) {
  bool drawn = true;
  const std::vector<results::Figure> drawings = DrawingsOf(figure);
  for (std::size_t i = 0; i < drawings.size(); ++i) {
    const std::string& id = figure.spec.id;
    const std::string name = drawings.size() == 1 ? id : fmt::format("{}-{}", id, i + 1);
    const std::string path = (fs::path(out) / name).string();
    ASSIGN_OR_RETURN(const results::Drawn done, results::DrawFigure(drawings[i], path));
    figure.images.emplace_back();
    drawn = drawn && done != results::Drawn::kNoProgram;
    if (done == results::Drawn::kYes) {
      ASSIGN_OR_RETURN(std::string image, io::ReadFile(path + ".svg"));
      figure.images.back() = std::move(image);
    }
  }
  return drawn;
}

}  // namespace

Result<std::vector<FigureOutcome>> RunFigures(std::vector<FigureSpec> specs,
                                              const ReproduceOptions& options) {
  const Together together = Combine(specs, options.reference);
  ASSIGN_OR_RETURN(std::vector<CellResult> ran, RunCells(together, options));
  std::vector<std::vector<CellResult>> results(specs.size());  // in the order of the cells
  for (std::size_t i = 0; i < together.from.size(); ++i) {
    const auto [figure, cell] = together.from[i];
    ran[i].id = specs[figure].experiment.cells[cell].id;
    results[figure].push_back(std::move(ran[i]));
  }
  std::vector<FigureOutcome> outcomes;
  for (std::size_t figure = 0; figure < specs.size(); ++figure) {
    ASSIGN_OR_RETURN(FigureOutcome outcome, OutcomeOf(std::move(specs[figure]), results[figure]));
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

std::vector<std::vector<std::string>> MissingInputs(std::span<const FigureSpec> specs,
                                                    const std::string& reference) {
  const Together together = Combine(specs, reference);
  const std::vector<PlannedCell> planned = PlanCells(together.experiment.cells, reference, {});
  std::vector<std::vector<std::string>> missing(specs.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].outcome.status == CellStatus::kNotRun && !planned[i].outcome.reason.empty()) {
      AddFigureOnce(missing[together.from[i].first], planned[i].outcome.reason);
    }
  }
  return missing;
}

Result<bool> WriteFigures(std::vector<FigureOutcome>& figures, const std::string& out,
                          const std::string& command) {
  bool drawn = true;
  for (FigureOutcome& figure : figures) {
    const fs::path folder = fs::path(out) / fs::path(figure.spec.id).parent_path();
    RETURN_IF_ERROR(results::MakeOutputDirectory(folder.string()));
    ASSIGN_OR_RETURN(const bool done, Draw(figure, out));
    drawn = drawn && done;
  }
  for (const auto& [name, text] : {std::pair{"values.csv", ValuesCsv(figures)},
                                   {"summary.csv", SummaryCsv(figures)},
                                   {"index.html", FiguresPage(figures, command)}}) {
    RETURN_IF_ERROR(results::WriteTextFile((fs::path(out) / name).string(), text));
  }
  return drawn;
}

}  // namespace trainyard::experiments
