// SPDX-License-Identifier: Apache-2.0
// The options that simulate and compare share.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>

#include "scenario/scenario.h"

namespace trainyard {

struct RunOptions {
  InputPaths inputs;
  PresetRequest names;
  std::uint64_t seed = 0;
  std::optional<double> until;
  std::string track;  // "first-last"
  std::string out;
  bool json = false;
};

void AddRunOptions(CLI::App& command, RunOptions& options);

struct RunInputs {
  Inputs inputs;
  StopRule stop{};
};

// Reads the inputs, checks the options that depend on them, and lists the rows that were passed
// over on stderr.
[[nodiscard]] Result<RunInputs> ReadRunInputs(const RunOptions& options);

// A run without a stop rule must finish its jobs: names the first that did not.
[[nodiscard]] Status CheckFinished(const RunResult& run, const StopRule& stop);

}  // namespace trainyard
