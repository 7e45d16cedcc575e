// SPDX-License-Identifier: Apache-2.0
// Lists of names with ranges in brackets, as Slurm writes nodes and tasks of arrays: "n[0-2,7],v0",
// "12_[3-9]".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::base {

inline constexpr std::size_t kMostListedNames = 100'000;

// The names in the order of the list; numbers keep their leading zeros ("n[08-11]"). Errors: a
// bracket or a range that is none, an empty name, more than kMostListedNames names.
[[nodiscard]] Result<std::vector<std::string>> ExpandNames(std::string_view list);

// The list of the names, in their order: neighbours that differ in the number at their end are
// folded.
[[nodiscard]] std::string FoldNames(std::span<const std::string> names);

// The order of names that end in numbers: n2 before n10.
[[nodiscard]] bool ComesBefore(std::string_view a, std::string_view b);

}  // namespace trainyard::base
