// SPDX-License-Identifier: Apache-2.0
#include "scenario/known_models.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/scratch_folder.h"

namespace trainyard::scenario {
namespace {

class KnownModelsTest : public testing::Test {
 protected:
  KnownModelsTest() {
    std::filesystem::create_directory(folder_.path() + "/sensitive");
    (void)folder_.Write("sensitive/model_profiles.csv",
                        "cpu_per_gpu_ratio,model,gpus,best_cpus_per_gpu,best_mem_gb_per_gpu,"
                        "best_sspeed_per_gpu,batch_size,speedup,iter_time_s\n"
                        "4,v,1,8,10,10,32,2,0.5\n");
    (void)folder_.Write("sensitive/throughput_matrix.csv",
                        "cpu_per_gpu_ratio,model,gpus,cpus_per_gpu,mem_10_gb\n"
                        "4,v,1,1,0.25\n4,v,1,8,2\n");
  }

  KnownModels Read(const std::string& path) {
    Result<KnownModels> models = KnownModels::Read(path, cluster_);
    EXPECT_TRUE(models.ok()) << models.error().message;
    return std::move(models).value();
  }
  Assembly Assemble(const KnownModels& models, const PresetRequest& names) {
    Result<Assembly> parts =
        AssembleComponents(names, cluster_, "", models.loader ? &*models.loader : nullptr);
    EXPECT_TRUE(parts.ok()) << parts.error().message;
    return std::move(parts).value();
  }
  std::string Refusal(const KnownModels& models, const PresetRequest& names) {
    Assembly parts = Assemble(models, names);
    const Status status = MakeLiveRates(models, cluster_, parts);
    return status.ok() ? "" : status.error().message;
  }

  ScratchFolder folder_;
  Cluster cluster_{
      .nodes = {
          {.name = "n", .gpus = 2, .capacity = {.milli_cpus = 8000, .memory_mib = 20 * 1024}}}};
};

TEST_F(KnownModelsTest, TheKindIsThatOfThePath) {
  EXPECT_EQ(Read("").Digest(), "none");
  const KnownModels rates =
      Read(folder_.Write("rates.csv", "model,batch_size,gpus,iterations_per_second\na,1,1,2\n"));
  EXPECT_TRUE(rates.throughput);
  const KnownModels catalog = Read(folder_.Write("models.csv", "model,params,flops\na1,0,1\n"));
  EXPECT_TRUE(catalog.loader);
  const KnownModels sensitive = Read(folder_.path() + "/sensitive");
  EXPECT_TRUE(sensitive.sensitivity);
  EXPECT_NE(rates.Digest(), catalog.Digest());
  EXPECT_NE(catalog.Digest(), sensitive.Digest());
  EXPECT_EQ(catalog.Digest(), Read(folder_.path() + "/models.csv").Digest());
  EXPECT_NE(catalog.Digest(),
            Read(folder_.Write("more.csv", "model,params,flops\na1,0,2\n")).Digest());
}

TEST_F(KnownModelsTest, WhatCannotWorkLiveIsRefused) {
  const KnownModels none;
  EXPECT_EQ(Refusal(none, {.policy = "fifo"}), "");
  EXPECT_EQ(Refusal(none, {.policy = "fifo", .placement = "count"}),
            "placement 'count' names no GPUs, so that no job could be started; expected another");
  EXPECT_EQ(Refusal(none, {.policy = "auto:placements=first-fit+count"}),
            "placement 'count' names no GPUs, so that no job could be started; expected another");
  EXPECT_EQ(Refusal(none, {.policy = "elastic-edf"}),
            "policy 'elastic-edf' needs throughput profiles; expected --profiles");
}

TEST_F(KnownModelsTest, AJobOfAKnownModelAdvancesByItsProfile) {
  const KnownModels models = Read(folder_.path() + "/sensitive");
  Assembly parts = Assemble(models, {.policy = "fifo", .placement = "synergy"});
  ASSERT_TRUE(MakeLiveRates(models, cluster_, parts).ok());
  JobSpec known{.model = "v", .gpus = 1, .iterations = 100};
  ASSERT_TRUE(BindLiveJob(models, parts, cluster_, model::NodeClasses(cluster_), known).ok());
  EXPECT_EQ(known.profile_row, 0);
  EXPECT_EQ(known.duration, FromSeconds(50));
  EXPECT_EQ(parts.rates->TotalWork(known), 100);
  EXPECT_EQ(parts.rates->Preferred(known).milli_cpus, 8000);
  JobSpec other{.model = "w", .gpus = 1, .duration = FromSeconds(30)};
  ASSERT_TRUE(BindLiveJob(models, parts, cluster_, model::NodeClasses(cluster_), other).ok());
  EXPECT_EQ(other.profile_row, -1);
  EXPECT_EQ(parts.rates->TotalWork(other), 30);
  EXPECT_EQ(parts.rates->Rate(other, 1), 1);
}

TEST_F(KnownModelsTest, JobsWithLoaderWorkersStateWhatTheyNeed) {
  const KnownModels models = Read(folder_.Write("models.csv", "model,params,flops\na1,0,1\n"));
  Assembly parts = Assemble(models, {.policy = "torchloader"});
  ASSERT_TRUE(MakeLiveRates(models, cluster_, parts).ok());
  const auto refusal = [&](JobSpec job) {
    const Status status = BindLiveJob(models, parts, cluster_, model::NodeClasses(cluster_), job);
    return status.ok() ? "" : status.error().message;
  };
  JobSpec job{.name = "j", .model = "a1", .gpus = 2, .batch_size = 8};
  EXPECT_EQ(refusal(job), "it states no iterations; expected some");
  job.iterations = 10;
  EXPECT_EQ(refusal(job), "");
  job.traits = std::make_shared<JobTraits>(JobTraits{.devices = {{.node = NodeAt(0), .gpus = 2}}});
  EXPECT_EQ(refusal(job),
            "it names 1 GPUs and asks for 2; expected --devices with as many as it asks for");
  job.traits = std::make_shared<JobTraits>(JobTraits{.devices = {{.node = NodeAt(0), .gpus = 3}}});
  EXPECT_EQ(refusal(job), "");
  job.model = "b1";
  EXPECT_NE(refusal(job), "");
}

}  // namespace
}  // namespace trainyard::scenario
