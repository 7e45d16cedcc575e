// SPDX-License-Identifier: Apache-2.0
#include "requests/slurm/srun_options.h"

#include <algorithm>
#include <array>
#include <span>

namespace trainyard::requests {
namespace {

using Option = SbatchOption;
using enum SbatchOption::Value;
using enum SbatchOption::Use;
using Names = std::span<const std::string_view>;

struct OwnOption {
  Option option;
  OptionPart part = OptionPart::kCommand;
};

constexpr std::string_view kAsThere = "as there";
constexpr std::string_view kNoEffectHere = "it has no effect here";
constexpr std::string_view kByNumber =
    "it has no effect here: CPUs are given by number, not by their places";
constexpr std::string_view kNoPrograms = "no programs run around a step here";
constexpr std::string_view kShared = "the program has to lie where all nodes find it";

constexpr std::array kOfSrun{
    OwnOption{{"accel-bind", 0, kNeeded, kNoEffect, kByNumber}},
    OwnOption{{"bcast", 0, kOptional, kRefused, kShared}},
    OwnOption{{"bcast-exclude", 0, kNeeded, kNoEffect, kNoEffectHere}},
    OwnOption{{"compress", 0, kOptional, kNoEffect, kNoEffectHere}},
    OwnOption{{"cpu-bind", 0, kNeeded, kNoEffect, kByNumber}},
    OwnOption{{"disable-status", 'X', kNone, kDone, kAsThere}},
    OwnOption{{"distribution", 'm', kNeeded, kDone, "block or cyclic, of nodes"},
              OptionPart::kStep},
    OwnOption{{"epilog", 0, kNeeded, kRefused, kNoPrograms}},
    OwnOption{{"error", 'e', kNeeded, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"exact", 0, kNone, kDone, "each step has its CPUs and GPUs for itself"},
              OptionPart::kStep},
    OwnOption{{"het-group", 0, kNeeded, kRefused, "expected a step of one part"}},
    OwnOption{{"immediate", 'I', kOptional, kNoEffect, kNoEffectHere}},
    OwnOption{{"input", 'i', kNeeded, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"jobid", 0, kNeeded, kDone, "a step of that job"}},
    OwnOption{{"kill-on-bad-exit", 'K', kOptional, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"label", 'l', kNone, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"mpi", 0, kNeeded, kNoEffect,
               "there is no PMI here: 'trainyard submit --launcher mpi' starts programs of MPI"}},
    OwnOption{{"msg-timeout", 0, kNeeded, kNoEffect, kNoEffectHere}},
    OwnOption{{"multi-prog", 0, kNone, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"no-allocate", 'Z', kNone, kRefused, "tasks run on nodes that a job has"}},
    OwnOption{{"open-mode", 0, kNeeded, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"output", 'o', kNeeded, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"overcommit", 'O', kNone, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"overlap", 0, kNone, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"preserve-env", 'E', kNone, kNoEffect, kNoEffectHere}},
    OwnOption{{"prolog", 0, kNeeded, kRefused, kNoPrograms}},
    OwnOption{{"pty", 0, kOptional, kDone, "one task has the terminal"}},
    OwnOption{{"quit-on-interrupt", 0, kNone, kNoEffect, kNoEffectHere}},
    OwnOption{{"relative", 'r', kNeeded, kDone, kAsThere}, OptionPart::kStep},
    OwnOption{{"resv-ports", 0, kOptional, kNoEffect, kNoEffectHere}},
    OwnOption{{"send-libs", 0, kOptional, kNoEffect, kNoEffectHere}},
    OwnOption{{"slurmd-debug", 0, kNeeded, kNoEffect, kNoEffectHere}},
    OwnOption{{"task-epilog", 0, kNeeded, kRefused, kNoPrograms}},
    OwnOption{{"task-prolog", 0, kNeeded, kRefused, kNoPrograms}},
    OwnOption{{"test-only", 0, kNone, kRefused, "it is 'sbatch --test-only' here"}},
    OwnOption{{"threads", 'T', kNeeded, kNoEffect, kNoEffectHere}},
    OwnOption{{"unbuffered", 'u', kNone, kNoEffect, "it has no effect here: nothing is held back"}},
    OwnOption{{"wait", 'W', kNeeded, kNoEffect, kNoEffectHere}},
    OwnOption{{"x11", 0, kOptional, kRefused, "no displays are handed on here"}}};
constexpr std::array<std::string_view, 11> kNotOfSrun{
    "kill-on-invalid-dep", "array",    "batch",   "export-file", "get-user-env",  "ignore-pbs",
    "no-requeue",          "parsable", "requeue", "wrap",        "wait-all-nodes"};

constexpr std::array kOfSalloc{
    OwnOption{{"bell", 0, kNone, kNoEffect, kNoEffectHere}},
    OwnOption{{"immediate", 'I', kOptional, kNoEffect, kNoEffectHere}},
    OwnOption{{"kill-command", 'K', kOptional, kDone, kAsThere}},
    OwnOption{{"no-bell", 0, kNone, kNoEffect, kNoEffectHere}},
    OwnOption{{"no-shell", 0, kNone, kDone, kAsThere}},
    OwnOption{{"x11", 0, kOptional, kRefused, "no displays are handed on here"}}};
constexpr std::array<std::string_view, 17> kNotOfSalloc{
    "kill-on-invalid-dep", "array",   "batch",      "error",     "export", "export-file",
    "ignore-pbs",          "input",   "no-requeue", "open-mode", "output", "parsable",
    "propagate",           "requeue", "test-only",  "wait",      "wrap"};

std::vector<Option> Together(std::span<const OwnOption> own, Names not_of_command) {
  std::vector<Option> all;
  for (const OwnOption& one : own) {
    all.push_back(one.option);
  }
  for (Option option : SbatchOptions()) {
    const auto same_name = [&](const OwnOption& one) { return one.option.name == option.name; };
    const auto same_letter = [&](const OwnOption& one) {
      return option.letter != 0 && one.option.letter == option.letter;
    };
    if (std::find(not_of_command.begin(), not_of_command.end(), option.name) !=
            not_of_command.end() ||
        std::any_of(own.begin(), own.end(), same_name)) {
      continue;
    }
    if (std::any_of(own.begin(), own.end(), same_letter)) {
      option.letter = 0;
    }
    all.push_back(option);
  }
  std::sort(all.begin(), all.end(),
            [](const Option& a, const Option& b) { return a.name < b.name; });
  return all;
}

OptionPart PartIn(std::span<const OwnOption> own, std::string_view name) {
  const auto at = std::find_if(own.begin(), own.end(),
                               [name](const OwnOption& one) { return one.option.name == name; });
  return at == own.end() ? OptionPart::kJob : at->part;
}

}  // namespace

const std::vector<SbatchOption>& SrunOptions() {
  static const std::vector<SbatchOption> kOptions = Together(kOfSrun, kNotOfSrun);
  return kOptions;
}

const std::vector<SbatchOption>& SallocOptions() {
  static const std::vector<SbatchOption> kOptions = Together(kOfSalloc, kNotOfSalloc);
  return kOptions;
}

OptionPart PartOfSrun(std::string_view name) { return PartIn(kOfSrun, name); }
OptionPart PartOfSalloc(std::string_view name) { return PartIn(kOfSalloc, name); }

}  // namespace trainyard::requests
