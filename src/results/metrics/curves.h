// SPDX-License-Identifier: Apache-2.0
// What the plots of a report show, thinned to the size of a screen without losing its shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/metrics/run_result.h"

namespace trainyard::results {

// A share of fraction[i] of the values is at most seconds[i]; both ascend strictly.
struct Cdf {
  std::vector<double> seconds;
  std::vector<double> fraction;
};

// All distinct values up to `points_max` values in all; beyond, evenly spaced by rank, so that the
// curve is off by at most one part in points_max. The first and the last value are always kept.
// REQUIRES: points_max >= 2
[[nodiscard]] Cdf MakeCdf(std::vector<double> values, std::size_t points_max);

// Of completed jobs, in seconds.
[[nodiscard]] std::vector<double> JctsOfCompleted(const RunResult& run);
[[nodiscard]] std::vector<double> QueueingDelaysOfCompleted(const RunResult& run);

// Jobs by requested GPUs: one class for each number or, where there are more than twelve, for each
// power of two with the numbers below it ("1", "2", "3-4", "5-8"). The classes follow from the
// trace alone, so that all runs on a trace have the same; the values count completed jobs.
struct SizeClass {
  std::string gpus;
  std::int64_t jobs = 0;
  std::optional<double> jct_mean;
  std::optional<double> queueing_delay_mean;
};
[[nodiscard]] std::vector<SizeClass> JctBySize(const RunResult& run);

// At most `points_max` of the samples: all, or the first and, for each of equally long parts of the
// time, the last and those with the least and greatest of each drawn value. As a step function it
// looks the same at that resolution. REQUIRES: points_max >= 10; `samples` ascend by time.
[[nodiscard]] std::vector<TimelineSample> ThinTimeline(std::span<const TimelineSample> samples,
                                                       std::size_t points_max);

}  // namespace trainyard::results
