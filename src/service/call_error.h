// SPDX-License-Identifier: Apache-2.0
// Errors of calls as messages carry them: with the numbers of gRPC's status codes.
#pragma once

#include <string>

#include "trainyard/live.pb.h"
#include "trainyard/status.h"

namespace trainyard::service {

// The number of the code; those of a program are FAILED_PRECONDITION, wrong usage apart.
[[nodiscard]] int NumberOf(ErrorCode code);
// The code of that number; kFailed: none has it.
[[nodiscard]] ErrorCode CodeOf(int number);

[[nodiscard]] v1::CallError MessageOf(const Error& error);

}  // namespace trainyard::service
