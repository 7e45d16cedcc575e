// SPDX-License-Identifier: Apache-2.0
// The one authenticator of a cluster: owns its keys and the book of its users and nodes, says who
// may have a token or a certificate, and reads tokens.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "identity/certificates.h"
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
  std::vector<std::string> nodes{};    // that may join; empty: any
  std::optional<std::string> munge{};  // munged's socket, empty: its usual one; none: no munge
  Duration token_life = std::chrono::minutes(10);
  Duration certificate_life = std::chrono::hours(24 * 30);
  std::function<double()> now{};  // seconds since 1970; empty: the clock's
  // Told of each change of the book, with who made it. May be empty.
  std::function<void(const std::string& line)> log{};
};

// The files of the controller's certificate, for a server that watches them.
struct TlsFiles {
  std::string key;
  std::string certificate;  // with that of the authority behind it
  std::string authority;
};

// Thread-safe.
class Authority {
 public:
  // Reads keys, certificates and book of the folder, or makes them.
  [[nodiscard]] static Result<std::unique_ptr<Authority>> Open(AuthorityOptions options);

  [[nodiscard]] const std::string& cluster() const { return cluster_; }
  [[nodiscard]] const KeyPair& key() const { return key_; }
  // The certificate of the cluster's authority, PEM.
  [[nodiscard]] const std::string& certificate() const { return authority_.certificate; }
  [[nodiscard]] TlsFiles tls() const;

  // A token for a local process of that user. Error: it is not served, with the reason.
  [[nodiscard]] Result<std::string> TokenFor(uid_t uid) const;
  // A token for who has the secret of a login or a credential of munge. Errors: it is not known,
  // or not taken here.
  [[nodiscard]] Result<std::string> Sell(const v1::BuyRequest& request) const;
  // Who has the token, with the role that the user has now, whatever it was when the token was
  // issued. Errors: those of ReadToken; the login that has bought it has ended; the user is not
  // served any more.
  [[nodiscard]] Result<v1::Caller> CallerOf(std::string_view token) const;
  // Whether somebody may speak for a node without a certificate: the controller's own user, root.
  [[nodiscard]] static bool MayBeAgent(const v1::Caller& caller);
  // The node that has the certificate. Error: it is none of a node, or is revoked.
  [[nodiscard]] Result<std::string> NodeOf(std::string_view certificate) const;
  // What the door answers to a process of that user. `tls`: calls must come by TLS.
  [[nodiscard]] std::string LocalAnswer(uid_t uid, bool tls) const;

  // A certificate for the node that the secret is of, once. Errors: the secret is not known, used,
  // too old or of another node.
  [[nodiscard]] Result<v1::CertificateReply> Join(const v1::JoinRequest& request);
  // Another one for a node that has one.
  [[nodiscard]] Result<v1::CertificateReply> Renew(const std::string& node,
                                                   const v1::RenewRequest& request);
  // What admins may do; each change is in the book, with who made it. Errors: the caller is none;
  // what is asked for cannot be.
  [[nodiscard]] Result<v1::ManageReply> Manage(const v1::Caller& caller,
                                               const v1::ManageRequest& request);
  // Makes the controller's own certificate anew if less than a third of its life is left; the
  // server sees the files change. Error: they cannot be written.
  [[nodiscard]] Status RenewOwn();
  // Whom it serves and who may do more, from now on: AuthorityOptions' fields of these names.
  void SetAccess(bool all_users, std::vector<std::string> operators,
                 std::vector<std::string> admins);
  // The nodes that may join from now on.
  void SetNodes(std::vector<std::string> nodes);

 private:
  Authority(AuthorityOptions options, KeyPair key, std::string cluster);
  [[nodiscard]] std::string Path(const char* name) const { return options_.folder + "/" + name; }
  [[nodiscard]] double Now() const;
  // What --operators and --admins say.
  [[nodiscard]] v1::Caller::Role ConfiguredRole(const std::string& user) const;
  [[nodiscard]] v1::Caller::Role RoleOf(uid_t uid, const std::string& user) const;
  [[nodiscard]] v1::Caller::Role RoleOf(const v1::IdentityBook::User& login) const;
  [[nodiscard]] Status CheckServed(uid_t uid) const;
  [[nodiscard]] std::string Signed(v1::Caller caller, const std::string& login = {}) const;
  // None: the login that has bought the token has ended.
  [[nodiscard]] std::optional<v1::Caller::Role> RoleOfLogin(const v1::TokenClaims& claims) const;
  [[nodiscard]] Status OpenCertificates();
  void AddOwn(v1::IdentityBook& book) const;
  // All below: with mutex_ held.
  [[nodiscard]] Result<v1::CertificateReply> CertifyNode(const std::string& node,
                                                         const std::string& request);
  [[nodiscard]] Status Change(const v1::Caller& caller, const v1::ManageRequest& request,
                              v1::ManageReply& reply);
  [[nodiscard]] Status Note(const std::string& by, const std::string& what);
  [[nodiscard]] Status Save();

  AuthorityOptions options_;           // whom it serves: with access_mutex_ held
  mutable std::mutex access_mutex_{};  // the inner one where both are held
  const KeyPair key_;
  const std::string cluster_;
  CertifiedKey authority_;
  mutable std::mutex mutex_;
  v1::IdentityBook book_;
};

}  // namespace trainyard::identity
