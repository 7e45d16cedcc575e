// SPDX-License-Identifier: Apache-2.0
#include "identity/authority.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/try.h"
#include "identity/door.h"
#include "identity/munge.h"
#include "identity/secret_file.h"
#include "io/file.h"

namespace trainyard::identity {
namespace {

constexpr std::size_t kNonceBytes = 16;
constexpr std::size_t kClusterBytes = 8;
constexpr double kNodeTokenLife = 3600;
constexpr int kMostChanges = 1000;

// What the words of a secret are that somebody is shown: itself, and by what its holder knows the
// right controller.
std::string WithFingerprint(const std::string& secret, const std::string& certificate) {
  return secret + "." + Fingerprint(certificate);
}

bool IsAllowedName(const std::string& name) {
  constexpr std::string_view kMarks = "-_.";
  return !name.empty() && name.size() <= kMostNodeName &&
         std::all_of(name.begin(), name.end(), [&kMarks](unsigned char c) {
           return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != kMarks.npos;
         });
}

// Removes those that `is` holds for; how many they were.
template <typename List, typename Is>
int RemoveFrom(List& list, Is is) {
  int removed = 0;
  for (int i = list.size() - 1; i >= 0; --i) {
    if (is(list.Get(i))) {
      list.DeleteSubrange(i, 1);
      ++removed;
    }
  }
  return removed;
}

// By what tokens name the login that has bought them. Nothing of its secret can be learnt from it.
std::string LoginId(const v1::IdentityBook::User& user) {
  constexpr std::size_t kDigits = 16;
  return HashOfSecret(user.hash()).substr(0, kDigits);
}

Status CheckNode(const std::vector<std::string>& nodes, const std::string& node) {
  return nodes.empty() || std::find(nodes.begin(), nodes.end(), node) != nodes.end()
             ? Status()
             : InvalidArgument(fmt::format("'{}' is no node of the cluster; expected a name of the "
                                           "controller's cluster file, as 'trainyard nodes' has it",
                                           node));
}

// The id of the cluster, made at the first start.
Result<std::string> ClusterOf(const std::string& path) {
  if (access(path.c_str(), F_OK) == 0) {
    return ReadSecretFile(path);
  }
  std::string made = ToHex(RandomBytes(kClusterBytes));
  RETURN_IF_ERROR(WriteSecretFile(path, made));
  return made;
}

// An error where the book has the same login already.
Status CheckNewLogin(const v1::IdentityBook& book, const v1::ManageRequest::AddUser& add) {
  const bool is_known =
      std::any_of(book.users().begin(), book.users().end(), [&add](const auto& user) {
        return user.user() == add.user() && user.uid() == add.uid() && user.role() == add.role();
      });
  return is_known
             ? Status(Failed(fmt::format(
                   "'{0}' (uid {1}) has this login already; its secret serves on several machines; "
                   "for another secret end the logins first: trainyard user remove {0}",
                   add.user(), add.uid())))
             : Status();
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
  std::unique_ptr<Authority> authority(
      new Authority(std::move(options), std::move(key), std::move(cluster)));
  RETURN_IF_ERROR(authority->OpenCertificates());
  return authority;
}

// The authority, the book and the controller's own certificate.
Status Authority::OpenCertificates() {
  const bool is_there = access(Path("ca.crt").c_str(), F_OK) == 0;
  if (!is_there) {
    const CertifiedKey made = NewAuthority(cluster_, Now());
    RETURN_IF_ERROR(WriteSecretFile(Path("ca.pem"), made.key));
    RETURN_IF_ERROR(WritePublicFile(Path("ca.crt"), made.certificate));
  }
  ASSIGN_OR_RETURN(authority_.key, ReadSecretFile(Path("ca.pem")));
  ASSIGN_OR_RETURN(authority_.certificate, io::ReadBytes(Path("ca.crt")));
  if (access(Path("book").c_str(), F_OK) == 0) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadSecretFile(Path("book")));
    if (!book_.ParseFromString(bytes)) {
      return BadInput(Path("book") +
                      ": cannot be understood; expected the file as a controller has written it");
    }
  }
  return RenewOwn();
}

TlsFiles Authority::tls() const {
  return {.key = Path("controller.pem"),
          .certificate = Path("controller.crt"),
          .authority = Path("ca.crt")};
}

Status Authority::RenewOwn() {
  const std::lock_guard lock(mutex_);
  const double life = Seconds(options_.certificate_life);
  const Result<std::string> old = io::ReadBytes(Path("controller.crt"));
  const Result<CertificateFacts> facts =
      old.ok() ? FactsOf(old.value()) : Result<CertificateFacts>(old.error());
  if (facts.ok() && facts.value().ends - Now() > life / 3) {
    return {};
  }
  const std::string key = NewCertificateKey();
  ASSIGN_OR_RETURN(const std::string request, RequestFor(key));
  ASSIGN_OR_RETURN(
      const std::string certificate,
      Certify(
          authority_, request,
          {.name = kControllerName, .as = CertifiedAs::kController, .now = Now(), .life_s = life}));
  // A server that reads between the two finds a pair that does not match, and keeps what it has.
  RETURN_IF_ERROR(WriteSecretFile(Path("controller.pem"), key));
  return WritePublicFile(Path("controller.crt"), certificate + authority_.certificate);
}

double Authority::Now() const {
  return options_.now
             ? options_.now()
             : std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                   .count();
}

v1::Caller::Role Authority::ConfiguredRole(const std::string& user) const {
  const std::lock_guard lock(access_mutex_);
  const auto names = [&user](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), user) != list.end();
  };
  return names(options_.admins)      ? v1::Caller::ADMIN
         : names(options_.operators) ? v1::Caller::OPERATOR
                                     : v1::Caller::USER;
}

v1::Caller::Role Authority::RoleOf(uid_t uid, const std::string& user) const {
  return uid == 0 || uid == geteuid() ? v1::Caller::ADMIN : ConfiguredRole(user);
}

// Without a role of its own it has what the options give to its name.
v1::Caller::Role Authority::RoleOf(const v1::IdentityBook::User& login) const {
  return login.role() == v1::Caller::ROLE_UNSPECIFIED ? ConfiguredRole(login.user()) : login.role();
}

void Authority::SetAccess(bool all_users, std::vector<std::string> operators,
                          std::vector<std::string> admins) {
  const std::lock_guard lock(access_mutex_);
  options_.all_users = all_users;
  options_.operators = std::move(operators);
  options_.admins = std::move(admins);
}

void Authority::SetNodes(std::vector<std::string> nodes) {
  const std::lock_guard lock(mutex_);
  options_.nodes = std::move(nodes);
}

// Of a process of this machine.
Status Authority::CheckServed(uid_t uid) const {
  const std::lock_guard lock(access_mutex_);
  if (!options_.all_users && uid != 0 && uid != geteuid()) {
    return Failed(fmt::format(
        "this controller serves only {}, who runs it, and you are {}; expected a cluster of your "
        "own ('trainyard up --listen 127.0.0.1:PORT'), or a controller with --users all",
        UserName(geteuid()), UserName(uid)));
  }
  return {};
}

Result<std::string> Authority::TokenFor(uid_t uid) const {
  RETURN_IF_ERROR(CheckServed(uid));
  const std::string user = UserName(uid);
  v1::Caller caller;
  caller.set_uid(uid);
  caller.set_user(user);
  caller.set_role(RoleOf(uid, user));
  caller.set_by("socket");
  return Signed(std::move(caller));
}

std::string Authority::Signed(v1::Caller caller, const std::string& login) const {
  v1::TokenClaims claims;
  claims.set_login(login);
  *claims.mutable_caller() = std::move(caller);
  claims.set_issued(Now());
  claims.set_expires(claims.issued() + Seconds(options_.token_life));
  claims.set_cluster(cluster_);
  claims.set_nonce(RandomBytes(kNonceBytes));
  return SignToken(key_, claims);
}

Result<std::string> Authority::Sell(const v1::BuyRequest& request) const {
  v1::Caller caller;
  if (request.has_munge()) {
    if (!options_.munge) {
      return Failed(
          "this controller takes no credentials of munge; expected 'trainyard login', or "
          "a controller with --munge");
    }
    ASSIGN_OR_RETURN(const uid_t uid, ReadMungeCredential(request.munge(), *options_.munge));
    caller.set_uid(uid);
    caller.set_user(UserName(uid));
    caller.set_role(RoleOf(uid, caller.user()));
    caller.set_by("munge");
    return Signed(std::move(caller));
  }
  const std::string hash = HashOfSecret(request.secret());
  const std::lock_guard lock(mutex_);
  for (const v1::IdentityBook::User& user : book_.users()) {
    if (SameBytes(user.hash(), hash)) {
      caller.set_uid(user.uid());
      caller.set_user(user.user());
      caller.set_role(RoleOf(user));
      caller.set_by("login");
      return Signed(std::move(caller), LoginId(user));
    }
  }
  return Failed(
      "the login is not known to the controller; expected one that 'trainyard user add' "
      "has made and 'trainyard user remove' has not ended");
}

Result<v1::Caller> Authority::CallerOf(std::string_view token) const {
  ASSIGN_OR_RETURN(
      const v1::TokenClaims claims,
      ReadToken(token, {.public_key = key_.public_key(), .cluster = cluster_, .now = Now()}));
  v1::Caller caller = claims.caller();
  if (caller.by() == "login") {
    const std::optional<v1::Caller::Role> role = RoleOfLogin(claims);
    if (!role) {
      return Failed(NameOf(caller) +
                    " has no login any more; expected 'trainyard login' with a new token");
    }
    caller.set_role(*role);
    return caller;
  }
  if (caller.by() == "munge" && !options_.munge) {
    return Failed(NameOf(caller) +
                  " has proved who it is by munge, which this controller takes no more; expected "
                  "'trainyard login', or a controller with --munge");
  }
  if (caller.by() == "socket") {
    RETURN_IF_ERROR(CheckServed(caller.uid()));
  }
  caller.set_role(RoleOf(caller.uid(), caller.user()));
  return caller;
}

std::optional<v1::Caller::Role> Authority::RoleOfLogin(const v1::TokenClaims& claims) const {
  const std::lock_guard lock(mutex_);
  const auto& users = book_.users();
  const auto found = std::find_if(users.begin(), users.end(), [&claims](const auto& user) {
    return LoginId(user) == claims.login();
  });
  return found == users.end() ? std::nullopt : std::optional(RoleOf(*found));
}

bool Authority::MayBeAgent(const v1::Caller& caller) {
  return caller.uid() == 0 || caller.uid() == geteuid();
}

std::string Authority::LocalAnswer(uid_t uid, bool tls) const {
  v1::LocalAccess access;
  access.set_authority(tls ? authority_.certificate : std::string());
  if (Result<std::string> token = TokenFor(uid); token.ok()) {
    access.set_token(std::move(token).value());
  } else {
    access.set_error(token.error().message);
  }
  return access.SerializeAsString();
}

// ------------------------------------------------------------------------------------------- nodes

Result<std::string> Authority::NodeOf(std::string_view certificate) const {
  ASSIGN_OR_RETURN(const CertificateFacts facts, FactsOf(certificate));
  if (!facts.name.starts_with(kNodePrefix)) {
    return Failed(fmt::format("the certificate of '{}' is not that of a node", facts.name));
  }
  const std::lock_guard lock(mutex_);
  for (const v1::IdentityBook::Certificate& one : book_.certificates()) {
    if (one.serial() == facts.serial && !one.revoked()) {
      return facts.name.substr(kNodePrefix.size());
    }
  }
  return Failed(fmt::format(
      "the certificate {} of '{}' is revoked or of another time of this cluster; expected one that "
      "'trainyard certs' lists (a new 'trainyard node token', and the agent's --join-token-file)",
      facts.serial, facts.name));
}

Result<v1::CertificateReply> Authority::CertifyNode(const std::string& node,
                                                    const std::string& request) {
  const double life = Seconds(options_.certificate_life);
  ASSIGN_OR_RETURN(std::string certificate, Certify(authority_, request,
                                                    {.name = std::string(kNodePrefix) + node,
                                                     .as = CertifiedAs::kNode,
                                                     .now = Now(),
                                                     .life_s = life}));
  ASSIGN_OR_RETURN(const CertificateFacts facts, FactsOf(certificate));
  RemoveFrom(*book_.mutable_certificates(),
             [now = Now()](const auto& one) { return one.ends() < now; });
  v1::IdentityBook::Certificate& kept = *book_.add_certificates();
  kept.set_node(node);
  kept.set_serial(facts.serial);
  kept.set_begins(facts.begins);
  kept.set_ends(facts.ends);
  v1::CertificateReply reply;
  reply.set_certificate(std::move(certificate));
  reply.set_authority(authority_.certificate);
  return reply;
}

Result<v1::CertificateReply> Authority::Join(const v1::JoinRequest& request) {
  const std::string hash = HashOfSecret(request.secret());
  const std::lock_guard lock(mutex_);
  const bool is_good =
      std::any_of(book_.tokens().begin(), book_.tokens().end(), [&](const auto& token) {
        return SameBytes(token.hash(), hash) && token.node() == request.node() &&
               Now() < token.expires();
      });
  if (!is_good) {
    return Failed(fmt::format(
        "the token does not let node '{}' join: it is used, too old, of another node or none; "
        "expected one of 'trainyard node token {}'",
        request.node(), request.node()));
  }
  ASSIGN_OR_RETURN(v1::CertificateReply reply, CertifyNode(request.node(), request.request()));
  RemoveFrom(*book_.mutable_tokens(),
             [&](const auto& token) { return token.hash() == hash || token.expires() < Now(); });
  RETURN_IF_ERROR(Note("node " + request.node(), "joined"));
  return reply;
}

Result<v1::CertificateReply> Authority::Renew(const std::string& node,
                                              const v1::RenewRequest& request) {
  const std::lock_guard lock(mutex_);
  ASSIGN_OR_RETURN(v1::CertificateReply reply, CertifyNode(node, request.request()));
  RETURN_IF_ERROR(Note("node " + node, "renewed its certificate"));
  return reply;
}

// ------------------------------------------------------------------------------------------ manage

Result<v1::ManageReply> Authority::Manage(const v1::Caller& caller,
                                          const v1::ManageRequest& request) {
  if (caller.role() != v1::Caller::ADMIN) {
    return Failed(NameOf(caller) + " may not manage users and nodes; expected an admin");
  }
  const std::lock_guard lock(mutex_);
  v1::ManageReply reply;
  RETURN_IF_ERROR(Change(caller, request, reply));
  if (request.kind_case() == v1::ManageRequest::kList) {
    *reply.mutable_book() = book_;
    AddOwn(*reply.mutable_book());
    for (v1::IdentityBook::User& user : *reply.mutable_book()->mutable_users()) {
      user.clear_hash();
      user.set_role(RoleOf(user));
    }
    for (v1::IdentityBook::NodeToken& token : *reply.mutable_book()->mutable_tokens()) {
      token.clear_hash();
    }
  }
  return reply;
}

// For the list: the certificates that are of no node.
void Authority::AddOwn(v1::IdentityBook& book) const {
  const Result<std::string> own = io::ReadBytes(Path("controller.crt"));
  const std::array<std::pair<std::string, std::string>, 2> all{
      {{"(controller)", own.ok() ? own.value() : std::string()},
       {"(authority)", authority_.certificate}}};
  for (const auto& [name, pem] : all) {
    if (const Result<CertificateFacts> facts = FactsOf(pem); facts.ok()) {
      v1::IdentityBook::Certificate& one = *book.add_certificates();
      one.set_node(name);
      one.set_serial(facts.value().serial);
      one.set_begins(facts.value().begins);
      one.set_ends(facts.value().ends);
    }
  }
}

Status Authority::Change(const v1::Caller& caller, const v1::ManageRequest& request,
                         v1::ManageReply& reply) {
  const std::string by = NameOf(caller);
  const auto check = [](const std::string& name) {
    return IsAllowedName(name)
               ? Status()
               : InvalidArgument(fmt::format("'{}' is no name; expected letters, digits, '-', '_' "
                                             "and '.', at most {}",
                                             name, kMostNodeName));
  };
  switch (request.kind_case()) {
    case v1::ManageRequest::kNodeToken: {
      RETURN_IF_ERROR(check(request.node_token().node()));
      RETURN_IF_ERROR(CheckNode(options_.nodes, request.node_token().node()));
      const std::string secret = NewSecret();
      v1::IdentityBook::NodeToken& token = *book_.add_tokens();
      token.set_node(request.node_token().node());
      token.set_hash(HashOfSecret(secret));
      const double life = request.node_token().life_s();
      token.set_expires(Now() + (life > 0 ? life : kNodeTokenLife));
      reply.set_secret(WithFingerprint(secret, authority_.certificate));
      return Note(by, "made a token for node " + token.node());
    }
    case v1::ManageRequest::kAddUser: {
      const v1::ManageRequest::AddUser& add = request.add_user();
      RETURN_IF_ERROR(check(add.user()));
      RETURN_IF_ERROR(CheckNewLogin(book_, add));
      const std::string secret = NewSecret();
      v1::IdentityBook::User& user = *book_.add_users();
      user.set_user(add.user());
      user.set_uid(add.uid());
      user.set_role(add.role());
      reply.set_role(RoleOf(user));
      user.set_hash(HashOfSecret(secret));
      reply.set_secret(WithFingerprint(secret, authority_.certificate));
      return Note(by, fmt::format("added a login of {} (uid {}, {})", user.user(), user.uid(),
                                  RoleName(reply.role())));
    }
    case v1::ManageRequest::kRemoveUser: {
      const std::string& name = request.remove_user().name();
      const int removed = RemoveFrom(*book_.mutable_users(),
                                     [&name](const auto& user) { return user.user() == name; });
      return removed == 0 ? Status(Failed(fmt::format("'{}' has no login", name)))
                          : Note(by, "removed the logins of " + name);
    }
    case v1::ManageRequest::kRevoke: {
      const std::string& node = request.revoke().name();
      int revoked = 0;
      for (v1::IdentityBook::Certificate& one : *book_.mutable_certificates()) {
        revoked += one.node() == node && !one.revoked() ? 1 : 0;
        one.set_revoked(one.revoked() || one.node() == node);
      }
      revoked += RemoveFrom(*book_.mutable_tokens(),
                            [&node](const auto& token) { return token.node() == node; });
      return revoked == 0 ? Status(Failed(fmt::format("node '{}' has no certificate", node)))
                          : Note(by, "revoked the certificates of node " + node);
    }
    case v1::ManageRequest::kList:
      return {};
    case v1::ManageRequest::KIND_NOT_SET:
      return InvalidArgument("an empty request");
  }
  return {};
}

Status Authority::Note(const std::string& by, const std::string& what) {
  v1::IdentityBook::Change& change = *book_.add_changes();
  change.set_by(by);
  change.set_at(Now());
  change.set_what(what);
  if (book_.changes_size() > kMostChanges) {
    book_.mutable_changes()->DeleteSubrange(0, book_.changes_size() - kMostChanges);
  }
  RETURN_IF_ERROR(Save());
  if (options_.log) {
    options_.log(by + " " + what);
  }
  return {};
}

Status Authority::Save() { return WriteSecretFile(Path("book"), book_.SerializeAsString()); }

}  // namespace trainyard::identity
