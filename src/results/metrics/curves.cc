// SPDX-License-Identifier: Apache-2.0
#include "results/metrics/curves.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "base/check.h"
#include "results/metrics/metrics.h"

namespace trainyard::results {
namespace {

constexpr std::size_t kSizeClassesMax = 12;

struct SizeMeans {
  MeanDuration jct;
  MeanDuration queueing_delay;
};

using SizeTable = std::map<unsigned, SizeMeans>;  // by the largest GPU count of the class

unsigned GpusOf(const JobResult& job) { return static_cast<unsigned>(job.spec->gpus); }

bool NeedsRanges(const RunResult& run) {
  std::map<unsigned, bool> seen;
  for (const JobResult& job : run.jobs) {
    seen.emplace(GpusOf(job), true);
    if (seen.size() > kSizeClassesMax) {
      return true;
    }
  }
  return false;
}

std::string RangeName(unsigned largest) {
  const std::string name = std::to_string(largest);
  return largest <= 2 ? name : std::to_string(largest / 2 + 1) + "-" + name;
}

// What a plot of the timeline draws.
using SampleValue = double (*)(const TimelineSample&);
constexpr std::array<SampleValue, 4> kDrawn{
    [](const TimelineSample& sample) { return static_cast<double>(sample.gpus_used); },
    [](const TimelineSample& sample) { return static_cast<double>(sample.jobs_running); },
    [](const TimelineSample& sample) { return static_cast<double>(sample.jobs_pending); },
    [](const TimelineSample& sample) { return sample.gpus_fragmented; }};
constexpr std::size_t kKeptPerPart = 2 * kDrawn.size() + 1;

// The samples of one part of the time that have to stay.
class CurvePart {
 public:
  explicit CurvePart(std::span<const TimelineSample> samples) : samples_(samples) {}

  void Add(std::size_t sample) {
    if (empty_) {
      kept_.fill(sample);
      empty_ = false;
      return;
    }
    for (std::size_t i = 0; i < kDrawn.size(); ++i) {
      const double value = kDrawn[i](samples_[sample]);
      std::size_t& least = kept_[2 * i];
      std::size_t& greatest = kept_[2 * i + 1];
      least = value < kDrawn[i](samples_[least]) ? sample : least;
      greatest = value > kDrawn[i](samples_[greatest]) ? sample : greatest;
    }
    kept_.back() = sample;
  }

  // Appends them by time, each once, and starts anew.
  void MoveTo(std::vector<TimelineSample>& thinned) {
    if (empty_) {
      return;
    }
    std::sort(kept_.begin(), kept_.end());
    const auto end = std::unique(kept_.begin(), kept_.end());
    for (auto kept = kept_.begin(); kept != end; ++kept) {
      thinned.push_back(samples_[*kept]);
    }
    empty_ = true;
  }

 private:
  std::span<const TimelineSample> samples_;
  std::array<std::size_t, kKeptPerPart> kept_{};
  bool empty_ = true;
};

}  // namespace

Cdf MakeCdf(std::vector<double> values, std::size_t points_max) {
  CHECK(points_max >= 2);
  std::sort(values.begin(), values.end());
  Cdf cdf;
  const std::size_t count = values.size();
  const std::size_t points = std::min(points_max, count);
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t rank = points == 1 ? 0 : i * (count - 1) / (points - 1);
    if (!cdf.seconds.empty() && cdf.seconds.back() == values[rank]) {
      continue;
    }
    const auto not_above = std::upper_bound(values.begin(), values.end(), values[rank]);
    cdf.seconds.push_back(values[rank]);
    cdf.fraction.push_back(static_cast<double>(not_above - values.begin()) /
                           static_cast<double>(count));
  }
  return cdf;
}

std::vector<double> JctsOfCompleted(const RunResult& run) {
  std::vector<double> values;
  for (const JobResult& job : run.jobs) {
    if (const std::optional<Duration> jct = Jct(job, run)) {
      values.push_back(Seconds(*jct));
    }
  }
  return values;
}

std::vector<double> QueueingDelaysOfCompleted(const RunResult& run) {
  std::vector<double> values;
  for (const JobResult& job : run.jobs) {
    const std::optional<Duration> delay = QueueingDelay(job);
    if (delay && CountedEnd(job, run)) {
      values.push_back(Seconds(*delay));
    }
  }
  return values;
}

std::vector<SizeClass> JctBySize(const RunResult& run) {
  const bool ranges = NeedsRanges(run);
  SizeTable table;
  for (const JobResult& job : run.jobs) {
    SizeMeans& means =
        table[ranges && job.spec->gpus > 0 ? std::bit_ceil(GpusOf(job)) : GpusOf(job)];
    if (const std::optional<Duration> jct = Jct(job, run)) {
      means.jct.Add(*jct);
      means.queueing_delay.Add(QueueingDelay(job).value_or(Duration{0}));
    }
  }
  std::vector<SizeClass> classes;
  for (const auto& [largest, means] : table) {
    classes.push_back({.gpus = ranges ? RangeName(largest) : std::to_string(largest),
                       .jobs = means.jct.count(),
                       .jct_mean = means.jct.seconds(),
                       .queueing_delay_mean = means.queueing_delay.seconds()});
  }
  return classes;
}

std::vector<TimelineSample> ThinTimeline(std::span<const TimelineSample> samples,
                                         std::size_t points_max) {
  CHECK(points_max > kKeptPerPart);
  if (samples.size() <= points_max) {
    return {samples.begin(), samples.end()};
  }
  const std::size_t parts = (points_max - 1) / kKeptPerPart;
  const TimePoint begin = samples.front().time;
  // One microsecond more, so that the last sample falls into the last part.
  const double part_us = (Micros(samples.back().time - begin) + 1) / static_cast<double>(parts);
  std::vector<TimelineSample> thinned{samples.front()};
  CurvePart part(samples);
  std::size_t current = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (i + 1 < samples.size() && samples[i + 1].time == samples[i].time) {
      continue;  // lasted for no time
    }
    const auto place = static_cast<std::size_t>(Micros(samples[i].time - begin) / part_us);
    if (place != current) {
      part.MoveTo(thinned);
      current = place;
    }
    part.Add(i);
  }
  part.MoveTo(thinned);
  return thinned;
}

}  // namespace trainyard::results
