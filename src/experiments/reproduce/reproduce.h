// SPDX-License-Identifier: Apache-2.0
// Figures from their files to their outcomes: runs the cells, draws the panels, compares.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/reproduce/comparison.h"
#include "experiments/sweep/result_book.h"
#include "experiments/sweep/runner.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

struct ReproduceOptions {
  std::string reference;  // absolute
  std::string program;    // which build runs
  std::string folder;     // for generated traces, and for the runs that have ended
  TraceGenerator generate;
  int parallel = 1;
  std::function<void(const BookCounts&)> on_open;  // before anything is run; may be null
  std::function<void(const BookCounts&)> on_done;  // may be null
  std::function<bool()> stop;                      // may be null
};

// The cells of all figures together, so that what two of them need is run once. Runs that an
// earlier call of the same build had finished are taken from the folder. Without images. Errors: it
// was stopped, no process can be made, the folder cannot be written; a cell that fails is none.
[[nodiscard]] Result<std::vector<FigureOutcome>> RunFigures(std::vector<FigureSpec> specs,
                                                            const ReproduceOptions& options);

// Inputs that are not there, by figure; empty: all are.
[[nodiscard]] std::vector<std::vector<std::string>> MissingInputs(std::span<const FigureSpec> specs,
                                                                  const std::string& reference);

// Under `out`: SYSTEM/ID[-N].svg, .csv and .gnuplot for each panel; values.csv, summary.csv and
// index.html. Puts the images into the outcomes. False: there is no gnuplot, so no images.
[[nodiscard]] Result<bool> WriteFigures(std::vector<FigureOutcome>& figures, const std::string& out,
                                        const std::string& command);

}  // namespace trainyard::experiments
