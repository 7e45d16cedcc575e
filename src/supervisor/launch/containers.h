// SPDX-License-Identifier: Apache-2.0
// What is left of an attempt's containers when its processes are gone.
#pragma once

#include <string>
#include <vector>

#include "supervisor/attempt_folder.h"
#include "trainyard/live.pb.h"

namespace trainyard::supervisor {

// What was killed cannot have removed its container. Others are gone, and that is found out. Waits
// for podman, for 20 s at most. REQUIRES: this process has one thread.
void RemoveContainers(const v1::StartAttempt& start, const AttemptFolder& folder,
                      const std::vector<std::string>& environment);

}  // namespace trainyard::supervisor
