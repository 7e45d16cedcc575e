// SPDX-License-Identifier: Apache-2.0
// A file that is to be submitted as a script.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::requests {

// Its text, or why it cannot be a script (kInvalidArgument). What comes through a pipe is gone
// then.
[[nodiscard]] Result<std::string> ScriptText(const std::string& path);

// Of a script of which the job gets no copy. Error: it is not there any more when the job starts.
[[nodiscard]] Status CheckStays(const std::string& path);

// What lies below /dev and /proc is another file for each process.
[[nodiscard]] std::string RealPath(const std::string& path);

}  // namespace trainyard::requests
