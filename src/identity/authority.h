// SPDX-License-Identifier: Apache-2.0
// The one authenticator of a cluster: owns its keys, says who may have a token, and reads tokens.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "identity/keys.h"
#include "identity/token.h"
#include "trainyard/identity.pb.h"
#include "trainyard/status.h"
#include "trainyard/time.h"

namespace trainyard::identity {

struct AuthorityOptions {
  std::string folder;  // of this controller; made if need be
  // Whom it serves: everybody, or the user whose process it is, and root.
  bool all_users = false;
  // Names of users. Root and the controller's own user are admins.
  std::vector<std::string> operators{};
  std::vector<std::string> admins{};
  Duration token_life = std::chrono::minutes(10);
  std::function<double()> now{};  // seconds since 1970; empty: the clock's
};

// Thread-safe.
class Authority {
 public:
  // Reads the keys of the folder, or makes them.
  [[nodiscard]] static Result<std::unique_ptr<Authority>> Open(AuthorityOptions options);

  [[nodiscard]] const std::string& cluster() const { return cluster_; }
  [[nodiscard]] const KeyPair& key() const { return key_; }

  // A token for a local process of that user. Error: it is not served, with the reason.
  [[nodiscard]] Result<std::string> TokenFor(uid_t uid) const;
  // Who has the token. Errors: those of ReadToken.
  [[nodiscard]] Result<v1::Caller> CallerOf(std::string_view token) const;
  // Whether somebody may speak for a node without a certificate: the controller's own user, root.
  [[nodiscard]] static bool MayBeAgent(const v1::Caller& caller);
  // What the door answers to a process of that user.
  [[nodiscard]] std::string LocalAnswer(uid_t uid) const;

 private:
  Authority(AuthorityOptions options, KeyPair key, std::string cluster);
  [[nodiscard]] double Now() const;
  [[nodiscard]] v1::Caller::Role RoleOf(uid_t uid, const std::string& user) const;

  const AuthorityOptions options_;
  const KeyPair key_;
  const std::string cluster_;
};

}  // namespace trainyard::identity
