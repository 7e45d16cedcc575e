// SPDX-License-Identifier: Apache-2.0
// What exists only to give the numbers of a published program: components that the presets of
// these programs name. Each has a file that defines its entry, and a line here. Nothing but the
// catalogue includes this folder.
#pragma once

#include <span>

#include "trainyard/component_entry.h"

namespace trainyard {

#define TRAINYARD_ORIGINALS(X) \
  X(BuddyGroups)               \
  X(ChronusPublished)          \
  X(ElasticEdfPublished)       \
  X(ElasticFlowPublished)

#define TRAINYARD_DECLARE_ENTRY(name) [[nodiscard]] ComponentEntry name##Entry();
TRAINYARD_ORIGINALS(TRAINYARD_DECLARE_ENTRY)
#undef TRAINYARD_DECLARE_ENTRY

// Sorted by kind, then by name.
[[nodiscard]] std::span<const ComponentEntry> Originals();

}  // namespace trainyard
