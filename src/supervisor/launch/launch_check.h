// SPDX-License-Identifier: Apache-2.0
// What a launch needs of its node beside the program that is started first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "supervisor/worker.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// How the attempt would fail if it were launched here: its data set, its virtual environment, Open
// MPI or what torchrun or mpirun are to start is missing. None: nothing is known to speak against
// it. `program` as for LaunchCommand.
[[nodiscard]] std::optional<StartFailure> CheckLaunch(const v1::StartAttempt& start,
                                                      const std::string& program,
                                                      const std::vector<std::string>& environment);

}  // namespace trainyard::supervisor
