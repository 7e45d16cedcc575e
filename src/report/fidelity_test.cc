// SPDX-License-Identifier: Apache-2.0
#include "report/fidelity.h"

#include <gtest/gtest.h>

#include <fstream>

#include "io/scratch_folder.h"

namespace trainyard {
namespace {

class FidelityTest : public testing::Test {
 protected:
  std::string Run(const std::string& name, const std::string& rows) {
    const std::string folder = scratch_.path() + "/" + name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/jobs.csv") << "job_id,outcome,jct,queueing_delay\n" << rows;
    return folder;
  }
  ScratchFolder scratch_;
};

TEST_F(FidelityTest, JobsAreComparedByTheirIdWhateverTheirOrder) {
  const Result<Fidelity> compared =
      CompareRuns(Run("a", "x,completed,100,1\ny,completed,200,0\nz,rejected,,\n"),
                  Run("b", "y,completed,206,0\nx,completed,100.0004,1\nz,completed,5,0\n"));
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  const Fidelity& fidelity = compared.value();
  EXPECT_EQ(fidelity.rows.size(), 3U);
  EXPECT_EQ(fidelity.same_outcome, 2);
  EXPECT_EQ(fidelity.same_jct, 1);
  EXPECT_DOUBLE_EQ(*fidelity.jct_mean_a, 150);
  EXPECT_NEAR(*fidelity.jct_mean_b, 103.6668, 1e-4);
}

TEST_F(FidelityTest, RunsOfOtherJobsAreRefused) {
  const std::string a = Run("a", "x,completed,100,1\n");
  const Result<Fidelity> missing = CompareRuns(a, Run("b", "y,completed,100,1\n"));
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("has no job 'x'"), std::string::npos);
  const Result<Fidelity> more = CompareRuns(a, Run("c", "x,completed,1,1\ny,completed,1,1\n"));
  ASSERT_FALSE(more.ok());
  EXPECT_NE(more.error().message.find("has 2 jobs"), std::string::npos);
  EXPECT_FALSE(CompareRuns(a, a + "/nothing").ok());
}

}  // namespace
}  // namespace trainyard
