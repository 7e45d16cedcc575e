// SPDX-License-Identifier: Apache-2.0
// How a job's command names the script that goes with it.
#pragma once

namespace trainyard::supervisor {

// A word of a job's command that stands for the copy of its script (LaunchSpec::Batch), and the
// name of this file in the attempt's folder.
inline constexpr const char* kScriptWord = "{the script}";
inline constexpr const char* kScript = "script";

}  // namespace trainyard::supervisor
