// SPDX-License-Identifier: Apache-2.0
#include "service/principal.h"

#include <gtest/gtest.h>

namespace trainyard::service {
namespace {

Principal Someone(std::uint32_t uid, v1::Caller::Role role) {
  v1::Caller caller;
  caller.set_uid(uid);
  caller.set_user("user" + std::to_string(uid));
  caller.set_role(role);
  return Principal(caller);
}

v1::JobRequest JobOf(std::uint32_t uid) {
  v1::JobRequest job;
  job.mutable_launch()->mutable_owner()->set_uid(uid);
  return job;
}

TEST(PrincipalTest, WithoutAuthenticationEveryCallIsAllowed) {
  const Principal nobody;
  EXPECT_TRUE(nobody.CheckCaller(false).ok());
  EXPECT_TRUE(nobody.May(Access::kEnter, JobOf(7)));
  EXPECT_TRUE(nobody.MayOperate());
  EXPECT_TRUE(nobody.MayNameUser("ann"));
  EXPECT_TRUE(nobody.MayUndo("ann (uid 1001, admin)"));
  EXPECT_EQ(nobody.text_with_role(), "");
}

TEST(PrincipalTest, ACallWithoutACallerIsRefusedWhereAuthenticationIsOn) {
  const Status status = Principal().CheckCaller(true);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnauthenticated);
  EXPECT_TRUE(Someone(7, v1::Caller::USER).CheckCaller(true).ok());
}

TEST(PrincipalTest, OwnersHaveAllRightsOnTheirJobsAndOperatorsMayNotReadOthers) {
  for (const Access access : {Access::kSee, Access::kChange, Access::kRead, Access::kEnter}) {
    const bool reads = access == Access::kRead || access == Access::kEnter;
    EXPECT_TRUE(Someone(7, v1::Caller::USER).May(access, JobOf(7)));
    EXPECT_FALSE(Someone(8, v1::Caller::USER).May(access, JobOf(7)));
    EXPECT_FALSE(Someone(8, v1::Caller::USER).May(access, v1::JobRequest())) << "nobody's job";
    EXPECT_EQ(Someone(8, v1::Caller::OPERATOR).May(access, JobOf(7)), !reads);
    EXPECT_TRUE(Someone(8, v1::Caller::OPERATOR).May(access, JobOf(8)));
    EXPECT_TRUE(Someone(8, v1::Caller::ADMIN).May(access, JobOf(7)));
    EXPECT_FALSE(Someone(7, v1::Caller::ROLE_UNSPECIFIED).May(access, JobOf(7)));
  }
}

TEST(PrincipalTest, OperatorsDrainAndOnlyAdminsNameOtherUsers) {
  EXPECT_FALSE(Someone(7, v1::Caller::USER).MayOperate());
  EXPECT_TRUE(Someone(7, v1::Caller::OPERATOR).MayOperate());
  EXPECT_TRUE(Someone(7, v1::Caller::ADMIN).MayOperate());
  EXPECT_FALSE(Someone(7, v1::Caller::OPERATOR).MayNameUser("user8"));
  EXPECT_TRUE(Someone(7, v1::Caller::OPERATOR).MayNameUser("user7"));
  EXPECT_TRUE(Someone(7, v1::Caller::USER).MayNameUser(""));
  EXPECT_TRUE(Someone(7, v1::Caller::ADMIN).MayNameUser("user8"));
}

TEST(PrincipalTest, WhatAHigherRoleHasDoneIsNotUndone) {
  const auto role = [](v1::Caller::Role of, std::uint32_t uid = 8) {
    return Someone(uid, of).text_with_role();
  };
  const Principal user = Someone(7, v1::Caller::USER);
  EXPECT_EQ(role(v1::Caller::OPERATOR), "user8 (uid 8, operator)");
  EXPECT_FALSE(user.MayUndo(role(v1::Caller::OPERATOR)));
  EXPECT_FALSE(user.MayUndo(role(v1::Caller::ADMIN)));
  EXPECT_TRUE(user.MayUndo(role(v1::Caller::ADMIN, 7))) << "it is the same user";
  EXPECT_TRUE(user.MayUndo(role(v1::Caller::USER)));
  EXPECT_TRUE(user.MayUndo(""));
  EXPECT_TRUE(Someone(7, v1::Caller::OPERATOR).MayUndo(role(v1::Caller::OPERATOR)));
  EXPECT_FALSE(Someone(7, v1::Caller::OPERATOR).MayUndo(role(v1::Caller::ADMIN)));
  EXPECT_TRUE(Someone(7, v1::Caller::ADMIN).MayUndo(role(v1::Caller::ADMIN)));
}

}  // namespace
}  // namespace trainyard::service
