// SPDX-License-Identifier: Apache-2.0
// How a client or an agent gets to its controller, and by what it proves who it is.
#pragma once

#include <string>

#include "trainyard/status.h"

namespace trainyard::rpc {

struct RouteOptions {
  // The controller's local socket: a path, or '@' and a name. Empty: TRAINYARD_CONTROLLER_SOCKET;
  // without it, for an address of this machine, the one that belongs to the port.
  std::string socket{};
  // Of a node: the folder with its certificate, once it has joined. Empty: none.
  std::string identity_folder{};
  // For servers that ask nobody who they are, and so have no socket: calls go to whoever listens.
  bool trusts_port = false;
};

struct Route {
  std::string address;
  std::string token{};        // empty: none is to be had, or the certificate is enough
  std::string authority{};    // whose certificate the controller must have, PEM; empty: no TLS
  std::string certificate{};  // of a node, PEM
  std::string key{};
  bool nobody = false;  // no trusted controller is listening there
};

// The first that there is of: the node's certificate; the controller's local socket; the file of
// 'trainyard login'; munge, where TRAINYARD_CA names the file of the cluster's authority. Asks anew
// each time. A route to nobody: the address is of this machine, and no controller is at the socket;
// who listens at the port may be anybody. Errors: the socket belongs to a stranger; the controller
// serves others; there is none and the address is of another machine.
[[nodiscard]] Result<Route> FindRoute(const std::string& address, const RouteOptions& options);

// Whether HOST:PORT is of this machine alone.
[[nodiscard]] bool IsLoopback(const std::string& address);

}  // namespace trainyard::rpc
