// SPDX-License-Identifier: Apache-2.0
#include "admission/catalog.h"

#include <algorithm>
#include <array>

#include "admission/admissions.h"
#include "base/catalog_lookup.h"
#include "base/check.h"

namespace trainyard {

std::span<const AdmissionEntry> AdmissionCatalog() {
  static const std::array kEntries{AllEntry(), DeadlineEntry(), LoadEntry()};
  return kEntries;
}

bool LeftToPolicy(std::string_view admission) {
  const std::span<const AdmissionEntry> all = AdmissionCatalog();
  const auto found = std::find_if(all.begin(), all.end(), [admission](const AdmissionEntry& entry) {
    return entry.name == admission;
  });
  CHECK(found != all.end());
  return found->by_policy;
}

Result<std::unique_ptr<Admission>> MakeAdmission(const NamedOptions& named) {
  const auto found = LookUp(AdmissionCatalog(), named, "admission");
  if (!found.ok()) {
    return found.error();
  }
  return found.value().first->make(found.value().second);
}

}  // namespace trainyard
