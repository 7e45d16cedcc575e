// SPDX-License-Identifier: Apache-2.0
// The numbers of the styles; docs/generators.md says for each where it comes from.
#include <array>
#include <utility>

#include "trace/generators/workload.h"

namespace trainyard::trace {
namespace {

// The sizes of the ElasticFlow artifact's generator with durations of our choice.
WorkloadOptions Poisson() {
  WorkloadOptions options;
  for (const auto& [gpus, share] : {std::pair{1, 0.83}, std::pair{2, 0.03}, std::pair{4, 0.03},
                                    std::pair{8, 0.10}, std::pair{16, 0.01}}) {
    options.sizes.push_back({.gpus = gpus, .share = share, .median_seconds = 1800, .spread = 1.5});
  }
  options.least_seconds = 60;
  options.most_seconds = 7 * kDaySeconds;
  options.users = 12;
  options.queues = 2;
  return options;
}

WorkloadOptions Diurnal() {
  WorkloadOptions options = Poisson();
  options.week = {.day_swing = 0.6, .peak_hour = 15, .weekend_factor = 0.5};
  return options;
}

WorkloadOptions ItpLike() {
  WorkloadOptions options;
  options.jobs_per_hour = 4.8;
  options.week = {.day_swing = 0.3, .peak_hour = 20, .weekend_factor = 0.9};
  options.burst_share = 0.18;
  options.sizes = {{1, 0.7804, 7600, 1.2},    {2, 0.0209, 11'300, 1.65}, {4, 0.0251, 11'300, 1.65},
                   {8, 0.1549, 12'400, 1.45}, {16, 0.0097, 31'400, 1.7}, {32, 0.0050, 31'400, 1.7},
                   {64, 0.0040, 31'400, 1.7}};
  options.least_seconds = 600;
  options.most_seconds = 13 * kDaySeconds;
  options.users = 100;
  options.queues = 10;
  return options;
}

WorkloadOptions PhillyLike() {
  constexpr double kSpread = 2.62;
  WorkloadOptions options;
  options.jobs_per_hour = 35.6;
  options.week = {.day_swing = 0.35, .peak_hour = 15, .weekend_factor = 0.6};
  options.sizes = {{1, 0.83, 900, kSpread},    {2, 0.05, 1500, kSpread},
                   {4, 0.06, 1500, kSpread},   {8, 0.05, 3000, kSpread},
                   {16, 0.008, 7200, kSpread}, {32, 0.002, 7200, kSpread}};
  options.least_seconds = 30;
  options.most_seconds = 60 * kDaySeconds;
  options.users = 300;
  options.queues = 14;
  return options;
}

WorkloadOptions HeliosLike() {
  constexpr double kSpread = 2.6;
  WorkloadOptions options;
  options.jobs_per_hour = 90;
  options.week = {.day_swing = 0.5, .peak_hour = 16, .weekend_factor = 0.8};
  options.sizes = {{1, 0.58, 180, kSpread},  {2, 0.10, 250, kSpread},  {4, 0.11, 250, kSpread},
                   {8, 0.165, 400, kSpread}, {16, 0.03, 600, kSpread}, {32, 0.01, 600, kSpread},
                   {64, 0.005, 600, kSpread}};
  options.least_seconds = 1;
  options.most_seconds = 50 * kDaySeconds;
  options.users = 200;
  options.queues = 26;
  return options;
}

}  // namespace

std::span<const WorkloadStyle> WorkloadStyles() {
  static const std::array kStyles{
      WorkloadStyle{"poisson", "even arrivals, mostly single GPUs", Poisson()},
      WorkloadStyle{"diurnal", "the same with days and weekends", Diurnal()},
      WorkloadStyle{"itp-like", "as one cluster of Microsoft's ITP traces", ItpLike()},
      WorkloadStyle{"philly-like", "as Microsoft's Philly cluster", PhillyLike()},
      WorkloadStyle{"helios-like", "as one cluster of SenseTime's Helios", HeliosLike()}};
  return kStyles;
}

}  // namespace trainyard::trace
