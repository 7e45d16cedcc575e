// SPDX-License-Identifier: Apache-2.0
// With a munged of its own: its key, socket and files lie in a folder of the test.
#include "identity/munge.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <munge.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "identity/authority.h"
#include "identity/secret_file.h"
#include "support/scratch_folder.h"

namespace trainyard::identity {
namespace {

class Munged {
 public:
  explicit Munged(const ScratchFolder& folder) : socket_(folder.path() + "/munge.socket") {
    chmod(folder.path().c_str(), 0755);  // munged wants its socket to be reached
    EXPECT_TRUE(WriteSecretFile(folder.path() + "/key", RandomBytes(128)).ok());
    const std::vector<std::string> words{"munged",
                                         "--foreground",
                                         "--force",
                                         "--key-file",
                                         folder.path() + "/key",
                                         "--socket",
                                         socket_,
                                         "--pid-file",
                                         folder.path() + "/pid",
                                         "--log-file",
                                         folder.path() + "/log",
                                         "--seed-file",
                                         folder.path() + "/seed",
                                         "--num-threads",
                                         "1"};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDERR_FILENO);
      setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    for (int i = 0; i < 3000 && !MakeMungeCredential(socket_).ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~Munged() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  Munged(const Munged&) = delete;
  Munged& operator=(const Munged&) = delete;
  [[nodiscard]] const std::string& socket() const { return socket_; }

 private:
  std::string socket_;
  pid_t pid_ = -1;
};

TEST(MungeTest, ACredentialSaysWhoHasMadeItOnce) {
  const ScratchFolder folder;
  const Munged munged(folder);
  const Result<std::string> credential = MakeMungeCredential(munged.socket());
  ASSERT_TRUE(credential.ok()) << credential.error().message;
  const Result<uid_t> uid = ReadMungeCredential(credential.value(), munged.socket());
  ASSERT_TRUE(uid.ok()) << uid.error().message;
  EXPECT_EQ(uid.value(), geteuid());
  const Result<uid_t> again = ReadMungeCredential(credential.value(), munged.socket());
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().message.find("eplay"), std::string::npos) << again.error().message;
}

TEST(MungeTest, ForgedOnesOfAnotherKeyAndForAnotherPurposeAreRefused) {
  const ScratchFolder folder;
  const Munged munged(folder);
  const ScratchFolder other_folder;
  const Munged other(other_folder);
  std::string credential = MakeMungeCredential(other.socket()).value();
  EXPECT_FALSE(ReadMungeCredential(credential, munged.socket()).ok());
  EXPECT_FALSE(ReadMungeCredential("MUNGE:nonsense:", munged.socket()).ok());
  munge_ctx_t context = munge_ctx_create();
  munge_ctx_set(context, MUNGE_OPT_SOCKET, munged.socket().c_str());
  char* made = nullptr;
  ASSERT_EQ(munge_encode(&made, context, "slurm", 5), EMUNGE_SUCCESS);
  const Result<uid_t> read = ReadMungeCredential(made, munged.socket());
  std::free(made);
  munge_ctx_destroy(context);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("another purpose"), std::string::npos);
}

TEST(MungeTest, ACredentialBuysAToken) {
  const ScratchFolder folder;
  const Munged munged(folder);
  const auto authority =
      Authority::Open({.folder = folder.path() + "/identity", .munge = munged.socket()});
  ASSERT_TRUE(authority.ok());
  v1::BuyRequest request;
  request.set_munge(MakeMungeCredential(munged.socket()).value());
  const Result<std::string> token = authority.value()->Sell(request);
  ASSERT_TRUE(token.ok()) << token.error().message;
  const Result<v1::Caller> caller = authority.value()->CallerOf(token.value());
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller.value().uid(), geteuid());
  EXPECT_EQ(caller.value().by(), "munge");
  EXPECT_FALSE(authority.value()->Sell(request).ok());  // replayed
}

TEST(MungeTest, WithoutMungedTheReasonIsSaid) {
  const Result<std::string> made = MakeMungeCredential("/nowhere/munge.socket");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("expected munged to run"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::identity
