// SPDX-License-Identifier: Apache-2.0
#include "profile/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "io/csv_reader.h"
#include "support/reference.h"
#include "support/scratch_folder.h"

namespace trainyard::profile {
namespace {

constexpr double kStorage = 62.5;

// 24 CPUs, 500 GB and 500 MB/s for 8 GPUs.
NodeSpec PublishedNode() {
  return {.gpus = 8,
          .capacity = {.milli_cpus = 24000, .memory_mib = 500 * 1024, .storage_kbps = 500000}};
}
SensitivityProfile Alexnet() {
  return {.ratio = 3,
          .model = "alexnet",
          .best_cpus = 12,
          .best_memory_gb = 125,
          .speedup = 2.94,
          .iteration_seconds = 0.6};
}
SensitivityProfile M5() {
  return {.ratio = 3,
          .model = "m5",
          .best_cpus = 6,
          .best_memory_gb = 187.5,
          .speedup = 2.5,
          .iteration_seconds = 0.6};
}

TEST(SensitiveDemandTest, IsTheBestAmountWhereItFits) {
  const SensitiveDemand demand = DemandOf(Alexnet(), 2, PublishedNode(), kStorage);
  EXPECT_EQ(demand.best,
            (Resources{.milli_cpus = 24000, .memory_mib = 250 * 1024, .storage_kbps = 125000}));
  EXPECT_EQ(demand.speedup, 2.94);
}

TEST(SensitiveDemandTest, CutCpusTakeTheirPartOfTheSpeedup) {
  const SensitiveDemand demand = DemandOf(Alexnet(), 4, PublishedNode(), kStorage);
  EXPECT_EQ(demand.best.milli_cpus, 24000);
  EXPECT_DOUBLE_EQ(demand.speedup, 1 + 1.94 / 3);
}

TEST(SensitiveDemandTest, CutMemoryAloneTakesNothing) {
  const SensitiveDemand demand = DemandOf(M5(), 4, PublishedNode(), kStorage);
  EXPECT_EQ(demand.best.memory_mib, 500 * 1024);
  EXPECT_DOUBLE_EQ(demand.speedup, 2.5);
}

TEST(SensitiveDemandTest, AWholeNodeOrMoreGivesTheProportionalSpeed) {
  EXPECT_DOUBLE_EQ(DemandOf(Alexnet(), 8, PublishedNode(), kStorage).speedup, 1);
  EXPECT_DOUBLE_EQ(DemandOf(M5(), 8, PublishedNode(), kStorage).speedup, 1);
  const SensitiveDemand larger = DemandOf(Alexnet(), 16, PublishedNode(), kStorage);
  EXPECT_EQ(larger.speedup, 1);
  EXPECT_EQ(larger.best,
            (Resources{.milli_cpus = 48000, .memory_mib = 1000 * 1024, .storage_kbps = 1000000}));
}

TEST(SensitiveDemandTest, WhatTheNodeDoesNotStateIsMet) {
  const SensitiveDemand demand = DemandOf(Alexnet(), 8, {.gpus = 8}, kStorage);
  EXPECT_EQ(demand.best, Resources{});
  EXPECT_EQ(demand.speedup, 2.94);
}

class SensitivityModelTest : public testing::Test {
 protected:
  void SetUp() override {
    (void)folder_.Write("model_profiles.csv",
                        "cpu_per_gpu_ratio,model,gpus,best_cpus_per_gpu,best_mem_gb_per_gpu,"
                        "best_sspeed_per_gpu,batch_size,speedup,iter_time_s\n"
                        "3,vision,1,6,125,62.5,512,1.15,0.78\n");
    (void)folder_.Write("throughput_matrix.csv",
                        "cpu_per_gpu_ratio,model,gpus,cpus_per_gpu,mem_62.5_gb,mem_125_gb\n"
                        "3,vision,1,3,1,1.1\n3,vision,1,6,1.05,1.15\n");
    Result<SensitivityTable> table = SensitivityTable::Read(folder_.path());
    ASSERT_TRUE(table.ok());
    table_ = std::move(table).value();
    cluster_.nodes.push_back(PublishedNode());
  }
  [[nodiscard]] std::unique_ptr<ExecutionModel> Model(SensitivityRules::Speed speed) const {
    return MakeSensitivityModel(table_, cluster_, {.speed = speed});
  }
  static Grant With(double cpus, double memory_gb) {
    return {.gpus = 1,
            .slices = {{.gpus = 1,
                        .soft = {.milli_cpus = std::llround(cpus * 1000),
                                 .memory_mib = std::llround(memory_gb * 1024)}}}};
  }

  ScratchFolder folder_;
  SensitivityTable table_;
  Cluster cluster_;
  JobSpec job_{.model = "vision", .gpus = 1, .iterations = 100, .profile_row = 0};
};

TEST_F(SensitivityModelTest, ScalarIsAllOrNothing) {
  const auto model = Model(SensitivityRules::Speed::kScalar);
  EXPECT_EQ(model->TotalWork(job_), 100);
  EXPECT_EQ(model->Rate(job_, 1), 1.15 / 0.78);
  EXPECT_EQ(model->Rate(job_, 2), 0);
  EXPECT_EQ(model->Preferred(job_), (Resources{.milli_cpus = 6000, .memory_mib = 125 * 1024}));
  EXPECT_EQ(model->RateUnder(job_, With(6, 125), {}), 1.15 / 0.78);
  EXPECT_EQ(model->RateUnder(job_, With(5.9, 125), {}), 1 / 0.78);
  EXPECT_EQ(model->RateUnder(job_, With(6, 124), {}), 1 / 0.78);
  EXPECT_EQ(model->RateUnder(job_, {.gpus = 1}, {}), 1 / 0.78);  // a placement without amounts
}

// Three CPUs, 62.5 GB are the share of its GPU.
TEST_F(SensitivityModelTest, OfWhatIsNotAskedForAJobHasItsShare) {
  const auto model = Model(SensitivityRules::Speed::kMatrix);
  JobTraits traits;
  traits.request = NodeRequest{.cpus = {.milli = 6000}, .memory = {}, .nodes = {}};
  JobSpec asks = job_;
  asks.traits = std::make_shared<const JobTraits>(std::move(traits));
  EXPECT_DOUBLE_EQ(model->RateUnder(asks, With(6, 0), {}), 1.05 / 0.78);
  EXPECT_DOUBLE_EQ(model->RateUnder(asks, With(0, 125), {}), 1.1 / 0.78);
  EXPECT_DOUBLE_EQ(model->RateUnder(asks, With(6, 125), {}), 1.15 / 0.78);
}

// Worked by hand: 384 and 442 iterations in 300 s.
TEST_F(SensitivityModelTest, SecondsPerUnitCountsTheIterationsOfARound) {
  const auto model = Model(SensitivityRules::Speed::kScalar);
  EXPECT_EQ(std::floor(300 / model->ThroughputUnder(job_, With(3, 62.5), {}).seconds_per_unit),
            384);
  EXPECT_EQ(std::floor(300 / model->ThroughputUnder(job_, With(6, 125), {}).seconds_per_unit), 442);
  EXPECT_EQ(model->ThroughputUnder(job_, With(6, 125), {}).seconds_per_unit, 0.78 / 1.15);
}

TEST_F(SensitivityModelTest, ProportionalIgnoresAmounts) {
  const auto model = Model(SensitivityRules::Speed::kProportional);
  EXPECT_EQ(model->Rate(job_, 1), 1 / 0.78);
  EXPECT_EQ(model->RateUnder(job_, With(6, 125), {}), 1 / 0.78);
}

TEST_F(SensitivityModelTest, TheMatrixGivesWhatLiesBetween) {
  const auto model = Model(SensitivityRules::Speed::kMatrix);
  EXPECT_DOUBLE_EQ(model->Rate(job_, 1), 1.15 / 0.78);
  EXPECT_DOUBLE_EQ(model->RateUnder(job_, With(4.5, 62.5), {}), 1.025 / 0.78);
  EXPECT_DOUBLE_EQ(model->ThroughputUnder(job_, With(3, 93.75), {}).seconds_per_unit, 0.78 / 1.05);
}

// The published streams list the demands that the original derived.
TEST(SensitiveDemandTest, AgreesWithThePublishedStreams) {
  TRAINYARD_NEEDS_REFERENCE();
  const std::string folder = Reference() + "/data/synergy";
  const auto profiles = SensitivityTable::Read(folder);
  ASSERT_TRUE(profiles.ok());
  const auto trace = io::CsvTable::Open(folder + "/trace_syn32multi-load0.9-seed42.csv");
  ASSERT_TRUE(trace.ok());
  const auto at = [&](std::string_view name) { return trace.value().Column({name}); };
  int compared = 0;
  const Status read = trace.value().ForEach([&](const io::CsvRow& row) -> Status {
    const SensitivityProfile* profile = profiles.value().Find(row.Text(at("model")), 3);
    const auto gpus = static_cast<int>(row.Integer(at("gpus"), 1).value());
    const SensitiveDemand demand = DemandOf(*profile, gpus, PublishedNode(), kStorage);
    const double cpus = row.Number(at("cpu_demand"), 0).value();
    const double memory_gb = row.Number(at("mem_demand_gb"), 0).value();
    EXPECT_EQ(demand.best.milli_cpus, std::llround(cpus * 1000)) << row.line();
    EXPECT_EQ(demand.best.memory_mib, std::llround(memory_gb * 1024)) << row.line();
    EXPECT_EQ(demand.best.storage_kbps,
              std::llround(row.Number(at("sspeed_demand"), 0).value() * 1000));
    EXPECT_NEAR(demand.speedup, row.Number(at("speedup"), 0).value(), 5e-7) << row.line();
    ++compared;
    return {};
  });
  EXPECT_TRUE(read.ok());
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace trainyard::profile
