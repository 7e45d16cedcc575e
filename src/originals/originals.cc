// SPDX-License-Identifier: Apache-2.0
#include "originals/originals.h"

namespace trainyard::originals {

std::span<const ComponentEntry> Originals() {
  static const std::vector<ComponentEntry> kEntries =
      base::SortedEntries({TRAINYARD_ORIGINALS(TRAINYARD_ENTRY)});
  return kEntries;
}

}  // namespace trainyard::originals
