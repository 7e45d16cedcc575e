// SPDX-License-Identifier: Apache-2.0
// What sbatch says before it needs a controller.
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <string>

#include "cli/slurm/slurm_commands.h"

namespace trainyard::cli {
namespace {

// On standard error, of this standard input.
std::string SaidOf(const std::string& input) {
  std::istringstream text(input);
  std::streambuf* const before = std::cin.rdbuf(text.rdbuf());
  testing::internal::CaptureStderr();
  EXPECT_EQ(Sbatch({}), 1);
  std::cin.rdbuf(before);
  return testing::internal::GetCapturedStderr();
}

TEST(SbatchTest, AnInputThatIsNoScriptIsToldAsSlurmTellsIt) {
  EXPECT_EQ(SaidOf(""), "sbatch: error: Batch script is empty!\n");
  EXPECT_EQ(SaidOf("true\n"),
            "sbatch: error: This does not look like a batch script.  The first\n"
            "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
            "sbatch: error: For instance: #!/bin/sh\n");
}

}  // namespace
}  // namespace trainyard::cli
