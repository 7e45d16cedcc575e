// SPDX-License-Identifier: Apache-2.0
#include "policy/groupings.h"

#include <array>

#include "base/catalog_lookup.h"

namespace trainyard {

std::span<const GroupingEntry> GroupingCatalog() {
  static const std::array kEntries{InterleaveEntry()};
  return kEntries;
}

Result<std::unique_ptr<Grouping>> MakeGrouping(const NamedOptions& named) {
  const auto found = LookUp(GroupingCatalog(), named, "grouping");
  if (!found.ok()) {
    return found.error();
  }
  return found.value().first->make(found.value().second);
}

}  // namespace trainyard
