// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "support/hand_made_run.h"

namespace trainyard::results {
namespace {

using Value = std::int64_t TimelineSample::*;
constexpr std::array<Value, 3> kDrawn{&TimelineSample::gpus_used, &TimelineSample::jobs_running,
                                      &TimelineSample::jobs_pending};

TEST(MakeCdfTest, EqualValuesAreOneStep) {
  const Cdf cdf = MakeCdf({4, 0, 0, 2}, 1000);
  EXPECT_EQ(cdf.seconds, (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(cdf.fraction, (std::vector<double>{0.5, 0.75, 1}));
}

TEST(MakeCdfTest, OfNothingIsEmpty) { EXPECT_TRUE(MakeCdf({}, 1000).seconds.empty()); }

TEST(MakeCdfTest, OfOneValueIsOnePoint) {
  const Cdf cdf = MakeCdf({5}, 1000);
  EXPECT_EQ(cdf.seconds, std::vector<double>{5});
  EXPECT_EQ(cdf.fraction, std::vector<double>{1});
}

TEST(MakeCdfTest, ThinningKeepsTheEndsAndTheShares) {
  std::vector<double> values(12'345);
  std::iota(values.begin(), values.end(), 1.0);
  const Cdf cdf = MakeCdf(values, 1000);
  EXPECT_EQ(cdf.seconds.size(), 1000U);
  EXPECT_EQ(cdf.seconds.front(), 1);
  EXPECT_EQ(cdf.seconds.back(), 12'345);
  EXPECT_EQ(cdf.fraction.back(), 1);
  for (std::size_t i = 0; i < cdf.seconds.size(); ++i) {
    EXPECT_DOUBLE_EQ(cdf.fraction[i], cdf.seconds[i] / 12'345);
    EXPECT_LE(cdf.fraction[i] - (i == 0 ? 0 : cdf.fraction[i - 1]), 0.0011);
  }
}

TEST(JctBySizeTest, CountsCompletedJobsOfEachSize) {
  const std::vector<SizeClass> sizes = JctBySize(HandMadeRun());
  ASSERT_EQ(sizes.size(), 4U);
  EXPECT_EQ(sizes[0].gpus, "1");  // "b"; "e" has not ended
  EXPECT_EQ(sizes[0].jobs, 1);
  EXPECT_DOUBLE_EQ(sizes[0].jct_mean.value(), 50.5);
  EXPECT_DOUBLE_EQ(sizes[0].queueing_delay_mean.value(), 30);
  EXPECT_EQ(sizes[2].gpus, "4");  // rejected
  EXPECT_EQ(sizes[2].jobs, 0);
  EXPECT_FALSE(sizes[2].jct_mean.has_value());
  EXPECT_EQ(sizes[3].gpus, "8");
  EXPECT_DOUBLE_EQ(sizes[3].jct_mean.value(), 200);
}

TEST(JctBySizeTest, ManySizesBecomePowersOfTwo) {
  std::vector<JobSpec> specs;
  for (int gpus = 1; gpus <= 13; ++gpus) {
    specs.push_back({.gpus = gpus});
  }
  RunResult run = RunOf(std::move(specs));
  for (JobResult& job : run.jobs) {
    job.outcome = Outcome::kCompleted;
    job.start = job.spec->submit;
    job.end = job.spec->submit + std::chrono::seconds(job.spec->gpus);
  }
  const std::vector<SizeClass> sizes = JctBySize(run);
  ASSERT_EQ(sizes.size(), 5U);
  EXPECT_EQ(sizes[0].gpus, "1");
  EXPECT_EQ(sizes[1].gpus, "2");
  EXPECT_EQ(sizes[2].gpus, "3-4");
  EXPECT_EQ(sizes[3].gpus, "5-8");
  EXPECT_EQ(sizes[4].gpus, "9-16");
  EXPECT_EQ(sizes[4].jobs, 5);
  EXPECT_DOUBLE_EQ(sizes[4].jct_mean.value(), 11);
}

TEST(JctBySizeTest, TwelveSizesStayApart) {
  std::vector<JobSpec> specs;
  for (int gpus = 1; gpus <= 12; ++gpus) {
    specs.push_back({.gpus = 5 * gpus});
  }
  const std::vector<SizeClass> sizes = JctBySize(RunOf(std::move(specs)));
  ASSERT_EQ(sizes.size(), 12U);
  EXPECT_EQ(sizes[11].gpus, "60");
}

TEST(QueueingDelaysTest, CountCompletedJobs) {
  RunResult run = HandMadeRun();
  run.jobs[4].start = AtSeconds(90);  // runs, but does not end
  EXPECT_EQ(QueueingDelaysOfCompleted(run), (std::vector<double>{0, 30, 20}));
}

// A curve with noise that repeats, a peak of one sample and a dip of one sample.
std::vector<TimelineSample> Noise(std::int64_t count) {
  std::vector<TimelineSample> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    samples.push_back({.time = AtSeconds(static_cast<double>(i)),
                       .gpus_used = 500 + i * 7919 % 101,
                       .jobs_running = 200 + i * 104'729 % 53,
                       .jobs_pending = i / 100 + i * 1299709 % 11});
  }
  samples[static_cast<std::size_t>(count / 3)].gpus_used = 900;
  samples[static_cast<std::size_t>(count / 2)].jobs_running = 1;
  return samples;
}

// The least and greatest value that holds at some time in [from, to).
std::pair<std::int64_t, std::int64_t> Range(const std::vector<TimelineSample>& samples, Value value,
                                            TimePoint from, TimePoint to) {
  std::pair<std::int64_t, std::int64_t> range{INT64_MAX, INT64_MIN};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool begins_before = samples[i].time < to;
    const bool ends_after = i + 1 == samples.size() || samples[i + 1].time > from;
    if (begins_before && ends_after) {
      range.first = std::min(range.first, samples[i].*value);
      range.second = std::max(range.second, samples[i].*value);
    }
  }
  return range;
}

TEST(ThinTimelineTest, ShortOnesStayAsTheyAre) {
  EXPECT_EQ(ThinTimeline(Noise(2000), 2000).size(), 2000U);
  EXPECT_TRUE(ThinTimeline({}, 2000).empty());
}

TEST(ThinTimelineTest, KeepsTheEndsAndTheOrder) {
  const std::vector<TimelineSample> samples = Noise(50'000);
  const std::vector<TimelineSample> thinned = ThinTimeline(samples, 2000);
  EXPECT_LE(thinned.size(), 2000U);
  EXPECT_GE(thinned.size(), 1000U);
  EXPECT_EQ(thinned.front().time, samples.front().time);
  EXPECT_EQ(thinned.back().time, samples.back().time);
  EXPECT_TRUE(std::is_sorted(thinned.begin(), thinned.end(),
                             [](const auto& a, const auto& b) { return a.time <= b.time; }));
}

TEST(ThinTimelineTest, KeepsTheExtremesOfEveryStretch) {
  const std::vector<TimelineSample> samples = Noise(20'000);
  const std::vector<TimelineSample> thinned = ThinTimeline(samples, 2000);
  constexpr int kStretches = 222;  // as many as 2000 points allow
  for (const Value value : kDrawn) {
    for (int i = 0; i < kStretches; ++i) {
      const double length = 19'999.000001 / kStretches;
      const TimePoint from = AtSeconds(i * length);
      const TimePoint to = AtSeconds((i + 1) * length);
      EXPECT_EQ(Range(thinned, value, from, to), Range(samples, value, from, to)) << "part " << i;
    }
  }
}

TEST(ThinTimelineTest, SamplesThatLastForNoTimeAreNotExtremes) {
  std::vector<TimelineSample> samples = Noise(5000);
  samples[4000].time = samples[4001].time;
  samples[4000].gpus_used = 100'000;
  for (const TimelineSample& sample : ThinTimeline(samples, 2000)) {
    EXPECT_LE(sample.gpus_used, 900);
  }
}

TEST(ThinTimelineTest, OneInstantIsNotSplit) {
  const std::vector<TimelineSample> samples(3000, TimelineSample{.gpus_used = 4});
  const std::vector<TimelineSample> thinned = ThinTimeline(samples, 2000);
  EXPECT_EQ(thinned.size(), 2U);
}

}  // namespace
}  // namespace trainyard::results
