// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "io/file.h"
#include "profile/throughput_table.h"
#include "support/scratch_folder.h"
#include "trace/trace.h"
#include "trace/writers.h"

namespace trainyard::trace {
namespace {

// That of data/example_trace.csv, see data/README.md.
constexpr GeneratorOptions kExample{.jobs = 400,
                                    .seed = 1,
                                    .cluster_gpus = 128,
                                    .load = 1.2,
                                    .largest_job = 16,
                                    .longest_hours = 12,
                                    .deadline_share = 0.7};
constexpr GeneratorOptions kMany{
    .jobs = 20'000, .seed = 5, .cluster_gpus = 128, .load = 0.9, .deadline_share = 0.25};

template <typename Predicate>
double Share(const std::vector<JobSpec>& jobs, const Predicate& predicate) {
  return static_cast<double>(std::count_if(jobs.begin(), jobs.end(), predicate)) /
         static_cast<double>(jobs.size());
}

TEST(GenerateTraceTest, GivesTheSameBytesForTheSameSeed) {
  EXPECT_EQ(io::Sha256Hex(WriteNativeTrace(GenerateTrace(kExample))),
            "35195db6d027590befc518bbcd714f8ded8805062456e9f9ea94f7d16a6f99d4");
}

TEST(GenerateTraceTest, DataSetsChangeNothingElse) {
  GeneratorOptions options = kExample;
  options.data_sets = 10;
  std::vector<JobSpec> jobs = GenerateTrace(options);
  std::map<std::string, std::int64_t> sizes;
  std::map<std::string, int> used;
  for (JobSpec& job : jobs) {
    const DataSet data = *job.traits->data_set;
    EXPECT_GE(data.mib, 1000);
    EXPECT_LE(data.mib, 100'000);
    EXPECT_EQ(sizes.try_emplace(data.name, data.mib).first->second, data.mib);
    ++used[data.name];
    job.traits = nullptr;
  }
  EXPECT_EQ(sizes.size(), 10U);
  EXPECT_GT(used["data-001"], 3 * used["data-010"]);
  EXPECT_EQ(WriteNativeTrace(jobs), WriteNativeTrace(GenerateTrace(kExample)));
}

TEST(GenerateTraceTest, GivesOtherJobsForAnotherSeed) {
  GeneratorOptions other = kExample;
  other.seed = 2;
  EXPECT_NE(WriteNativeTrace(GenerateTrace(other)), WriteNativeTrace(GenerateTrace(kExample)));
}

TEST(GenerateTraceTest, OneOptionChangesOneThing) {
  GeneratorOptions other = kExample;
  other.deadline_share = 0;
  std::vector<JobSpec> jobs = GenerateTrace(kExample);
  for (JobSpec& job : jobs) {
    job.deadline.reset();
  }
  EXPECT_EQ(WriteNativeTrace(jobs), WriteNativeTrace(GenerateTrace(other)));
}

TEST(GenerateTraceTest, OffersTheLoadAskedFor) {
  const std::vector<JobSpec> jobs = GenerateTrace(kMany);
  double work = 0;
  for (const JobSpec& job : jobs) {
    work += Seconds(*job.duration) * job.gpus;
  }
  const double span = Seconds(jobs.back().submit);
  EXPECT_NEAR(work / (span * kMany.cluster_gpus), kMany.load, 0.001);
}

TEST(GenerateTraceTest, SubmitsInOrderFromZero) {
  const std::vector<JobSpec> jobs = GenerateTrace(kMany);
  EXPECT_EQ(jobs.front().submit, TimePoint{});
  EXPECT_TRUE(std::is_sorted(jobs.begin(), jobs.end(), [](const JobSpec& a, const JobSpec& b) {
    return a.submit < b.submit;
  }));
}

TEST(GenerateTraceTest, FollowsThePublishedMix) {
  const std::vector<JobSpec> jobs = GenerateTrace(kMany);
  EXPECT_NEAR(Share(jobs, [](const JobSpec& job) { return job.gpus == 1; }), 0.83, 0.01);
  EXPECT_NEAR(Share(jobs, [](const JobSpec& job) { return job.gpus == 8; }), 0.10, 0.01);
  const Duration middle = FromSeconds(60 * std::pow(10.0, 2.5));
  EXPECT_NEAR(Share(jobs, [&](const JobSpec& job) { return job.duration < middle; }), 0.8, 0.01);
  EXPECT_NEAR(Share(jobs, [](const JobSpec& job) { return job.deadline.has_value(); }), 0.25, 0.01);
}

TEST(GenerateTraceTest, KeepsToTheLargestJobAndTheLongestTime) {
  GeneratorOptions options = kMany;
  options.largest_job = 6;
  options.longest_hours = 2;
  for (const JobSpec& job : GenerateTrace(options)) {
    EXPECT_LE(job.gpus, 4);
    EXPECT_LE(*job.duration, FromSeconds(7200));
    EXPECT_GE(*job.duration, FromSeconds(600));
  }
}

TEST(GenerateTraceTest, DeadlinesLieBetweenHalfAndOneAndAHalfDurations) {
  for (const JobSpec& job : GenerateTrace(kExample)) {
    if (job.deadline.has_value()) {
      const double factor = Seconds(*job.deadline - job.submit) / Seconds(*job.duration);
      EXPECT_GE(factor, 0.499);
      EXPECT_LE(factor, 1.501);
    }
  }
}

TEST(GenerateTraceTest, DurationAndIterationsAgreeWithTheProfiles) {
  const ScratchFolder folder;
  const auto profiles =
      profile::ThroughputTable::Read(folder.Write("profiles.csv", GenerateProfiles()));
  ASSERT_TRUE(profiles.ok()) << profiles.error().message;
  for (const JobSpec& job : GenerateTrace(kExample)) {
    const int row = profiles.value().Find(job.model, job.batch_size);
    ASSERT_GE(row, 0);
    const double rate = profiles.value().rows()[static_cast<std::size_t>(row)].Rate(job.gpus);
    EXPECT_DOUBLE_EQ(*job.iterations, Seconds(*job.duration) * rate);
  }
}

TEST(GenerateTraceTest, IsReadBackWhole) {
  const ScratchFolder folder;
  const std::string text = WriteNativeTrace(GenerateTrace(kExample));
  const auto trace = ReadTrace(folder.Write("trace.csv", text));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(WriteNativeTrace(trace.value().jobs), text);
}

TEST(GenerateProfilesTest, GivesTheSameBytesEverywhere) {
  EXPECT_EQ(io::Sha256Hex(GenerateProfiles()),
            "29e87693d929b099aba0a58364dc12d784171bc1503b55206388f290ee1e46e9");
}

TEST(GenerateProfilesTest, CoversSixModelsOnOneGpuAndMore) {
  const ScratchFolder folder;
  const auto profiles =
      profile::ThroughputTable::Read(folder.Write("profiles.csv", GenerateProfiles()));
  ASSERT_TRUE(profiles.ok());
  EXPECT_EQ(profiles.value().rows().size(), 15U);
  for (const profile::ThroughputRow& row : profiles.value().rows()) {
    EXPECT_GT(row.Rate(1), 0);
    EXPECT_GT(row.Rate(16), 0);
    EXPECT_GT(row.UsefulMaximum(), 1);
    EXPECT_LT(row.UsefulMaximum(), 65);
  }
}

}  // namespace
}  // namespace trainyard::trace
