// SPDX-License-Identifier: Apache-2.0
// The options that simulate and compare share.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/output_paths.h"
#include "scenario/scenario.h"

namespace trainyard::cli {

struct RunOptions {
  scenario::InputPaths inputs;
  scenario::PresetRequest names;
  std::uint64_t seed = 0;
  std::optional<double> until;
  std::string track;  // "first-last"
  std::string out;
  bool json = false;
};

// --placement, --admission, --grouping and --tuning, of simulations and controllers alike.
void AddComponentOptions(CLI::App& command, scenario::PresetRequest& names);
void AddRunOptions(CLI::App& command, RunOptions& options);

// Refuses outputs that would take the place of the inputs, or of each other.
[[nodiscard]] Status CheckRunOutputs(const RunOptions& options,
                                     const std::vector<NamedPath>& outputs);

struct RunInputs {
  scenario::Inputs inputs;
  world::StopRule stop{};
};

// Reads the inputs, checks the options that depend on them, and lists the rows that were passed
// over on stderr.
[[nodiscard]] Result<RunInputs> ReadRunInputs(const RunOptions& options);

// Warns on stderr of inputs that the policy decides by and the jobs do not state.
[[nodiscard]] Status WarnOfUnstated(const scenario::PresetRequest& names,
                                    const scenario::Inputs& inputs);

// The run's files, if there is a folder for them, and its summary on stdout.
[[nodiscard]] Status PutOut(const results::RunResult& run, const RunOptions& options);

}  // namespace trainyard::cli
