// SPDX-License-Identifier: Apache-2.0
// The files of experiments/, built into the program; written by CMake.
#pragma once

#include <span>
#include <string_view>

namespace trainyard {

struct EmbeddedFigure {
  std::string_view id;  // "elasticflow/fig8a"
  std::string_view text;
};

// In the order of their ids, numbers by size.
[[nodiscard]] std::span<const EmbeddedFigure> EmbeddedFigures();

}  // namespace trainyard
