// SPDX-License-Identifier: Apache-2.0
#include "supervisor/launch/worker_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <string>

#include "support/scratch_folder.h"

namespace trainyard::supervisor {
namespace {

using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// As waitpid has it.
constexpr int Exited(int code) { return code << 8; }

class WorkerEndTest : public testing::Test {
 protected:
  [[nodiscard]] std::string TextOf(int status, const std::string& log) const {
    return supervisor::TextOf({.job = 7,
                               .rank = 2,
                               .status = status,
                               .log = folder_.Write("log", log),
                               .folder = folder_.path()},
                              memory_);
  }
  const ScratchFolder folder_;
  const MemoryWatch memory_;
};

TEST_F(WorkerEndTest, TheExceptionStandsBesideTheExitCode) {
  EXPECT_EQ(TextOf(Exited(1), "epoch 1\nValueError: bad lr\n"),
            "worker 2 ended with exit code 1: ValueError: bad lr (trainyard logs 7 --rank 2)");
  EXPECT_EQ(TextOf(Exited(3), ""), "worker 2 ended with exit code 3 (trainyard logs 7 --rank 2)");
}

TEST_F(WorkerEndTest, ASignalIsNamedAndWhetherMemoryHasRunOut) {
  EXPECT_THAT(TextOf(SIGKILL, "epoch 3\n"),
              AnyOf(StartsWith("worker 2 was killed by signal 9 (SIGKILL); memory has not run out"),
                    StartsWith("worker 2 was killed by signal 9 (SIGKILL); memory has run out"),
                    StartsWith("worker 2 was killed by signal 9 (SIGKILL) (")));
  EXPECT_EQ(TextOf(SIGSEGV, "at step 3\n"),
            "worker 2 was killed by signal 11 (SIGSEGV): at step 3 (trainyard logs 7 --rank 2)");
}

TEST_F(WorkerEndTest, AShellsExitCodeForASignalIsExplained) {
  EXPECT_THAT(TextOf(Exited(137), "t.sh: line 3: 12 Killed python3 t.py\n"),
              StartsWith("worker 2 ended with exit code 137, as if killed by signal 9 (SIGKILL)"));
  EXPECT_THAT(TextOf(Exited(134), ""), HasSubstr("signal 6 (SIGABRT)"));
  EXPECT_EQ(TextOf(Exited(255), "").find("signal"), std::string::npos) << "there is no signal 127";
}

TEST_F(WorkerEndTest, WhereTheErrorsAreInAFileTheFileIsReadAndNamed) {
  const std::string file = folder_.Write("slurm-7.out", "no such data\n");
  EXPECT_EQ(TextOf(Exited(3), "trainyard: output and errors go to " + file + "\n"),
            "worker 2 ended with exit code 3: no such data (" + file + ")");
  EXPECT_EQ(TextOf(Exited(3), "trainyard: output goes to /o, errors go to slurm-7.out\n"),
            "worker 2 ended with exit code 3: no such data (" + file + ")");
  EXPECT_THAT(TextOf(Exited(2),
                     "trainyard: errors go to /no/such/file\n"
                     "sh: 1: cannot create /no/such/file: Directory nonexistent\n"),
              EndsWith("exit code 2: sh: 1: cannot create /no/such/file: Directory nonexistent "
                       "(trainyard logs 7 --rank 2)"));
  EXPECT_THAT(TextOf(Exited(2), "trainyard: errors go to /no/such/file\n"),
              EndsWith("exit code 2 (trainyard logs 7 --rank 2)"));
  EXPECT_THAT(TextOf(Exited(3), "my errors go to hell\n"), HasSubstr("trainyard logs 7"));
  EXPECT_EQ(TextOf(Exited(1), "trainyard: no controller answers\n"),
            "worker 2 ended with exit code 1: trainyard: no controller answers (trainyard logs 7 "
            "--rank 2)");
}

TEST_F(WorkerEndTest, APipeIsNotWaitedFor) {
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(TextOf(Exited(3), "trainyard: output and errors go to " + pipe + "\n"),
              EndsWith("exit code 3 (" + pipe + ")"));
}

}  // namespace
}  // namespace trainyard::supervisor
