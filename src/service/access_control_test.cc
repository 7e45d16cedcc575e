// SPDX-License-Identifier: Apache-2.0
#include "service/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "identity/certificates.h"
#include "support/scratch_folder.h"

namespace trainyard::service {
namespace {

using testing::HasSubstr;

constexpr uid_t kAnn = 12345;
constexpr uid_t kBen = 12346;

class AccessControlTest : public testing::Test {
 protected:
  AccessControlTest()
      : authority_(std::move(identity::Authority::Open(
                                 {.folder = folder_.path() + "/identity", .all_users = true}))
                       .value()) {}

  [[nodiscard]] Credential TokenOf(uid_t uid) const {
    return {.token = authority_->TokenFor(uid).value()};
  }
  v1::ManageReply Manage(const v1::ManageRequest& request) {
    v1::Caller admin;
    admin.set_user("root");
    admin.set_role(v1::Caller::ADMIN);
    return authority_->Manage(admin, request).value();
  }
  // Of a node that has joined.
  Credential CertificateOf(const std::string& node) {
    v1::ManageRequest invite;
    invite.mutable_node_token()->set_node(node);
    v1::JoinRequest join;
    const std::string secret = Manage(invite).secret();  // "SECRET.FINGERPRINT"
    join.set_secret(secret.substr(0, secret.find('.')));
    join.set_node(node);
    join.set_request(identity::RequestFor(identity::NewCertificateKey()).value());
    return {.token = "", .certificate = authority_->Join(join).value().certificate()};
  }

  ScratchFolder folder_;
  std::unique_ptr<identity::Authority> authority_;
};

TEST_F(AccessControlTest, ATokenSaysWhoCalls) {
  const AccessControl access(authority_.get(), {});
  EXPECT_EQ(access.CallerOf(TokenOf(kAnn)).value()->uid(), kAnn);
  EXPECT_FALSE(access.CallerOf({.token = "guess"}).ok());
}

TEST_F(AccessControlTest, WithoutAnAuthorityEveryCallIsAllowedAndHasNoCaller) {
  const AccessControl access(nullptr, {});
  EXPECT_FALSE(access.CallerOf({}).value().has_value());
  EXPECT_EQ(access.NodeOf({}).value(), "");
  EXPECT_TRUE(access.CheckCall({}).ok());
}

TEST_F(AccessControlTest, ACertificateSpeaksForItsNodeAlone) {
  const AccessControl access(authority_.get(), {});
  const Credential n0 = CertificateOf("n0");
  EXPECT_EQ(access.NodeOf(n0).value(), "n0");
  v1::Hello hello;
  hello.set_node("n0");
  EXPECT_TRUE(AccessControl::CheckHello("n0", hello).ok());
  EXPECT_TRUE(AccessControl::CheckHello("", hello).ok()) << "it may speak for any";
  hello.set_node("n1");
  EXPECT_EQ(AccessControl::CheckHello("n0", hello).error().message,
            "the certificate is that of node 'n0', and the agent says that it is 'n1'");
}

TEST_F(AccessControlTest, WithoutACertificateOnlyTheControllersOwnUserAndRootAreAgents) {
  const AccessControl access(authority_.get(), {});
  EXPECT_EQ(access.NodeOf(TokenOf(geteuid())).value(), "");
  const Result<std::string> node = access.NodeOf(TokenOf(kAnn));
  ASSERT_FALSE(node.ok());
  EXPECT_THAT(node.error().message, HasSubstr("may not join as a node"));
}

TEST_F(AccessControlTest, ARevokedNodeIsServedNoMore) {
  const AccessControl access(authority_.get(), {});
  const Credential n0 = CertificateOf("n0");
  EXPECT_TRUE(access.CheckAgent(n0).ok());
  v1::ManageRequest request;
  request.mutable_revoke()->set_name("n0");
  Manage(request);
  EXPECT_FALSE(access.CheckAgent(n0).ok());
}

TEST_F(AccessControlTest, AUserWhoCallsTooOftenWaitsAndOthersDoNot) {
  AccessControl access(authority_.get(), {.user_calls = {.per_s = 0.5, .burst = 1}});
  const v1::Caller ann = *access.CallerOf(TokenOf(kAnn)).value();
  EXPECT_FALSE(access.CountCall(ann, 10));
  const auto soon = access.CountCall(ann, 10);
  ASSERT_TRUE(soon);
  EXPECT_TRUE(soon->first);
  EXPECT_DOUBLE_EQ(soon->wait_s, 2);
  EXPECT_THAT(soon->error.message,
              HasSubstr("makes more than 0.5 calls per second; try again in 2 s"));
  EXPECT_FALSE(access.CountCall(*access.CallerOf(TokenOf(kBen)).value(), 10));
  const v1::Caller root = *access.CallerOf(TokenOf(0)).value();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(access.CountCall(root, 10)) << "an admin";
  }
  access.SetUserCalls({});
  EXPECT_FALSE(access.CountCall(ann, 10));
}

TEST_F(AccessControlTest, MoreOpenCallsAndAgentsThanTheLimitsAreRefused) {
  const AccessControl access(nullptr, {.max_calls = 2, .max_agents = 1});
  EXPECT_TRUE(access.CheckOpenCalls(1).ok());
  EXPECT_EQ(access.CheckOpenCalls(2).error().message,
            "trainyard: 2 calls are open already; try again later");
  EXPECT_TRUE(access.CheckOpenAgents(0).ok());
  EXPECT_FALSE(access.CheckOpenAgents(1).ok());
}

}  // namespace
}  // namespace trainyard::service
