// SPDX-License-Identifier: Apache-2.0
#include "cli/reading_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/numbers.h"

namespace trainyard {

void AddReadingOptions(CLI::App& command, bool& skip_bad_rows, int& procs_per_gpu) {
  constexpr int kMostProcs = 1'000'000;
  command.add_flag("--skip-bad-rows", skip_bad_rows,
                   "count and list bad rows instead of refusing the file");
  command
      .add_option(
          "--procs-per-gpu", procs_per_gpu,
          "processors that stand for a GPU, in traces without GPUs (swf, batsim; default: 1) "
          "and for jobs without GPUs (sacct; default: they are left out)")
      ->transform(WholeNumber())
      ->check(CLI::Range(1, kMostProcs));
}

}  // namespace trainyard
