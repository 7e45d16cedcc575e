// SPDX-License-Identifier: Apache-2.0
// Every option of sbatch (the manual page of Slurm 22.05), and what becomes of it here.
#pragma once

#include <span>
#include <string_view>

namespace trainyard::requests {

struct SbatchOption {
  enum class Value : std::uint8_t { kNone, kOptional, kNeeded };  // optional ones follow '='
  enum class Use : std::uint8_t {
    kDone,      // means here what it means there
    kKept,      // goes by the job for people to see; nothing is decided by it
    kNoEffect,  // accepted: the job is the same without it
    kRefused,   // the job would be another one without it
  };
  std::string_view name;
  char letter = 0;  // 0: it has none
  Value value = Value::kNeeded;
  Use use = Use::kDone;
  std::string_view here;  // a sentence: what is typed here instead, or why it has no effect
};

// In the order of their names.
[[nodiscard]] std::span<const SbatchOption> SbatchOptions();
// Null: sbatch has no such option. `name` is without "--".
[[nodiscard]] const SbatchOption* SbatchOptionNamed(std::string_view name);
[[nodiscard]] const SbatchOption* SbatchOptionOf(char letter);

}  // namespace trainyard::requests
