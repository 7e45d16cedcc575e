// SPDX-License-Identifier: Apache-2.0
// Runs the cells of an experiment on the cores of this machine, in processes (fork) that share the
// inputs which were read before: a cell whose process dies ends no other cell, and time and memory
// are measured of each cell alone. A process runs several cells only if they are short.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/cell_result.h"
#include "experiments/sweep/result_book.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

// The outcome of a cell that is no run of a scheduler; none: the cell is a run.
using CellDoer = std::function<std::optional<CellOutcome>(const Cell& cell)>;

struct RunnerOptions {
  int parallel = 1;                                // cells at a time, >= 1
  ExtraOf extra;                                   // may be null
  CellDoer instead;                                // of cells that are no runs; may be null
  std::function<void(const BookCounts&)> on_done;  // after cells have ended; may be null
  std::function<bool()> stop;                      // asked often: end now? May be null
};

// Runs one cell in this process. `folder`: for the files of the run; empty: none.
[[nodiscard]] CellOutcome RunCell(const Cell& cell, const Result<scenario::Inputs>& inputs,
                                  const std::string& folder, const ExtraOf& extra);

// Runs the open cells of the book. Cells with the same inputs run one after the other, so that
// these are read once and are in memory only as long as they are needed: at most one set more than
// cells run at a time. The order in which cells end changes no result. True: everything was run;
// false: it was stopped. Errors: the book cannot be written, no process can be made; a cell that
// fails is none. REQUIRES: the calling process has one thread.
[[nodiscard]] Result<bool> RunOpenCells(ResultBook& book, const RunnerOptions& options);

}  // namespace trainyard::experiments
