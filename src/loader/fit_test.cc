// SPDX-License-Identifier: Apache-2.0
#include "loader/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "io/csv_reader.h"
#include "support/reference.h"
#include "support/scratch_folder.h"

namespace trainyard::loader {
namespace {

// Runs of a model that is exactly as the regression thinks.
std::vector<MeasuredRun> ExactRuns() {
  ThroughputModel model{.gpu = {.base = 0.02,
                                .network = 1e-9,
                                .params = 2e-9,
                                .batch_dense = 3e-13,
                                .batch_point = 3e-13,
                                .batch_depth = 3e-13,
                                .batch_linear = 3e-13},
                        .loader = {.per_worker = 0.008, .shared = 1e-4}};
  std::vector<MeasuredRun> runs;
  for (const double params : {1e6, 7e6, 20e6}) {
    for (const double flops : {2e9, 5e9}) {
      for (const int devices : {1, 2, 4}) {
        MeasuredRun run{.size = {.name = std::to_string(params + flops),
                                 .params = params,
                                 .dense_flops = flops,
                                 .flops = flops},
                        .shape = {.batch = 256, .devices = devices},
                        .workers = 16};
        run.iteration_seconds = model.IterationSeconds(run.size, run.shape);
        runs.push_back(run);
        run.workers = 2 * devices;
        run.iteration_seconds = run.shape.batch / model.LoaderRate(run.workers);
        run.loading_seconds = run.iteration_seconds / 2;
        runs.push_back(run);
      }
    }
  }
  return runs;
}

TEST(FitTest, FindsTheModelThatMadeTheRuns) {
  const LoaderFit fit = FitThroughputModel(ExactRuns(), {});
  EXPECT_EQ(fit.gpu.runs, 18U);
  EXPECT_EQ(fit.loader.runs, 18U);
  EXPECT_NEAR(fit.model.gpu.base, 0.02, 1e-9);
  EXPECT_NEAR(fit.model.gpu.network, 1e-9, 1e-15);
  EXPECT_NEAR(fit.model.gpu.batch_point, 3e-13, 1e-19);
  EXPECT_NEAR(fit.model.loader.per_worker, 0.008, 1e-9);
  EXPECT_NEAR(fit.model.loader.shared, 1e-4, 1e-9);
  for (const SideReport* side : {&fit.gpu, &fit.loader}) {
    EXPECT_NEAR(side->methods.front().unseen.r2, 1, 1e-9);
    EXPECT_NEAR(side->methods.front().unseen.error, 0, 1e-9);
  }
}

TEST(FitTest, CoefficientsAreNeverNegative) {
  std::vector<MeasuredRun> runs = ExactRuns();
  for (MeasuredRun& run : runs) {  // the more weights, the faster
    run.iteration_seconds /= 1 + run.size.params / 1e6;
    run.loading_seconds = 0;
  }
  LoaderFit fit = FitThroughputModel(runs, {});
  for (const CoefficientName& name : CoefficientNames()) {
    EXPECT_GE(name.of(fit.model), 0) << name.name;
  }
  EXPECT_GT(fit.gpu.methods[1].seen.r2, fit.gpu.methods[0].seen.r2);  // linear may be negative
}

TEST(FitTest, ASideWithoutRunsIsAsShipped) {
  std::vector<MeasuredRun> runs = ExactRuns();
  std::erase_if(runs, [](const MeasuredRun& run) { return run.loading_seconds > 0; });
  const LoaderFit fit = FitThroughputModel(runs, {});
  EXPECT_EQ(fit.loader.runs, 0U);
  EXPECT_TRUE(fit.loader.methods.empty());
  EXPECT_EQ(fit.model.loader, ThroughputModel::Shipped().loader);
}

std::string FitErrorOf(std::string_view text) {
  const ScratchFolder folder;
  const auto runs = ReadMeasuredRuns(folder.Write("runs.csv", text), nullptr);
  const std::string message = runs.ok() ? "no error" : runs.error().message;
  return message.substr(message.rfind('/') + 1);
}

constexpr std::string_view kFitHeader =
    "model,batch_size,num_worker,num_device,device,ave_iteration,ave_dataloading,params,flops\n";

TEST(MeasuredRunsTest, OnlyTheFirstDeviceCounts) {
  const ScratchFolder folder;
  const auto runs = ReadMeasuredRuns(
      folder.Write("runs.csv", std::string(kFitHeader) + "a1,64,8,2,device_0,0.5,0.1,10,20\n"
                                                         "a1,64,8,2,device_1,0.6,0.1,10,20\n"),
      nullptr);
  ASSERT_TRUE(runs.ok()) << runs.error().message;
  ASSERT_EQ(runs.value().size(), 1U);
  EXPECT_EQ(runs.value()[0].Rate(), 128);
  EXPECT_TRUE(LoaderWasTheLimit(runs.value()[0], 0.05));
}

TEST(MeasuredRunsTest, BadRowsAreRefused) {
  const std::string header(kFitHeader);
  EXPECT_EQ(FitErrorOf(header + "a1,64,8,2,device_0,0,0,10,20\n"),
            "runs.csv:2: column 'ave_iteration' is '0'; expected a number > 0");
  EXPECT_EQ(FitErrorOf(header + "a1,64,8,2,device_0,1,2,10,20\n"),
            "runs.csv:2: column 'ave_dataloading' is '2'; expected seconds from 0 to those of the "
            "iteration");
  EXPECT_EQ(FitErrorOf(header + "a1,64,0,2,device_0,1,0,10,20\n"),
            "runs.csv:2: column 'num_worker' is '0'; expected an integer from 1 to 1048576");
  EXPECT_EQ(FitErrorOf(header), "runs.csv: no runs; expected a row at least");
}

TEST(MeasuredRunsTest, UnknownModelsAreRefusedByRow) {
  const ScratchFolder folder;
  const auto catalog =
      ModelCatalog::Read(folder.Write("models.csv", "model,params,flops\na1,1,2\n"));
  ASSERT_TRUE(catalog.ok());
  const auto runs = ReadMeasuredRuns(
      folder.Write("runs.csv", std::string(kFitHeader) + "a2,64,8,2,device_0,1,0,10,20\n"),
      &catalog.value());
  ASSERT_FALSE(runs.ok());
  EXPECT_NE(runs.error().message.find("runs.csv:2: "), std::string::npos);
  EXPECT_NE(runs.error().message.find("unknown model 'a2'"), std::string::npos);
}

// The published regressions: fitted to one file, predicting the throughput of another.
TEST(FitTest, PublishedRegressions) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string data = Reference() + "/data/torchloader/";
  const auto known = ReadMeasuredRuns(data + "tpm_gpu_train_set.csv", nullptr);
  ASSERT_TRUE(known.ok()) << known.error().message;
  const auto catalog = ModelCatalog::Read(data + "model_size_early.csv");
  ASSERT_TRUE(catalog.ok()) << catalog.error().message;
  const auto table =
      io::CsvTable::Open(Reference() + "/golden/torchloader/tpm_gpu_regressors/predictions.csv");
  ASSERT_TRUE(table.ok());
  int compared = 0;
  const Status read = table.value().ForEach([&](const io::CsvRow& row) -> Status {
    const auto number = [&](std::string_view name) {
      return row.Number(table.value().Column({name}), -1e300).value();
    };
    const auto size = catalog.value().Find(row.Text(table.value().Column({"model"})));
    EXPECT_TRUE(size.ok());
    const MeasuredRun wanted{.size = *size.value(),
                             .shape = {.batch = number("batch_size"),
                                       .devices = static_cast<int>(number("num_device"))}};
    const auto rate = [&](FitMethod method) {
      return wanted.shape.batch /
             PredictIterations(method, GpuFeatures::kFlops, known.value(), std::span(&wanted, 1))
                 .front();
    };
    EXPECT_NEAR(rate(FitMethod::kLinear) / number("linear"), 1, 1e-6) << row.line();
    EXPECT_NEAR(rate(FitMethod::kNearest) / number("knn2"), 1, 1e-9) << row.line();
    ++compared;
    return {};
  });
  EXPECT_TRUE(read.ok());
  EXPECT_GT(compared, 30);
}

}  // namespace
}  // namespace trainyard::loader
