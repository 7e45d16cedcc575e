// SPDX-License-Identifier: Apache-2.0
// How a client or an agent gets to its controller, and by what it proves who it is.
#pragma once

#include <string>

#include "trainyard/status.h"

namespace trainyard::rpc {

struct RouteOptions {
  // The controller's local socket: a path, or '@' and a name. Empty: TRAINYARD_CONTROLLER_SOCKET;
  // without it, for an address of loopback, the one that belongs to the port.
  std::string socket{};
};

struct Route {
  std::string address;
  std::string token;  // empty: none is to be had
};

// Asks anew each time. Errors: the socket belongs to a stranger, or the controller serves others.
[[nodiscard]] Result<Route> FindRoute(const std::string& address, const RouteOptions& options);

// Whether HOST:PORT is of this machine alone.
[[nodiscard]] bool IsLoopback(const std::string& address);

}  // namespace trainyard::rpc
