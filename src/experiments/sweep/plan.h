// SPDX-License-Identifier: Apache-2.0
// The inputs of the cells of an experiment, before anything runs: the files that they read, which
// of these are missing, and a digest of all that decides their results.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/sweep/cell_result.h"
#include "experiments/sweep/experiment.h"
#include "scenario/scenario.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

// Writes the trace of `trace generate` with these options to a file.
using TraceGenerator =
    std::function<Status(const GenerateOptions& options, const std::string& path)>;

struct PlannedCell {
  const Cell* cell = nullptr;
  scenario::InputPaths inputs;
  // Of the options and the contents of all inputs, not of names: cells with the same digest have
  // the same result. Empty: it cannot be run, for the reason of `outcome`.
  std::string digest;
  CellOutcome outcome;
};

struct PlanOptions {
  std::string folder;       // where generated traces go, made if necessary
  std::string program;      // which build runs; generated traces are kept for each
  TraceGenerator generate;  // may be null: cells whose trace is generated fail
};

// One for each cell, in their order. Reads every input file once (for its digest) and generates the
// traces that are not in the folder. `reference`: a missing file in it, like one that has a text
// for `obtain`, is no failure of the cell, which is not run. The cells must outlive the result.
[[nodiscard]] std::vector<PlannedCell> PlanCells(std::span<const Cell> cells,
                                                 const std::string& reference,
                                                 const PlanOptions& options);

// The run that a cell asks for. Errors: `track` does not fit the trace.
[[nodiscard]] Result<scenario::RunRequest> RequestOf(const Cell& cell,
                                                     const scenario::Inputs& inputs);

}  // namespace trainyard::experiments
