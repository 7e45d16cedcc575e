// SPDX-License-Identifier: Apache-2.0
// Results as JSON.
#pragma once

#include <string>

#include "originals/results/results.h"

namespace trainyard::originals {

// As CompareJson, and for each run of a published program the key "published": its metrics by its
// own definitions, and these.
[[nodiscard]] std::string ResultsJson(const Results& results);

}  // namespace trainyard::originals
