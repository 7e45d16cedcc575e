// SPDX-License-Identifier: Apache-2.0
#include "policies/policies.h"

namespace trainyard {

std::span<const ComponentEntry> Policies() {
  static const std::vector<ComponentEntry> kEntries =
      SortedEntries({TRAINYARD_POLICIES(TRAINYARD_ENTRY)});
  return kEntries;
}

}  // namespace trainyard
