// SPDX-License-Identifier: Apache-2.0
#include "daemon/agent_process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "rpc/identity_calls.h"
#include "support/scratch_folder.h"

namespace trainyard::daemon {
namespace {

TEST(AgentProcessTest, SaysWhyItsFolderCannotBeMade) {
  const ScratchFolder scratch;
  const std::string state = scratch.path() + "/below/agent";
  chmod(scratch.path().c_str(), 0555);
  const uid_t before = geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_TRUE(before != 0 || seteuid(kNobody) == 0);
  Mailbox mailbox;
  mailbox.Close();
  const Status status = RunAgent({.node = "n0", .gpus = 1, .state = state}, mailbox);
  ASSERT_TRUE(before != 0 || seteuid(before) == 0);
  chmod(scratch.path().c_str(), 0700);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, scratch.path() + "/below: cannot be made: Permission denied");
}

TEST(AgentProcessTest, ATokenIsLookedForWhereTheNodeHasNoCertificateYet) {
  const ScratchFolder scratch;
  const AgentOptions options{.node = "n0",
                             .address = "10.0.0.1",
                             .gpus = 1,
                             .state = scratch.path() + "/agent",
                             .join_token_file = scratch.path() + "/n0.token"};
  const Status none = CheckAgent(options);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message,
            scratch.path() + "/n0.token: cannot be read: No such file or directory");
  std::filesystem::create_directories(options.state + "/identity");
  static_cast<void>(scratch.Write(std::string("agent/identity") + rpc::kNodeCertificate, ""));
  EXPECT_TRUE(CheckAgent(options).ok()) << "it has joined, and its token may have been removed";
}

}  // namespace
}  // namespace trainyard::daemon
