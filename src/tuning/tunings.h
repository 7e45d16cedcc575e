// SPDX-License-Identifier: Apache-2.0
// The tunings of this folder.
#pragma once

#include <span>

#include "trainyard/component_entry.h"

namespace trainyard {

[[nodiscard]] ComponentEntry LoaderTuningEntry();

// Sorted by name.
[[nodiscard]] std::span<const ComponentEntry> Tunings();

}  // namespace trainyard
