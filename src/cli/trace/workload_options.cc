// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/workload_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/try.h"
#include "cli/numbers.h"

namespace trainyard::cli {
namespace {

constexpr int kMostUsers = 1'000'000;

struct NamedWeight {
  std::string_view name;
  double weight = 0;
};

// "NAME=WEIGHT,..."
Result<std::vector<NamedWeight>> ReadWeights(std::string_view option, std::string_view text,
                                             std::string_view example) {
  std::vector<NamedWeight> weights;
  for (const std::string_view part : base::Split(text, ",")) {
    const std::size_t equals = part.rfind('=');
    const std::string_view name = part.substr(0, equals);
    const double weight =
        equals == std::string_view::npos ? 0 : base::ToNumber(part.substr(equals + 1)).value_or(0);
    const bool twice = std::any_of(weights.begin(), weights.end(),
                                   [name](const NamedWeight& other) { return other.name == name; });
    if (name.empty() || twice || !(weight > 0)) {
      return InvalidArgument(
          fmt::format("{} is '{}'; expected different names with weights > 0, such as {}", option,
                      text, example));
    }
    weights.push_back({.name = name, .weight = weight});
  }
  return weights;
}

// Durations of a size that the style does not have are those of the next smaller one.
trace::JobSizeClass LikeThoseOf(const std::vector<trace::JobSizeClass>& sizes, int gpus,
                                double share) {
  trace::JobSizeClass size = sizes.front();
  for (const trace::JobSizeClass& other : sizes) {
    size = other.gpus <= gpus ? other : size;
  }
  size.gpus = gpus;
  size.share = share;
  return size;
}

Status SetGpuMix(const std::string& text, trace::WorkloadOptions& options) {
  constexpr std::string_view kExample = "1=80,8=20";
  constexpr double kMostGpus = 1e6;
  ASSIGN_OR_RETURN(const std::vector<NamedWeight> weights,
                   ReadWeights("--gpu-mix", text, kExample));
  std::vector<trace::JobSizeClass> sizes;
  for (const NamedWeight& one : weights) {
    const double gpus = base::ToNumber(one.name).value_or(0);
    if (gpus < 1 || gpus > kMostGpus || gpus != std::floor(gpus)) {
      return InvalidArgument(fmt::format(
          "--gpu-mix has '{}'; expected a number of GPUs, such as {}", one.name, kExample));
    }
    sizes.push_back(LikeThoseOf(options.sizes, static_cast<int>(gpus), one.weight));
  }
  std::sort(
      sizes.begin(), sizes.end(),
      [](const trace::JobSizeClass& a, const trace::JobSizeClass& b) { return a.gpus < b.gpus; });
  options.sizes = std::move(sizes);
  return {};
}

Status SetModels(const std::string& text, trace::WorkloadOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<NamedWeight> weights,
                   ReadWeights("--models", text, "transformer-large=3,convnet-small:256=1"));
  for (const NamedWeight& one : weights) {
    options.models.push_back({.name = std::string(one.name), .weight = one.weight});
  }
  return {};
}

}  // namespace

void AddWorkloadOptions(CLI::App& app, OwnOptions& own) {
  const auto number = [&](const char* name, auto& value, const char* help, double least,
                          double most) {
    return app.add_option(name, value, help)->check(Finite())->check(CLI::Range(least, most));
  };
  const auto count = [&](const char* name, std::optional<int>& value) {
    app.add_option(name, value, "how many; 0: none is stated")
        ->transform(WholeNumber())
        ->check(CLI::Range(0, kMostUsers));
  };
  constexpr double kDay = 86'400;
  constexpr double kMostDays = 36'500;
  number("--days", own.days, "time over which the jobs are submitted", 1e-3, kMostDays)
      ->transform(Span(kDay));
  number("--day-swing", own.day_swing, "how much more at the peak of a day than on average", 0, 1);
  number("--peak-hour", own.peak_hour, "when the days are busiest", 0, 24);
  number("--weekend-factor", own.weekend_factor, "rate on days 6 and 7 relative to the others", 0,
         100);
  number("--burst-share", own.burst_share, "share of jobs submitted at once with the one before", 0,
         0.99);
  number("--median-duration", own.median_seconds, "seconds, for jobs of all sizes", 1, 1e9)
      ->transform(Span());
  number("--duration-spread", own.spread, "standard deviation of the logarithm of durations", 0,
         10);
  number("--failure-share", own.failure_share, "share of jobs that end early", 0, 1);
  app.add_option("--gpu-mix", own.gpu_mix, "GPUs=WEIGHT,...");
  app.add_option("--models", own.models,
                 "NAME=WEIGHT,... or NAME:BATCH=WEIGHT,... of the profiles (default: all alike)");
  count("--users", own.users);
  number("--user-skew", own.user_skew, "user k submits in proportion to 1 / k^SKEW", 0, 10);
  count("--queues", own.queues);
}

Status SetOwnOptions(const OwnOptions& own, trace::WorkloadOptions& options) {
  options.days = own.days;
  options.week.day_swing = own.day_swing.value_or(options.week.day_swing);
  options.week.peak_hour = own.peak_hour.value_or(options.week.peak_hour);
  options.week.weekend_factor = own.weekend_factor.value_or(options.week.weekend_factor);
  options.burst_share = own.burst_share.value_or(options.burst_share);
  RETURN_IF_ERROR(own.gpu_mix.empty() ? Status() : SetGpuMix(own.gpu_mix, options));
  RETURN_IF_ERROR(own.models.empty() ? Status() : SetModels(own.models, options));
  for (trace::JobSizeClass& size : options.sizes) {
    size.median_seconds = own.median_seconds.value_or(size.median_seconds);
    size.spread = own.spread.value_or(size.spread);
  }
  options.least_seconds = std::min(options.least_seconds, options.most_seconds);
  options.failure_share = own.failure_share;
  if (options.deadline_share + options.best_effort_share > 1) {
    return InvalidArgument(
        "--deadline-share and --best-effort-share are more than 1 together; expected at most all "
        "jobs");
  }
  options.users = own.users.value_or(options.users);
  options.user_skew = own.user_skew.value_or(options.user_skew);
  options.queues = own.queues.value_or(options.users > 0 ? options.queues : 0);
  if (options.queues > 0 && options.users == 0) {
    return InvalidArgument("--queues without users; expected --users, as users have queues");
  }
  return {};
}

}  // namespace trainyard::cli
