// SPDX-License-Identifier: Apache-2.0
// How long the attempts of a node may run without a word from the controller: kept in a file, so
// that supervisors know it while no agent is there.
#pragma once

#include <optional>
#include <string>

#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard {

struct Lease {
  Duration end{0};    // of the time since the machine has started, sleep included
  Duration grace{0};  // from the notice to the kill when it is over
};

// Since the machine has started, sleep included: all processes of it read the same.
[[nodiscard]] Duration TimeSinceBoot();

[[nodiscard]] Status WriteLease(const std::string& state_folder, const Lease& lease);
// None: nobody has set one, or it cannot be read.
[[nodiscard]] std::optional<Lease> ReadLease(const std::string& state_folder);

}  // namespace trainyard
