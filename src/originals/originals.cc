// SPDX-License-Identifier: Apache-2.0
#include "originals/originals.h"

#include "base/catalog_lookup.h"

namespace trainyard {

std::span<const ComponentEntry> Originals() {
#define TRAINYARD_ENTRY(name) name##Entry(),
  static const std::vector<ComponentEntry> kEntries =
      SortedEntries({TRAINYARD_ORIGINALS(TRAINYARD_ENTRY)});
#undef TRAINYARD_ENTRY
  return kEntries;
}

}  // namespace trainyard
