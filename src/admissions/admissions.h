// SPDX-License-Identifier: Apache-2.0
// The admissions of this folder: each has a file that defines its entry, and a line here.
#pragma once

#include <span>

#include "base/catalog_lookup.h"
#include "trainyard/component_entry.h"

namespace trainyard::admissions {

#define TRAINYARD_ADMISSIONS(X) \
  X(All)                        \
  X(Deadline)                   \
  X(Load)

TRAINYARD_ADMISSIONS(TRAINYARD_DECLARE_ENTRY)

// Sorted by name.
[[nodiscard]] std::span<const ComponentEntry> Admissions();

}  // namespace trainyard::admissions
