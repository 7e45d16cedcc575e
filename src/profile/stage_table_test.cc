// SPDX-License-Identifier: Apache-2.0
#include "profile/stage_table.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace trainyard::profile {
namespace {

constexpr const char* kHeading = "model,batch_size,gpus,iteration_time,stage_0,stage_1,stage_2\n";

class StageTableTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Write(const std::string& rows) const {
    return folder_.Write("stages.csv", kHeading + rows);
  }
  [[nodiscard]] std::string ErrorOf(const std::string& rows) const {
    return ErrorFrom("stages.csv", StageTable::Read(Write(rows)));
  }

  const ScratchFolder folder_;
};

TEST_F(StageTableTest, AJobWithoutStagesGetsThoseOfItsRow) {
  (void)Write("net,64,1,0.5,0.2,0.3,0\nnet,64,2,0.4,0.2,0.15,0.05\n");
  ASSERT_TRUE(StageTable::IsAt(folder_.path()));
  const Result<StageTable> table = StageTable::Read(folder_.path());
  ASSERT_TRUE(table.ok()) << table.error().message;
  JobSpec job;
  job.gpus = 2;
  job.duration = FromSeconds(40);
  job.model = "net";
  job.batch_size = 64;
  BindStages(table.value(), job);
  ASSERT_NE(job.traits, nullptr);
  EXPECT_EQ(job.traits->stages->stages, std::vector<double>({0.2, 0.15, 0.05}));
  EXPECT_EQ(job.iterations, 100);

  const StageTimes own{.iteration = 1, .stages = {1, 0, 0}};
  job.traits = std::make_shared<const JobTraits>(JobTraits{.stages = own});
  BindStages(table.value(), job);
  EXPECT_EQ(job.traits->stages, own) << "what a job states counts";
  job.traits = nullptr;
  job.gpus = 4;
  BindStages(table.value(), job);
  EXPECT_EQ(job.traits, nullptr) << "no row";
}

TEST_F(StageTableTest, AnotherTableIsNone) {
  EXPECT_FALSE(StageTable::IsAt(folder_.path()));
  const std::string trace = folder_.Write(
      "stages.csv", "job_id,submit_time,gpus,iteration_time,stage_0,stage_1,stage_2\n");
  EXPECT_FALSE(StageTable::IsAt(trace));
}

TEST_F(StageTableTest, BadRowsAreNamed) {
  EXPECT_EQ(ErrorOf("net,64,1,0,0.2,0.3,0\n"),
            "stages.csv:2: column 'iteration_time' is '0'; expected a number > 0");
  EXPECT_EQ(ErrorOf("net,64,1,1,-1,0.3,0\n"),
            "stages.csv:2: column 'stage_0' is '-1'; expected a number >= 0");
  EXPECT_EQ(ErrorOf("net,64,1,1,1,0,0\nnet,64,1,1,1,0,0\n"),
            "stages.csv:3: 'net' with batch size 64 on 1 GPUs is there twice; expected one row for "
            "each");
}

}  // namespace
}  // namespace trainyard::profile
