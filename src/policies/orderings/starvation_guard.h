// SPDX-License-Identifier: Apache-2.0
// A guard against starvation for any ordering that does not set its own wake-ups: a job that has
// waited so long at a stretch goes before all others from then on (as in the simulator of Blox,
// EuroSys'24).
#pragma once

#include <memory>
#include <utility>

#include "base/catalog_lookup.h"
#include "trainyard/component.h"
#include "trainyard/options.h"

namespace trainyard::policies {

inline constexpr OptionSpec kGuardOption{
    "guard", OptionSpec::Kind::kNumber, "0",
    "seconds of waiting at a stretch after which a job goes first for good; 0: never"};
inline constexpr OptionSpec kGuardAgainOption{"guard_again", OptionSpec::Kind::kNumber, "0",
                                              "seconds more for a job that has run before"};

inline constexpr OptionSpec kGuardLateOption{"guard_late", OptionSpec::Kind::kNumber, "0",
                                             "1: it counts from the decision after that on"};

// `ordering` itself where option `guard` is 0.
[[nodiscard]] std::unique_ptr<Ordering> Guarded(std::unique_ptr<Ordering> ordering,
                                                const Options& options);

// How an entry makes an ordering of class `T` with such a guard.
template <typename T>
[[nodiscard]] Result<Components> MakeGuarded(const Options& options,
                                             const ComponentContext& context) {
  Result<Components> made = base::MakeOf<T>(options, context);
  made.value().ordering = Guarded(std::move(made.value().ordering), options);
  return made;
}

}  // namespace trainyard::policies
