// SPDX-License-Identifier: Apache-2.0
// What was run, in names: the parts that a reader has to be told of beside a run's label.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/metrics/run_result.h"

namespace trainyard::results {

// Those of sound mode; a run with them need not say so.
inline constexpr std::string_view kUsualPlacement = "consolidated";
inline constexpr std::string_view kUsualAdmission = "all";

struct RunSetting {
  std::string name;  // "placement", "grouping"
  std::string value;
  bool operator==(const RunSetting&) const = default;
};

// The preset as it was asked for; of a user's file with the first digits of its digest, too.
[[nodiscard]] std::string PresetText(const RunResult& run);

// Likewise, of the file of changes.
[[nodiscard]] std::string ChangesText(const RunResult& run);

// What differs from sound mode, in the order in which a decision asks: the policy where the label
// is another text, what a selector chooses among (of many only how many), placement, admission,
// grouping, tuning, changes, preset. Of a published program only its name is known, as "program".
[[nodiscard]] std::vector<RunSetting> SettingsOf(const RunResult& run);

// One line for what all runs share and one for each run with more, without a line end after the
// last: "all runs: placement spread". Empty if no run differs from sound mode. Nothing of published
// programs, which are named with their own tables (PublishedTable).
[[nodiscard]] std::string SettingsText(std::span<const RunResult> runs);

}  // namespace trainyard::results
