// SPDX-License-Identifier: Apache-2.0
#include "originals/originals.h"

namespace trainyard {

std::span<const ComponentEntry> Originals() {
  static const std::vector<ComponentEntry> kEntries =
      SortedEntries({TRAINYARD_ORIGINALS(TRAINYARD_ENTRY)});
  return kEntries;
}

}  // namespace trainyard
