// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <string>

#include "base/text.h"

namespace trainyard {

// The parser lets "nan" through its ranges.
[[nodiscard]] inline CLI::Validator Finite() {
  return {[](const std::string& text) {
            return ToNumber(text) ? std::string() : fmt::format("{} is no finite number", text);
          },
          ""};
}

}  // namespace trainyard
