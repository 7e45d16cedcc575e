// SPDX-License-Identifier: Apache-2.0
// Real users of this machine, made for the test, on one cluster. Needs root.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "live_tests/cluster.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// A user that goes with the object, with a home of its own.
class User {
 public:
  User(const std::string& name, const std::string& folder)
      : name_(fmt::format("ty-{}-{}", getpid(), name)), home_(folder + "/home-" + name) {
    fs::create_directory(home_);
    bool made = false;
    for (int i = 0; i < 20 && !made; ++i) {  // another test may hold the lock of /etc/passwd
      made = std::system(("useradd -M -N -d " + home_ + " " + name_ + " 2>/dev/null").c_str()) == 0;
    }
    EXPECT_TRUE(made) << "cannot make the user " << name_ << "; expected to be root";
    EXPECT_EQ(std::system(("chown " + name_ + " " + home_).c_str()), 0);
  }
  ~User() {
    for (int i = 0; i < 20; ++i) {
      if (std::system(("userdel " + name_ + " >/dev/null 2>&1").c_str()) == 0) {
        return;
      }
    }
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& home() const { return home_; }

 private:
  std::string name_;
  std::string home_;
};

std::string Quoted(const std::string& word) { return "'" + word + "'"; }

class UsersTest : public testing::Test {
 protected:
  UsersTest() {
    // A program that every user may run, wherever the build is.
    fs::permissions(cluster_.Path(""), fs::perms(0755));
    program_ = cluster_.Path("trainyard");
    fs::copy_file(TRAINYARD_PROGRAM, program_);
    fs::permissions(program_, fs::perms(0755));
  }

  void Start(const Words& options = {"--users", "all"}) {
    Words& policy = cluster_.options().policy;
    policy.insert(policy.end(), options.begin(), options.end());
    cluster_.Start();
  }

  // The command as the user types it.
  [[nodiscard]] Answer As(const User& user, const Words& words,
                          const std::string& environment = "") const {
    std::string line = fmt::format(
        "cd / && setpriv --reuid={0} --regid=nogroup --clear-groups env -i PATH=/bin:"
        "/usr/bin HOME={1} TRAINYARD_CONTROLLER={2} {3} {4}",
        user.name(), user.home(), cluster_.address(), environment, program_);
    for (const std::string& word : words) {
      line += " " + Quoted(word);
    }
    const std::string out = cluster_.Path("as.out");
    const std::string err = cluster_.Path("as.err");
    Answer answer;
    const int status = std::system((line + " >" + out + " 2>" + err + " </dev/null").c_str());
    answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    answer.out = ReadAll(out);
    answer.err = ReadAll(err);
    return answer;
  }
  // As root, a command of two words.
  [[nodiscard]] Answer Admin(Words words) const {
    words.insert(words.end(), {"--controller", cluster_.address()});
    return cluster_.Run(words);
  }
  void ExpectRefused(const Answer& answer, const std::string& why) const {
    EXPECT_EQ(answer.status, 1) << answer.out;
    EXPECT_THAT(answer.err, HasSubstr(why));
  }

  LiveCluster cluster_{LiveClusterOptions{.nodes = 1, .gpus = 4}};
  User ann_{"ann", cluster_.Path("")};
  User bob_{"bob", cluster_.Path("")};
  std::string program_;
};

TEST_F(UsersTest, UpServesOnlyWhoRunsIt) {
  cluster_.StartUp();
  const Answer answer = As(ann_, {"submit", "--gpus", "1", "--", "head", "-1", "/etc/shadow"});
  ExpectRefused(answer, "serves only root, who runs it");
  EXPECT_EQ(cluster_.AskFor<v1::JobsReply>({"status", "--all"}).jobs_size(), 0);
}

// The agent has no launcher, and so runs jobs of root alone.
TEST_F(UsersTest, JobsThatNoNodeMayRunFailAndHoldNobodyUp) {
  Start();
  const Answer answer = As(ann_, {"submit", "--gpus", "1", "--", "true"});
  ASSERT_EQ(answer.status, 0) << answer.err;
  ASSERT_TRUE(cluster_.AwaitState(1, v1::FAILED));
  EXPECT_THAT(cluster_.StatusOf(1).reason(),
              HasSubstr("has no launcher, and so runs jobs of root alone, not of " + ann_.name()));
  ASSERT_EQ(cluster_.Submit({"--gpus", "1"}, {"true"}), 2);
  EXPECT_TRUE(cluster_.AwaitState(2, v1::COMPLETED));
}

// Whoever has the port may not be a controller: without the local socket no call leaves.
TEST_F(UsersTest, NothingIsSaidToAPortWithoutItsSocket) {
  Start();
  ExpectRefused(As(ann_, {"nodes"}, "TRAINYARD_CONTROLLER_SOCKET=@nobody-listens-here"),
                "no controller answers at 127.0.0.1");
  EXPECT_THAT(cluster_.Log("controller"), Not(HasSubstr("refused")));
}

TEST_F(UsersTest, EachSeesAndTouchesOwnJobsOnly) {
  Start();
  ASSERT_EQ(As(ann_, {"submit", "--hold", "--gpus", "1", "--name", "secret", "--", "sleep", "600"})
                .status,
            0);
  EXPECT_EQ(cluster_.StatusOf(1).request().user(), ann_.name());
  EXPECT_THAT(As(ann_, {"status"}).out, HasSubstr("secret"));
  EXPECT_THAT(As(bob_, {"status", "--all"}).out, Not(HasSubstr("secret")));
  ExpectRefused(As(bob_, {"status", "1"}), "there is no job 1");
  for (const Words& words :
       {Words{"cancel", "1"}, Words{"hold", "1"}, Words{"release", "1"}, Words{"requeue", "1"},
        Words{"update", "--time", "1h", "1"}, Words{"resize", "1", "--gpus", "2"},
        Words{"signal", "-s", "USR1", "1"}}) {
    ExpectRefused(As(bob_, words), "may not change job 1");
  }
  ExpectRefused(As(bob_, {"logs", "1"}), "may not read the logs of job 1");
  ExpectRefused(As(bob_, {"attach", "1", "--", "id"}), "may not attach to job 1");
  ExpectRefused(As(bob_, {"drain", "n0"}), "may not drain");
  EXPECT_THAT(cluster_.Log("controller"), HasSubstr("refused: " + bob_.name()));
  EXPECT_EQ(As(ann_, {"cancel", "1"}).status, 0);
  EXPECT_TRUE(cluster_.AwaitState(1, v1::CANCELLED));
}

TEST_F(UsersTest, NobodySubmitsInTheNameOfOthersButAnAdmin) {
  Start();
  ExpectRefused(As(ann_, {"submit", "--gpus", "1", "--user", bob_.name(), "--", "true"}),
                "may not submit as");
  ExpectRefused(As(ann_, {"submit", "--gpus", "1", "--user", "root", "--", "true"}),
                "may not submit as");
  EXPECT_EQ(cluster_.Submit({"--gpus", "1", "--user", bob_.name()}, {"true"}), 1);
  const v1::JobStatus status = cluster_.StatusOf(1);
  EXPECT_EQ(status.request().user(), bob_.name());
  EXPECT_EQ(status.request().launch().owner().uid(), 0U);  // whose job it is does not change
}

TEST_F(UsersTest, OperatorsCancelAndDrainButDoNotReadLogs) {
  Start({"--users", "all", "--operators", bob_.name()});
  ASSERT_EQ(As(ann_, {"submit", "--hold", "--gpus", "1", "--", "sleep", "600"}).status, 0);
  EXPECT_THAT(As(bob_, {"status"}).out, HasSubstr(ann_.name()));
  ExpectRefused(As(bob_, {"logs", "1"}), "may not read the logs of job 1");
  ExpectRefused(As(bob_, {"attach", "1", "--", "id"}), "may not attach to job 1");
  EXPECT_EQ(As(bob_, {"cancel", "1"}).status, 0);
  EXPECT_EQ(As(bob_, {"drain", "n0"}).status, 0);
  EXPECT_TRUE(cluster_.NodeStatus(0).drained());
}

TEST_F(UsersTest, WhoHasChangedAJobIsKnownAfterARestart) {
  Start({"--users", "all", "--operators", bob_.name()});
  ASSERT_EQ(As(ann_, {"submit", "--hold", "--gpus", "1", "--", "sleep", "600"}).status, 0);
  ASSERT_EQ(As(bob_, {"cancel", "1"}).status, 0);
  cluster_.KillController();
  cluster_.StartController();
  const v1::JobStatus status = cluster_.StatusOf(1);
  EXPECT_EQ(status.request().launch().owner().user(), ann_.name());
  EXPECT_THAT(status.changed_by(), HasSubstr("cancelled by " + bob_.name()));
  EXPECT_THAT(As(ann_, {"status", "1"}).out, HasSubstr("cancelled by " + bob_.name()));
}

TEST_F(UsersTest, WhoWaitsForAHeldJobIsToldWhoHoldsIt) {
  Start({"--users", "all", "--operators", bob_.name()});
  ASSERT_EQ(As(ann_, {"submit", "--hold", "--gpus", "1", "--", "true"}).status, 0);
  const Words wait{"wait", "--timeout", "1s", "1"};
  EXPECT_THAT(As(ann_, wait).err, HasSubstr("job 1 is held by " + ann_.name() + " (uid "));
  ASSERT_EQ(As(ann_, {"release", "1"}).status, 0);
  ASSERT_EQ(As(ann_, {"submit", "--begin", "1h", "--gpus", "1", "--", "true"}).status, 0);
  ASSERT_EQ(As(bob_, {"hold", "2"}).status, 0);
  EXPECT_THAT(As(ann_, {"wait", "--timeout", "1s", "2"}).err,
              HasSubstr("job 2 is held by " + bob_.name() + " (uid "));
}

TEST_F(UsersTest, AConfigurationIsGoodThoughAnotherHasToMakeItsFolder) {
  const Answer answer = As(ann_, {"controller", "--check-config", "--cluster", "1x1", "--state",
                                  "/var/lib/trainyard-not-there/controller"});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("which is not there yet, and this user may make nothing in "
                                    "/var/lib: systemd makes it at the start"));
  EXPECT_THAT(answer.out, HasSubstr("\nthe configuration is good\n"));
  const Answer refused =
      As(ann_, {"controller", "--check-config", "--cluster", "1x1", "--state", "/var/lib"});
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("nothing may be written in /var/lib"));
}

TEST_F(UsersTest, ATokenOfASubmissionIsItsOwnersAlone) {
  Start();
  const Words words{"submit", "--gpus", "1", "--token", "t1", "--", "true"};
  ASSERT_EQ(As(ann_, words).status, 0);
  ExpectRefused(As(bob_, words), "another user's job has it");
  EXPECT_EQ(As(ann_, words).status, 0);
  EXPECT_EQ(cluster_.AskFor<v1::JobsReply>({"status", "--all"}).jobs_size(), 1);
}

TEST_F(UsersTest, JobsAreShownToAllWhereThatIsSet) {
  Start({"--users", "all", "--see-jobs", "all"});
  ASSERT_EQ(As(ann_, {"submit", "--hold", "--gpus", "1", "--", "sleep", "600"}).status, 0);
  EXPECT_THAT(As(bob_, {"status"}).out, HasSubstr(ann_.name()));
  ExpectRefused(As(bob_, {"cancel", "1"}), "may not change job 1");
  ExpectRefused(As(bob_, {"logs", "1"}), "may not read the logs of job 1");
}

TEST_F(UsersTest, OnlyAdminsManageUsersAndNodes) {
  Start();
  for (const Words& words :
       {Words{"user", "add", bob_.name(), "--role", "admin"}, Words{"node", "token", "n0"},
        Words{"node", "revoke", "n0"}, Words{"certs"}}) {
    ExpectRefused(As(ann_, words), "expected an admin");
  }
}

TEST_F(UsersTest, AgentsOfOtherUsersAreNotLetIn) {
  Start();
  const std::string line = fmt::format(
      "cd {0} && setpriv --reuid={1} --regid=nogroup --clear-groups env HOME={0} timeout 5 {2} "
      "agent "
      "--controller {3} --node n0 --gpus 4 --state {0}/a >{0}/log 2>&1",
      ann_.home(), ann_.name(), program_, cluster_.address());
  EXPECT_NE(std::system(line.c_str()), -1);
  EXPECT_THAT(ReadAll(ann_.home() + "/log"), HasSubstr("may not join as a node"));
  EXPECT_TRUE(cluster_.NodeStatus(0).up());
}

TEST_F(UsersTest, AControllerOfAnotherUserIsNotTrusted) {
  const std::string line = fmt::format(
      "cd {0} && setpriv --reuid={1} --regid=nogroup --clear-groups env HOME={0} timeout 60 {2} up "
      "--nodes 1 --gpus 1 --state {0}/up --listen {3} >{0}/log 2>&1 & echo $! >{0}/pid",
      ann_.home(), ann_.name(), program_, cluster_.address());
  ASSERT_EQ(std::system(line.c_str()), 0);
  EXPECT_TRUE(Eventually([&] { return As(ann_, {"nodes"}).status == 0; }));
  ExpectRefused(As(bob_, {"submit", "--gpus", "1", "--", "true"}), "is run by " + ann_.name());
  const Answer root = cluster_.Ask({"submit", "--gpus", "1", "--", "true"});
  EXPECT_EQ(root.status, 1);
  EXPECT_THAT(root.err, HasSubstr("is run by " + ann_.name()));
  EXPECT_EQ(std::system(("kill $(cat " + ann_.home() + "/pid)").c_str()), 0);
  EXPECT_TRUE(Eventually([&] { return As(ann_, {"nodes"}).status != 0; }));
}

TEST_F(UsersTest, NodesJoinByTokenAndUsersLogInOverTls) {
  Words& policy = cluster_.options().policy;
  policy.insert(policy.end(), {"--users", "all", "--tls", "--certificate-life", "0.01"});
  cluster_.StartController();
  const std::string token = cluster_.Path("n0.token");
  ASSERT_EQ(Admin({"node", "token", "n0", "--output", token}).err, "");
  const Answer shown = Admin({"node", "token", "n0", "--output", "-"});
  EXPECT_THAT(shown.out, MatchesRegex("[0-9a-f]+\\.[0-9a-f]+\n")) << "a secret on standard output";
  EXPECT_FALSE(std::filesystem::exists("-"));
  cluster_.options().agent = {"--join-token-file", token};
  cluster_.StartAgent(0);
  EXPECT_TRUE(Eventually([&] { return cluster_.NodeStatus(0).up(); }));
  const std::string login = cluster_.Path("home-ann/login");
  ASSERT_EQ(Admin({"user", "add", ann_.name(), "--output", login}).err, "");
  ASSERT_EQ(std::system(("chown " + ann_.name() + " " + login).c_str()), 0);
  // As from another machine: without the local socket.
  const std::string remote = "TRAINYARD_CONTROLLER_SOCKET=@nobody-listens-here";
  const Answer answer = As(ann_, {"login", "--token-file", login}, remote);
  ASSERT_EQ(answer.status, 0) << answer.err;
  ASSERT_EQ(As(ann_, {"submit", "--hold", "--gpus", "1", "--", "true"}, remote).status, 0);
  EXPECT_EQ(cluster_.StatusOf(1).request().launch().owner().by(), "login");
  EXPECT_EQ(cluster_.StatusOf(1).request().launch().owner().user(), ann_.name());
  // Without a launcher the agent runs jobs of its own user only.
  ASSERT_EQ(As(ann_, {"cancel", "1"}, remote).status, 0);
  EXPECT_EQ(cluster_.Submit({"--gpus", "1"}, {"true"}), 2);
  EXPECT_TRUE(cluster_.AwaitState(2, v1::COMPLETED));
  // The node's certificate is made anew meanwhile, without a restart.
  EXPECT_TRUE(Eventually([&] {
    return cluster_.Ask({"certs"}).out.find("renewed its certificate") != std::string::npos;
  }));
  EXPECT_TRUE(cluster_.NodeStatus(0).up());
  ASSERT_EQ(Admin({"user", "remove", ann_.name()}).status, 0);
  ExpectRefused(As(ann_, {"status"}, remote), "the login is not known");
}

}  // namespace
}  // namespace trainyard
