// SPDX-License-Identifier: Apache-2.0
// All figures on one page that needs nothing else: images, tables, notes, a summary.
#pragma once

#include <span>
#include <string>

#include "reproduce/comparison.h"

namespace trainyard {

// HTML; light or dark as the reader has set. `command`: how it was made.
[[nodiscard]] std::string FiguresPage(std::span<const FigureOutcome> figures,
                                      const std::string& command);

}  // namespace trainyard
