// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_types.h"

#include <gtest/gtest.h>

namespace trainyard::model {
namespace {

Cluster ThreeTypes() {
  return {.nodes = {{.name = "a", .gpus = 8, .gpu_type = "V100"},
                    {.name = "b", .gpus = 4, .gpu_type = "A100"},
                    {.name = "c", .gpus = 2, .gpu_type = "V100"},
                    {.name = "d", .gpus = 1}},
          .gpu_types = {{.name = "A100", .speed = 2.5}}};
}

JobSpec JobFor(std::vector<std::string> types) {
  JobSpec job;
  job.traits = std::make_shared<JobTraits>(JobTraits{.gpu_types = std::move(types)});
  return job;
}

TEST(GpuTypesTest, NumbersTypesByTheirFirstNodes) {
  const GpuTypes types(ThreeTypes());
  ASSERT_EQ(types.types().size(), 3U);
  EXPECT_EQ(types.types()[0].name, "V100");
  EXPECT_EQ(types.types()[0].speed, 1);
  EXPECT_EQ(types.types()[1].speed, 2.5);
  EXPECT_TRUE(types.several());
  EXPECT_EQ(types.of(NodeAt(2)), 0U);
  EXPECT_EQ(types.of(NodeAt(3)), 2U);
  EXPECT_EQ(types.NamesOf(types.all()), "V100 and A100 and (no type)");
}

TEST(GpuTypesTest, KnowsWhatSetsOfTypesHave) {
  const GpuTypes types(ThreeTypes());
  EXPECT_EQ(types.GpusOf(0b001), 10);
  EXPECT_EQ(types.GpusOf(0b110), 5);
  EXPECT_EQ(types.LargestNodeOf(0b110), 4);
  EXPECT_TRUE(types.Has(0b010, NodeAt(1)));
  EXPECT_FALSE(types.Has(0b010, NodeAt(0)));
}

TEST(GpuTypesTest, AJobAcceptsWhatItNamesOrAnything) {
  const GpuTypes types(ThreeTypes());
  EXPECT_EQ(types.Accepted(JobSpec{}), types.all());
  EXPECT_EQ(types.Accepted(JobFor({"A100", "H100"})), 0b010U);
  EXPECT_EQ(types.Accepted(JobFor({"H100"})), 0U);
}

TEST(GpuTypesTest, WhereNoNodeStatesATypeEveryJobIsAccepted) {
  Cluster cluster;
  cluster.nodes.assign(2, {.gpus = 8});
  EXPECT_EQ(GpuTypes(cluster).Accepted(JobFor({"H100"})), GpuTypes(cluster).all());
  cluster.nodes.push_back({.gpus = 8, .gpu_type = "A100"});
  EXPECT_EQ(GpuTypes(cluster).Accepted(JobFor({"H100"})), 0U);
}

}  // namespace
}  // namespace trainyard::model
