// SPDX-License-Identifier: Apache-2.0
#include "cli/workload_options.h"

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

namespace trainyard {
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
  for (const std::string_view part : Split(text, ",")) {
    const std::size_t equals = part.rfind('=');
    const std::string_view name = part.substr(0, equals);
    const double weight =
        equals == std::string_view::npos ? 0 : ToNumber(part.substr(equals + 1)).value_or(0);
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
JobSizeClass LikeThoseOf(const std::vector<JobSizeClass>& sizes, int gpus, double share) {
  JobSizeClass size = sizes.front();
  for (const JobSizeClass& other : sizes) {
    size = other.gpus <= gpus ? other : size;
  }
  size.gpus = gpus;
  size.share = share;
  return size;
}

Status SetGpuMix(const std::string& text, WorkloadOptions& options) {
  constexpr std::string_view kExample = "1=80,8=20";
  constexpr double kMostGpus = 1e6;
  ASSIGN_OR_RETURN(const std::vector<NamedWeight> weights,
                   ReadWeights("--gpu-mix", text, kExample));
  std::vector<JobSizeClass> sizes;
  for (const NamedWeight& one : weights) {
    const double gpus = ToNumber(one.name).value_or(0);
    if (gpus < 1 || gpus > kMostGpus || gpus != std::floor(gpus)) {
      return InvalidArgument(fmt::format(
          "--gpu-mix has '{}'; expected a number of GPUs, such as {}", one.name, kExample));
    }
    sizes.push_back(LikeThoseOf(options.sizes, static_cast<int>(gpus), one.weight));
  }
  std::sort(sizes.begin(), sizes.end(),
            [](const JobSizeClass& a, const JobSizeClass& b) { return a.gpus < b.gpus; });
  options.sizes = std::move(sizes);
  return {};
}

Status SetModels(const std::string& text, WorkloadOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<NamedWeight> weights,
                   ReadWeights("--models", text, "transformer-large=3,convnet-small:256=1"));
  for (const NamedWeight& one : weights) {
    options.models.push_back({.name = std::string(one.name), .weight = one.weight});
  }
  return {};
}

void SetDurations(const SharedOptions& shared, const OwnOptions& own, WorkloadOptions& options) {
  for (JobSizeClass& size : options.sizes) {
    size.median_seconds = own.median_seconds.value_or(size.median_seconds);
    size.spread = own.spread.value_or(size.spread);
  }
  if (shared.longest_hours > 0) {
    options.most_seconds = std::max(1.0, shared.longest_hours * 3600);
  }
  options.least_seconds = std::min(options.least_seconds, options.most_seconds);
}

// The rate of the style counts only where two of three are not given without it.
void SetAmount(const SharedOptions& shared, const OwnOptions& own, WorkloadOptions& options) {
  options.jobs = shared.jobs;
  options.days = own.days;
  options.load = shared.load;
  options.cluster_gpus = shared.cluster_gpus;
  const bool given =
      shared.load > 0 || shared.jobs_per_hour > 0 || (shared.jobs > 0 && own.days > 0);
  options.jobs_per_hour = given ? shared.jobs_per_hour : options.jobs_per_hour;
}

}  // namespace

std::vector<CLI::Option*> AddWorkloadOptions(CLI::App& app, OwnOptions& own) {
  std::vector<CLI::Option*> added;
  const auto number = [&](const char* name, auto& value, const char* help, double least,
                          double most) {
    CLI::Option* option =
        app.add_option(name, value, help)->check(Finite())->check(CLI::Range(least, most));
    added.push_back(option);
    return option;
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
  added.push_back(app.add_option("--gpu-mix", own.gpu_mix, "GPUs=WEIGHT,..."));
  added.push_back(app.add_option("--models", own.models,
                                 "NAME=WEIGHT,... or NAME:BATCH=WEIGHT,... of the profiles "
                                 "(default: all alike)"));
  added.push_back(app.add_option("--users", own.users, "how many; 0: none is stated")
                      ->transform(WholeNumber())
                      ->check(CLI::Range(0, kMostUsers)));
  number("--user-skew", own.user_skew, "user k submits in proportion to 1 / k^SKEW", 0, 10);
  added.push_back(app.add_option("--queues", own.queues, "how many; 0: none is stated")
                      ->transform(WholeNumber())
                      ->check(CLI::Range(0, kMostUsers)));
  return added;
}

Result<WorkloadOptions> WorkloadOptionsOf(const std::string& style, const SharedOptions& shared,
                                          const OwnOptions& own) {
  const auto found = std::find_if(WorkloadStyles().begin(), WorkloadStyles().end(),
                                  [&style](const WorkloadStyle& one) { return one.name == style; });
  WorkloadOptions options = found->defaults;
  SetAmount(shared, own, options);
  options.seed = shared.seed;
  options.week.day_swing = own.day_swing.value_or(options.week.day_swing);
  options.week.peak_hour = own.peak_hour.value_or(options.week.peak_hour);
  options.week.weekend_factor = own.weekend_factor.value_or(options.week.weekend_factor);
  options.burst_share = own.burst_share.value_or(options.burst_share);
  RETURN_IF_ERROR(own.gpu_mix.empty() ? Status() : SetGpuMix(own.gpu_mix, options));
  RETURN_IF_ERROR(own.models.empty() ? Status() : SetModels(own.models, options));
  SetDurations(shared, own, options);
  options.largest_job = shared.largest_job;
  options.failure_share = own.failure_share;
  options.deadline_share = shared.deadline_share;
  options.least_deadline_factor = shared.least_deadline_factor;
  options.most_deadline_factor = shared.most_deadline_factor;
  options.best_effort_share = shared.best_effort_share;
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
  options.data_sets = shared.data_sets;
  return options;
}

}  // namespace trainyard
