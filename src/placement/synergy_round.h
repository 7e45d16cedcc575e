// SPDX-License-Identifier: Apache-2.0
// One decision of Synergy's mechanisms (OSDI'22): who gets how much CPU, memory and storage
// bandwidth beside his GPUs, and where.
#pragma once

#include <span>
#include <vector>

#include "trainyard/component.h"

namespace trainyard {

enum class Mechanism : std::uint8_t {
  kProportional,  // everyone the share that comes with his GPUs
  kGreedy,        // everyone his whole demand, or no place
  kTune,  // his demand; else his share; else what neighbours hold beyond theirs is taken back
  kLend,  // his demand, which other nodes lend if his own lack it: an upper bound, no plan
  kFill,  // the smaller of demand and share; what is left goes to those who want more
};

struct SynergyRules {
  Mechanism mechanism = Mechanism::kTune;
  bool consolidate = false;  // in one node if possible, the fullest; else the first GPUs with room
  bool keep = false;         // kFill: jobs that hold GPUs keep them
};

// For each demand its slices, none where it finds no place. Every GPU of a gang gets the same.
// Under kTune and kFill every placed job gets at least the smaller of its demand and its
// proportional share. REQUIRES: no GPU that is up is taken.
[[nodiscard]] std::vector<Slices> PlaceRound(const SynergyRules& rules, const FreeGpus& free,
                                             std::span<const Demand> demands, const JobTable& jobs);

}  // namespace trainyard
