// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/launch_check.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "supervisor/launch/last_line.h"
#include "support/scratch_folder.h"

namespace trainyard::supervisor {
namespace {

std::string WhyNot(const v1::StartAttempt& start) {
  const auto why = CheckLaunch(start, "/usr/bin/trainyard", {"PATH=/usr/bin:/bin"});
  return why ? why->message : "";
}

v1::StartAttempt Starting(v1::LaunchSpec::Launcher launcher, const std::string& word,
                          const std::string& folder = "/") {
  v1::StartAttempt start;
  start.mutable_launch()->set_launcher(launcher);
  start.mutable_launch()->add_command(word);
  start.mutable_launch()->set_working_directory(folder);
  return start;
}

TEST(LaunchCheckTest, WhatTorchrunIsToStartMustBeThere) {
  const ScratchFolder folder;
  const std::string script = folder.Write("t.py", "");
  EXPECT_EQ(WhyNot(Starting(v1::LaunchSpec::TORCHRUN, "sh")), "");
  EXPECT_EQ(WhyNot(Starting(v1::LaunchSpec::TORCHRUN, "t.py", folder.path())),
            "command 't.py': it is not on the PATH; expected python3 t.py");
  EXPECT_EQ(WhyNot(Starting(v1::LaunchSpec::TORCHRUN, "./t.py", folder.path())),
            "command './t.py': Permission denied; expected python3 ./t.py");
  EXPECT_EQ(WhyNot(Starting(v1::LaunchSpec::TORCHRUN, "/no/such/program")),
            "command '/no/such/program': No such file or directory");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  EXPECT_EQ(WhyNot(Starting(v1::LaunchSpec::TORCHRUN, "./t.py", folder.path())), "");
  EXPECT_EQ(WhyNot(Starting(v1::LaunchSpec::PLAIN, "t.py")), "") << "it is told as it is started";
  v1::StartAttempt contained = Starting(v1::LaunchSpec::TORCHRUN, "of-the-image");
  contained.mutable_launch()->mutable_container()->set_image("image");
  EXPECT_EQ(WhyNot(contained), "");
}

TEST(LaunchCheckTest, ADataSetThatIsNotHereIsNamed) {
  const ScratchFolder folder;
  v1::StartAttempt start = Starting(v1::LaunchSpec::PLAIN, "true");
  start.mutable_data_set()->set_name("pets");
  start.mutable_data_set()->set_home(folder.path());
  EXPECT_EQ(WhyNot(start), "");
  start.mutable_data_set()->set_home("/no/such/pets");
  EXPECT_EQ(WhyNot(start),
            "data set 'pets': its folder /no/such/pets is not here; expected one that is on each "
            "node, or nodes that fetch it (agent --data-cache)");
  EXPECT_EQ(CheckLaunch(start, "/usr/bin/trainyard", {})->cause, v1::AttemptReport_Cause_NO_DATA);
  start.mutable_data_set()->set_home("imagenet");  // known to simulations only
  EXPECT_EQ(WhyNot(start), "");
}

TEST(LastLineTest, IsThatOfTheWorker) {
  EXPECT_EQ(LastLineOf(""), "");
  EXPECT_EQ(LastLineOf("a\nValueError: bad\n\n"), "ValueError: bad");
  EXPECT_EQ(LastLineOf("bad \x1b[31m\xff"), "bad ?[31m?");
  EXPECT_EQ(LastLineOf(std::string(300, 'x')).size(), 200U);
}

TEST(LastLineTest, WhatLaunchersSayOfTheEndDoesNotCount) {
  EXPECT_EQ(LastLineOf("Traceback (most recent call last):\n"
                       "ValueError: bad shape\n"
                       "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) "
                       "local_rank: 0 (pid: 12) of binary: python3\n"
                       "Traceback (most recent call last):\n"
                       "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
                       "  traceback : To enable traceback see: https://pytorch.org\n"
                       "============================================================\n"),
            "ValueError: bad shape");
  EXPECT_EQ(
      LastLineOf("no data\n"
                 "--------------------------------------------------------------------------\n"
                 "Primary job  terminated normally, but 1 process returned\n"
                 "a non-zero exit code.\n"),
      "no data");
  EXPECT_EQ(LastLineOf("----------------------------\nmpirun was unable to launch\n"),
            "mpirun was unable to launch");
}

TEST(LastLineTest, IsTheExceptionWhateverPythonSaysBehindIt) {
  const std::string traceback =
      "Traceback (most recent call last):\n"
      "  File \"t.py\", line 3, in <module>\n"
      "    raise RuntimeError(x)\n";
  EXPECT_EQ(LastLineOf("epoch 1\n" + traceback +
                       "RuntimeError: CUDA error: out of memory\n"
                       "CUDA kernel errors might be asynchronously reported at some other API "
                       "call.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n\n"),
            "RuntimeError: CUDA error: out of memory");
  EXPECT_EQ(LastLineOf(traceback +
                       "KeyError: 'a'\n\nDuring handling of the above exception, "
                       "another exception occurred:\n\n" +
                       traceback + "ValueError: b\n"),
            "ValueError: b");
  EXPECT_EQ(LastLineOf("[rank0]: Traceback (most recent call last):\n"
                       "[rank0]:   File \"t.py\", line 3\n"
                       "[rank0]: OSError: no space\n"
                       "[W socket.cpp] closing\n"),
            "OSError: no space");
  std::string epochs;
  for (int i = 0; i < 30; ++i) {
    epochs += "epoch " + std::to_string(i) + "\n";
  }
  EXPECT_EQ(LastLineOf(traceback + "OSError: tried again\n" + epochs + "killed by watchdog\n"),
            "killed by watchdog")
      << "a job that went on had not ended by it";
}

TEST(LastLineTest, OfAFileItsEndIsRead) {
  const ScratchFolder folder;
  EXPECT_EQ(LastLineIn(folder.Write("log", std::string(100'000, 'x') + "\nthe end\n")), "the end");
  EXPECT_EQ(LastLineIn(folder.Write("empty", "")), "");
  EXPECT_EQ(LastLineIn(folder.path() + "/none"), "");
}

}  // namespace
}  // namespace trainyard::supervisor
