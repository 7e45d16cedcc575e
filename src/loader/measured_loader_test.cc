// SPDX-License-Identifier: Apache-2.0
// The loader model refined by measurements of jobs: fit, rates, and the division that goes by them.
#include "loader/measured_loader.h"

#include <gtest/gtest.h>

#include <random>

#include "loader/division.h"

namespace trainyard::loader {
namespace {

constexpr LoaderCoefficients kStated{.per_worker = 0.01, .shared = 1e-4};

double SecondsWith(const LoaderCoefficients& loader, int workers) {
  return loader.per_worker / workers + loader.shared;
}

void Note(profile::MeasuredBook& book, int workers, double seconds) {
  (void)book.Add({.model = "m", .batch_size = 64, .gpu_type = "A100", .gpus = workers},
                 profile::Measure::kLoader, seconds);
}

// Samples with 3 % of noise; every `outlier`th is 20 times as long. 0: none.
profile::MeasuredBook Samples(const LoaderCoefficients& planted, std::initializer_list<int> workers,
                              int each, int outlier = 0) {
  profile::MeasuredBook book;
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.03);
  int number = 0;
  for (int round = 0; round < each; ++round) {
    for (const int count : workers) {
      const bool off = outlier > 0 && ++number % outlier == 0;
      Note(book, count, SecondsWith(planted, count) * noise(random) * (off ? 20 : 1));
    }
  }
  return book;
}

void ExpectNear(const LoaderCoefficients& fitted, const LoaderCoefficients& planted, double part) {
  for (const int workers : {1, 2, 4, 8}) {
    EXPECT_NEAR(SecondsWith(fitted, workers) / SecondsWith(planted, workers), 1, part) << workers;
  }
}

TEST(RefinedLoaderTest, NothingMeasuredLeavesWhatIsStated) {
  EXPECT_EQ(RefinedLoader(kStated, {}, "m"), kStated);
  EXPECT_EQ(RefinedLoader(kStated, Samples({.per_worker = 1}, {1, 2}, 2), "m"), kStated)
      << "too few samples";
  EXPECT_EQ(RefinedLoader(kStated, Samples({.per_worker = 1}, {1, 2}, 5), "other"), kStated);
}

TEST(RefinedLoaderTest, ConvergesToAPlantedModel) {
  for (const LoaderCoefficients planted : {LoaderCoefficients{.per_worker = 0.03, .shared = 2e-3},
                                           LoaderCoefficients{.per_worker = 0.002, .shared = 5e-4},
                                           LoaderCoefficients{.per_worker = 0.05, .shared = 0}}) {
    ExpectNear(RefinedLoader(kStated, Samples(planted, {1, 2, 4, 8}, 15), "m"), planted, 0.05);
  }
}

TEST(RefinedLoaderTest, OutliersDoNotMoveIt) {
  const LoaderCoefficients planted{.per_worker = 0.03, .shared = 2e-3};
  ExpectNear(RefinedLoader(kStated, Samples(planted, {1, 2, 4, 8}, 15, 3), "m"), planted, 0.08);
}

TEST(RefinedLoaderTest, OneNumberOfWorkersScalesTheStatedCurve) {
  const LoaderCoefficients threefold{.per_worker = 0.03, .shared = 3e-4};
  ExpectNear(RefinedLoader(kStated, Samples(threefold, {4}, 5), "m"), threefold, 0.05);
}

TEST(RefinedLoaderTest, CoefficientsAreNeverNegative) {
  profile::MeasuredBook book;
  for (int i = 0; i < 5; ++i) {
    Note(book, 2, 0.001);  // more workers would take longer
    Note(book, 4, 0.002);
    Note(book, 8, 0.004);
  }
  const LoaderCoefficients fitted = RefinedLoader(kStated, book, "m");
  EXPECT_GE(fitted.per_worker, 0);
  EXPECT_GE(fitted.shared, 0);
  EXPECT_GT(SecondsWith(fitted, 1), 0);
}

// 64 images in 0.05 s; a worker makes 100 images a second.
class MeasuredLoaderTest : public testing::Test {
 protected:
  static JobSpec Job(const std::string& model) {
    JobSpec job{.name = model, .model = model, .gpus = 1, .batch_size = 64, .iterations = 1e4};
    job.profile_row = 0;
    return job;
  }
  static Grant With(int workers) {
    return {.gpus = 1,
            .slices = {{.node = NodeAt(0),
                        .gpus = 1,
                        .soft = {.milli_cpus = workers * 1000},
                        .loader_workers = workers}}};
  }
  [[nodiscard]] std::unique_ptr<profile::MeasuredModel> By(profile::MeasuredBook book) const {
    return RefinedBy(profiles_, WorkersFrom::kGrant)(std::move(book), *stated_, cluster_);
  }
  // Workers of two jobs that lie on one node, "m" first.
  [[nodiscard]] std::vector<int> Divided(const ExecutionModel* rates) const {
    const JobSpec first = Job("m");
    const JobSpec second = Job("other");
    const Slices one{{.node = NodeAt(0), .gpus = 1}};
    const Slices two{{.node = NodeAt(0), .gpus = 2}};
    const std::vector<LoaderJob> jobs{{.spec = &first, .slices = &one},
                                      {.spec = &second, .slices = &two}};
    return WorkerDivision(profiles_, {}).Divide(cluster_, jobs, rates);
  }

  const Cluster cluster_{
      .name = "c",
      .nodes = {{.name = "a", .gpus = 2, .gpu_type = "A100", .capacity = {.milli_cpus = 12000}}}};
  const LoaderProfiles profiles_ = LoaderProfiles::Of(
      {{.name = "m"}, {.name = "other"}}, {.gpu = {.base = 0.05}, .loader = {.per_worker = 0.01}});
  const std::unique_ptr<ExecutionModel> stated_ = MakeLoaderModel(profiles_, WorkersFrom::kGrant);
};

TEST_F(MeasuredLoaderTest, WithoutMeasurementsItIsTheStatedModel) {
  const auto model = By({});
  for (const int workers : {0, 1, 5, 40}) {
    EXPECT_EQ(model->RateUnder(Job("m"), With(workers), {}),
              stated_->RateUnder(Job("m"), With(workers), {}));
  }
  EXPECT_EQ(Divided(model.get()), Divided(nullptr));
}

TEST_F(MeasuredLoaderTest, TheSlowerSideAsMeasuredSetsTheRate) {
  profile::MeasuredBook book = Samples({.per_worker = 0.02}, {1, 2, 4}, 15);
  const profile::MeasuredKey key{.model = "m", .batch_size = 64, .gpu_type = "A100", .gpus = 1};
  for (int i = 0; i < 3; ++i) {
    (void)book.Add(key, profile::Measure::kRate, 10);  // half as fast as stated
  }
  const auto model = By(std::move(book));
  EXPECT_NEAR(model->RateUnder(Job("m"), With(4), {}), 4 * 50 / 64.0, 0.1);
  EXPECT_NEAR(model->RateUnder(Job("m"), With(40), {}), 10, 1e-9);
  EXPECT_NEAR(model->RateUnder(Job("other"), With(4), {}), 4 * 100 / 64.0, 1e-9);
  JobSpec unbound = Job("m");
  unbound.profile_row = -1;
  EXPECT_NEAR(model->RateUnder(unbound, With(4), {}), 4 * 100 / 64.0, 1e-9);
  EXPECT_NEAR(*model->LoaderSeconds("m", 4), 0.0025, 1e-12);
  EXPECT_FALSE(model->LoaderSeconds("unknown", 4));
}

// Both want 13 workers, of 12 that there are. One whose GPU turns out to be
// four times as slow leaves the rest to the other.
TEST_F(MeasuredLoaderTest, TheDivisionGoesByWhatHasBeenMeasured) {
  profile::MeasuredBook slow;
  const profile::MeasuredKey key{.model = "m", .batch_size = 64, .gpu_type = "A100", .gpus = 1};
  for (int i = 0; i < 3; ++i) {
    (void)slow.Add(key, profile::Measure::kRate, 5);
  }
  EXPECT_EQ(Divided(By(std::move(slow)).get()), (std::vector<int>{3, 9}));
  // A loader that is four times as fast as stated wants no more than four, the last of which does
  // little.
  EXPECT_EQ(Divided(By(Samples({.per_worker = 0.0025}, {1, 2, 4}, 15)).get()),
            (std::vector<int>{3, 9}));
  EXPECT_EQ(Divided(stated_.get()), Divided(nullptr));
}

TEST_F(MeasuredLoaderTest, WithPublishedPredictionsItDoesNot) {
  const auto model = By(Samples({.per_worker = 0.0025}, {1, 2, 4}, 15));
  const JobSpec job = Job("m");
  const Slices one{{.node = NodeAt(0), .gpus = 1}};
  const std::vector<LoaderJob> jobs{{.spec = &job, .slices = &one}};
  EXPECT_EQ(WorkerDivision(profiles_, {.published = true}).Divide(cluster_, jobs, model.get()),
            (std::vector<int>{12}));
  EXPECT_EQ(WorkerDivision(profiles_, {}).Divide(cluster_, jobs, model.get()),
            (std::vector<int>{4}));
}

}  // namespace
}  // namespace trainyard::loader
