// SPDX-License-Identifier: Apache-2.0
#include "policy/policies.h"

#include "base/catalog_lookup.h"

namespace trainyard {

std::span<const ComponentEntry> Policies() {
#define TRAINYARD_ENTRY(name) name##Entry(),
  static const std::vector<ComponentEntry> kEntries =
      SortedEntries({TRAINYARD_POLICIES(TRAINYARD_ENTRY)});
#undef TRAINYARD_ENTRY
  return kEntries;
}

}  // namespace trainyard
