// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "trace/generators/random.h"

namespace trainyard::trace {
namespace {

constexpr std::array kLevels{1, 2, 4, 8, 16, 32, 64};
constexpr double kRateUnit = 1e4;  // rates have four decimals

// A made-up model. One iteration on g GPUs takes, in milliseconds,
//   fixed + batch * sample / g + exchange * log2(g) + far * (nodes - 1),
// with 8 GPUs in a node: work that is shared out, gradients exchanged along a tree, and a charge
// for each further node. More GPUs help up to a peak, then harm.
struct MixModel {
  std::string_view name;
  std::array<int, 3> batch_sizes;  // 0: none
  int most_gpus;                   // it does not run on more
  double fixed;
  double sample;
  double exchange;
  double far;
};

constexpr std::array kZoo{
    MixModel{"convnet-large", {64, 128, 256}, 64, 12, 2.4, 5.5, 1.6},
    MixModel{"convnet-small", {128, 256, 512}, 64, 6, 0.35, 1.6, 0.9},
    MixModel{"recommender", {4096, 8192, 0}, 16, 7, 0.012, 9, 6},
    MixModel{"speech-recurrent", {32, 64, 0}, 64, 45, 4.5, 9, 4},
    MixModel{"transformer-large", {64, 128, 256}, 64, 20, 9.5, 17, 2.4},
    MixModel{"transformer-small", {64, 128, 0}, 64, 14, 1.9, 4, 1.2},
};

// The rates of one model with one batch size, in units of 1 / kRateUnit iterations per second, so
// that the file and the generated jobs hold exactly the same numbers.
struct Profile {
  std::string_view model;
  int batch_size = 0;
  std::array<std::int64_t, kLevels.size()> rates{};  // 0: does not run
};

std::int64_t RateOf(const MixModel& model, int batch_size, std::size_t level) {
  const int gpus = kLevels[level];
  if (gpus > model.most_gpus) {
    return 0;
  }
  const double more_nodes = std::max(gpus / 8, 1) - 1;
  const double milliseconds = model.fixed + batch_size * model.sample / gpus +
                              model.exchange * static_cast<double>(level) +  // level = log2(gpus)
                              model.far * more_nodes;
  return std::llround(kRateUnit * 1000 / milliseconds);
}

std::vector<Profile> MakeProfiles() {
  std::vector<Profile> profiles;
  for (const MixModel& model : kZoo) {
    for (const int batch_size : model.batch_sizes) {
      if (batch_size == 0) {
        continue;
      }
      Profile profile{.model = model.name, .batch_size = batch_size};
      for (std::size_t level = 0; level < kLevels.size(); ++level) {
        profile.rates[level] = RateOf(model, batch_size, level);
      }
      profiles.push_back(profile);
    }
  }
  return profiles;
}

// ElasticFlow artifact's generator: log2 of the number of GPUs.
std::size_t DrawLevel(Random& random, int largest_job) {
  const double u = random.Uniform();
  std::size_t level = 0;
  if (u >= 0.83) {
    level = u <= 0.86 ? 1 : u <= 0.89 ? 2 : u <= 0.99 ? 3 : 4;
  }
  while (kLevels[level] > largest_job) {
    --level;
  }
  return level;
}

// ElasticFlow artifact's generator, in whole seconds.
std::int64_t DrawDuration(Random& random, double longest_hours) {
  const bool is_long = random.Uniform() >= 0.8;
  const double exponent = is_long ? random.Uniform(2.5, 4) : random.Uniform(1, 2.5);
  const double seconds = 60 * std::pow(10.0, exponent);
  const double longest = longest_hours > 0 ? std::max(1.0, longest_hours * 3600) : seconds;
  return static_cast<std::int64_t>(std::min(seconds, longest));
}

// Everything but the times. Each job takes the same draws whatever the options are, so that one
// option changes one thing.
JobSpec DrawJob(Random& random, const GeneratorOptions& options,
                const std::vector<Profile>& profiles, std::size_t number) {
  constexpr double kUsers = 12;
  constexpr int kResearchers = 8;
  const std::size_t level = DrawLevel(random, options.largest_job);
  const Profile& profile = profiles[random.Below(profiles.size())];
  const std::int64_t seconds = DrawDuration(random, options.longest_hours);
  const double rank = random.Uniform();
  const int user = 1 + static_cast<int>(kUsers * rank * rank);  // the first ones submit most
  return {
      .name = fmt::format("job-{:06}", number + 1),
      .user = fmt::format("user{:02}", user),
      .queue = user <= kResearchers ? "research" : "production",
      .model = std::string(profile.model),
      .gpus = kLevels[level],
      .batch_size = profile.batch_size,
      .duration = std::chrono::seconds(seconds),
      .iterations = static_cast<double>(seconds * profile.rates[level]) / kRateUnit,
  };
}

// Exponential gaps, scaled so that the work is offered over exactly the time that makes the load.
void SetSubmitsByGaps(const std::vector<double>& gaps, double span, std::vector<JobSpec>& jobs) {
  double all = 0;
  for (const double gap : gaps) {
    all += gap;
  }
  double before = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].submit = TimePoint{std::chrono::seconds(std::llround(before / all * span))};
    before += gaps[i];
  }
}

}  // namespace

std::vector<JobSpec> GenerateTrace(const GeneratorOptions& options) {
  CHECK(options.jobs >= 0 && options.cluster_gpus > 0 && options.load > 0);
  CHECK(options.largest_job >= 1 && options.longest_hours >= 0 && options.data_sets >= 0);
  Random random(options.seed);
  const std::vector<Profile> profiles = MakeProfiles();
  const auto count = static_cast<std::size_t>(options.jobs);
  std::vector<JobSpec> jobs;
  std::vector<double> gaps;
  std::vector<Duration> allowed;  // to the deadline; zero: there is none
  jobs.reserve(count);
  gaps.reserve(count);
  allowed.reserve(count);
  double work = 0;  // GPU-seconds
  for (std::size_t i = 0; i < count; ++i) {
    jobs.push_back(DrawJob(random, options, profiles, i));
    const double seconds = Seconds(*jobs.back().duration);
    work += seconds * jobs.back().gpus;
    const bool has_deadline = random.Uniform() < options.deadline_share;
    const double slack = random.Uniform(0.5, 1.5);
    allowed.push_back(std::chrono::seconds(has_deadline ? std::llround(slack * seconds) : 0));
    gaps.push_back(random.Exponential());
  }
  SetSubmitsByGaps(gaps, work / (options.load * options.cluster_gpus), jobs);
  for (std::size_t i = 0; i < count; ++i) {
    if (allowed[i] > Duration{0}) {
      jobs[i].deadline = jobs[i].submit + allowed[i];
    }
  }
  if (options.data_sets > 0) {
    AddDataSets(options.data_sets, options.seed, jobs);
  }
  return jobs;
}

void AddDataSets(int count, std::uint64_t seed, std::span<JobSpec> jobs) {
  CHECK(count > 0);
  constexpr std::uint64_t kOtherSeed = 0x9e3779b97f4a7c15;
  Random random(seed ^ kOtherSeed);
  std::vector<std::shared_ptr<const JobTraits>> sets;
  for (int i = 0; i < count; ++i) {
    JobTraits traits;
    traits.data_set = DataSet{.name = fmt::format("data-{:03}", i + 1),
                              .mib = std::llround(1000 * std::pow(10.0, random.Uniform(0, 2))),
                              .home = {}};
    sets.push_back(std::make_shared<const JobTraits>(std::move(traits)));
  }
  for (JobSpec& job : jobs) {
    const double rank = random.Uniform();
    job.traits = sets[static_cast<std::size_t>(static_cast<double>(sets.size()) * rank * rank)];
  }
}

std::vector<profile::ThroughputRow> GenerateProfileRows() {
  std::vector<profile::ThroughputRow> rows;
  for (const Profile& profile : MakeProfiles()) {
    profile::ThroughputRow row{.model = std::string(profile.model),
                               .batch_size = profile.batch_size};
    for (std::size_t level = 0; level < kLevels.size(); ++level) {
      if (profile.rates[level] > 0) {
        row.levels.push_back(kLevels[level]);
        row.rates.push_back(static_cast<double>(profile.rates[level]) / kRateUnit);
      }
    }
    row.columns = row.levels;
    row.largest_written = row.levels.back();
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string GenerateProfiles() {
  std::string text = "model,batch_size,gpus,iterations_per_second\n";
  for (const Profile& profile : MakeProfiles()) {
    for (std::size_t level = 0; level < kLevels.size(); ++level) {
      if (profile.rates[level] > 0) {
        fmt::format_to(std::back_inserter(text), "{},{},{},{}\n", profile.model, profile.batch_size,
                       kLevels[level], static_cast<double>(profile.rates[level]) / kRateUnit);
      }
    }
  }
  return text;
}

}  // namespace trainyard::trace
