// SPDX-License-Identifier: Apache-2.0
// The training script that is profiled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/trial.h"
#include "trainyard/status.h"

namespace trainyard::profiler {

struct Subject {
  std::string model;                 // its name in traces and profiles
  std::vector<std::string> command;  // with placeholders, or a script of Synergy's contract
  std::string folder;                // where it works
  TrialContainer container{};
  std::int64_t batch = 0;  // samples of an iteration of the whole job
  double warmup = 10;      // with loader workers at least three for each of a process
  double iterations = 50;  // with loader workers the next multiple of those of a process
  Duration limit = std::chrono::minutes(10);
};

// What a trial is about; 0: as the subject has it, or not told.
struct TrialShape {
  std::int64_t batch = 0;
  int gpus = 1;
  int loader_workers = 0;  // of all processes together
  int cores = 0;
  bool until_notice = false;  // as Trial's: {iterations} is a number that is not reached
};

// A command has the placeholders {batch}, {batch_per_gpu}, {gpus}, {workers}, {workers_per_gpu},
// {iterations} (those of the warm-up included) and {name}. One without any gets the options of
// Synergy's profiler behind it (reference 10.5): --workers, of each process, --batch-size,
// --max-iterations, --job-name. Errors: those of base::Fill, and a batch that
// does not divide by the GPUs where the command has {batch_per_gpu}.
[[nodiscard]] Result<Trial> TrialOf(const Subject& subject, const TrialShape& shape);

// That runs which differ only in `name` (of a placeholder: "batch", "workers") do so for the
// command, too: it has {name} or {name_per_gpu}, or no placeholders at all. Error: all would be the
// same.
[[nodiscard]] Status NeedsPlaceholder(const Subject& subject, const std::string& name);

}  // namespace trainyard::profiler
