// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/catalog_lookup.h"
#include "loader/loader_profiles.h"
#include "loader/throughput_model.h"
#include "policies/policies.h"
#include "support/scratch_folder.h"

namespace trainyard::policies {
namespace {

TEST(TuningCatalogTest, LoaderNeedsAModelCatalogue) {
  const auto tuning = base::MakeFrom(Policies(), ComponentKind::kTuning, {.name = "loader"}, {});
  ASSERT_FALSE(tuning.ok());
  EXPECT_NE(tuning.error().message.find("needs a model catalogue"), std::string::npos);
}

TEST(TuningCatalogTest, AnUnknownNameIsAnsweredWithAllNames) {
  EXPECT_EQ(
      base::MakeFrom(Policies(), ComponentKind::kTuning, {.name = "loaders"}, {}).error().message,
      "unknown tuning 'loaders'; did you mean 'loader'?; known: loader");
}

// Two nodes with 2 GPUs and 8 cores each. A GPU takes 4 iterations of 4 images a second, a worker
// makes 2 images.
class LoaderTuningTest : public testing::Test {
 protected:
  LoaderTuningTest() {
    const loader::ThroughputModel model{.gpu = {.base = 0.25}, .loader = {.per_worker = 0.5}};
    (void)folder_.Write("loader_model.csv", model.Write());
    (void)folder_.Write("models.csv", "model,params,flops\nm,0,0\n");
    profiles_ = loader::LoaderProfiles::Read(folder_.path()).value();
    tuning_ = base::MakeFrom(Policies(), ComponentKind::kTuning, {.name = "loader"},
                             {.loader = &*profiles_})
                  .value()
                  .tuning;
  }

  ScratchFolder folder_;
  std::optional<loader::LoaderProfiles> profiles_;
  std::unique_ptr<Tuning> tuning_;
  Cluster cluster_{.nodes = {{.name = "a", .gpus = 2, .capacity = {.milli_cpus = 8000}},
                             {.name = "b", .gpus = 2, .capacity = {.milli_cpus = 8000}}}};
  JobSpec spec_{.model = "m", .gpus = 1, .batch_size = 4, .iterations = 100};
};

TEST_F(LoaderTuningTest, JobsOfANodeShareItsCores) {
  Slices a{{.node = NodeAt(0), .gpus = 1}};
  Slices b{{.node = NodeAt(0), .gpus = 2}};
  Slices alone{{.node = NodeAt(1), .gpus = 1}};
  std::vector<Tuning::Tuned> jobs{{JobAt(0), &spec_, &a, false},
                                  {JobAt(1), &spec_, &b, false},
                                  {JobAt(2), &spec_, &alone, false}};
  tuning_->Tune({.cluster = &cluster_}, jobs);
  EXPECT_EQ(a[0].loader_workers + b[0].loader_workers, 8);
  EXPECT_EQ(a[0].loader_workers, 4);
  EXPECT_EQ(alone[0].loader_workers, 8);
  EXPECT_EQ(alone[0].soft.milli_cpus, 8000);
  EXPECT_EQ(a[0].gpus, 1U);  // its GPUs are its own
}

TEST_F(LoaderTuningTest, ASecondLookChangesNothing) {
  Slices a{{.node = NodeAt(0), .gpus = 1}};
  std::vector<Tuning::Tuned> jobs{{JobAt(0), &spec_, &a, false}};
  tuning_->Tune({.cluster = &cluster_}, jobs);
  const Slices before = a;
  jobs[0].settled = true;
  tuning_->Tune({.cluster = &cluster_}, jobs);
  EXPECT_EQ(a, before);
}

}  // namespace
}  // namespace trainyard::policies
