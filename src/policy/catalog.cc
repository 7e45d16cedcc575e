// SPDX-License-Identifier: Apache-2.0
#include "policy/catalog.h"

#include <array>

#include "base/catalog_lookup.h"
#include "policy/policies.h"

namespace trainyard {

std::span<const PolicyEntry> PolicyCatalog() {
  static const std::array kEntries{
      EdfEntry(), ElasticEdfEntry(), ElasticFlowEntry(), FifoEntry(),   FjfEntry(),      LasEntry(),
      SjfEntry(), SrsfEntry(),       SrtfEntry(),        ThemisEntry(), TiresiasEntry(),
  };
  return kEntries;
}

Result<PolicyComponent> MakePolicy(const NamedOptions& named, const PolicyContext& context) {
  const auto found = LookUp(PolicyCatalog(), named, "policy");
  return found.ok() ? found.value().first->make(found.value().second, context) : found.error();
}

}  // namespace trainyard
