// SPDX-License-Identifier: Apache-2.0
#include "profile/execution_model.h"

#include <gtest/gtest.h>

#include "profile/overhead_model.h"

namespace trainyard::profile {
namespace {

TEST(DurationModelTest, RunsOnTheRequestedGpusOnly) {
  const std::unique_ptr<ExecutionModel> model = MakeDurationModel();
  const JobSpec job{.gpus = 4, .duration = FromSeconds(90)};
  EXPECT_EQ(model->TotalWork(job), 90);
  EXPECT_EQ(model->Rate(job, 4), 1);
  EXPECT_EQ(model->Rate(job, 2), 0);
}

TEST(OverheadModelTest, ListedModelsPayTheirOwnCosts) {
  OverheadTable table{.fallback = {.start = FromSeconds(2), .migrate = FromSeconds(3)},
                      .models = {}};
  table.models["vgg16"] = {.migrate = FromSeconds(3.2)};
  const OverheadModel model(table);
  EXPECT_EQ(model.Cost(Change::kMigrate, {.model = "vgg16"}, 8, 64, false), FromSeconds(3.2));
  EXPECT_EQ(model.Cost(Change::kMigrate, {.model = "other"}, 8, 64, false), FromSeconds(3));
  EXPECT_EQ(model.Cost(Change::kStart, {.model = "other"}, 8, 64, false), FromSeconds(2));
}

TEST(OverheadModelTest, ACostMayGrowWithTheGpus) {
  OverheadTable table{.fallback = {.start = FromSeconds(10)}, .models = {}, .by_gpus = {}};
  table.by_gpus["vgg19"] = {{1, FromSeconds(7)}, {4, FromSeconds(8)}, {16, FromSeconds(10)}};
  const OverheadModel model(table);
  const auto cost = [&model](int gpus) {
    return model.Cost(Change::kMigrate, {.model = "vgg19"}, gpus, 64, false);
  };
  EXPECT_EQ(cost(1), FromSeconds(7));
  EXPECT_EQ(cost(2), FromSeconds(8));
  EXPECT_EQ(cost(4), FromSeconds(8));
  EXPECT_EQ(cost(64), FromSeconds(10));
  EXPECT_EQ(model.Cost(Change::kStart, {.model = "other"}, 4, 64, false), FromSeconds(10));
}

// ElasticFlow's simulator: 32 GPUs in a 256-GPU cluster, GPU set not used before: 7 + 2 * 6.
TEST(OverheadModelTest, TheFormulaGrowsWithTheLogarithmOfTheGpus) {
  const OverheadModel model(OverheadFormula{.base = 2,
                                            .per_doubling = 2,
                                            .full_restart = 27,
                                            .large_cluster = 256,
                                            .large_base = 7,
                                            .large_full_restart = 47});
  EXPECT_EQ(model.Cost(Change::kStart, {}, 32, 256, false), FromSeconds(19));
  EXPECT_EQ(model.Cost(Change::kStart, {}, 1, 64, false), FromSeconds(4));
  EXPECT_EQ(model.Cost(Change::kStart, {}, 1, 64, true), FromSeconds(31));
}

}  // namespace
}  // namespace trainyard::profile
