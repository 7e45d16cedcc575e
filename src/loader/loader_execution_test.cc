// SPDX-License-Identifier: Apache-2.0
// Execution, division and profiles on one hand-made catalogue.
#include "loader/loader_execution.h"

#include <gtest/gtest.h>

#include <bit>

#include "loader/division.h"
#include "support/scratch_folder.h"

namespace trainyard::loader {
namespace {

// 4 images on one device take 0.5 s, on two 0.3 s; each worker makes 10 images per second.
constexpr std::string_view kModels =
    "model,params,flops,C_flops,PC_flops,DC_flops,O_flops\n"
    "a1,0,1,1,0,0,0\n";

std::string Coefficients() {
  const ThroughputModel model{.gpu = {.base = 0.1, .batch_dense = 0.1},
                              .loader = {.per_worker = 0.1}};
  return model.Write();
}

class LoaderModelTest : public testing::Test {
 protected:
  LoaderModelTest() {
    (void)folder_.Write("models.csv", kModels);
    (void)folder_.Write("loader_model.csv", Coefficients());
    profiles_ = LoaderProfiles::Read(folder_.path()).value();
  }

  static JobSpec Job(Slices devices, int workers) {
    JobSpec job{.name = "job", .model = "a1", .gpus = 0, .batch_size = 4, .iterations = 100};
    for (const Slice& slice : devices) {
      job.gpus += std::popcount(slice.gpus);
    }
    job.traits = std::make_shared<JobTraits>(
        JobTraits{.devices = std::move(devices), .loader_workers = workers});
    return job;
  }
  static Slices OnFirst(std::uint64_t gpus) { return {{.node = NodeAt(0), .gpus = gpus}}; }

  // Iterations per second.
  double RateOf(const JobSpec& job, int workers,
                std::initializer_list<const JobSpec*> others = {}) const {
    const auto model = MakeLoaderModel(profiles_, WorkersFrom::kGrant);
    Grant grant{.gpus = job.gpus,
                .slices = WithWorkers(job.traits->devices, workers),
                .sharing = Sharing::kCollocated};
    Slices* const slices = &grant.slices;
    ShareCores({.name = "c", .nodes = {{.name = "n0", .gpus = 4}}}, std::span(&slices, 1));
    const std::vector<const JobSpec*> collocated(others);
    return model->RateUnder(job, grant, {.collocated = collocated});
  }

  ScratchFolder folder_;
  LoaderProfiles profiles_;
};

TEST_F(LoaderModelTest, TheSlowerSideSetsTheRate) {
  const JobSpec job = Job(OnFirst(1), 0);  // the GPU takes 8 images per second
  EXPECT_NEAR(RateOf(job, 1), 2, 1e-12);
  const JobSpec two = Job(OnFirst(3), 0);  // 40 / 3 images per second
  EXPECT_NEAR(RateOf(two, 2), 10 / 3.0, 1e-12);
  EXPECT_NEAR(RateOf(two, 1), 10 / 4.0, 1e-12);
}

TEST_F(LoaderModelTest, WithoutWorkersLoadingTakesTurnsWithTraining) {
  const JobSpec job = Job(OnFirst(1), 0);
  EXPECT_NEAR(RateOf(job, 0), 1 / (0.5 + 0.4), 1e-12);
}

TEST_F(LoaderModelTest, WhoSharesAGpuHasAPartOfIt) {
  const JobSpec job = Job(OnFirst(1), 0);
  const JobSpec same = Job(OnFirst(1), 0);
  const JobSpec beside = Job(OnFirst(2), 0);
  EXPECT_NEAR(RateOf(job, 1, {&beside}), 2, 1e-12);
  EXPECT_NEAR(RateOf(job, 1, {&same}), 1, 1e-12);
  EXPECT_NEAR(RateOf(job, 1, {&same, &same}), 2 / 3.0, 1e-12);
}

TEST_F(LoaderModelTest, WorkersCanBeThoseAskedFor) {
  const auto model = MakeLoaderModel(profiles_, WorkersFrom::kRequest);
  const JobSpec one = Job(OnFirst(3), 1);
  const Grant grant{.gpus = 2, .slices = OnFirst(3)};
  EXPECT_NEAR(model->RateUnder(one, grant, {}), 10 / 4.0, 1e-12);
  EXPECT_NEAR(model->RateUnder(Job(OnFirst(3), 0), grant, {}), 10 / 3.0, 1e-12);
  EXPECT_EQ(model->RateUnder(one, {.gpus = 1, .slices = OnFirst(1)}, {}), 0);
}

TEST_F(LoaderModelTest, SharingIsThatOfTheBusiestGpu) {
  const Slices a = OnFirst(0b0011);
  const Slices b = OnFirst(0b0110);
  const Slices c = OnFirst(0b0010);
  const std::vector<const Slices*> jobs{&a, &b, &c};
  EXPECT_EQ(SharingOf(jobs), (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(SharingOf(std::span(jobs).first(2)), (std::vector<int>{2, 2}));
}

TEST_F(LoaderModelTest, WorkersAreSplitByGpus) {
  const Slices slices{{.node = NodeAt(0), .gpus = 0b111}, {.node = NodeAt(1), .gpus = 1}};
  const Slices split = WithWorkers(slices, 10);
  EXPECT_EQ(split[0].loader_workers, 7);
  EXPECT_EQ(split[1].loader_workers, 2);
  EXPECT_EQ(WithWorkers(slices, -8)[0].loader_workers, 0);
}

TEST_F(LoaderModelTest, MoreWorkersThanCoresShareThem) {
  const Cluster cluster{
      .name = "c",
      .nodes = {{.name = "n0", .gpus = 4, .capacity = {.milli_cpus = 8000}}, {.name = "n1"}}};
  Slices one = WithWorkers(OnFirst(1), 4);
  Slices two = WithWorkers({{.node = NodeAt(0), .gpus = 2}, {.node = NodeAt(1), .gpus = 1}}, 24);
  const std::vector<Slices*> jobs{&one, &two};
  ShareCores(cluster, jobs);
  EXPECT_EQ(one[0].soft.milli_cpus, 2000);
  EXPECT_EQ(two[0].soft.milli_cpus, 6000);
  EXPECT_EQ(two[1].soft.milli_cpus, 12000);
  ShareCores(cluster, std::span(jobs).first(1));
  EXPECT_EQ(one[0].soft.milli_cpus, 4000);
}

TEST_F(LoaderModelTest, TheDivisionGivesWhatIsNeededAndNoMore) {
  const Cluster cluster{.name = "c",
                        .nodes = {{.name = "n0", .gpus = 4, .capacity = {.milli_cpus = 8000}}}};
  const JobSpec one = Job(OnFirst(1), 0);  // 8 images per second: 1 worker
  const JobSpec two = Job(OnFirst(6), 0);  // 40 / 3: 1 for each device
  const Slices& first = one.traits->devices;
  const Slices& second = two.traits->devices;
  const std::vector<LoaderJob> jobs{{.spec = &one, .slices = &first},
                                    {.spec = &two, .slices = &second}};
  EXPECT_EQ(WorkerDivision(profiles_, {}).Divide(cluster, jobs), (std::vector<int>{1, 2}));
  // 1 + 2 wanted, one spare for each device, and all cores are handed out.
  EXPECT_EQ(WorkerDivision(profiles_, {.rule = AllocationRule::kMultiNode}).Divide(cluster, jobs),
            (std::vector<int>{3, 6}));
}

TEST_F(LoaderModelTest, ProfilesSayWhatTheyMiss) {
  EXPECT_TRUE(LoaderProfiles::AreAt(folder_.path()));
  EXPECT_TRUE(LoaderProfiles::AreAt(folder_.path() + "/models.csv"));
  EXPECT_FALSE(LoaderProfiles::AreAt(folder_.path() + "/loader_model.csv"));
  JobSpec job = Job(OnFirst(1), 0);
  EXPECT_TRUE(profiles_.Check(job).ok());
  job.batch_size = 0;
  EXPECT_FALSE(profiles_.Check(job).ok());
  job.batch_size = 4;
  job.model = "b1";
  EXPECT_NE(profiles_.Check(job).error().message.find("unknown model 'b1'"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::loader
