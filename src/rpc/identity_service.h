// SPDX-License-Identifier: Apache-2.0
// The service by which users and nodes prove who they are.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "identity/authority.h"

namespace grpc {
class ServerContextBase;
class Service;
}  // namespace grpc

namespace trainyard::rpc {

// `authority` must outlive it. `log` hears what is refused; may be empty. `changed` is called after
// each change of the book of users and nodes, before its caller has the answer.
[[nodiscard]] std::unique_ptr<grpc::Service> MakeIdentityService(
    identity::Authority& authority, std::function<void(const std::string& line)> log,
    std::function<void()> changed);

// The certificate that the peer has proved to have, PEM; empty: none.
[[nodiscard]] std::string PeerCertificate(const grpc::ServerContextBase& context);
// What proves who makes the call; empty: nothing.
[[nodiscard]] std::string TokenOf(const grpc::ServerContextBase& context);

}  // namespace trainyard::rpc
