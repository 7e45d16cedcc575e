// SPDX-License-Identifier: Apache-2.0
#include "admissions/admissions.h"

namespace trainyard::admissions {

std::span<const ComponentEntry> Admissions() {
  static const std::vector<ComponentEntry> kEntries =
      base::SortedEntries({TRAINYARD_ADMISSIONS(TRAINYARD_ENTRY)});
  return kEntries;
}

}  // namespace trainyard::admissions
