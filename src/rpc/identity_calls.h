// SPDX-License-Identifier: Apache-2.0
// What clients and nodes ask the controller about who they are.
#pragma once

#include <string>

#include "rpc/route.h"
#include "trainyard/identity.pb.h"
#include "trainyard/status.h"

namespace trainyard::rpc {

// The names of a node's files in its identity folder.
inline constexpr char kNodeKey[] = "/node.pem";
inline constexpr char kNodeCertificate[] = "/node.crt";
inline constexpr char kNodeAuthority[] = "/ca.crt";

// A token over a route that has none. Errors: what the controller says.
[[nodiscard]] Result<std::string> BuyToken(const Route& route, const v1::BuyRequest& request);

// Makes a key, has it certified as the node's by the one-time secret, and writes key, certificate
// and authority into the folder. Errors: another controller, or what it says.
[[nodiscard]] Status JoinCluster(const std::string& address, const std::string& secret,
                                 const std::string& node, const std::string& folder);
// Has a new key certified over the present certificate of the folder, and replaces both.
[[nodiscard]] Status RenewNode(const std::string& address, const std::string& folder);

// Keeps the secret of a login for this user, after trying it.
[[nodiscard]] Status LogIn(const std::string& address, const std::string& secret);
// The file that keeps it.
[[nodiscard]] std::string LoginFile(const std::string& address);

[[nodiscard]] Result<v1::ManageReply> Manage(const Route& route, const v1::ManageRequest& request);

}  // namespace trainyard::rpc
