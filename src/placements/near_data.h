// SPDX-License-Identifier: Apache-2.0
// Option `locality` of placements that choose for one gang at a time.
#pragma once

#include <memory>
#include <utility>

#include "base/catalog_lookup.h"
#include "trainyard/component.h"
#include "trainyard/options.h"

namespace trainyard::placements {

inline constexpr OptionSpec kLocalityOption{
    "locality", OptionSpec::Kind::kNumber, "0",
    "> 0: nodes that keep the gang's data set, where that saves so many seconds of fetching"};

// `plain` itself if `locality` is 0. Otherwise it decides whether a gang finds a place, and where,
// unless it finds one on the nodes alone that keep the data set, where the gang waits at least
// `locality` seconds less, on no more nodes and on no more idle ones. O(nodes that keep it).
[[nodiscard]] std::unique_ptr<Placement> NearData(const Options& options,
                                                  std::unique_ptr<Placement> plain);

// How an entry makes a placement of class `T` with this option.
template <typename T>
[[nodiscard]] Result<Components> MakeNearData(const Options& options,
                                              const ComponentContext& context) {
  Result<Components> made = base::MakeOf<T>(options, context);
  made.value().placement = NearData(options, std::move(made.value().placement));
  return made;
}

}  // namespace trainyard::placements
