// SPDX-License-Identifier: Apache-2.0
// Backfilling: a job that finds no place gets a reservation, and those behind it start where they
// do not delay it. D. Lifka, "The ANL/IBM SP scheduling system", JSSPP'95 (EASY); D. Tsafrir, Y.
// Etsion, D. Feitelson, TPDS 18(6), 2007 (the shortest first).
#pragma once

#include <span>

#include "scheduler/packing.h"
#include "scheduler/queue/standings.h"
#include "scheduler/walk.h"

namespace trainyard::scheduler {

// The walk of Misfit::kReserve. `list`: the live jobs in their order. Running jobs keep their GPUs,
// and are in `packing`; those that start are added. O(jobs log jobs), a copy of the packing for
// each reservation, and a place for each job that has enough free GPUs.
[[nodiscard]] Selection Backfill(std::span<const Ranked> list, const Standings& standings,
                                 TimePoint now, Packing& packing);

}  // namespace trainyard::scheduler
