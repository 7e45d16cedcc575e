// SPDX-License-Identifier: Apache-2.0
#include "cli/reading_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace trainyard {

void AddReadingOptions(CLI::App& command, bool& skip_bad_rows, int& procs_per_gpu) {
  constexpr int kMostProcs = 1'000'000;
  command.add_flag("--skip-bad-rows", skip_bad_rows,
                   "count and list bad rows instead of refusing the file");
  command
      .add_option("--procs-per-gpu", procs_per_gpu,
                  "processors that come with a GPU, in traces without GPUs (swf, batsim)")
      ->check(CLI::Range(1, kMostProcs))
      ->capture_default_str();
}

}  // namespace trainyard
