// SPDX-License-Identifier: Apache-2.0
// What a job has used beside GPUs, for people.
#pragma once

#include <string>

#include "trainyard/live.pb.h"

namespace trainyard::cli {

// "48m00s of CPU time of the 1h00m given (80 %); at most 3.1 of 4 GiB of memory, on n1"
[[nodiscard]] std::string UseText(const v1::JobUse& use);

}  // namespace trainyard::cli
