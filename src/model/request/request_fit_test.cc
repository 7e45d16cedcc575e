// SPDX-License-Identifier: Apache-2.0
#include "model/request/request_fit.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/node_classes.h"
#include "model/request/could_have.h"

namespace trainyard::model {
namespace {

// Two nodes of 4 GPUs and 16 CPUs of type V, one of 8 GPUs and 64 CPUs of type A.
Cluster ThreeNodes() {
  Cluster cluster;
  const auto add = [&cluster](const std::string& name, int gpus, int cpus, const char* type) {
    cluster.nodes.push_back(
        {.name = name, .gpus = gpus, .gpu_type = type, .capacity = {.milli_cpus = cpus * 1000}});
  };
  add("n0", 4, 16, "V");
  add("n1", 4, 16, "V");
  add("big0", 8, 64, "A");
  return cluster;
}

JobSpec Asking(int gpus, NodeRequest request) {
  JobSpec job{.name = "job", .gpus = gpus};
  JobTraits traits;
  traits.request = std::move(request);
  job.traits = std::make_shared<const JobTraits>(std::move(traits));
  return job;
}

std::string WhyNot(const JobSpec& job) {
  const Status met = CanBeMet(ThreeNodes(), job, {true, true, true});
  return met.ok() ? "" : met.error().message;
}

TEST(RequestFitTest, TheNearestIsThatOfAsManyNodesAsItNeeds) {
  EXPECT_EQ(
      WhyNot(Asking(
          8, {.cpus = {.milli = 20'000, .per = Per::kNode}, .nodes = {.least = 2, .most = 2}})),
      "it asks for 20/node CPUs beside 8 GPUs on 2 nodes, evenly; the 2 of its nodes that have "
      "the most have 16 CPUs each or more");
  EXPECT_EQ(
      WhyNot(Asking(1, {.cpus = {.milli = 65'000}})),
      "it asks for 65 CPUs beside 1 GPU; the most that one of its nodes has, big0, is 64 CPUs "
      "and 8 GPUs");
  EXPECT_EQ(WhyNot(Asking(8, {.cpus = {.milli = 16'000, .per = Per::kNode},
                              .nodes = {.least = 2, .most = 2}})),
            "");
}

TEST(RequestFitTest, OtherNumbersOfGpusAndOneTypeMayBeTooMuch) {
  const Cluster cluster = ThreeNodes();
  const NodeClasses classes(cluster);
  const NodeClassSet of_v = classes.OfType(classes.types().of(NodeAt(0)));
  const JobSpec silent{.name = "job", .gpus = 1};
  const JobSpec on_n0 = Asking(1, {.node_list = "n0"});
  const JobSpec on_three = Asking(8, {.nodes = {.least = 3, .most = 3}});
  EXPECT_TRUE(CouldHave(cluster, classes, silent, 64)) << "asks for nothing beside";
  EXPECT_TRUE(CouldHave(cluster, classes, on_n0, 4));
  EXPECT_FALSE(CouldHave(cluster, classes, on_n0, 5));
  EXPECT_TRUE(CouldHave(cluster, classes, on_n0, 4, of_v));
  EXPECT_TRUE(CouldHave(cluster, classes, on_three, 8));
  EXPECT_FALSE(CouldHave(cluster, classes, on_three, 2)) << "a GPU for each node at least";
  EXPECT_FALSE(CouldHave(cluster, classes, on_three, 8, of_v));
}

}  // namespace
}  // namespace trainyard::model
