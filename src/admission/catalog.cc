// SPDX-License-Identifier: Apache-2.0
#include "admission/catalog.h"

#include <algorithm>
#include <array>
#include <vector>

#include "admission/admissions.h"
#include "base/text.h"

namespace trainyard {

std::span<const AdmissionEntry> AdmissionCatalog() {
  static const std::array kEntries{AllEntry()};
  return kEntries;
}

Result<std::unique_ptr<Admission>> MakeAdmission(const NamedOptions& named) {
  const std::span<const AdmissionEntry> catalog = AdmissionCatalog();
  const auto entry = std::find_if(catalog.begin(), catalog.end(),
                                  [&](const AdmissionEntry& e) { return e.name == named.name; });
  if (entry == catalog.end()) {
    std::vector<std::string_view> names;
    for (const AdmissionEntry& known : catalog) {
      names.push_back(known.name);
    }
    return InvalidArgument(UnknownName("admission", named.name, names));
  }
  const Result<Options> options =
      Options::Make(entry->options, named, "admission '" + named.name + "'");
  if (!options.ok()) {
    return options.error();
  }
  return entry->make(options.value());
}

}  // namespace trainyard
