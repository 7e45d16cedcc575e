// SPDX-License-Identifier: Apache-2.0
// The policies of the published Gavel (OSDI'20) by their names there, with what they keep from one
// solve to the next and with their defects. The optima are those of src/policies/gavel.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "originals/gavel/gavel_mechanism.h"

namespace trainyard::originals {

// "finish_time_fairness_perf" and so on, sorted.
[[nodiscard]] std::vector<std::string_view> GavelPolicyNames();

struct GavelPolicy {
  GavelRules rules;
  GavelSolver solve;
};
// `types`: names of the GPU types, in alphabetical order. None: there is no such policy.
[[nodiscard]] std::optional<GavelPolicy> FindGavelPolicy(std::string_view name,
                                                         const std::vector<std::string>& types);

}  // namespace trainyard::originals
