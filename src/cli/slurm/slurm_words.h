// SPDX-License-Identifier: Apache-2.0
// The command lines of Slurm's commands, read by getopt_long as they read them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "requests/slurm/sbatch_options.h"

namespace trainyard::cli {

// What a command knows. Options that are refused are told with what `here` says; those without
// effect are taken.
using SlurmOption = requests::SbatchOption;

struct SlurmWords {
  std::vector<std::pair<const SlurmOption*, std::string>> options;  // as given
  std::vector<std::string> rest;

  [[nodiscard]] bool Has(std::string_view name) const { return Value(name).has_value(); }
  // Of the last that was given.
  [[nodiscard]] std::optional<std::string> Value(std::string_view name) const;
  // The items of all its lists, "a,b".
  [[nodiscard]] std::vector<std::string> Items(std::string_view name) const;
};

// Nothing: the words are wrong, which has been told on standard error. `stops`: the first word that
// is no option ends the options.
[[nodiscard]] std::optional<SlurmWords> ReadSlurmWords(std::string_view command,
                                                       const std::vector<std::string>& words,
                                                       std::span<const SlurmOption> known,
                                                       bool stops = false);

// Of squeue and scontrol, as it stands.
inline constexpr const char* kNoSuchJob = "slurm_load_jobs error: Invalid job id specified";

// "squeue: error: ..." on standard error, but kNoSuchJob as it stands; gives the exit status 1.
int SlurmError(std::string_view command, std::string_view message);

}  // namespace trainyard::cli
