// SPDX-License-Identifier: Apache-2.0
// Tokens: who somebody is, for a short while, signed by the controller. Their text is
// "HEX OF THE CLAIMS.HEX OF THE SIGNATURE".
#pragma once

#include <string>
#include <string_view>

#include "identity/keys.h"
#include "trainyard/identity.pb.h"
#include "trainyard/status.h"

namespace trainyard::identity {

// Longer than any that is issued.
inline constexpr std::size_t kMostTokenBytes = 4096;

[[nodiscard]] std::string SignToken(const KeyPair& key, const v1::TokenClaims& claims);

// What a token must be.
struct TokenCheck {
  std::string public_key;  // of the controller
  std::string cluster;
  double now = 0;  // seconds since 1970
};

// What the token says. Errors, each with what to do: no token; not signed by this controller; of
// another cluster; expired, or from the future; without a user or a role.
[[nodiscard]] Result<v1::TokenClaims> ReadToken(std::string_view token, const TokenCheck& check);

// "ann (uid 1001)"
[[nodiscard]] std::string NameOf(const v1::Caller& caller);
// "user", "operator", "admin"; unspecified: "nobody".
[[nodiscard]] std::string_view RoleName(v1::Caller::Role role);
// Error: there is no such role.
[[nodiscard]] Result<v1::Caller::Role> RoleNamed(std::string_view name);

}  // namespace trainyard::identity
