// SPDX-License-Identifier: Apache-2.0
#include "admissions/admissions.h"

namespace trainyard {

std::span<const ComponentEntry> Admissions() {
  static const std::vector<ComponentEntry> kEntries =
      SortedEntries({TRAINYARD_ADMISSIONS(TRAINYARD_ENTRY)});
  return kEntries;
}

}  // namespace trainyard
