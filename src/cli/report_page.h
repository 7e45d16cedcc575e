// SPDX-License-Identifier: Apache-2.0
// The page of the HTML report, which is embedded in the program.
#pragma once

#include <string_view>

namespace trainyard {

[[nodiscard]] std::string_view ReportPage();

}  // namespace trainyard
