// SPDX-License-Identifier: Apache-2.0
#include "scheduler/packing.h"

#include <gtest/gtest.h>

#include "profile/execution_model.h"
#include "support/lowest_node.h"

namespace trainyard::scheduler {
namespace {

// Two nodes of four GPUs.
class PackingTest : public testing::Test {
 protected:
  static Grant On(std::size_t node, std::uint64_t mask, int gpus) {
    return {.gpus = gpus, .slices = {{.node = NodeAt(node), .gpus = mask}}};
  }

  const JobSpec job_{.name = "job"};
  const Cluster cluster_{.nodes = {NodeSpec{.gpus = 4}, NodeSpec{.gpus = 4}}};
  const LowestNode lowest_{};
};

TEST_F(PackingTest, TakesWhatThePlacementChooses) {
  Packing packing(cluster_, &lowest_);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 3}, nullptr), On(0, 0b0111, 3));
  EXPECT_EQ(packing.free_gpus(), 5);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 2}, nullptr), On(1, 0b0011, 2));
}

// Gives the same slices whatever is free.
class Stubborn final : public Placement {
 public:
  explicit Stubborn(Slices slices) : slices_(std::move(slices)) {}
  [[nodiscard]] std::string_view name() const override { return "stubborn"; }
  [[nodiscard]] std::optional<Slices> Choose(const FreeGpus& /*free*/, const JobSpec& /*job*/,
                                             const Demand& /*demand*/) const override {
    return slices_;
  }

 private:
  const Slices slices_;
};

TEST_F(PackingTest, APlacementThatBreaksItsContractIsNamed) {
  for (const Slices& slices : std::vector<Slices>{
           {{.node = NodeAt(0), .gpus = 0b110000}},  // not there
           {{.node = NodeAt(2), .gpus = 0b0011}},    // no node
           {{.node = NodeAt(1), .gpus = 0b0001}, {.node = NodeAt(0), .gpus = 0b0001}}}) {  // order
    const Stubborn stubborn(slices);
    Packing packing(cluster_, &stubborn);
    EXPECT_DEATH((void)packing.TryAdd(job_, {.gpus = 2}, nullptr),
                 "placement 'stubborn' gives job");
  }
}

TEST_F(PackingTest, AJobIsKeptFromNodesThatItAvoids) {
  const std::unique_ptr<ExecutionModel> rates = profile::MakeDurationModel();
  NodeChoices types(cluster_, *rates);
  Packing packing(cluster_, &lowest_, nullptr, &types);
  EXPECT_FALSE(packing.several_kinds());
  JobSpec avoids{.name = "avoids"};
  avoids.traits = std::make_shared<JobTraits>(JobTraits{.avoided = {NodeAt(0)}});
  const DemandClass of = packing.ClassOf(avoids, 3);
  EXPECT_NE(of, packing.ClassOf(job_, 3));  // who may go there is tried all the same
  EXPECT_FALSE(packing.MayUse(of, NodeAt(0)));
  EXPECT_EQ(packing.free_gpus(of), 4);
  EXPECT_EQ(packing.largest_node(of), 4);
  EXPECT_EQ(packing.TryAdd(avoids, {.gpus = 3}, nullptr), On(1, 0b0111, 3));
  EXPECT_EQ(packing.TryAdd(avoids, {.gpus = 3}, nullptr), std::nullopt);
  EXPECT_EQ(packing.WhyNot(of), model::WaitReason::kGpus);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 3}, nullptr), On(0, 0b0111, 3));
}

TEST_F(PackingTest, WhatDoesNotFitTakesNothing) {
  Packing packing(cluster_, &lowest_);
  packing.Add(JobSpec(), On(0, 0b0001, 1));
  packing.Add(JobSpec(), On(1, 0b0001, 1));
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 4}, nullptr), std::nullopt);
  EXPECT_EQ(packing.free_gpus(), 6);
}

TEST_F(PackingTest, AJobStaysOnItsFormerGpus) {
  Packing packing(cluster_, &lowest_);
  const Grant former = On(1, 0b0110, 2);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 2}, &former), former);
  EXPECT_EQ(packing.free_gpus(), 6);
}

TEST_F(PackingTest, FormerGpusThatAreTakenArePlacedAnew) {
  Packing packing(cluster_, &lowest_);
  packing.Add(JobSpec(), On(1, 0b0010, 1));
  const Grant former = On(1, 0b0110, 2);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 2}, &former), On(0, 0b0011, 2));
}

TEST_F(PackingTest, AnotherNumberOfGpusIsPlacedAnew) {
  Packing packing(cluster_, &lowest_);
  const Grant former = On(1, 0b0110, 2);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 3}, &former), On(0, 0b0111, 3));
}

TEST_F(PackingTest, FormerGpusOfANodeThatIsDownArePlacedAnew) {
  Packing packing(cluster_, &lowest_);
  packing.SetUp(NodeAt(1), false);
  const Grant former = On(1, 0b0110, 2);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 2}, &former), On(0, 0b0011, 2));
}

TEST_F(PackingTest, NoGpusAlwaysFit) {
  Packing packing(cluster_, &lowest_);
  packing.Add(JobSpec(), On(0, 0b1111, 4));
  packing.Add(JobSpec(), On(1, 0b1111, 4));
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 0}, nullptr), Grant{});
}

TEST_F(PackingTest, WhatIsRemovedIsFreeAgain) {
  Packing packing(cluster_, &lowest_);
  packing.Add(JobSpec(), On(0, 0b1111, 4));
  packing.Remove(JobSpec(), On(0, 0b1111, 4));
  EXPECT_EQ(packing.free_gpus(), 8);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 4}, nullptr), On(0, 0b1111, 4));
}

TEST_F(PackingTest, SaysWhetherGpusAreMissingOrScattered) {
  Packing packing(cluster_, &lowest_);
  packing.Add(JobSpec(), On(0, 0b0001, 1));
  packing.Add(JobSpec(), On(1, 0b0001, 1));
  EXPECT_EQ(packing.WhyNot({7}), model::WaitReason::kGpus);
  EXPECT_EQ(packing.WhyNot({4}), model::WaitReason::kLocality);
}

TEST_F(PackingTest, ClearRemovesEverything) {
  Packing packing(cluster_, &lowest_);
  packing.Add(JobSpec(), On(0, 0b1111, 4));
  packing.Clear();
  EXPECT_EQ(packing.free_gpus(), 8);
}

TEST_F(PackingTest, ClearKeepsNodesDown) {
  Packing packing(cluster_, &lowest_);
  packing.SetUp(NodeAt(0), false);
  packing.Add(JobSpec(), On(1, 0b0001, 1));
  packing.Clear();
  EXPECT_EQ(packing.free_gpus(), 4);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 4}, nullptr), On(1, 0b1111, 4));
  packing.SetUp(NodeAt(0), true);
  EXPECT_EQ(packing.free_gpus(), 4);
}

TEST_F(PackingTest, CountingNamesNoGpus) {
  Packing packing(cluster_);
  EXPECT_FALSE(packing.names_gpus());
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 6}, nullptr), Grant{.gpus = 6});
  EXPECT_EQ(packing.free_gpus(), 2);
  EXPECT_EQ(packing.TryAdd(job_, {.gpus = 3}, nullptr), std::nullopt);
  packing.Remove(JobSpec(), {.gpus = 6});
  EXPECT_EQ(packing.free_gpus(), 8);
}

TEST_F(PackingTest, ClearRemovesWhatWasCounted) {
  Packing packing(cluster_);
  packing.Add(JobSpec(), {.gpus = 6});
  packing.Clear();
  EXPECT_EQ(packing.free_gpus(), 8);
}

using PackingDeathTest = PackingTest;

TEST_F(PackingDeathTest, NothingIsAddedTwice) {
  Packing packing(cluster_, &lowest_);
  packing.Add(JobSpec(), On(0, 0b0001, 1));
  EXPECT_DEATH(packing.Add(JobSpec(), On(0, 0b0011, 2)), "CHECK");
}

// ---------------------------------------------------------------------------------- several types

// Two nodes of V100, one of A100, which is faster, one of P100, as fast as V100.
class TypedPackingTest : public PackingTest {
 protected:
  const Cluster mixed_{
      .nodes = {NodeSpec{.gpus = 2, .gpu_type = "V100"}, NodeSpec{.gpus = 2, .gpu_type = "V100"},
                NodeSpec{.gpus = 4, .gpu_type = "A100"}, NodeSpec{.gpus = 4, .gpu_type = "P100"}},
      .gpu_types = {{.name = "A100", .speed = 2}}};
  const std::unique_ptr<ExecutionModel> rates_ = profile::MakeDurationModel();
  NodeChoices types_{mixed_, *rates_};
  Packing packing_{mixed_, &lowest_, nullptr, &types_};

  static JobSpec Asking(int gpus, std::vector<std::string> types = {}) {
    JobSpec job{.name = "job", .gpus = gpus, .duration = FromSeconds(1)};
    job.traits = std::make_shared<JobTraits>(JobTraits{.gpu_types = std::move(types)});
    return job;
  }
  std::optional<Grant> Add(const JobSpec& job) {
    return packing_.TryAdd(job, {.gpus = job.gpus}, nullptr);
  }
};

TEST_F(TypedPackingTest, TheFastestTypeComesFirstThenThePlacementsRule) {
  EXPECT_EQ(Add(Asking(2)), On(2, 0b0011, 2));
  EXPECT_EQ(Add(Asking(2)), On(2, 0b1100, 2));
  EXPECT_EQ(Add(Asking(2)), On(0, 0b11, 2));
  EXPECT_EQ(Add(Asking(3)), On(3, 0b0111, 3));
}

TEST_F(TypedPackingTest, OnlyAcceptedTypesCount) {
  EXPECT_EQ(Add(Asking(2, {"P100", "T4"})), On(3, 0b0011, 2));
  EXPECT_EQ(Add(Asking(3, {"P100"})), std::nullopt);
  const DemandClass of = packing_.ClassOf(Asking(3, {"P100"}), 3);
  EXPECT_EQ(packing_.free_gpus(of), 2);
  EXPECT_EQ(packing_.WhyNot(of), model::WaitReason::kGpus);
  EXPECT_EQ(packing_.largest_node(of), 4);
  EXPECT_FALSE(packing_.MayUse(of, NodeAt(2)));
}

TEST_F(TypedPackingTest, WhatIsTakenAndReturnedIsSoForEveryType) {
  const std::optional<Grant> first = Add(Asking(4));
  ASSERT_EQ(first, On(2, 0b1111, 4));
  EXPECT_EQ(Add(Asking(4)), On(3, 0b1111, 4));
  packing_.Remove(JobSpec(), *first);
  EXPECT_EQ(Add(Asking(4, {"A100"})), On(2, 0b1111, 4));
  packing_.Clear();
  packing_.SetUp(NodeAt(2), false);
  EXPECT_EQ(Add(Asking(4, {"A100"})), std::nullopt);
  EXPECT_EQ(Add(Asking(2)), On(0, 0b11, 2));
}

}  // namespace
}  // namespace trainyard::scheduler
