// SPDX-License-Identifier: Apache-2.0
#include "rpc/route.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "identity/door.h"
#include "identity/munge.h"
#include "identity/secret_file.h"
#include "io/file.h"
#include "rpc/address.h"
#include "rpc/identity_calls.h"
#include "trainyard/identity.pb.h"

namespace trainyard::rpc {
namespace {

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

int LocalPortOf(const std::string& address) {
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

// By the local socket; none: nobody listens there.
Result<std::optional<Route>> ByDoor(const std::string& address, const RouteOptions& options) {
  std::string socket =
      options.socket.empty() ? FromEnvironment("TRAINYARD_CONTROLLER_SOCKET") : options.socket;
  const bool chosen = !socket.empty();
  if (!chosen && !IsLoopback(address) && !IsThisMachine(address)) {
    return std::optional<Route>();
  }
  socket = chosen ? socket : identity::DoorName(LocalPortOf(address));
  ASSIGN_OR_RETURN(const std::optional<identity::DoorReply> reply, identity::Knock(socket));
  if (!reply) {
    return std::optional<Route>();
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
  return std::optional(
      Route{.address = address, .token = access.token(), .authority = access.authority()});
}

Result<Route> ByCertificate(const std::string& address, const std::string& folder) {
  Route route{.address = address};
  ASSIGN_OR_RETURN(route.authority, io::ReadBytes(folder + kNodeAuthority));
  // Key and certificate in one file, so that they are of one another.
  ASSIGN_OR_RETURN(const std::string pair, identity::ReadSecretFile(folder + kNodeKey));
  const std::size_t begin = std::min(pair.find("-----BEGIN CERTIFICATE"), pair.size());
  route.key = pair.substr(0, begin);
  route.certificate = pair.substr(begin);
  return route;
}

Result<Route> ByLogin(const std::string& address, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, identity::ReadSecretFile(path));
  v1::Login login;
  if (!login.ParseFromString(bytes)) {
    return BadInput(path + ": is no login; expected 'trainyard login' to have written it");
  }
  Route route{.address = address, .token = {}, .authority = login.authority()};
  v1::BuyRequest request;
  request.set_secret(login.secret());
  ASSIGN_OR_RETURN(route.token, BuyToken(route, request));
  return route;
}

Result<Route> ByMunge(const std::string& address, const std::string& authority) {
  Route route{.address = address};
  ASSIGN_OR_RETURN(route.authority, io::ReadBytes(authority));
  v1::BuyRequest request;
  ASSIGN_OR_RETURN(*request.mutable_munge(),
                   identity::MakeMungeCredential(FromEnvironment("TRAINYARD_MUNGE_SOCKET")));
  ASSIGN_OR_RETURN(route.token, BuyToken(route, request));
  return route;
}

}  // namespace

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

Result<Route> FindRoute(const std::string& address, const RouteOptions& options) {
  const auto exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; };
  if (!options.identity_folder.empty() && exists(options.identity_folder + kNodeCertificate)) {
    return ByCertificate(address, options.identity_folder);
  }
  ASSIGN_OR_RETURN(std::optional<Route> local, ByDoor(address, options));
  if (local) {
    return *std::move(local);
  }
  if (const std::string login = LoginFile(address); exists(login)) {
    return ByLogin(address, login);
  }
  if (const std::string authority = FromEnvironment("TRAINYARD_CA"); !authority.empty()) {
    return ByMunge(address, authority);
  }
  if (IsLoopback(address) || IsThisMachine(address)) {
    Route route{.address = address};
    route.nobody = !options.trusts_port;
    return route;
  }
  if (const Status status = CheckHost(address); !status.ok()) {
    return Failed(fmt::format(
        "the host of the controller at {} is not known here ({}); expected --controller "
        "HOST[:PORT], or TRAINYARD_CONTROLLER, with a host that there is",
        address, status.error().message));
  }
  return Failed(fmt::format(
      "nothing proves to the controller at {} who you are; expected 'trainyard login --controller "
      "{} --token-file FILE' once, munge with TRAINYARD_CA, or an agent with --join-token-file",
      address, address));
}

}  // namespace trainyard::rpc
