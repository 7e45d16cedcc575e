// SPDX-License-Identifier: Apache-2.0
// Addresses as users write them: HOST:PORT, IPv6 addresses in brackets ([::1]:7077).
#pragma once

#include <string>
#include <string_view>

#include "trainyard/status.h"

namespace trainyard::rpc {

inline constexpr int kDefaultPort = 7077;

// Where a controller is to listen, as it is. Port 0: any that is free. Errors name the option.
[[nodiscard]] Status CheckListenAddress(std::string_view option, std::string_view text);

// Where a controller is, with the default port where the text has none.
[[nodiscard]] Result<std::string> ControllerAddress(std::string_view option, std::string_view text);

// Error, as the resolver says it: the host of HOST:PORT cannot be found.
[[nodiscard]] Status CheckHost(const std::string& address);

// Whether HOST:PORT is an address of this machine, by any of its names. Asks the resolver.
[[nodiscard]] bool IsThisMachine(const std::string& address);

}  // namespace trainyard::rpc
