// SPDX-License-Identifier: Apache-2.0
// Gangs on leases: intervals of equal length, in which a job holds all its GPUs or none. Whether
// jobs that want so many leases before their deadlines fit together. (Chronus, SoCC'21.) Leases are
// numbered from the first that is still to be given out.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace trainyard::policies {

// A job that wants any `need` of the next `window` leases; they need not follow one another.
struct LeaseDemand {
  int gpus = 1;
  int need = 1;
  int window = 0;
};

using Leases = std::vector<int>;  // ascending

// Free GPUs by lease; beyond the last one as many as the last has.
using LeaseCapacity = std::vector<int>;

// As many leases as `window` reaches at most: the capacity that the functions below need.
[[nodiscard]] int Horizon(std::span<const LeaseDemand> demands);

// The leases of each demand, or nothing if the rule finds no packing. What is not packed by one
// rule may be by the other. REQUIRES: capacity is not empty.

// Large gangs first, then those with the least slack; each takes the latest leases it can get, so
// that what is early stays free. The check that Chronus admits jobs by.
[[nodiscard]] std::optional<std::vector<Leases>> PackLatestFirst(
    std::span<const LeaseDemand> demands, LeaseCapacity capacity);

// From the last lease to the first, those with the least slack first. Finds a packing whenever
// there is one if all gangs have one size: with time reversed the demands have one deadline.
[[nodiscard]] std::optional<std::vector<Leases>> PackLeastSlackFirst(
    std::span<const LeaseDemand> demands, LeaseCapacity capacity);

// Those with the least slack first; each takes the leases with most free GPUs, the later of equals:
// what stays free is spread out, so that urgent jobs still find leases one after the other.
[[nodiscard]] std::optional<std::vector<Leases>> PackEvenly(std::span<const LeaseDemand> demands,
                                                            LeaseCapacity capacity);

// The smallest window, at least `demands.back().window` and its need, with which the last demand
// makes the whole pass PackLatestFirst; nothing if none does. By bisection, as if a larger window
// never did harm.
[[nodiscard]] std::optional<int> SmallestWindow(std::vector<LeaseDemand> demands,
                                                const LeaseCapacity& capacity);

}  // namespace trainyard::policies
