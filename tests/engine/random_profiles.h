// SPDX-License-Identifier: Apache-2.0
// Random throughput profiles, and runs in which policy elasticflow promises something on them.
#pragma once

#include <array>
#include <random>
#include <string>
#include <vector>

#include "engine_tests/harness.h"

namespace trainyard {

// Random profiles: some scale well, some badly, some get slower beyond a peak or lack a level.
class RandomProfiles final : public ExecutionModel {
 public:
  explicit RandomProfiles(unsigned seed) {
    std::mt19937 random(seed);
    for (Profile& profile : profiles_) {
      double rate = 0.1 + static_cast<double>(random() % 100) / 10;
      for (int gpus = 1; gpus <= 16; gpus *= 2) {
        if (gpus == 1 || random() % 8 != 0) {
          profile.levels.push_back(gpus);
          profile.rates.push_back(rate);
        }
        rate *= 0.9 + static_cast<double>(random() % 100) / 90;
      }
    }
  }

  [[nodiscard]] double TotalWork(const JobSpec& job) const override { return *job.iterations; }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    const Profile& profile = Of(job);
    for (std::size_t i = 0; i < profile.levels.size(); ++i) {
      if (profile.levels[i] == gpus) {
        return profile.rates[i];
      }
    }
    return 0;
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return Of(job).levels;
  }

 private:
  struct Profile {
    std::vector<int> levels;
    std::vector<double> rates;
  };
  [[nodiscard]] const Profile& Of(const JobSpec& job) const {
    return profiles_[static_cast<std::size_t>(job.profile_row)];
  }
  std::array<Profile, 6> profiles_;
};

inline std::vector<JobSpec> JobsWithDeadlines(unsigned seed, int count,
                                              const ExecutionModel& rates) {
  std::mt19937 random(seed);
  std::vector<JobSpec> jobs;
  double at = 0;
  for (int i = 0; i < count; ++i) {
    if (random() % 3 != 0) {  // the others come together
      at += static_cast<double>(random() % 4000) / 10;
    }
    JobSpec job{.name = "job" + std::to_string(i), .gpus = 1, .submit = AtSeconds(at)};
    job.profile_row = static_cast<int>(random() % 6);
    const double alone = 1 + static_cast<double>(random() % 30000) / 10;  // seconds on 1 GPU
    job.iterations = alone * rates.Rate(job, 1);
    if (random() % 5 != 0) {
      job.deadline = AtSeconds(at + alone * (0.1 + static_cast<double>(random() % 200) / 100));
    }
    job.best_effort = random() % 10 == 0;
    jobs.push_back(job);
  }
  return jobs;
}

inline TestRun RandomPromises(unsigned seed, const ExecutionModel& rates) {
  std::mt19937 random(seed);
  const auto cost = [&random] { return FromSeconds(static_cast<double>(random() % 300) / 10); };
  TestRun run{.jobs = JobsWithDeadlines(seed, 120, rates),
              .cluster = MakeCluster(1 + static_cast<int>(seed % 5), seed % 2 == 0 ? 4 : 8),
              .policy = "elasticflow",
              .admission = "deadline",
              .rates = &rates};
  run.rules.debt = {};
  run.overheads = profile::OverheadModel(profile::OverheadTable{
      .fallback = {.start = cost(), .restart = cost(), .resize = cost(), .migrate = cost()},
      .models = {}});
  return run;
}

}  // namespace trainyard
