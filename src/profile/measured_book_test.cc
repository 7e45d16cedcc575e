// SPDX-License-Identifier: Apache-2.0
#include "profile/measured_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "profile/execution_model.h"
#include "profile/measured_file.h"
#include "profile/measured_model.h"
#include "support/scratch_folder.h"

namespace trainyard::profile {
namespace {

MeasuredKey On(int gpus, std::string model = "m") {
  return {.model = std::move(model), .batch_size = 32, .gpu_type = {}, .gpus = gpus};
}

void AddAll(MeasuredBook& book, const MeasuredKey& key, Measure measure,
            const std::vector<double>& values) {
  for (const double value : values) {
    (void)book.Add(key, measure, value);
  }
}

TEST(MeasuredBookTest, FewSamplesDoNotCount) {
  MeasuredBook book;
  EXPECT_FALSE(book.Add(On(2), Measure::kRate, 10));
  EXPECT_FALSE(book.Add(On(2), Measure::kRate, 11));
  EXPECT_FALSE(book.Value(On(2), Measure::kRate));
  EXPECT_TRUE(book.Add(On(2), Measure::kRate, 12));
  EXPECT_EQ(book.Value(On(2), Measure::kRate), 11);
}

TEST(MeasuredBookTest, ASampleThatChangesNoMedianChangesNothing) {
  MeasuredBook book;
  AddAll(book, On(2), Measure::kRate, {10, 10, 10});
  EXPECT_FALSE(book.Add(On(2), Measure::kRate, 50));
}

TEST(MeasuredBookTest, OutliersDoNotCount) {
  MeasuredBook book;
  AddAll(book, On(1), Measure::kRate, {10, 10.1, 9.9, 1e6, 10, 1e-6, 10.1, 1e6});
  EXPECT_NEAR(*book.Value(On(1), Measure::kRate), 10, 0.11);
}

// Whatever comes before, and however wrong fewer than half of the kept samples are.
TEST(MeasuredBookTest, TheMedianStaysWithinTheGoodSamples) {
  std::mt19937 random(7);  // NOLINT: the same each time
  for (int round = 0; round < 200; ++round) {
    MeasuredBook book;
    for (int i = 0; i < 40; ++i) {
      (void)book.Add(On(1), Measure::kRate, std::ldexp(1.0, static_cast<int>(random() % 60) - 30));
    }
    std::vector<double> last;
    for (std::size_t i = 0; i < Samples::kKept; ++i) {
      const bool good = i < Samples::kKept / 2 + 1;
      last.push_back(good ? 5 + static_cast<double>(random() % 100) / 100 : 1e8);
    }
    std::shuffle(last.begin(), last.end(), random);
    AddAll(book, On(1), Measure::kRate, last);
    EXPECT_GE(*book.Value(On(1), Measure::kRate), 5);
    EXPECT_LE(*book.Value(On(1), Measure::kRate), 6);
  }
}

TEST(MeasuredBookTest, OnlyTheLastSamplesStay) {
  MeasuredBook book;
  AddAll(book, On(1), Measure::kRate, std::vector<double>(100, 10));
  AddAll(book, On(1), Measure::kRate, std::vector<double>(Samples::kKept, 20));
  const Samples& samples = book.entries().at(On(1)).Of(Measure::kRate);
  EXPECT_EQ(samples.values(), std::vector<double>(Samples::kKept, 20));
  EXPECT_EQ(samples.median(), 20);
  EXPECT_EQ(samples.spread(), 0);
}

TEST(MeasuredBookTest, TheKeyThatWasAddedToTheLongestAgoGoes) {
  MeasuredBook book;
  const int most = static_cast<int>(MeasuredBook::kMostKeys);
  for (int gpus = 1; gpus <= most; ++gpus) {
    (void)book.Add(On(gpus), Measure::kRate, 1);
  }
  (void)book.Add(On(1), Measure::kRate, 1);
  (void)book.Add(On(most + 1), Measure::kRate, 1);
  EXPECT_EQ(book.entries().size(), MeasuredBook::kMostKeys);
  EXPECT_TRUE(book.entries().contains(On(1)));
  EXPECT_FALSE(book.entries().contains(On(2)));
  EXPECT_TRUE(book.entries().contains(On(most + 1)));
}

TEST(MeasuredBookTest, WhatCannotBeIsIgnored) {
  MeasuredBook book;
  for (const double value :
       {0.0, -1.0, 2e9, std::nan(""), std::numeric_limits<double>::infinity()}) {
    (void)book.Add(On(1), Measure::kRate, value);
  }
  (void)book.Add(On(0), Measure::kRate, 1);
  (void)book.Add(On(1, ""), Measure::kRate, 1);
  EXPECT_TRUE(book.empty());
}

TEST(MeasuredBookTest, CostsAreOfTheModelAndOfTheNextLargerCount) {
  MeasuredBook book;
  MeasuredKey key = On(2);
  key.gpu_type = "A100";
  AddAll(book, key, Measure::kResize, {20, 21, 22});
  AddAll(book, On(8), Measure::kResize, {80, 81, 82});
  EXPECT_FALSE(book.Cost(Change::kStart, "m", 2));
  EXPECT_FALSE(book.Cost(Change::kResize, "other", 2));
  EXPECT_EQ(book.Cost(Change::kResize, "m", 1), FromSeconds(21));
  EXPECT_EQ(book.Cost(Change::kResize, "m", 2), FromSeconds(21));
  EXPECT_EQ(book.Cost(Change::kResize, "m", 4), FromSeconds(81));
  EXPECT_EQ(book.Cost(Change::kResize, "m", 16), FromSeconds(81));
}

TEST(MeasuredBookTest, StateAndFileSayTheSame) {
  MeasuredBook book;
  AddAll(book, On(1), Measure::kRate, {10.125, 1.0 / 3, 12});
  AddAll(book, On(4, "a, \"b\""), Measure::kForward, {0.1});
  AddAll(book, On(4), Measure::kStop, {3, 4, 5, 6});
  StateStream written;
  written(book);
  StateStream read{written.bytes()};
  MeasuredBook again;
  read(again);
  EXPECT_TRUE(read.complete());
  EXPECT_EQ(again.Value(On(1), Measure::kRate), book.Value(On(1), Measure::kRate));
  EXPECT_EQ(MeasuredText(again), MeasuredText(book));
  const Result<MeasuredBook> file = MeasuredFrom("x", MeasuredText(book));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(MeasuredText(file.value()), MeasuredText(book));
}

TEST(MeasuredBookTest, AStateThatCannotBeIsRefused) {
  std::map<MeasuredKey, MeasuredBook::Entry> entries;
  StateStream written;
  std::vector<double> values{1, -1};
  std::array<std::vector<double>, kMeasures> samples;
  samples[0] = values;
  std::uint64_t number = 1;
  std::size_t count = 1;
  MeasuredKey key = On(1);
  (void)written.Size(count);
  written(key, samples, number, number);
  StateStream read{written.bytes()};
  MeasuredBook book;
  read(book);
  EXPECT_FALSE(read.good());
}

TEST(MeasuredFileTest, BadInputIsNamedWithItsLine) {
  const std::string head = "model,batch_size,gpu_type,gpus,measure,value\n";
  const auto message = [&](const std::string& text) {
    const Result<MeasuredBook> book = MeasuredFrom("f.csv", text);
    return book.ok() ? std::string() : book.error().message;
  };
  EXPECT_EQ(message(head), "f.csv: no samples; expected what `trainyard profiles export` writes");
  EXPECT_EQ(message(head + "m,32,,1,speed,3\n"),
            "f.csv:2: column 'measure' is 'speed'; expected one of rate, load_s, forward_s, "
            "communication_s, start_s, restart_s, resize_s, migrate_s, stop_s, loader_s");
  EXPECT_NE(message(head + "m,32,,0,rate,3\n").find("f.csv:2: column 'gpus' is '0'"),
            std::string::npos);
  EXPECT_NE(message(head + "m,32,,1,rate,0\n").find("f.csv:2: column 'value' is '0'"),
            std::string::npos);
  EXPECT_NE(message(head + "m,32,,1,rate,2e9\n").find("f.csv:2: column 'value'"),
            std::string::npos);
  EXPECT_NE(message(head + ",32,,1,rate,2\n").find("expected the name of a model"),
            std::string::npos);
  EXPECT_NE(message("model,gpus\nm,1\n").find("f.csv:1: "), std::string::npos);
  EXPECT_NE(message(head.substr(0, head.size() - 1) + ",extra\nm,32,,1,rate,2,3\n").find("extra"),
            std::string::npos);
}

// -------------------------------------------------------------------------------------- the model

class MeasuredModelTest : public testing::Test {
 protected:
  [[nodiscard]] JobSpec Job(int gpus) const {
    JobSpec job;
    job.model = "m";
    job.batch_size = 32;
    job.gpus = gpus;
    job.iterations = 100;
    job.profile_row = table_.Find("m", 32);
    return job;
  }
  ScratchFolder scratch_;
  ThroughputTable table_ =
      ThroughputTable::Read(scratch_.Write("t.csv",
                                           "model,batch_size,gpus,iterations_per_second\n"
                                           "m,32,1,10\nm,32,2,18\nm,32,8,60\n"))
          .value();
  std::unique_ptr<ExecutionModel> stated_ = MakeMixedModel(&table_);
  Cluster cluster_ = [] {
    Cluster cluster;
    cluster.nodes = {{.name = "a", .gpus = 8}};
    return cluster;
  }();
};

TEST_F(MeasuredModelTest, WithoutSamplesItIsTheModelBelow) {
  const MeasuredModel model({}, *stated_, cluster_);
  for (const int gpus : {1, 2, 3, 8}) {
    EXPECT_EQ(model.Rate(Job(1), gpus), stated_->Rate(Job(1), gpus));
  }
}

TEST_F(MeasuredModelTest, TheMeasuredCountHasTheMeasuredRateAndTheOthersFollowTheNearest) {
  MeasuredModel model({}, *stated_, cluster_);
  AddAll(model.book(), On(2), Measure::kRate, {9, 9, 9});
  EXPECT_DOUBLE_EQ(model.Rate(Job(1), 2), 9);
  EXPECT_DOUBLE_EQ(model.Rate(Job(1), 1), 5);
  EXPECT_DOUBLE_EQ(model.Rate(Job(1), 8), 30);
  AddAll(model.book(), On(8), Measure::kRate, {60, 60, 60});
  EXPECT_DOUBLE_EQ(model.Rate(Job(1), 8), 60);
  EXPECT_DOUBLE_EQ(model.Rate(Job(1), 1), 5);
  EXPECT_EQ(model.Rate(Job(1), 3), 0);  // the profile has no such count
}

TEST_F(MeasuredModelTest, OtherBatchSizesAndModelsAreAsStated) {
  MeasuredModel model({}, *stated_, cluster_);
  AddAll(model.book(), On(2, "other"), Measure::kRate, {9, 9, 9});
  MeasuredKey key = On(2);
  key.batch_size = 64;
  AddAll(model.book(), key, Measure::kRate, {9, 9, 9});
  EXPECT_EQ(model.Rate(Job(2), 2), 18);
}

TEST_F(MeasuredModelTest, AGrantIsAsMuchSlowerAsItsGpus) {
  MeasuredModel model({}, *stated_, cluster_);
  AddAll(model.book(), On(2), Measure::kRate, {9, 9, 9});
  Grant grant{.gpus = 2, .slices = {{.node = NodeAt(0), .gpus = 3}}};
  const Throughput under = model.ThroughputUnder(Job(2), grant, {});
  EXPECT_DOUBLE_EQ(under.rate, 9);
  EXPECT_DOUBLE_EQ(under.seconds_per_unit, 1.0 / 9);
}

TEST_F(MeasuredModelTest, EachGpuTypeHasItsOwn) {
  cluster_.nodes = {{.name = "a", .gpus = 8, .gpu_type = "slow"},
                    {.name = "b", .gpus = 8, .gpu_type = "fast"}};
  cluster_.gpu_types = {{.name = "slow", .speed = 1}, {.name = "fast", .speed = 2}};
  const std::unique_ptr<ExecutionModel> typed = OnTypesOf(cluster_, MakeMixedModel(&table_));
  MeasuredModel model({}, *typed, cluster_);
  MeasuredKey key = On(2);
  key.gpu_type = "fast";
  AddAll(model.book(), key, Measure::kRate, {9, 9, 9});
  EXPECT_DOUBLE_EQ(model.RateOn(Job(2), 2, cluster_.gpu_types[0]), 18);
  EXPECT_DOUBLE_EQ(model.RateOn(Job(2), 2, cluster_.gpu_types[1]), 9);
  EXPECT_DOUBLE_EQ(model.Rate(Job(2), 2), 9);  // "fast" is the slower one now
  Grant grant{.gpus = 2, .slices = {{.node = NodeAt(0), .gpus = 3}}};
  EXPECT_DOUBLE_EQ(model.ThroughputUnder(Job(2), grant, {}).rate, 18);
}

TEST(CorrectStagesTest, MeasuredStagesTakeThePlaceOfThoseStated) {
  MeasuredBook book;
  JobSpec job;
  job.model = "m";
  job.batch_size = 32;
  job.gpus = 2;
  EXPECT_FALSE(CorrectStages(book, "", job));
  JobTraits traits;
  traits.stages = StageTimes{.iteration = 4, .stages = {1, 2, 1}};
  job.traits = std::make_shared<const JobTraits>(traits);
  EXPECT_FALSE(CorrectStages(book, "", job));
  AddAll(book, On(2), Measure::kLoad, {5, 5, 5});
  EXPECT_TRUE(CorrectStages(book, "", job));
  EXPECT_EQ(job.traits->stages->stages, (std::vector<double>{5, 2, 1}));
  EXPECT_EQ(job.traits->stages->iteration, 8);
  EXPECT_FALSE(CorrectStages(book, "", job));
  AddAll(book, On(2), Measure::kRate, {0.2, 0.2, 0.2});
  EXPECT_TRUE(CorrectStages(book, "", job));
  EXPECT_EQ(job.traits->stages->iteration, 5);
}

}  // namespace
}  // namespace trainyard::profile
