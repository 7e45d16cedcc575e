// SPDX-License-Identifier: Apache-2.0
// What policy chronus shares with the published Chronus, its options, and what it has promised.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/chronus/lease_planner.h"
#include "trainyard/component.h"
#include "trainyard/options.h"

namespace trainyard::policies {

// Which objective the first lease of a plan has; kAdaptive: it is left to others if there were jobs
// that were not accepted at the last lease start, or were not since.
enum class LeaseObjective : std::uint8_t { kAdaptive, kFill, kSpare };

inline constexpr OptionSpec kLeaseObjectiveOption{
    "objective", OptionSpec::Kind::kChoice, "adaptive",
    "the lease that starts is filled (maximize), left to others (minimize), or left to others "
    "while jobs wait that were not accepted",
    "adaptive|maximize|minimize"};
inline constexpr OptionSpec kLeaseSolverOption{
    "solver", OptionSpec::Kind::kChoice, "rescue",
    "integer programs are solved where the rules find no plan (rescue), wherever theirs is not "
    "proven to be optimal (always), or never",
    "rescue|always|never"};
inline constexpr OptionSpec kLeaseNodesOption{"nodes", OptionSpec::Kind::kNumber, "500",
                                              "most nodes of one integer program"};

[[nodiscard]] inline LeaseObjective LeaseObjectiveOf(const Options& options) {
  const std::string& text = options.Text("objective");
  return text == "maximize"   ? LeaseObjective::kFill
         : text == "minimize" ? LeaseObjective::kSpare
                              : LeaseObjective::kAdaptive;
}

[[nodiscard]] inline LeasePlannerOptions LeasePlannerOptionsOf(const Options& options) {
  const std::string& solver = options.Text("solver");
  return {.solver = solver == "always"  ? SolverUse::kImprove
                    : solver == "never" ? SolverUse::kNever
                                        : SolverUse::kRescue,
          .node_limit = static_cast<int>(std::clamp(options.Number("nodes"), 0.0, 1e9))};
}

struct LeasePromise {
  JobId job{};
  std::optional<TimePoint> deadline;  // none: not accepted
};

// For tests: the promises to the jobs that were live at the last decision. REQUIRES: a memory of
// `chronus`, plan=events.
[[nodiscard]] std::vector<LeasePromise> PromisesOf(const Memory& memory);

}  // namespace trainyard::policies
