// SPDX-License-Identifier: Apache-2.0
#include "loader/throughput_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "io/csv_reader.h"
#include "support/reference.h"
#include "support/scratch_folder.h"

namespace trainyard::loader {
namespace {

ThroughputModel HandMade() {
  return {.gpu = {.base = 0.5, .network = 0.01, .params = 0.02, .batch_dense = 0.1},
          .loader = {.per_worker = 0.01, .shared = 0.001}};
}

const ModelSize kSize{.name = "a1", .params = 10, .dense_flops = 2, .flops = 2};

TEST(ThroughputModelTest, AnIterationIsTheSumOfItsParts) {
  // 0.5 + 0.01 x 3 x 10 + 0.02 x 10 + 8/4 x 0.1 x 2
  EXPECT_NEAR(HandMade().IterationSeconds(kSize, {.batch = 8, .devices = 4}), 1.4, 1e-12);
  EXPECT_NEAR(HandMade().DeviceRate(kSize, {.batch = 8, .devices = 4}), 2 / 1.4, 1e-12);
}

TEST(ThroughputModelTest, WhereTheKindsAreNotKnownAllCountAsDense) {
  const ModelSize plain{.name = "a1", .params = 10, .flops = 2, .kinds_known = false};
  EXPECT_NEAR(HandMade().IterationSeconds(plain, {.batch = 8, .devices = 4}), 1.4, 1e-12);
}

TEST(ThroughputModelTest, WorkersAddUpToACeiling) {
  const ThroughputModel model = HandMade();
  EXPECT_NEAR(model.LoaderRate(1), 1 / 0.011, 1e-9);
  EXPECT_NEAR(model.LoaderRate(10), 500, 1e-9);
  EXPECT_LT(model.LoaderRate(1e9), 1000);
  EXPECT_EQ(model.LoaderRate(0), 0);
  EXPECT_NEAR(model.WorkerRate(10), 50, 1e-9);
}

TEST(ThroughputModelTest, ShippedNeverGoesBelowItsBase) {
  const ModelSize heavy{.name = "heavy", .params = 60e6, .dense_flops = 6e9, .flops = 6e9};
  const TrainingShape small{.batch = 16, .devices = 1};
  EXPECT_LT(ThroughputModel::Published().IterationSeconds(heavy, small), 0);
  EXPECT_EQ(ThroughputModel::Shipped().IterationSeconds(heavy, small),
            ThroughputModel::Published().gpu.base);
}

TEST(ThroughputModelTest, FilesKeepEveryDigit) {
  const ScratchFolder folder;
  ThroughputModel model = HandMade();
  model.gpu.batch_linear = 6.516301291904076e-10;
  const auto read = ThroughputModel::Read(folder.Write("model.csv", model.Write()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value(), model);
}

// What a fit writes where a side had no runs.
TEST(ThroughputModelTest, TheShippedModelIsReadAgain) {
  const ScratchFolder folder;
  ThroughputModel model = ThroughputModel::Shipped();
  const auto read = ThroughputModel::Read(folder.Write("model.csv", model.Write()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value(), model);
  model.least_seconds = 0;
  const auto refused = ThroughputModel::Read(folder.Write("model.csv", model.Write()));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("coefficient 'gpu_params' is below zero"),
            std::string::npos)
      << refused.error().message;
}

std::string ErrorOf(std::string_view text) {
  const ScratchFolder folder;
  const auto read = ThroughputModel::Read(folder.Write("model.csv", text));
  const std::string message = read.ok() ? "no error" : read.error().message;
  return message.substr(message.rfind('/') + 1);
}

TEST(ThroughputModelTest, BadFilesAreRefused) {
  EXPECT_EQ(ErrorOf("coefficient,value\ngpu_base,-1\n"),
            "model.csv:2: column 'value' is '-1'; expected a number >= 0");
  EXPECT_EQ(ErrorOf("coefficient,value\ngpu_base,1\ngpu_base,1\n"),
            "model.csv:3: coefficient 'gpu_base' is there twice");
  EXPECT_EQ(
      ErrorOf("coefficient,value\ngpu_base,1\n")
          .find("model.csv: no coefficient 'gpu_network'; expected one row for each of gpu_base"),
      0U);
  EXPECT_EQ(ErrorOf("coefficient,value\nbase,1\n")
                .find("model.csv:2: column 'coefficient' is 'base'; expected one of gpu_base"),
            0U);
}

void ExpectRelative(double actual, double expected) {
  EXPECT_LE(std::abs(actual - expected), 1e-9 * std::abs(expected)) << actual << " " << expected;
}

// Every row of the published predictions; those of a model with a twin must be refused.
TEST(ThroughputModelTest, PublishedPredictions) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string root = Reference();
  const auto catalog =
      ModelCatalog::Read(root + "/data/torchloader/models.csv", ModelCatalog::Twins::kRefusedInUse);
  ASSERT_TRUE(catalog.ok()) << catalog.error().message;
  EXPECT_FALSE(ModelCatalog::Read(root + "/data/torchloader/models.csv").ok());
  const auto table =
      io::CsvTable::Open(root + "/golden/torchloader/tpm_shipped_models/predictions.csv");
  ASSERT_TRUE(table.ok());
  const ThroughputModel model = ThroughputModel::Published();
  int compared = 0;
  const Status read = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    const auto size = catalog.value().Find(row.Text(table.value().Column({"model"})));
    const bool refused = !row.Text(table.value().Column({"error"})).empty();
    EXPECT_EQ(size.ok(), !refused) << row.line();
    if (!size.ok()) {
      return {};
    }
    const auto number = [&](std::string_view name) {
      return row.Number(table.value().Column({name}), -1e300).value();
    };
    const TrainingShape shape{.batch = number("batch_total"),
                              .devices = static_cast<int>(number("devices"))};
    const double gpu = model.DeviceRate(*size.value(), shape);
    const double worker = model.WorkerRate(shape.devices);
    ExpectRelative(gpu, number("gpu_tpt_per_device"));
    ExpectRelative(worker, number("cpu_tpt_per_worker"));
    ExpectRelative(gpu / worker, number("workers_per_device_float"));
    ++compared;
    return {};
  });
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_GT(compared, 800);
}

}  // namespace
}  // namespace trainyard::loader
