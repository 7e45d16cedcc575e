// SPDX-License-Identifier: Apache-2.0
#include "identity/token.h"

#include <gtest/gtest.h>

#include <limits>

namespace trainyard::identity {
namespace {

class TokenTest : public testing::Test {
 protected:
  static v1::TokenClaims Claims() {
    v1::TokenClaims claims;
    claims.mutable_caller()->set_uid(1001);
    claims.mutable_caller()->set_user("ann");
    claims.mutable_caller()->set_role(v1::Caller::USER);
    claims.set_issued(1000);
    claims.set_expires(1600);
    claims.set_cluster("c1");
    claims.set_nonce("n");
    return claims;
  }
  [[nodiscard]] TokenCheck Check(double now = 1100) const {
    return {.public_key = key_.public_key(), .cluster = "c1", .now = now};
  }
  // What is wrong with it; empty: nothing.
  [[nodiscard]] std::string Wrong(const std::string& token, double now = 1100) const {
    const Result<v1::TokenClaims> read = ReadToken(token, Check(now));
    return read.ok() ? "" : read.error().message.substr(0, read.error().message.find(';'));
  }

  KeyPair key_ = KeyPair::Make();
};

TEST_F(TokenTest, SaysWhatWasSigned) {
  const Result<v1::TokenClaims> read = ReadToken(SignToken(key_, Claims()), Check());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().SerializeAsString(), Claims().SerializeAsString());
}

TEST_F(TokenTest, IsGoodFromItsBeginningToItsEnd) {
  const std::string token = SignToken(key_, Claims());
  EXPECT_EQ(Wrong(token, 1000), "");
  EXPECT_EQ(Wrong(token, 1599), "");
  EXPECT_EQ(Wrong(token, 1600), "the token has expired");
  EXPECT_EQ(Wrong(token, 1e12), "the token has expired");
}

TEST_F(TokenTest, FromTheFutureIsRefusedBeyondTheSlackOfClocks) {
  const std::string token = SignToken(key_, Claims());
  EXPECT_EQ(Wrong(token, 950), "");
  EXPECT_EQ(Wrong(token, 930), "the token has expired");
}

TEST_F(TokenTest, ATimeThatIsNoNumberIsRefused) {
  v1::TokenClaims claims = Claims();
  claims.set_expires(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(Wrong(SignToken(key_, claims)), "the token has expired");
  claims = Claims();
  claims.set_issued(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(Wrong(SignToken(key_, claims)), "the token has expired");
}

TEST_F(TokenTest, NoneIsSaidToBeMissing) { EXPECT_EQ(Wrong(""), "the call has no token"); }

TEST_F(TokenTest, TextThatIsNoneIsMalformedOrNotSigned) {
  EXPECT_EQ(Wrong("x"), "the token is malformed");
  EXPECT_EQ(Wrong(std::string(kMostTokenBytes + 1, '.')), "the token is malformed");
  EXPECT_EQ(Wrong("."), "the token is not signed by this controller");
  EXPECT_EQ(Wrong("zz.zz"), "the token is not signed by this controller");
}

TEST_F(TokenTest, OfAnotherKeyIsForged) {
  EXPECT_EQ(Wrong(SignToken(KeyPair::Make(), Claims())),
            "the token is not signed by this controller");
}

TEST_F(TokenTest, OfAnotherClusterIsRefusedThoughTheKeyIsTheSame) {
  v1::TokenClaims claims = Claims();
  claims.set_cluster("c2");
  EXPECT_EQ(Wrong(SignToken(key_, claims)), "the token is of another cluster");
}

TEST_F(TokenTest, AnotherRoleUnderTheOldSignatureIsSeen) {
  const std::string token = SignToken(key_, Claims());
  v1::TokenClaims claims = Claims();
  claims.mutable_caller()->set_role(v1::Caller::ADMIN);
  const std::string forged = ToHex(claims.SerializeAsString()) + token.substr(token.find('.'));
  EXPECT_EQ(Wrong(forged), "the token is not signed by this controller");
}

TEST_F(TokenTest, EveryChangedDigitIsSeen) {
  const std::string token = SignToken(key_, Claims());
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string other = token;
    other[i] = other[i] == '0' ? '1' : '0';
    EXPECT_NE(Wrong(other), "") << i;
  }
  EXPECT_NE(Wrong(token + "0"), "");
  EXPECT_NE(Wrong(token.substr(0, token.size() - 2)), "");
}

TEST_F(TokenTest, ASignatureForAnotherPurposeIsNone) {
  const std::string bytes = Claims().SerializeAsString();
  EXPECT_EQ(Wrong(ToHex(bytes) + "." + ToHex(key_.Sign(bytes))),
            "the token is not signed by this controller");
}

TEST_F(TokenTest, WithoutUserOrRoleIsRefused) {
  v1::TokenClaims claims = Claims();
  claims.mutable_caller()->clear_user();
  EXPECT_EQ(Wrong(SignToken(key_, claims)), "the token names no user with a role");
  claims = Claims();
  claims.mutable_caller()->clear_role();
  EXPECT_EQ(Wrong(SignToken(key_, claims)), "the token names no user with a role");
  claims.clear_caller();  // its uid would be that of root
  EXPECT_EQ(Wrong(SignToken(key_, claims)), "the token names no user with a role");
}

TEST_F(TokenTest, RolesGoThroughTheirNames) {
  for (const char* name : {"user", "operator", "admin"}) {
    ASSERT_TRUE(RoleNamed(name).ok());
    EXPECT_EQ(RoleName(RoleNamed(name).value()), name);
  }
  EXPECT_EQ(RoleNamed("root").error().message,
            "'root' is no role; expected user, operator or admin");
  EXPECT_FALSE(RoleNamed("nobody").ok());
}

}  // namespace
}  // namespace trainyard::identity
