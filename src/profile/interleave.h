// SPDX-License-Identifier: Apache-2.0
// How long an iteration takes when jobs interleave on the same GPUs: the members of a group go
// through their stages (data loading, GPU, network) in lock-step, each stage on another resource,
// so that one iteration of the group is one iteration of every member (Muri, SIGCOMM'22, as its
// published simulator computes it).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "trainyard/job.h"

namespace trainyard::profile {

inline constexpr std::size_t kMostInterleaved = 4;  // jobs in a group

// Of all orders in which the members can take their turns.
enum class StageOrder : std::uint8_t { kBest, kWorst };

// Positions in the cycle of phases, by member: `positions[i]` is that of group[i].
struct Interleaving {
  double seconds = 0;  // of one iteration, without what sharing itself costs
  std::array<std::uint8_t, kMostInterleaved> positions{};
};

// The interleaving of 2 to kMostInterleaved jobs. Each stage has a phase of its own in the cycle;
// of three stages the first may fill two of four phases, if `long_loading`. REQUIRES: the members
// have equally many stages, and there are no more members than phases.
[[nodiscard]] Interleaving Interleave(std::span<const StageTimes* const> group, StageOrder order,
                                      bool long_loading = true);

// Group times as a run counts them, kept by the multiset of stage profiles.
class GroupTimes {
 public:
  struct Rules {
    StageOrder order = StageOrder::kBest;
    bool long_loading = true;  // see Interleave
    // What sharing itself costs: the time of a group of n is multiplied by slowdown[n - 1].
    std::array<double, kMostInterleaved> slowdown{1, 1, 1, 1};
    // Jobs that yield (AntMan) may be faster than the resources that are left to them allow.
    bool published_gaps = false;
  };
  explicit GroupTimes(const Rules& rules) : rules_(rules) {}

  // Seconds of one iteration; of a single job its own. REQUIRES: as Interleave.
  [[nodiscard]] double Of(std::span<const StageTimes* const> group);

 private:
  using Profiles = std::array<std::uint32_t, kMostInterleaved>;  // ascending; unused: last

  [[nodiscard]] std::uint32_t ProfileOf(const StageTimes& job);

  Rules rules_;
  std::map<std::vector<double>, std::uint32_t> profiles_;
  std::map<Profiles, double> seconds_;
};

}  // namespace trainyard::profile
