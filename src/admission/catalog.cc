// SPDX-License-Identifier: Apache-2.0
#include "admission/catalog.h"

#include <array>

#include "admission/admissions.h"
#include "base/catalog_lookup.h"

namespace trainyard {

std::span<const AdmissionEntry> AdmissionCatalog() {
  static const std::array kEntries{AllEntry(), DeadlineEntry(), LoadEntry()};
  return kEntries;
}

Result<std::unique_ptr<Admission>> MakeAdmission(const NamedOptions& named) {
  const auto found = LookUp(AdmissionCatalog(), named, "admission");
  if (!found.ok()) {
    return found.error();
  }
  return found.value().first->make(found.value().second);
}

}  // namespace trainyard
