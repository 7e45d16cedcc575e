// SPDX-License-Identifier: Apache-2.0
#include "policies/policies.h"

namespace trainyard::policies {

std::span<const ComponentEntry> Policies() {
  static const std::vector<ComponentEntry> kEntries =
      base::SortedEntries({TRAINYARD_POLICIES(TRAINYARD_ENTRY)});
  return kEntries;
}

}  // namespace trainyard::policies
