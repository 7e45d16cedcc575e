// SPDX-License-Identifier: Apache-2.0
// The signals that clients may send to a job or a session.
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::service {

inline constexpr const char* kPassedSignals = "HUP, INT, QUIT, USR1, USR2, TERM or CONT";

// By its name, with or without SIG, or its number; 0: it is none of these.
[[nodiscard]] int SignalNamed(std::string_view text);
// "SIGINT"; of one that is none of these "signal 64".
[[nodiscard]] std::string SignalText(int signal);
// Error: it may not be sent.
[[nodiscard]] Status CheckSignal(int signal);

}  // namespace trainyard::service
