// SPDX-License-Identifier: Apache-2.0
// Runs the cells of an experiment as job arrays of a Slurm cluster. The folder of the results must
// be one that all nodes see; each task writes the outcomes of its cells into FOLDER/cells, from
// where the waiting process takes them. Submitted arrays are found again after a restart, by name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/sweep/cell_result.h"
#include "experiments/sweep/result_book.h"
#include "trainyard/status.h"

namespace trainyard::experiments {

struct SlurmCounts {
  std::size_t pending = 0;  // tasks
  std::size_t running = 0;
  std::vector<std::string> jobs;  // ids of the arrays that are in the queue
  std::string trouble;            // why Slurm does not answer; empty: it does
};

struct SlurmOptions {
  std::string folder;                   // absolute
  std::vector<std::string> task_words;  // the command of a task; "--cell=ID" follows for each cell
  std::vector<std::string> sbatch_args;
  std::size_t cells_per_task = 1;  // >= 1
  double look_every = 2;           // seconds
  // Seconds after which a task that has left the queue is lost, if no result of it has appeared:
  // shared file systems show new files late.
  double grace = 30;
  std::function<void(const BookCounts&, const SlurmCounts&)> on_look;  // may be null
  std::function<bool()> stop;                                          // may be null
};

// Submits the cells that are open in the book and not in the queue already, in arrays of at most
// MaxArraySize tasks, and waits. Tasks that are lost are submitted again, twice at most. True: all
// is done; false: it was stopped, and the tasks go on. Errors: Slurm does not answer at the start
// or takes no task at all; the folder cannot be written.
[[nodiscard]] Result<bool> RunOpenCellsOnSlurm(ResultBook& book, const SlurmOptions& options);

// Cancels the arrays of this folder that are in the queue and removes their files, with results
// that have not been taken.
[[nodiscard]] Status ForgetSlurmTasks(const std::string& folder);

// What a task does with its outcome: a file in FOLDER/cells appears at once as a whole.
[[nodiscard]] Status WriteTaskOutcome(const std::string& folder, const PlannedCell& cell);

}  // namespace trainyard::experiments
