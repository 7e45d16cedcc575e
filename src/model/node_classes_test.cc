// SPDX-License-Identifier: Apache-2.0
#include "model/node_classes.h"

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
  const NodeClasses types(ThreeTypes());
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

// a and b are "debug", all nodes "long"; c is removed.
Cluster Parted() {
  Cluster cluster = ThreeTypes();
  cluster.nodes[2].gpus = 0;
  cluster.partitions = {{.name = "debug",
                         .has_all_nodes = false,
                         .nodes = {"a", "b"},
                         .most_gpus = 4,
                         .longest = FromSeconds(3600),
                         .default_time = FromSeconds(600)},
                        {.name = "long"}};
  return cluster;
}

JobSpec JobOf(std::string queue, std::vector<std::string> types = {}) {
  JobSpec job = JobFor(std::move(types));
  job.queue = std::move(queue);
  return job;
}

TEST(NodeClassesTest, WithoutPartitionsClassesAreTypes) {
  const NodeClasses classes(ThreeTypes());
  EXPECT_EQ(classes.of(NodeAt(2)), 0U);
  EXPECT_EQ(classes.of(NodeAt(3)), 2U);
  EXPECT_EQ(classes.Accepted(JobOf("any")), classes.all());
  EXPECT_EQ(classes.Accepted(JobOf("", {"A100"})), 0b010U);
}

TEST(NodeClassesTest, AJobMayLieOnTheNodesOfItsPartitionWithTypesThatItAccepts) {
  Cluster cluster = Parted();
  const NodeClasses classes(cluster);
  EXPECT_EQ(classes.all(), 0b1111U);  // c is in none
  EXPECT_EQ(classes.Accepted(JobOf("debug")), 0b011U);
  EXPECT_EQ(classes.Accepted(JobOf("debug", {"A100"})), 0b010U);
  EXPECT_EQ(classes.Accepted(JobOf("debug", {"T4"})), 0U);
  EXPECT_EQ(classes.Accepted(JobOf("long")), 0b1011U);
  EXPECT_EQ(classes.Accepted(JobOf("gone")), classes.all());
  EXPECT_EQ(classes.GpusOf(0b011), 12);
  EXPECT_EQ(classes.NamesOf(0b1010), "A100 and (no type)");
  EXPECT_TRUE(classes.InPartition(JobOf("debug"), {{.node = NodeAt(1), .gpus = 1}}));
  EXPECT_FALSE(classes.InPartition(JobOf("debug"), {{.node = NodeAt(3), .gpus = 1}}));
  cluster.partitions[0].is_default = true;
  EXPECT_EQ(NodeClasses(cluster).Accepted(JobOf("gone")), 0b011U);
  const NodeClasses defaulted(cluster);
  EXPECT_FALSE(defaulted.Has(defaulted.OpenTo("gone"), NodeAt(3)));
  EXPECT_TRUE(defaulted.Has(defaulted.OpenTo("long"), NodeAt(3)));
}

TEST(PartitionsTest, OnlyThoseOfSomeNodesSetJobsApart) {
  Cluster cluster = Parted();
  ASSERT_NE(FirstWithSomeNodes(cluster), nullptr);
  EXPECT_EQ(FirstWithSomeNodes(cluster)->name, "debug");
  cluster.partitions[0].nodes = {"d", "b", "a"};  // all that are there
  EXPECT_EQ(FirstWithSomeNodes(cluster), nullptr);
}

// All nodes are of one class, and still not everybody's.
TEST(NodeClassesTest, APartitionMayHaveNoNodes) {
  Cluster cluster;
  cluster.nodes.assign(2, {.name = "a", .gpus = 8});
  EXPECT_FALSE(NodeClasses(cluster).several());
  cluster.partitions = {{.name = "none", .has_all_nodes = false}};
  EXPECT_TRUE(NodeClasses(cluster).several());
  EXPECT_EQ(NodeClasses(cluster).Accepted(JobOf("none")), 0U);
  EXPECT_EQ(NodeClasses(cluster).Accepted(JobOf("any")), 1U);
}

TEST(PartitionsTest, AJobEntersWithWhatItLeavesOutAndWithinTheLimits) {
  Cluster cluster = Parted();
  JobSpec job = JobOf("debug");
  ASSERT_TRUE(EnterPartition(cluster, job).ok());
  EXPECT_EQ(job.traits->time_limit, FromSeconds(600));
  const auto error = [&cluster](JobSpec wrong) {
    const Status status = EnterPartition(cluster, wrong);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(error(JobOf("")),
            "it names no queue, and no partition is the default; expected a queue that is one of: "
            "debug, long");
  EXPECT_EQ(error(JobOf("short")),
            "there is no partition 'short'; expected a queue that is one of: debug, long");
  job.gpus = 5;
  EXPECT_EQ(error(job), "it asks for 5 GPUs; partition 'debug' gives a job at most 4");
  job.gpus = 4;
  job.traits = std::make_shared<JobTraits>(JobTraits{.range = {.most = 8}});
  EXPECT_EQ(error(job), "it asks for 8 GPUs; partition 'debug' gives a job at most 4");
  job.traits = std::make_shared<JobTraits>(JobTraits{.time_limit = FromSeconds(7200)});
  EXPECT_EQ(error(job), "its time limit is 2h00m; partition 'debug' gives a job at most 1h00m");
  cluster.partitions[1].is_default = true;
  JobSpec nowhere;
  ASSERT_TRUE(EnterPartition(cluster, nowhere).ok());
  EXPECT_EQ(nowhere.queue, "long");
  EXPECT_EQ(nowhere.traits, nullptr);
}

TEST(PartitionsTest, AJobThatStatesNoCpusOrMemoryAsksForWhatThePartitionSays) {
  Cluster cluster = Parted();
  cluster.partitions[0].default_cpus = {.milli = 4000, .per = Per::kGpu};
  cluster.partitions[0].default_memory = {.mib = 8192, .per = Per::kNode};
  JobSpec silent = JobOf("debug");
  ASSERT_TRUE(EnterPartition(cluster, silent).ok());
  EXPECT_EQ(silent.traits->request->cpus, cluster.partitions[0].default_cpus);
  EXPECT_EQ(silent.traits->request->memory, cluster.partitions[0].default_memory);
  JobSpec stated = JobOf("debug");
  stated.traits = std::make_shared<JobTraits>(
      JobTraits{.request = NodeRequest{.cpus = {.milli = 1000}, .exclusive = true}});
  ASSERT_TRUE(EnterPartition(cluster, stated).ok());
  EXPECT_EQ(stated.traits->request->cpus.milli, 1000);
  EXPECT_EQ(stated.traits->request->memory, cluster.partitions[0].default_memory);
  EXPECT_TRUE(stated.traits->request->exclusive);
  JobSpec on_cpus = JobOf("debug");
  on_cpus.gpus = 0;
  ASSERT_TRUE(EnterPartition(cluster, on_cpus).ok());
  EXPECT_EQ(on_cpus.traits->request->cpus, CpuRequest()) << "an amount for each GPU";
  EXPECT_EQ(on_cpus.traits->request->memory, cluster.partitions[0].default_memory);
}

TEST(PartitionsTest, ThereAreNotTooManyKindsOfNodes) {
  Cluster cluster;
  for (std::size_t i = 0; i < kMaxNodeClasses; ++i) {
    cluster.nodes.push_back({.name = "n" + std::to_string(i), .gpus = 1});
    cluster.partitions.push_back({.name = "p" + std::to_string(i),
                                  .has_all_nodes = false,
                                  .nodes = {cluster.nodes.back().name}});
  }
  EXPECT_TRUE(CheckPartitions(cluster).ok());
  EXPECT_EQ(NodeClasses(cluster).Accepted(JobOf("p63")), NodeClassSet{1} << 63U);
  cluster.nodes.push_back({.name = "more", .gpus = 1});
  EXPECT_FALSE(CheckPartitions(cluster).ok());
}

}  // namespace
}  // namespace trainyard::model
