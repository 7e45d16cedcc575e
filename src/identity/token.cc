// SPDX-License-Identifier: Apache-2.0
#include "identity/token.h"

#include <fmt/core.h>

#include "base/try.h"

namespace trainyard::identity {
namespace {

// Signed before the claims, so that no other thing that the key signs passes for a token.
constexpr std::string_view kPurpose = "trainyard token 1\n";
// The clock may have been put back by so much since the token was issued.
constexpr double kClockSlack = 60;

Error Refused(std::string_view why, std::string_view expected) {
  return Failed(fmt::format("{}; expected {}", why, expected));
}

constexpr std::string_view kAnother = "another one: run the command again, or 'trainyard login'";

}  // namespace

std::string SignToken(const KeyPair& key, const v1::TokenClaims& claims) {
  const std::string bytes = claims.SerializeAsString();
  return ToHex(bytes) + "." + ToHex(key.Sign(std::string(kPurpose) + bytes));
}

Result<v1::TokenClaims> ReadToken(std::string_view token, const TokenCheck& check) {
  if (token.empty()) {
    return Refused("the call has no token",
                   "one from the controller's socket, from munge or of 'trainyard login'");
  }
  const std::size_t dot = token.find('.');
  if (token.size() > kMostTokenBytes || dot == std::string_view::npos) {
    return Refused("the token is malformed", kAnother);
  }
  const std::string bytes = FromHex(token.substr(0, dot));
  const std::string signature = FromHex(token.substr(dot + 1));
  if (!Verify(check.public_key, std::string(kPurpose) + bytes, signature)) {
    return Refused("the token is not signed by this controller", kAnother);
  }
  v1::TokenClaims claims;
  if (!claims.ParseFromString(bytes)) {
    return Refused("the token is malformed", kAnother);
  }
  if (claims.cluster() != check.cluster) {
    return Refused("the token is of another cluster", kAnother);
  }
  if (!(check.now < claims.expires()) || !(check.now > claims.issued() - kClockSlack)) {
    return Refused("the token has expired", kAnother);
  }
  if (claims.caller().user().empty() || RoleName(claims.caller().role()) == "nobody") {
    return Refused("the token names no user with a role", kAnother);
  }
  return claims;
}

std::string NameOf(const v1::Caller& caller) {
  return fmt::format("{} (uid {})", caller.user(), caller.uid());
}

std::string_view RoleName(v1::Caller::Role role) {
  switch (role) {
    case v1::Caller::USER:
      return "user";
    case v1::Caller::OPERATOR:
      return "operator";
    case v1::Caller::ADMIN:
      return "admin";
    default:
      return "nobody";
  }
}

Result<v1::Caller::Role> RoleNamed(std::string_view name) {
  for (const v1::Caller::Role role : {v1::Caller::USER, v1::Caller::OPERATOR, v1::Caller::ADMIN}) {
    if (RoleName(role) == name) {
      return role;
    }
  }
  return InvalidArgument(fmt::format("'{}' is no role; expected user, operator or admin", name));
}

}  // namespace trainyard::identity
