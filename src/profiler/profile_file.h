// SPDX-License-Identifier: Apache-2.0
// A CSV file of profiles to which a profiling adds its rows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trainyard/status.h"

namespace trainyard::profiler {

using Rows = std::vector<std::vector<std::string>>;

// As profiles have numbers: six digits.
[[nodiscard]] std::string ProfileNumber(double value);

// Writes the rows that are there already, without those whose first `key` cells are those of one of
// `rows`, and `rows` behind them. Without a file there are none. Errors: it cannot be read or
// written; it has another heading.
[[nodiscard]] Status AddRows(const std::string& path, const std::vector<std::string>& heading,
                             std::size_t key, const Rows& rows);

}  // namespace trainyard::profiler
