// SPDX-License-Identifier: Apache-2.0
// One decision of Synergy's mechanisms (OSDI'22): how much CPU, memory and storage bandwidth each
// gang gets beside its GPUs, and where.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "placements/synergy_books.h"
#include "trainyard/component.h"

namespace trainyard::placements {

enum class Mechanism : std::uint8_t {
  kProportional,  // each gang the share that comes with its GPUs
  kGreedy,        // each gang its whole demand, or no place
  kTune,  // its demand; else its share; else what neighbours hold beyond theirs is taken back
  kLend,  // its demand, which other nodes lend if its own lack it: an upper bound, no plan
  kFill,  // the smaller of demand and share; what is left goes to gangs that want more
};

struct SynergyRules {
  Mechanism mechanism = Mechanism::kTune;
  bool consolidate = false;  // in one node if possible, the fullest; else the first GPUs with room
  bool keep = false;         // jobs that hold GPUs keep them
};

// What placing anew takes over from the last time: no gang's place depends on those behind
// it, but for what kTune takes back from neighbours, which is undone.
class SynergyRound {
 public:
  // Every GPU of a gang gets the same. Under kTune and kFill every placed job gets at least the
  // smaller of its demand and its proportional share.
  void Place(const SynergyRules& rules, const PackRequest& ask, std::vector<Slices>& slices);

 private:
  // A gang has found its place, or one that had a place has given something back.
  struct Step {
    std::size_t demand = 0;  // for whom
    std::size_t gang = 0;
    Resources wants{};  // before; of one that gave back
    // Of one that gave back: the gangs on its nodes before, in order.
    std::vector<std::pair<NodeId, std::vector<std::size_t>>> on{};
  };
  class Turn;

  void Begin(const SynergyRules& rules, const PackRequest& ask);
  void UndoFrom(std::size_t demand);

  std::optional<SynergyBooks> books_;
  std::vector<Step> steps_;
  std::vector<std::size_t> gave_;  // gangs that gave back or got back, in this turn
  std::size_t first_ = 0;          // the first demand of this turn; the others are placed
};

}  // namespace trainyard::placements
