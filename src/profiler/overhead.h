// SPDX-License-Identifier: Apache-2.0
// What it costs in time to start a job, to stop it, to go on from its checkpoint, and to go on with
// another number of GPUs or elsewhere (ElasticFlow, ASPLOS'23, figure 12b).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "profiler/measurement.h"
#include "profiler/subject.h"
#include "trainyard/status.h"

namespace trainyard::profiler {

// Seconds in which the job does not train: an iteration's own time is taken off.
struct ChangeTimes {
  int from = 0;  // GPUs before; 0: it is started
  int to = 0;    // and afterwards; as many as before: it goes on elsewhere, or later
  Estimate seconds{};
  Estimate stop_s{};  // of that, from the notice to the end of the last process; 0: of a start
};

// From so many GPUs, 0: not at all, to so many.
using Changes = std::vector<std::pair<int, int>>;

// A start on each number of GPUs, going on with as many, and with the next more and the next fewer
// of `gpus`. REQUIRES: `gpus` ascends.
[[nodiscard]] Changes ChangesAmong(const std::vector<int>& gpus);

// Errors: those of the measurements; the script leaves no checkpoint when it is given notice.
[[nodiscard]] Result<std::vector<ChangeTimes>> MeasureOverhead(const Subject& subject,
                                                               const Changes& changes,
                                                               Measurer& measurer);

// The preset FOLDER/overhead.toml: `sound` with these costs of the model (docs/presets.md), and
// FOLDER/changes.csv, each change by itself. Costs of other models that are there stay. Errors: it
// cannot be read or written.
[[nodiscard]] Status WriteOverhead(const std::string& folder, const std::string& model,
                                   const std::vector<ChangeTimes>& changes);

}  // namespace trainyard::profiler
