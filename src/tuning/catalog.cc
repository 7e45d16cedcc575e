// SPDX-License-Identifier: Apache-2.0
#include "tuning/catalog.h"

#include <array>

#include "base/catalog_lookup.h"
#include "tuning/tunings.h"

namespace trainyard {

std::span<const TuningEntry> TuningCatalog() {
  static const std::array kEntries{LoaderTuningEntry()};
  return kEntries;
}

Result<std::unique_ptr<Tuning>> MakeTuning(const NamedOptions& named,
                                           const PolicyContext& context) {
  const auto found = LookUp(TuningCatalog(), named, "tuning");
  if (!found.ok()) {
    return found.error();
  }
  return found.value().first->make(found.value().second, context);
}

}  // namespace trainyard
