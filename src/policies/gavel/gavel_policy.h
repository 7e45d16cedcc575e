// SPDX-License-Identifier: Apache-2.0
// What the policies of Gavel (Narayanan et al., OSDI'20) have in common: shares of each job's time
// on each type of GPU, by an optimum over the whole cluster, and rounds that serve these shares.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "policies/gavel/allocation_problem.h"
#include "policies/gavel/problem_of.h"
#include "policies/gavel/time_sharing.h"
#include "trainyard/component_entry.h"

namespace trainyard::policies {

inline constexpr OptionSpec kGavelRound{
    "round", OptionSpec::Kind::kNumber, "360",
    "seconds: how long a job that is served keeps its GPUs at least"};
inline constexpr OptionSpec kGavelTypes{
    "types", OptionSpec::Kind::kChoice, "aware",
    "blind: all types of GPU count alike, as fast as the fastest one for the job", "aware|blind"};
inline constexpr OptionSpec kGavelPacked{
    "packed", OptionSpec::Kind::kChoice, "0",
    "1: two jobs may share GPUs, where the profiles say how fast both are", "0|1"};
inline constexpr std::array<OptionSpec, 1> kGavelRoundOnly{kGavelRound};
inline constexpr std::array<OptionSpec, 3> kGavelOptions{kGavelRound, kGavelTypes, kGavelPacked};

struct GavelSettings {
  Duration round{0};
  bool blind = false;      // of types
  bool packed = false;     // with pairs
  bool deadlines = false;  // of MostThroughput
  std::map<std::string, double> prices{};
};

using GavelSolve = Allocation (*)(const GavelSettings& settings, ProblemOf& of,
                                  TimeSharingMemory& memory);

// Of the option `round`. Errors: it is too short.
[[nodiscard]] Result<GavelSettings> GavelSettingsOf(std::string_view name, const Options& options);
// `name` must live as long as the program.
[[nodiscard]] Components GavelComponents(std::string_view name, GavelSolve solve,
                                         GavelSettings settings);
// Of a policy with kGavelOptions (ComponentEntry::goes_by_with).
[[nodiscard]] ComponentEntry::GoesBy GavelGoesBy(const Options& options);
// Both, of a policy with kGavelOptions.
[[nodiscard]] Result<Components> MakeGavel(std::string_view name, GavelSolve solve,
                                           const Options& options);

}  // namespace trainyard::policies
