// SPDX-License-Identifier: Apache-2.0
#include "identity/certificates.h"

#include <gtest/gtest.h>

#include "identity/authority.h"
#include "io/file.h"
#include "support/scratch_folder.h"

namespace trainyard::identity {
namespace {

constexpr double kNow = 1.8e9;

CertificateTerms NodeTerms(const std::string& node) {
  return {.name = std::string(kNodePrefix) + node,
          .as = CertifiedAs::kNode,
          .now = kNow,
          .life_s = 3600};
}

TEST(CertificatesTest, SayWhatTheTermsSay) {
  const CertifiedKey authority = NewAuthority("c1", kNow);
  const Result<std::string> request = RequestFor(NewCertificateKey());
  ASSERT_TRUE(request.ok());
  const Result<std::string> made = Certify(authority, request.value(), NodeTerms("n0"));
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Result<CertificateFacts> facts = FactsOf(made.value());
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts.value().name, "node:n0");
  EXPECT_EQ(facts.value().ends, kNow + 3600);
  EXPECT_EQ(facts.value().begins, kNow - 60);
  const auto again = Certify(authority, request.value(), NodeTerms("n0"));
  EXPECT_NE(FactsOf(again.value()).value().serial, facts.value().serial);
}

TEST(CertificatesTest, RequestsThatAreNoneAreRefused) {
  const CertifiedKey authority = NewAuthority("c1", kNow);
  EXPECT_FALSE(Certify(authority, "", NodeTerms("n0")).ok());
  std::string request = RequestFor(NewCertificateKey()).value();
  request[request.size() / 2] = request[request.size() / 2] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(Certify(authority, request, NodeTerms("n0")).ok());
  EXPECT_FALSE(RequestFor("no key").ok());
  EXPECT_FALSE(FactsOf("no certificate").ok());
}

TEST(CertificatesTest, NamesThatDoNotFitAreRefused) {
  const std::string request = RequestFor(NewCertificateKey()).value();
  const CertifiedKey authority = NewAuthority("c1", kNow);
  EXPECT_TRUE(Certify(authority, request, NodeTerms(std::string(kMostNodeName, 'n'))).ok());
  EXPECT_FALSE(Certify(authority, request, NodeTerms(std::string(kMostNodeName + 1, 'n'))).ok());
}

TEST(CertificatesTest, AFingerprintIsOfOneAuthority) {
  const CertifiedKey one = NewAuthority("c1", kNow);
  EXPECT_EQ(Fingerprint(one.certificate), Fingerprint("text before\n" + one.certificate));
  EXPECT_NE(Fingerprint(one.certificate), Fingerprint(NewAuthority("c1", kNow).certificate));
  EXPECT_EQ(Fingerprint("none"), "");
}

// ------------------------------------------------------------------- nodes and users of a cluster

class BookTest : public testing::Test {
 protected:
  BookTest() : authority_(Open()) {}
  std::unique_ptr<Authority> Open() {
    auto opened = Authority::Open({.folder = folder_.path() + "/identity",
                                   .all_users = true,
                                   .operators = {"olga"},
                                   .now = [this] { return now_; }});
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }
  static v1::Caller Somebody(v1::Caller::Role role) {
    v1::Caller caller;
    caller.set_uid(7);
    caller.set_user("eve");
    caller.set_role(role);
    return caller;
  }
  // What an admin gets; empty and a failed test if it is refused.
  v1::ManageReply Manage(const v1::ManageRequest& request) {
    auto reply = authority_->Manage(Somebody(v1::Caller::ADMIN), request);
    EXPECT_TRUE(reply.ok()) << reply.error().message;
    return reply.ok() ? reply.value() : v1::ManageReply();
  }
  std::string NodeToken(const std::string& node) {
    v1::ManageRequest request;
    request.mutable_node_token()->set_node(node);
    const std::string shown = Manage(request).secret();
    EXPECT_EQ(shown.substr(shown.find('.') + 1), Fingerprint(authority_->certificate()));
    return shown.substr(0, shown.find('.'));
  }
  Result<v1::CertificateReply> Join(const std::string& secret, const std::string& node) {
    v1::JoinRequest request;
    request.set_secret(secret);
    request.set_node(node);
    request.set_request(RequestFor(NewCertificateKey()).value());
    return authority_->Join(request);
  }
  std::string AddUser(const std::string& user, std::uint32_t uid) {
    v1::ManageRequest request;
    request.mutable_add_user()->set_user(user);
    request.mutable_add_user()->set_uid(uid);
    const std::string shown = Manage(request).secret();
    return shown.substr(0, shown.find('.'));
  }
  Result<std::string> Buy(const std::string& secret) {
    v1::BuyRequest request;
    request.set_secret(secret);
    return authority_->Sell(request);
  }

  ScratchFolder folder_;
  double now_ = kNow;
  std::unique_ptr<Authority> authority_;
};

TEST_F(BookTest, ANodeJoinsByItsTokenOnce) {
  const std::string secret = NodeToken("n0");
  const auto joined = Join(secret, "n0");
  ASSERT_TRUE(joined.ok()) << joined.error().message;
  EXPECT_EQ(authority_->NodeOf(joined.value().certificate()).value(), "n0");
  EXPECT_EQ(joined.value().authority(), authority_->certificate());
  EXPECT_FALSE(Join(secret, "n0").ok());
}

TEST_F(BookTest, ATokenIsUsedOnceThoughTheControllerIsKilledInBetween) {
  const std::string secret = NodeToken("n0");
  ASSERT_TRUE(Join(secret, "n0").ok());
  authority_ = Open();
  EXPECT_FALSE(Join(secret, "n0").ok());
}

TEST_F(BookTest, ATokenIsOfOneNodeAndOfItsTime) {
  const std::string secret = NodeToken("n0");
  EXPECT_FALSE(Join(secret, "n1").ok());
  EXPECT_FALSE(Join("", "n0").ok());
  EXPECT_FALSE(Join(secret + "0", "n0").ok());
  now_ += 3601;
  EXPECT_FALSE(Join(secret, "n0").ok());
}

TEST_F(BookTest, ARefusedRequestDoesNotUseTheTokenUp) {
  const std::string secret = NodeToken("n0");
  v1::JoinRequest request;
  request.set_secret(secret);
  request.set_node("n0");
  request.set_request("nothing");
  EXPECT_FALSE(authority_->Join(request).ok());
  EXPECT_TRUE(Join(secret, "n0").ok());
}

TEST_F(BookTest, ARevokedCertificateIsNoneFromThenOn) {
  const std::string certificate = Join(NodeToken("n0"), "n0").value().certificate();
  v1::ManageRequest request;
  request.mutable_revoke()->set_name("n0");
  Manage(request);
  EXPECT_FALSE(authority_->NodeOf(certificate).ok());
  authority_ = Open();
  EXPECT_FALSE(authority_->NodeOf(certificate).ok());
  EXPECT_FALSE(authority_->Manage(Somebody(v1::Caller::ADMIN), request).ok());  // again
  EXPECT_TRUE(Join(NodeToken("n0"), "n0").ok());
}

TEST_F(BookTest, RevokingTakesTokensBackThatAreNotUsedYet) {
  const std::string secret = NodeToken("n0");
  v1::ManageRequest request;
  request.mutable_revoke()->set_name("n0");
  Manage(request);
  EXPECT_FALSE(Join(secret, "n0").ok());
}

TEST_F(BookTest, TheControllersCertificateIsNotThatOfANode) {
  v1::RenewRequest request;
  request.set_request(RequestFor(NewCertificateKey()).value());
  EXPECT_TRUE(authority_->Renew("n0", request).ok());
  const CertifiedKey authority = NewAuthority("c1", kNow);
  const auto own =
      Certify(authority, request.request(), {.name = kControllerName, .now = kNow, .life_s = 60});
  EXPECT_FALSE(authority_->NodeOf(own.value()).ok());
  // Of another authority, though the name is right.
  EXPECT_FALSE(
      authority_->NodeOf(Certify(authority, request.request(), NodeTerms("n0")).value()).ok());
}

TEST_F(BookTest, ALoginBuysTokensUntilItIsRemoved) {
  const std::string secret = AddUser("ann", 1001);
  const Result<std::string> token = Buy(secret);
  ASSERT_TRUE(token.ok()) << token.error().message;
  const Result<v1::Caller> caller = authority_->CallerOf(token.value());
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller.value().user(), "ann");
  EXPECT_EQ(caller.value().uid(), 1001U);
  EXPECT_EQ(caller.value().role(), v1::Caller::USER);
  EXPECT_EQ(caller.value().by(), "login");
  authority_ = Open();
  EXPECT_TRUE(Buy(secret).ok());
  EXPECT_FALSE(Buy("").ok());
  EXPECT_FALSE(Buy(secret.substr(1)).ok());
  v1::ManageRequest request;
  request.mutable_remove_user()->set_name("ann");
  Manage(request);
  EXPECT_FALSE(Buy(secret).ok());
}

TEST_F(BookTest, ALoginHasTheRoleThatTheConfigurationGivesUnlessAnotherIsNamed) {
  const auto role_of = [this](const std::string& user, v1::Caller::Role named) {
    v1::ManageRequest request;
    request.mutable_add_user()->set_user(user);
    request.mutable_add_user()->set_uid(1001);
    request.mutable_add_user()->set_role(named);
    return Manage(request).role();
  };
  EXPECT_EQ(role_of("ann", v1::Caller::ROLE_UNSPECIFIED), v1::Caller::USER);
  EXPECT_EQ(role_of("olga", v1::Caller::ROLE_UNSPECIFIED), v1::Caller::OPERATOR);
  EXPECT_EQ(role_of("olga", v1::Caller::USER), v1::Caller::USER);
}

TEST_F(BookTest, TheSameLoginIsNotAddedTwice) {
  v1::ManageRequest request;
  request.mutable_add_user()->set_user("ann");
  request.mutable_add_user()->set_uid(1001);
  Manage(request);
  const auto again = authority_->Manage(Somebody(v1::Caller::ADMIN), request);
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("trainyard user remove ann"), std::string::npos)
      << again.error().message;
  request.mutable_add_user()->set_role(v1::Caller::OPERATOR);
  Manage(request);
}

TEST_F(BookTest, ALoginWithoutARoleOfItsOwnHasWhatTheConfigurationGivesNow) {
  const std::string token = Buy(AddUser("olga", 1001)).value();
  EXPECT_EQ(authority_->CallerOf(token).value().role(), v1::Caller::OPERATOR);
  authority_->SetAccess(true, {}, {});
  EXPECT_EQ(authority_->CallerOf(token).value().role(), v1::Caller::USER);
  v1::ManageRequest list;
  list.mutable_list();
  EXPECT_EQ(Manage(list).book().users(0).role(), v1::Caller::USER);
}

TEST_F(BookTest, NoSecretLiesOnTheDisk) {
  const std::string login = AddUser("ann", 1001);
  const std::string node = NodeToken("n0");
  const std::string book = io::ReadBytes(folder_.path() + "/identity/book").value();
  EXPECT_NE(book.find("ann"), std::string::npos);
  EXPECT_EQ(book.find(login), std::string::npos);
  EXPECT_EQ(book.find(node), std::string::npos);
}

TEST_F(BookTest, OnlyAdminsManageAndTheListHasNoHashes) {
  AddUser("ann", 1001);
  NodeToken("n0");
  v1::ManageRequest request;
  request.mutable_list();
  for (const v1::Caller::Role role :
       {v1::Caller::USER, v1::Caller::OPERATOR, v1::Caller::ROLE_UNSPECIFIED}) {
    const auto refused = authority_->Manage(Somebody(role), request);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message,
              "eve (uid 7) may not manage users and nodes; expected an admin");
  }
  const v1::IdentityBook book = Manage(request).book();
  ASSERT_EQ(book.users_size(), 1);
  EXPECT_EQ(book.users(0).hash(), "");
  ASSERT_EQ(book.tokens_size(), 1);
  EXPECT_EQ(book.tokens(0).hash(), "");
  ASSERT_EQ(book.certificates_size(), 2);
  EXPECT_EQ(book.certificates(0).node(), "(controller)");
  EXPECT_EQ(book.certificates(1).node(), "(authority)");
  EXPECT_GT(book.certificates(1).ends(), book.certificates(0).ends());
  ASSERT_EQ(book.changes_size(), 2);
  EXPECT_EQ(book.changes(0).by(), "eve (uid 7)");
  EXPECT_EQ(book.changes(0).what(), "added a login of ann (uid 1001, user)");
  EXPECT_EQ(book.changes(0).at(), kNow);
}

TEST_F(BookTest, NamesThatAreNoneAreRefused) {
  for (const char* name : {"", "a b", "../n0", "n0\n", "n0;rm"}) {
    v1::ManageRequest request;
    request.mutable_node_token()->set_node(name);
    EXPECT_FALSE(authority_->Manage(Somebody(v1::Caller::ADMIN), request).ok()) << name;
  }
}

TEST_F(BookTest, TheControllersOwnCertificateIsMadeAnewInTime) {
  const auto serial = [this] {
    return FactsOf(io::ReadBytes(authority_->tls().certificate).value()).value().serial;
  };
  const std::string first = serial();
  now_ += 86400 * 10;
  ASSERT_TRUE(authority_->RenewOwn().ok());
  EXPECT_EQ(serial(), first);
  now_ += 86400 * 11;
  ASSERT_TRUE(authority_->RenewOwn().ok());
  EXPECT_NE(serial(), first);
}

TEST_F(BookTest, MungeIsTakenOnlyWhereItIsWanted) {
  v1::BuyRequest request;
  request.set_munge("MUNGE:abc:");
  const Result<std::string> refused = authority_->Sell(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("takes no credentials of munge"), std::string::npos);
}

TEST_F(BookTest, NodesOfTheClusterAloneGetTokens) {
  const auto authority = Authority::Open({.folder = folder_.path() + "/named", .nodes = {"n0"}});
  ASSERT_TRUE(authority.ok()) << authority.error().message;
  const auto ask = [&](const std::string& node) {
    v1::ManageRequest request;
    request.mutable_node_token()->set_node(node);
    return authority.value()->Manage(Somebody(v1::Caller::ADMIN), request);
  };
  EXPECT_TRUE(ask("n0").ok());
  EXPECT_EQ(ask("n9").error().message,
            "'n9' is no node of the cluster; expected a name of the controller's cluster file, as "
            "'trainyard nodes' has it");
}

}  // namespace
}  // namespace trainyard::identity
