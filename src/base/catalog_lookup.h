// SPDX-License-Identifier: Apache-2.0
// Finds an entry of a component catalogue and checks the options that came with its name.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard {

// The entry of that name with its options. `what` is the kind of component in messages ("policy").
template <typename Entry>
[[nodiscard]] Result<std::pair<const Entry*, Options>> LookUp(std::span<const Entry> catalog,
                                                              const NamedOptions& named,
                                                              std::string_view what) {
  const auto entry = std::find_if(catalog.begin(), catalog.end(),
                                  [&named](const Entry& e) { return e.name == named.name; });
  if (entry == catalog.end()) {
    std::vector<std::string_view> names;
    for (const Entry& known : catalog) {
      names.push_back(known.name);
    }
    return InvalidArgument(UnknownName(what, named.name, names));
  }
  Result<Options> options =
      Options::Make(entry->options, named, std::string(what) + " '" + named.name + "'");
  if (!options.ok()) {
    return options.error();
  }
  return std::pair{&*entry, std::move(options).value()};
}

}  // namespace trainyard
