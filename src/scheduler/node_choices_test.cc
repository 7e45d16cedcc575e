// SPDX-License-Identifier: Apache-2.0
#include "scheduler/node_choices.h"

#include <gtest/gtest.h>

#include "profile/execution_model.h"

namespace trainyard::scheduler {
namespace {

Cluster Mixed() {
  return {.nodes = {{.name = "a", .gpus = 8, .gpu_type = "V100"},
                    {.name = "b", .gpus = 4, .gpu_type = "A100"},
                    {.name = "c", .gpus = 2, .gpu_type = "T4"},
                    {.name = "d", .gpus = 2, .gpu_type = "P4"}},
          .gpu_types = {{.name = "A100", .speed = 2}, {.name = "P4", .speed = 0.5}}};
}

JobSpec JobFor(std::vector<std::string> types, int gpus = 2) {
  JobSpec job{.gpus = gpus, .duration = FromSeconds(1)};
  if (!types.empty()) {
    job.traits = std::make_shared<JobTraits>(JobTraits{.gpu_types = std::move(types)});
  }
  return job;
}

class NodeChoicesTest : public testing::Test {
 protected:
  std::unique_ptr<ExecutionModel> rates_ = profile::MakeDurationModel();
  const Cluster cluster_ = Mixed();
  NodeChoices choices_{cluster_, *rates_};
};

TEST_F(NodeChoicesTest, TheFastestTypesComeFirstEquallyFastOnesTogether) {
  const NodeChoices::Choice& choice = choices_.Of(choices_.ClassOf(JobFor({}), 2).kind);
  EXPECT_EQ(choice.pools, (std::vector<model::GpuTypeSet>{0b0010, 0b0101, 0b1000}));
  EXPECT_EQ(choice.all, 0b1111U);
  EXPECT_EQ(choice.largest_node, 8);
}

TEST_F(NodeChoicesTest, TypesWithCommasAreInTheJobsOrder) {
  const auto pools = [this](const char* types) {
    return choices_.Of(choices_.ClassOf(JobFor({types}), 2).kind).pools;
  };
  EXPECT_EQ(pools("V100,A100"), (std::vector<model::GpuTypeSet>{0b0001, 0b0010}));
  EXPECT_EQ(pools("P4,T4,A100,K80"), (std::vector<model::GpuTypeSet>{0b1000, 0b0100, 0b0010}));
  EXPECT_EQ(choices_.Of(choices_.ClassOf(JobFor({"V100,A100"}), 2).kind).largest_node, 8);
  EXPECT_EQ(model::TypesText({"V100,A100"}), "V100, else A100");
  EXPECT_EQ(model::TypesText({"A100", "V100"}), "A100 or V100");
}

TEST_F(NodeChoicesTest, NodesThatAJobAvoidsMakeAnotherClass) {
  JobSpec avoids = JobFor({"V100", "A100"});
  const DemandClass before = choices_.ClassOf(avoids, 2);
  auto traits = std::make_shared<JobTraits>(*avoids.traits);
  traits->avoided = {NodeAt(0)};
  avoids.traits = traits;
  const DemandClass after = choices_.ClassOf(avoids, 2);
  EXPECT_NE(after, before);
  EXPECT_EQ(choices_.Of(before.kind).largest_node, 8);
  EXPECT_EQ(choices_.Of(after.kind).largest_node, 4);
  StateStream state;
  choices_.Serialize(state);
  NodeChoices again(cluster_, *rates_);
  StateStream bytes(state.bytes());
  again.Serialize(bytes);
  EXPECT_EQ(again.ClassOf(avoids, 2), after);
}

TEST_F(NodeChoicesTest, DemandsWithTheSameChoiceAreOfOneClass) {
  const DemandClass any = choices_.ClassOf(JobFor({}), 2);
  EXPECT_EQ(choices_.ClassOf(JobFor({"A100", "P4", "T4", "V100"}), 2), any);
  const DemandClass some = choices_.ClassOf(JobFor({"P4", "T4"}), 2);
  EXPECT_NE(some, any);
  EXPECT_EQ(choices_.Of(some.kind).all, 0b1100U);
  EXPECT_EQ(choices_.Of(some.kind).largest_node, 2);
}

TEST_F(NodeChoicesTest, NoTypeIsLeftWhereTheJobHasNoRate) {
  EXPECT_EQ(choices_.Of(choices_.ClassOf(JobFor({}), 3).kind).all, 0U);  // durations are for 2 GPUs
}

TEST_F(NodeChoicesTest, ObjectsToTypesThatAJobDoesNotAccept) {
  const JobSpec job = JobFor({"A100", "T4"});
  EXPECT_EQ(choices_.Conflict(job, {.gpus = 2, .slices = {{.node = NodeAt(1), .gpus = 0b11}}}), "");
  EXPECT_EQ(choices_.Conflict(job, {.gpus = 2,
                                    .slices = {{.node = NodeAt(1), .gpus = 0b1},
                                               {.node = NodeAt(3), .gpus = 0b1}}}),
            "is given GPUs of type P4; it runs on A100 and T4");
}

TEST(NodeChoicesOfOneTypeTest, AllDemandsOfASizeAreAlike) {
  const std::unique_ptr<ExecutionModel> rates = profile::MakeDurationModel();
  const Cluster cluster{.nodes = {{.name = "a", .gpus = 8, .gpu_type = "V100"}}};
  NodeChoices choices(cluster, *rates);
  EXPECT_FALSE(choices.several());
  EXPECT_EQ(choices.ClassOf(JobFor({"V100"}), 2), choices.ClassOf(JobFor({}), 2));
}

}  // namespace
}  // namespace trainyard::scheduler
