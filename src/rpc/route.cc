// SPDX-License-Identifier: Apache-2.0
#include "rpc/route.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "base/text.h"
#include "base/try.h"
#include "identity/door.h"
#include "trainyard/identity.pb.h"

namespace trainyard::rpc {
namespace {

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

int PortOf(const std::string& address) {
  return static_cast<int>(base::ToNumber(address.substr(address.rfind(':') + 1)).value_or(0));
}

// A socket that anybody may have made must be of somebody whose controller may know what is
// submitted: this user, root, or the user of the package.
Status CheckOwner(uid_t owner, const std::string& address) {
  const std::string named = FromEnvironment("TRAINYARD_CONTROLLER_USER");
  const std::optional<uid_t> service =
      identity::UserId(named.empty() ? std::string("trainyard") : named);
  if (owner == 0 || owner == geteuid() || owner == service) {
    return {};
  }
  return Failed(fmt::format(
      "the controller at {} is run by {}, not by you, root or 'trainyard'; expected a controller "
      "of your own or of this machine (if {} runs the cluster for everybody, set "
      "TRAINYARD_CONTROLLER_USER={})",
      address, identity::UserName(owner), identity::UserName(owner), identity::UserName(owner)));
}

}  // namespace

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

Result<Route> FindRoute(const std::string& address, const RouteOptions& options) {
  Route route{.address = address, .token = {}};
  std::string socket =
      options.socket.empty() ? FromEnvironment("TRAINYARD_CONTROLLER_SOCKET") : options.socket;
  const bool chosen = !socket.empty();
  if (!chosen && !IsLoopback(address)) {
    return route;
  }
  socket = chosen ? socket : identity::DoorName(PortOf(address));
  ASSIGN_OR_RETURN(const std::optional<identity::DoorReply> reply, identity::Knock(socket));
  if (!reply) {
    return route;
  }
  if (!chosen) {
    RETURN_IF_ERROR(CheckOwner(reply->uid, address));
  }
  v1::LocalAccess access;
  if (!access.ParseFromString(reply->bytes)) {
    return Failed(
        fmt::format("the socket '{}' gives no token that can be read; expected that of "
                    "a controller of the same version",
                    socket));
  }
  if (!access.error().empty()) {
    return Failed(access.error());
  }
  route.token = access.token();
  return route;
}

}  // namespace trainyard::rpc
