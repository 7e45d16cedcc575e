// SPDX-License-Identifier: Apache-2.0
// What exists only to give the numbers of a published program: components that the presets of
// these programs name. Each has a file that defines its entry, and a line here. Nothing else in
// src/ includes this folder but the catalogue.
#pragma once

#include <span>

#include "base/catalog_lookup.h"
#include "trainyard/component_entry.h"

namespace trainyard::originals {

#define TRAINYARD_ORIGINALS(X) \
  X(AntmanPublished)           \
  X(BackfillPublished)         \
  X(BuddyGroups)               \
  X(ChronusPublished)          \
  X(ElasticEdfPublished)       \
  X(ElasticFlowPublished)      \
  X(GandivaPublished)          \
  X(GavelPublished)            \
  X(PolluxPublished)           \
  X(SiaPublished)              \
  X(ThemisPublished)           \
  X(TiresiasPublished)

TRAINYARD_ORIGINALS(TRAINYARD_DECLARE_ENTRY)

// Sorted by kind, then by name.
[[nodiscard]] std::span<const ComponentEntry> Originals();

}  // namespace trainyard::originals
