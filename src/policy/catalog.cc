// SPDX-License-Identifier: Apache-2.0
#include "policy/catalog.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "policy/policies.h"

namespace trainyard {

std::span<const PolicyEntry> PolicyCatalog() {
  static const std::array kEntries{
      EdfEntry(), ElasticEdfEntry(), FifoEntry(), FjfEntry(),      LasEntry(),
      SjfEntry(), SrsfEntry(),       SrtfEntry(), TiresiasEntry(),
  };
  return kEntries;
}

Result<PolicyComponent> MakePolicy(const NamedOptions& named, const PolicyContext& context) {
  const std::span<const PolicyEntry> catalog = PolicyCatalog();
  const auto entry = std::find_if(catalog.begin(), catalog.end(),
                                  [&](const PolicyEntry& e) { return e.name == named.name; });
  if (entry == catalog.end()) {
    std::vector<std::string_view> names;
    for (const PolicyEntry& known : catalog) {
      names.push_back(known.name);
    }
    return InvalidArgument(UnknownName("policy", named.name, names));
  }
  const Result<Options> options =
      Options::Make(entry->options, named, "policy '" + named.name + "'");
  return options.ok() ? entry->make(options.value(), context) : options.error();
}

}  // namespace trainyard
