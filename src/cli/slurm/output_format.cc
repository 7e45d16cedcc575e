// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm/output_format.h"

#include <fmt/format.h>

#include <ctime>

namespace trainyard::cli {

std::string InColumn(std::string text, int width, bool is_right) {
  if (width <= 0) {
    return text;
  }
  text.resize(std::min(text.size(), static_cast<std::size_t>(width)));
  return is_right ? fmt::format("{:>{}}", text, width) : fmt::format("{:<{}}", text, width);
}

std::string TimeLine() {
  const std::time_t now = std::time(nullptr);
  return std::ctime(&now);  // NOLINT(concurrency-mt-unsafe): the only thread
}

Error BadColumn(std::string_view rows, std::string_view column) {
  return InvalidArgument(fmt::format("Invalid {} format specification: {}", rows, column));
}

}  // namespace trainyard::cli
