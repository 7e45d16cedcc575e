// SPDX-License-Identifier: Apache-2.0
#include "profile/execution_model.h"

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace trainyard::profile {
namespace {

Cluster Mixed() {
  return {.nodes = {{.name = "a", .gpus = 4, .gpu_type = "A100"},
                    {.name = "v", .gpus = 4, .gpu_type = "V100"}},
          .gpu_types = {{.name = "A100", .speed = 2.5}}};
}

Grant OnType(std::vector<std::size_t> nodes) {
  Grant grant{.gpus = 4};
  for (const std::size_t node : nodes) {
    grant.slices.push_back({.node = NodeAt(node), .gpus = 0b11});
  }
  return grant;
}

TEST(TypedModelTest, AGangIsAsFastAsItsSlowestType) {
  const std::unique_ptr<ExecutionModel> model = OnTypesOf(Mixed(), MakeDurationModel());
  JobSpec job{.gpus = 4, .duration = FromSeconds(90)};
  EXPECT_EQ(model->TotalWork(job), 90);
  EXPECT_EQ(model->RateUnder(job, OnType({0}), {}), 2.5);
  EXPECT_EQ(model->RateUnder(job, OnType({1}), {}), 1);
  EXPECT_EQ(model->RateUnder(job, OnType({0, 1}), {}), 1);
  EXPECT_EQ(model->ThroughputUnder(job, OnType({0}), {}).seconds_per_unit, 0.4);
}

TEST(TypedModelTest, WithoutAPlaceTheSlowestTypeThatAJobAcceptsCounts) {
  const std::unique_ptr<ExecutionModel> model = OnTypesOf(Mixed(), MakeDurationModel());
  JobSpec job{.gpus = 4, .duration = FromSeconds(90)};
  EXPECT_EQ(model->Rate(job, 4), 1);
  EXPECT_EQ(model->Rate(job, 2), 0);
  job.traits = std::make_shared<JobTraits>(JobTraits{.gpu_types = {"A100"}});
  EXPECT_EQ(model->Rate(job, 4), 2.5);
}

TEST(TypedModelTest, AMeasuredRateCountsInsteadOfTheSpeed) {
  const ScratchFolder folder;
  const std::string profile =
      "model,batch_size,gpus,iterations_per_second,gpu_type\nm,8,4,7,A100\nm,8,4,3,V100\n"
      "m,8,2,6,A100\nplain,8,4,4,\n";
  const auto table = ThroughputTable::Read(folder.Write("p.csv", profile),
                                           std::vector<std::string>{"A100", "V100"});
  ASSERT_TRUE(table.ok()) << table.error().message;
  const std::unique_ptr<ExecutionModel> model = OnTypesOf(Mixed(), MakeProfileModel(table.value()));
  const JobSpec measured{.gpus = 4, .iterations = 100, .profile_row = 0};
  EXPECT_EQ(model->RateUnder(measured, OnType({0}), {}), 7);
  EXPECT_EQ(model->RateUnder(measured, OnType({0, 1}), {}), 3);
  EXPECT_EQ(model->Rate(measured, 2), 6);  // it does not run on V100
  const JobSpec plain{.gpus = 4, .iterations = 100, .profile_row = 1};
  EXPECT_EQ(model->RateUnder(plain, OnType({0}), {}), 10);
  EXPECT_EQ(model->RateUnder(plain, OnType({1}), {}), 4);
}

TEST(TypedModelTest, IsThePlainModelWhereAllGpusAreAlike) {
  Cluster cluster = Mixed();
  cluster.nodes.erase(cluster.nodes.begin());
  std::unique_ptr<ExecutionModel> plain = MakeDurationModel();
  const ExecutionModel* const same = plain.get();
  EXPECT_EQ(OnTypesOf(cluster, std::move(plain)).get(), same);
}

}  // namespace
}  // namespace trainyard::profile
