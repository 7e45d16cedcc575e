// SPDX-License-Identifier: Apache-2.0
// Muri's groups (GroupJobs) as demands: for its own policies, and as a grouping for any ordering.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "policies/muri/grouping.h"
#include "trainyard/component.h"
#include "trainyard/options.h"
#include "trainyard/status.h"

namespace trainyard::policies {

inline constexpr std::array<OptionSpec, 5> kInterleaveOptions{{
    {"size", OptionSpec::Kind::kNumber, "4", "jobs in a group at most: 1 to 4"},
    {"match", OptionSpec::Kind::kNumber, "1",
     "0: neighbours in the order are grouped, whatever their stages"},
    {"keep", OptionSpec::Kind::kNumber, "1",
     "1: of equally good groups those that run are kept, which saves restarts"},
    {"split", OptionSpec::Kind::kNumber, "1",
     "1: a group that is slower than its jobs one after another is split up again"},
    {"judge", OptionSpec::Kind::kChoice, "actual",
     "split=1: by the group's time, or by that of the best order although it runs in the worst",
     "actual|best"},
}};

// `owner`: "policy 'x'", for messages. REQUIRES: options of kInterleaveOptions, perhaps among
// others.
[[nodiscard]] Result<GroupingRules> GroupingRulesOf(const Options& options,
                                                    const std::string& owner);

// One for each group that runs, by rank, its members in the order of their stages.
[[nodiscard]] std::vector<Demand> GroupedDemands(const GroupingRules& rules,
                                                 const Snapshot& snapshot,
                                                 std::span<const RankedJob> jobs, NodeRoom room,
                                                 solver::MatchingMemo& memo);

}  // namespace trainyard::policies
