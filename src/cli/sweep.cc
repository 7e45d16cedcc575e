// SPDX-License-Identifier: Apache-2.0
// trainyard sweep: a matrix of runs, on the cores of this machine or as job arrays of Slurm.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/output_paths.h"
#include "cli/progress_bar.h"
#include "cli/running.h"
#include "experiments/reproduce/loader_scenario.h"
#include "experiments/sweep/runner.h"
#include "experiments/sweep/slurm.h"
#include "results/write/table.h"

namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRowsShown = 40;
constexpr std::size_t kMostListed = 20;  // cells that failed

struct SweepOptions {
  std::string experiment;
  std::string reference;
  std::string out;
  std::vector<std::string> cells;
  int parallel = 1;
  bool fresh = false;
  bool keep_runs = false;
  bool list = false;
  bool json = false;
  bool slurm = false;
  std::vector<std::string> slurm_args;
  std::size_t cells_per_task = 1;
  double slurm_grace = 30;
  bool task = false;
  std::vector<std::string> plugins;
};

// Only the cells asked for, in the order of the matrix.
Status KeepOnly(const std::vector<std::string>& ids, experiments::Experiment& experiment) {
  std::vector<std::string_view> known;
  for (const experiments::Cell& cell : experiment.cells) {
    known.push_back(cell.id);
  }
  for (const std::string& id : ids) {
    if (std::find(known.begin(), known.end(), id) == known.end()) {
      const std::string_view near = base::NearestName(id, known);
      return InvalidArgument(fmt::format("--cell '{}' is no cell of {}{}{}{}; see --list", id,
                                         experiment.path, near.empty() ? "" : "; did you mean '",
                                         near, near.empty() ? "" : "'?"));
    }
  }
  std::erase_if(experiment.cells, [&ids](const experiments::Cell& cell) {
    return std::find(ids.begin(), ids.end(), cell.id) == ids.end();
  });
  return {};
}

// A number in six digits, which are enough to look at.
std::string ShownCell(const experiments::CellResult& result, std::string_view metric) {
  const std::optional<double> number = result.Number(metric);
  return number ? fmt::format("{:.6g}", *number) : "";
}

void PrintTable(const experiments::Experiment& experiment,
                const std::vector<experiments::CellResult>& results) {
  std::vector<std::vector<std::string>> rows{experiment.axes};
  rows[0].emplace_back("status");
  for (const char* const metric : {"completed", "jct_mean", "jct_p99", "makespan",
                                   "gpu_utilization", "deadline_ratio", "throughput"}) {
    if (std::any_of(results.begin(), results.end(),
                    [metric](const experiments::CellResult& result) {
                      return result.Number(metric).has_value();
                    })) {
      rows[0].emplace_back(metric);
    }
  }
  for (std::size_t i = 0; i < std::min(results.size(), kMostRowsShown); ++i) {
    std::vector<std::string> row = results[i].values;
    row.emplace_back(experiments::Name(results[i].status));
    for (std::size_t column = row.size(); column < rows[0].size(); ++column) {
      row.push_back(ShownCell(results[i], rows[0][column]));
    }
    rows.push_back(std::move(row));
  }
  fmt::print("{}\n", fmt::join(results::AlignedLines(rows, experiment.axes.size() + 1), "\n"));
  if (results.size() > kMostRowsShown) {
    fmt::print("... {} more\n", results.size() - kMostRowsShown);
  }
}

// The cells of that status with their reasons, one line for each, if there are not too many.
std::string ListOf(const std::vector<experiments::CellResult>& results,
                   experiments::CellStatus status) {
  std::string text;
  std::size_t cells = 0;
  for (const experiments::CellResult& result : results) {
    if (result.status == status && ++cells <= kMostListed) {
      text += fmt::format("\n  {}: {}", result.id, result.reason);
    }
  }
  return cells == 0
             ? ""
             : fmt::format(
                   "{} of {} cells {}:{}{}", cells, results.size(),
                   status == experiments::CellStatus::kFailed ? "failed" : "not run", text,
                   cells > kMostListed ? fmt::format("\n  ... {} more", cells - kMostListed) : "");
}

// What is worth saying beside the results; fails if a cell did.
Status Conclude(const std::vector<experiments::CellResult>& results, const std::string& csv) {
  if (const std::string not_run = ListOf(results, experiments::CellStatus::kNotRun);
      !not_run.empty()) {
    fmt::print(stderr, "{}\n", not_run);
  }
  if (!csv.empty()) {
    fmt::print(stderr, "results: {}\n", csv);
  }
  const std::string failures = ListOf(results, experiments::CellStatus::kFailed);
  return failures.empty() ? Status() : Failed(failures);
}

class Sweep {
 public:
  explicit Sweep(const SweepOptions& options) : options_(options) {}

  Status Run() {
    // Tasks of an array may start elsewhere, and must find what was generated for them.
    const bool absolute = options_.slurm || options_.task;
    const auto path_of = [absolute](const std::string& path) {
      return absolute ? fs::absolute(path).lexically_normal().string() : path;
    };
    ASSIGN_OR_RETURN(
        experiments::Experiment experiment,
        experiments::ReadExperiment(path_of(options_.experiment), path_of(options_.reference)));
    experiment_ = std::move(experiment);
    if (!options_.cells.empty()) {
      RETURN_IF_ERROR(KeepOnly(options_.cells, experiment_));
    }
    if (options_.list) {
      for (const experiments::Cell& cell : experiment_.cells) {
        fmt::print("{}\n", cell.id);
      }
      return {};
    }
    return RunCells();
  }

 private:
  [[nodiscard]] Status CheckFiles() const {
    std::set<std::string> inputs{options_.experiment};
    for (const experiments::Cell& cell : experiment_.cells) {
      inputs.insert({cell.trace.path, cell.cluster, cell.profiles,
                     std::string(scenario::PresetPath(cell.names.preset))});
    }
    std::vector<NamedPath> named;
    AddPaths("EXPERIMENT", {inputs.begin(), inputs.end()}, named);
    const fs::path out(options_.out);
    std::vector<NamedPath> outputs;
    AddPaths("--out", {(out / "results.csv").string(), (out / "results.sqlite").string()}, outputs);
    return CheckOutputs(named, outputs);
  }

  Status RunCells() {
    // Single cells are shown, not kept.
    RETURN_IF_ERROR(options_.cells.empty() ? CheckFiles() : Status());
    if (options_.slurm && options_.fresh) {
      RETURN_IF_ERROR(experiments::ForgetSlurmTasks(Out()));
    }
    StopOnSignals();
    ASSIGN_OR_RETURN(experiments::ResultBook book, OpenBook());
    TellWhatIsThere(book.counts());
    ASSIGN_OR_RETURN(bool ran, options_.slurm ? RunOnSlurm(book) : RunHere(book));
    return ran ? Finish(book) : Stopped(book.counts());
  }

  // Absolute: tasks may start elsewhere.
  [[nodiscard]] std::string Out() const {
    return fs::absolute(options_.out).lexically_normal().string();
  }

  Result<experiments::ResultBook> OpenBook() {
    ASSIGN_OR_RETURN(const std::string program, ProgramDigest(options_.plugins));
    const fs::path out(options_.out);
    // Single cells are shown, not kept: the others of the matrix stay as they are.
    const bool keep = options_.cells.empty();
    const bool scenarios = std::any_of(experiment_.cells.begin(), experiment_.cells.end(),
                                       experiments::IsLoaderScenario);
    return experiments::ResultBook::Open(
        experiment_,
        experiments::PlanCells(experiment_.cells, experiment_.reference,
                               {.folder = (fs::path(Out()) / "inputs").string(),
                                .program = program,
                                .generate = GenerateTraceFile}),
        {.folder = keep ? options_.out : "",
         .program = program,
         .fresh = options_.fresh,
         .runs_folder = options_.keep_runs ? (out / "runs").string() : "",
         .more_metrics =
             scenarios ? std::vector<std::string>{"throughput"} : std::vector<std::string>()});
  }

  void TellWhatIsThere(const experiments::BookCounts& counts) const {
    if (counts.reused > 0) {
      fmt::print(stderr, "{} of {} cells are in {} already\n", counts.reused, counts.cells,
                 options_.out);
    }
    if (counts.other_build > 0) {
      fmt::print(stderr, "{} of them come from another build of the program; --fresh runs all\n",
                 counts.other_build);
    }
  }

  [[nodiscard]] static std::string NoteOf(const experiments::BookCounts& counts) {
    return counts.failed == 0 ? "" : fmt::format(", {} failed", counts.failed);
  }

  Result<bool> RunHere(experiments::ResultBook& book) const {
    ProgressBar progress("sweep", "cells done", 1);
    return experiments::RunOpenCells(book, {.parallel = options_.parallel,
                                            .extra = nullptr,
                                            .instead = experiments::OutcomeOfScenario,
                                            .on_done =
                                                [&progress](const experiments::BookCounts& counts) {
                                                  progress.Show(counts.done(), counts.cells,
                                                                NoteOf(counts));
                                                },
                                            .stop = StopWanted});
  }

  [[nodiscard]] std::vector<std::string> TaskWords() const {
    std::vector<std::string> words{
        ThisProgram(), "sweep",          fs::absolute(options_.experiment).string(),
        "--task",      "--out=" + Out(), "--reference=" + experiment_.reference};
    for (const std::string& plugin : options_.plugins) {
      words.push_back("--plugin=" + plugin);
    }
    if (options_.keep_runs) {
      words.emplace_back("--keep-runs");
    }
    return words;
  }

  Result<bool> RunOnSlurm(experiments::ResultBook& book) {
    ProgressBar progress("sweep --slurm", "cells done", 1);
    std::string trouble;
    const auto show = [&](const experiments::BookCounts& counts,
                          const experiments::SlurmCounts& slurm) {
      if (slurm.trouble != trouble) {
        trouble = slurm.trouble;
        fmt::print(stderr, "{}\n", trouble.empty() ? "Slurm answers again" : trouble);
      }
      jobs_ = slurm.jobs;
      progress.Show(counts.done(), counts.cells,
                    fmt::format(", {} tasks running, {} pending{}", slurm.running, slurm.pending,
                                NoteOf(counts)));
    };
    std::vector<std::string> arguments;
    for (const std::string& text : options_.slurm_args) {
      for (const std::string_view word : base::Split(text, " ")) {
        if (!word.empty()) {
          arguments.emplace_back(word);
        }
      }
    }
    return experiments::RunOpenCellsOnSlurm(book, {.folder = Out(),
                                                   .task_words = TaskWords(),
                                                   .sbatch_args = arguments,
                                                   .cells_per_task = options_.cells_per_task,
                                                   .grace = options_.slurm_grace,
                                                   .on_look = show,
                                                   .stop = StopWanted});
  }

  Status Finish(const experiments::ResultBook& book) const {
    const std::vector<experiments::CellResult> results = book.Results();
    if (options_.task) {
      return WriteOutcomes(book);
    }
    std::string csv;
    if (options_.cells.empty()) {
      RETURN_IF_ERROR(book.WriteCsv());
      csv = (fs::path(options_.out) / "results.csv").string();
    }
    if (options_.json) {
      fmt::print("{}\n", experiments::ResultsJson(experiment_.axes, results));
    } else {
      PrintTable(experiment_, results);
    }
    std::fflush(stdout);
    return Conclude(results, csv);
  }

  Status WriteOutcomes(const experiments::ResultBook& book) const {
    for (const experiments::PlannedCell& cell : book.cells()) {
      RETURN_IF_ERROR(experiments::WriteTaskOutcome(Out(), cell));
    }
    return {};
  }

  [[nodiscard]] Status Stopped(const experiments::BookCounts& counts) const {
    std::string text = fmt::format(
        "stopped: {} of {} cells are done and kept in {}; the same command goes on from there",
        counts.done(), counts.cells, options_.out);
    if (options_.slurm && !jobs_.empty()) {
      const std::vector<std::string_view> jobs(jobs_.begin(), jobs_.end());
      text += fmt::format("\nwhat was submitted goes on; to cancel it: scancel {}",
                          base::Join(jobs, " "));
    }
    return Failed(text);
  }

  const SweepOptions& options_;
  experiments::Experiment experiment_;
  std::vector<std::string> jobs_;  // arrays in the queue
};

void AddSlurmOptions(CLI::App& app, SweepOptions& options) {
  constexpr const char* kGroup = "Slurm";
  app.add_flag("--slurm", options.slurm, "submit the cells as job arrays and wait for them")
      ->group(kGroup);
  app.add_option("--slurm-args", options.slurm_args,
                 "arguments for sbatch, separated by spaces, such as \"--partition=cpu --mem=2G\"")
      ->expected(1)
      ->take_all()
      ->group(kGroup);
  app.add_option("--cells-per-task", options.cells_per_task, "for short cells: several in a task")
      ->transform(WholeNumber())
      ->check(Positive())
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--slurm-grace", options.slurm_grace,
                 "seconds until a task that left the queue without a result is submitted again")
      ->transform(Span())
      ->check(NonNegative())
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("--task", options.task, "used by the tasks of an array")->group("");
}

}  // namespace

void AddSweep(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<SweepOptions>();
  options->out = "trainyard-sweep";
  options->reference = DefaultReference();
  options->parallel = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  CLI::App* command =
      app.add_subcommand("sweep", "run a matrix of runs that a TOML file describes");
  command->add_option("EXPERIMENT", options->experiment, "TOML file (docs/formats/experiment.md)")
      ->required();
  command->add_option("--out", options->out, "folder for results.csv and results.sqlite")
      ->capture_default_str();
  command->add_option("--parallel", options->parallel, "cells at a time (default: one per core)")
      ->transform(WholeNumber())
      ->check(CLI::Range(1, 4096));
  command->add_option("--reference", options->reference,
                      "what {reference} stands for (default: TRAINYARD_REFERENCE or ../shared)");
  command->add_option("--cell", options->cells, "run only this cell and print it; may be repeated")
      ->expected(1)
      ->take_all();
  command->add_flag("--fresh", options->fresh, "begin anew instead of going on");
  command->add_flag("--keep-runs", options->keep_runs,
                    "also write each cell's jobs.csv, summary.json and timeline.csv");
  command->add_flag("--list", options->list, "print the cells, run nothing");
  command->add_flag("--json", options->json, "print JSON instead of a table");
  AddSlurmOptions(*command, *options);
  command->callback([options, &chosen] {
    chosen.run = [options, &chosen] {
      options->plugins = chosen.plugins;
      return Sweep(*options).Run();
    };
  });
}

}  // namespace trainyard::cli
