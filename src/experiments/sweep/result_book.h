// SPDX-License-Identifier: Apache-2.0
// The cells of an experiment with their outcomes so far: in memory, and durably in
// FOLDER/results.sqlite where there is a folder.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweep/cell_result.h"
#include "experiments/sweep/plan.h"
#include "store/results.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

struct BookCounts {
  std::size_t cells = 0;
  std::size_t ok = 0;
  std::size_t failed = 0;
  std::size_t not_run = 0;      // an input is missing
  std::size_t reused = 0;       // of those that are ok: found in the folder
  std::size_t other_build = 0;  // of the reused: from another build of the program

  [[nodiscard]] std::size_t done() const { return ok + failed + not_run; }
};

struct BookOptions {
  std::string folder;   // empty: nothing is kept
  std::string program;  // which build runs
  bool fresh = false;   // forget what is in the folder
  // For the files of each run; a cell without them is not done. Empty: they are not kept.
  std::string runs_folder;
  // Needs an `extra` with each run; a run without one is not done.
  bool needs_extra = false;
  // Columns of the view `results` beside the metrics of runs.
  std::vector<std::string> more_metrics{};
};

// For one thread.
class ResultBook {
 public:
  // The experiment must outlive the book. Errors: the folder cannot be made; another sweep has it.
  [[nodiscard]] static Result<ResultBook> Open(const Experiment& experiment,
                                               std::vector<PlannedCell> cells,
                                               const BookOptions& options);

  [[nodiscard]] const std::vector<PlannedCell>& cells() const { return cells_; }
  // The cells to be run, in the order of the matrix. Of cells with the same digest it is the first,
  // whose outcome the others take (with a runs_folder each is run).
  [[nodiscard]] const std::vector<std::size_t>& open() const { return open_; }
  [[nodiscard]] const BookCounts& counts() const { return counts_; }
  // Where the files of the cell's run go; empty: nowhere.
  [[nodiscard]] std::string RunFolder(std::size_t cell) const;

  // Outcomes of cells of open(); all of them are durable on return. One fsync.
  [[nodiscard]] Status Put(std::span<const std::pair<std::size_t, CellOutcome>> outcomes);

  // In the order of the matrix.
  [[nodiscard]] std::vector<CellResult> Results() const;
  // FOLDER/results.csv, if there is a folder.
  [[nodiscard]] Status WriteCsv() const;

 private:
  ResultBook(const Experiment& experiment, std::vector<PlannedCell> cells,
             const BookOptions& options);

  [[nodiscard]] Status OpenStore();
  [[nodiscard]] Status Reuse();
  [[nodiscard]] Status SetCells();
  void FindOpen();
  // The one way to an outcome of a cell that has none.
  void SetOutcome(std::size_t cell, CellOutcome outcome);
  void Count(const PlannedCell& cell);

  const Experiment* experiment_;
  BookOptions options_;
  std::vector<PlannedCell> cells_;
  std::vector<std::size_t> open_;
  std::vector<std::vector<std::size_t>> followers_;  // by cell of open(): those of its digest
  std::unique_ptr<store::ResultStore> store_;        // null: nothing is kept
  BookCounts counts_;
};

}  // namespace trainyard::experiments
