// SPDX-License-Identifier: Apache-2.0
#include "identity/door.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "identity/authority.h"
#include "io/descriptor.h"
#include "support/scratch_folder.h"

namespace trainyard::identity {
namespace {

std::string NameOfThisTest() { return "@trainyard-door-test-" + std::to_string(getpid()); }

std::string NumberOf(uid_t uid) { return std::to_string(uid); }

TEST(DoorTest, TellsWhoHasKnocked) {
  const auto door = Door::Open(NameOfThisTest(), NumberOf);
  ASSERT_TRUE(door.ok()) << door.error().message;
  const auto reply = Knock(NameOfThisTest());
  ASSERT_TRUE(reply.ok() && reply.value());
  EXPECT_EQ(reply.value()->bytes, std::to_string(geteuid()));
  EXPECT_EQ(reply.value()->uid, geteuid());
}

TEST(DoorTest, NobodyIsThereOnceItIsClosed) {
  ASSERT_TRUE(Door::Open(NameOfThisTest(), NumberOf).ok());
  const auto reply = Knock(NameOfThisTest());
  ASSERT_TRUE(reply.ok());
  EXPECT_FALSE(reply.value());
}

TEST(DoorTest, OneNameHasOneDoor) {
  const auto door = Door::Open(NameOfThisTest(), NumberOf);
  const auto second = Door::Open(NameOfThisTest(), NumberOf);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
}

TEST(DoorTest, OneWithAFileIsForEverybodyAndGoesWithIt) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/door";
  {
    const auto door = Door::Open(path, NumberOf);
    ASSERT_TRUE(door.ok()) << door.error().message;
    struct stat found {};
    ASSERT_EQ(stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777U, 0666U);
    EXPECT_TRUE(Knock(path).value());
    EXPECT_FALSE(Door::Open(path, NumberOf).ok());
    EXPECT_TRUE(Knock(path).value());  // the second has taken nothing away
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(DoorTest, AFileThatAKilledOneHasLeftIsReplaced) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/door";
  {
    const io::Descriptor dead(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto door = Door::Open(path, NumberOf);
  ASSERT_TRUE(door.ok()) << door.error().message;
  EXPECT_TRUE(Knock(path).value());
}

TEST(DoorTest, PeersThatSayNothingAndTakeNothingHoldNobodyUp) {
  const auto door = Door::Open(NameOfThisTest(), NumberOf);
  ASSERT_TRUE(door.ok());
  std::vector<io::Descriptor> idle;
  for (int i = 0; i < 100; ++i) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = NameOfThisTest();
    std::copy(name.begin() + 1, name.end(), address.sun_path + 1);
    idle.emplace_back(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(connect(idle.back().get(), reinterpret_cast<sockaddr*>(&address),
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
  }
  EXPECT_TRUE(Knock(NameOfThisTest()).value());
}

TEST(DoorTest, NamesThatCannotBeAreRefused) {
  EXPECT_FALSE(Door::Open("", NumberOf).ok());
  EXPECT_FALSE(Door::Open("@" + std::string(200, 'x'), NumberOf).ok());
  EXPECT_FALSE(Door::Open("/nowhere/at/all", NumberOf).ok());
  EXPECT_FALSE(Knock(std::string(200, 'x')).ok());
}

TEST(DoorTest, NamesOfUsersGoBothWays) {
  EXPECT_EQ(UserName(0), "root");
  EXPECT_EQ(UserId("root"), std::optional<uid_t>(0));
  EXPECT_EQ(UserName(3'999'999'999U), "3999999999");
  EXPECT_FALSE(UserId("no-such-user"));
}

// ------------------------------------------------------------------------------------- authority

class AuthorityTest : public testing::Test {
 protected:
  // As after a restart of the controller.
  std::unique_ptr<Authority> Open(AuthorityOptions options = {}) {
    options.folder = folder_.path() + "/identity";
    options.now = [this] { return now_; };
    Result<std::unique_ptr<Authority>> authority = Authority::Open(std::move(options));
    EXPECT_TRUE(authority.ok()) << authority.error().message;
    return std::move(authority).value();
  }
  static std::string WhyNot(const Result<v1::Caller>& caller) {
    return caller.ok() ? "" : caller.error().message.substr(0, caller.error().message.find(';'));
  }

  ScratchFolder folder_;
  double now_ = 1e9;
};

TEST_F(AuthorityTest, ServesItsOwnUserAndRootOnlyUnlessToldOtherwise) {
  const auto authority = Open();
  const Result<std::string> own = authority->TokenFor(geteuid());
  ASSERT_TRUE(own.ok());
  const Result<v1::Caller> caller = authority->CallerOf(own.value());
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller.value().uid(), geteuid());
  EXPECT_EQ(caller.value().role(), v1::Caller::ADMIN);
  EXPECT_TRUE(authority->TokenFor(0).ok());
  const Result<std::string> other = authority->TokenFor(geteuid() + 12345);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("serves only " + UserName(geteuid())), std::string::npos)
      << other.error().message;
}

TEST_F(AuthorityTest, GivesEveryUserTheRoleThatTheOptionsSay) {
  const auto authority = Open({.all_users = true, .operators = {"4000001"}, .admins = {"4000002"}});
  const auto role = [&](uid_t uid) {
    return authority->CallerOf(authority->TokenFor(uid).value()).value().role();
  };
  EXPECT_EQ(role(4000000), v1::Caller::USER);
  EXPECT_EQ(role(4000001), v1::Caller::OPERATOR);
  EXPECT_EQ(role(4000002), v1::Caller::ADMIN);
  EXPECT_EQ(role(0), v1::Caller::ADMIN);
}

TEST_F(AuthorityTest, ATokenHasTheRoleThatItsUserHasNow) {
  auto authority = Open({.all_users = true, .operators = {"4000001"}, .admins = {"4000002"}});
  const std::string one = authority->TokenFor(4000001).value();
  const std::string two = authority->TokenFor(4000002).value();
  const auto role = [&](const std::string& token) {
    return authority->CallerOf(token).value().role();
  };
  EXPECT_EQ(role(one), v1::Caller::OPERATOR);
  authority->SetAccess(true, {"4000002"}, {"4000001"});
  EXPECT_EQ(role(one), v1::Caller::ADMIN);
  EXPECT_EQ(role(two), v1::Caller::OPERATOR);
  authority = Open({.all_users = true});
  EXPECT_EQ(role(one), v1::Caller::USER) << "a restart takes it away, too";
  authority->SetAccess(false, {}, {});
  EXPECT_NE(WhyNot(authority->CallerOf(one)).find("serves only"), std::string::npos);
  EXPECT_TRUE(authority->CallerOf(authority->TokenFor(0).value()).ok());
}

TEST_F(AuthorityTest, TokensOutliveARestartAndEndWithTheirTime) {
  const std::string token = Open()->TokenFor(0).value();
  const auto again = Open();
  EXPECT_TRUE(again->CallerOf(token).ok());
  now_ += 601;
  EXPECT_EQ(WhyNot(again->CallerOf(token)), "the token has expired");
}

TEST_F(AuthorityTest, TokensOfAnotherClusterAreNone) {
  const std::string token = Open()->TokenFor(0).value();
  const ScratchFolder other_folder;
  const auto other = Authority::Open({.folder = other_folder.path() + "/identity"});
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other.value()->cluster(), Open()->cluster());
  EXPECT_EQ(WhyNot(other.value()->CallerOf(token)), "the token is not signed by this controller");
}

TEST_F(AuthorityTest, NoTwoTokensAreTheSame) {
  const auto authority = Open();
  EXPECT_NE(authority->TokenFor(0).value(), authority->TokenFor(0).value());
}

TEST_F(AuthorityTest, OnlyTheControllersUserAndRootMaySpeakForNodesWithoutACertificate) {
  v1::Caller caller;
  caller.set_role(v1::Caller::ADMIN);
  caller.set_uid(geteuid());
  EXPECT_TRUE(Authority::MayBeAgent(caller));
  caller.set_uid(geteuid() + 7);
  EXPECT_FALSE(Authority::MayBeAgent(caller));
}

TEST_F(AuthorityTest, TheDoorGivesATokenOrTheReasonWhyNot) {
  const auto authority = Open();
  v1::LocalAccess access;
  ASSERT_TRUE(access.ParseFromString(authority->LocalAnswer(geteuid(), false)));
  EXPECT_EQ(access.error(), "");
  EXPECT_TRUE(authority->CallerOf(access.token()).ok());
  ASSERT_TRUE(access.ParseFromString(authority->LocalAnswer(geteuid() + 12345, false)));
  EXPECT_EQ(access.token(), "");
  EXPECT_NE(access.error(), "");
}

TEST_F(AuthorityTest, ItsFilesAreForItsUserAlone) {
  const auto authority = Open();
  for (const char* name : {"signing.pem", "cluster"}) {
    struct stat found {};
    ASSERT_EQ(stat((folder_.path() + "/identity/" + name).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << name;
  }
}

}  // namespace
}  // namespace trainyard::identity
