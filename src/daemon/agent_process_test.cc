// SPDX-License-Identifier: Apache-2.0
#include "daemon/agent_process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

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

}  // namespace
}  // namespace trainyard::daemon
