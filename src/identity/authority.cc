// SPDX-License-Identifier: Apache-2.0
#include "identity/authority.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/try.h"
#include "identity/door.h"
#include "identity/secret_file.h"

namespace trainyard::identity {
namespace {

constexpr std::size_t kNonceBytes = 16;
constexpr std::size_t kClusterBytes = 8;

// The id of the cluster, made at the first start.
Result<std::string> ClusterOf(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) {
    return ReadSecretFile(path);
  }
  std::string made = ToHex(RandomBytes(kClusterBytes));
  RETURN_IF_ERROR(WriteSecretFile(path, made));
  return made;
}

}  // namespace

Authority::Authority(AuthorityOptions options, KeyPair key, std::string cluster)
    : options_(std::move(options)), key_(std::move(key)), cluster_(std::move(cluster)) {}

Result<std::unique_ptr<Authority>> Authority::Open(AuthorityOptions options) {
  if (mkdir(options.folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return Failed(fmt::format("{}: cannot be made: {}", options.folder,
                              std::generic_category().message(errno)));
  }
  ASSIGN_OR_RETURN(KeyPair key, KeyPair::OpenOrMake(options.folder + "/signing.pem"));
  RETURN_IF_ERROR(WritePublicFile(options.folder + "/signing.pub", PublicKeyPem(key.public_key())));
  ASSIGN_OR_RETURN(std::string cluster, ClusterOf(options.folder + "/cluster"));
  return std::unique_ptr<Authority>(
      new Authority(std::move(options), std::move(key), std::move(cluster)));
}

double Authority::Now() const {
  return options_.now
             ? options_.now()
             : std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                   .count();
}

v1::Caller::Role Authority::RoleOf(uid_t uid, const std::string& user) const {
  const auto names = [&user](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), user) != list.end();
  };
  if (uid == 0 || uid == geteuid() || names(options_.admins)) {
    return v1::Caller::ADMIN;
  }
  return names(options_.operators) ? v1::Caller::OPERATOR : v1::Caller::USER;
}

Result<std::string> Authority::TokenFor(uid_t uid) const {
  const std::string user = UserName(uid);
  if (!options_.all_users && uid != 0 && uid != geteuid()) {
    return Failed(fmt::format(
        "this controller serves only {}, who runs it, and you are {}; expected a cluster of your "
        "own ('trainyard up --listen 127.0.0.1:PORT'), or a controller with --users all",
        UserName(geteuid()), user));
  }
  v1::TokenClaims claims;
  v1::Caller& caller = *claims.mutable_caller();
  caller.set_uid(uid);
  caller.set_user(user);
  caller.set_role(RoleOf(uid, user));
  caller.set_by("socket");
  claims.set_issued(Now());
  claims.set_expires(claims.issued() + Seconds(options_.token_life));
  claims.set_cluster(cluster_);
  claims.set_nonce(RandomBytes(kNonceBytes));
  return SignToken(key_, claims);
}

Result<v1::Caller> Authority::CallerOf(std::string_view token) const {
  ASSIGN_OR_RETURN(
      const v1::TokenClaims claims,
      ReadToken(token, {.public_key = key_.public_key(), .cluster = cluster_, .now = Now()}));
  return claims.caller();
}

bool Authority::MayBeAgent(const v1::Caller& caller) {
  return caller.uid() == 0 || caller.uid() == geteuid();
}

std::string Authority::LocalAnswer(uid_t uid) const {
  v1::LocalAccess access;
  if (Result<std::string> token = TokenFor(uid); token.ok()) {
    access.set_token(std::move(token).value());
  } else {
    access.set_error(token.error().message);
  }
  return access.SerializeAsString();
}

}  // namespace trainyard::identity
