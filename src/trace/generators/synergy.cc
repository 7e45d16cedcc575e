// SPDX-License-Identifier: Apache-2.0
#include "trace/generators/synergy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/check.h"
#include "base/python_random.h"
#include "trace/csv_format.h"

namespace trainyard::trace {
namespace {

constexpr std::array<std::string_view, 3> kFamilies{"image", "language", "speech"};

// The next job is of the family that is furthest behind its share of the jobs so far; within a
// family the models take turns, as in the published simulator.
class ModelTurns {
 public:
  ModelTurns(const std::array<double, 3>& split, const profile::SensitivityTable& profiles,
             double ratio)
      : split_(split) {
    for (const profile::SensitivityProfile& profile : profiles.profiles()) {
      const auto family = std::find(kFamilies.begin(), kFamilies.end(), profile.family);
      if (profile.ratio == ratio && profile.gpus == 1 && profile.number >= 0 &&
          family != kFamilies.end()) {
        models_[static_cast<std::size_t>(family - kFamilies.begin())].push_back(&profile);
        ++count_;
      }
    }
    for (auto& models : models_) {
      std::sort(models.begin(), models.end(),
                [](const auto* a, const auto* b) { return a->number < b->number; });
    }
  }

  // Of the zoo.
  [[nodiscard]] std::uint32_t count() const { return count_; }
  // The first family without models, or nothing.
  [[nodiscard]] std::string_view Missing() const {
    for (std::size_t i = 0; i < kFamilies.size(); ++i) {
      if (models_[i].empty()) {
        return kFamilies[i];
      }
    }
    return {};
  }

  const profile::SensitivityProfile& Next() {
    const auto behind = std::max_element(lag_.begin(), lag_.end());
    const auto family = static_cast<std::size_t>(behind - lag_.begin());
    const auto& models = models_[family];
    const profile::SensitivityProfile& model = *models[drawn_[family] % models.size()];
    ++drawn_[family];
    ++jobs_;
    for (std::size_t i = 0; i < kFamilies.size(); ++i) {
      lag_[i] = split_[i] / 100 - static_cast<double>(drawn_[i]) / static_cast<double>(jobs_);
    }
    return model;
  }

 private:
  const std::array<double, 3> split_;
  std::array<std::vector<const profile::SensitivityProfile*>, 3> models_;
  std::array<std::size_t, 3> drawn_{};
  std::array<double, 3> lag_{};
  std::size_t jobs_ = 0;
  std::uint32_t count_ = 0;
};

// One stream for everything, in the original's order.
class Draws {
 public:
  explicit Draws(const SynergyOptions& options) : options_(options), random_(options.seed) {}

  double Gap() {
    return std::ceil(-std::log(1 - random_.Random()) / options_.jobs_per_hour * 3600);
  }
  double Duration() {
    const bool is_long = random_.Random() >= 0.8;
    const double exponent = options_.brief
                                ? (is_long ? random_.Uniform(2.5, 2.7) : random_.Uniform(1.5, 2.5))
                                : (is_long ? random_.Uniform(3, 4) : random_.Uniform(1.5, 3));
    return 60 * std::pow(10.0, exponent);
  }
  int Gpus() {
    if (options_.one_gpu) {
      return 1;
    }
    const double u = random_.Uniform(0, 1);
    return u >= 0.95 ? 8 : u >= 0.8 ? 4 : u >= 0.7 ? 2 : 1;
  }
  // Drawn for the model and not used, as in the original.
  void Waste(std::uint32_t models) { (void)random_.Below(models); }

 private:
  const SynergyOptions& options_;
  base::PythonRandom random_;
};

}  // namespace

Result<std::vector<JobSpec>> GenerateSynergyTrace(const SynergyOptions& options,
                                                  const profile::SensitivityTable& profiles,
                                                  double ratio) {
  CHECK(options.jobs >= 0 && options.jobs_per_hour > 0);
  ModelTurns turns(options.split, profiles, ratio);
  if (!turns.Missing().empty()) {
    return BadInput(
        fmt::format("no models of the family '{}' for {} CPUs per GPU; expected those "
                    "published with Synergy",
                    turns.Missing(), ratio));
  }
  Draws draws(options);
  std::vector<JobSpec> jobs;
  jobs.reserve(static_cast<std::size_t>(options.jobs));
  double submit = 0;
  for (int i = 0; i < options.jobs; ++i) {
    submit += draws.Gap();
    const double duration = draws.Duration();
    const int gpus = draws.Gpus();
    draws.Waste(turns.count());
    if (submit > model::kMostTraceSeconds) {
      return InvalidArgument(fmt::format("a job is submitted at {} s; expected at most {}", submit,
                                         model::kMostTraceSeconds));
    }
    const profile::SensitivityProfile& model = turns.Next();
    const double iterations = std::trunc(duration / model.iteration_seconds);
    jobs.push_back({.name = std::to_string(i),
                    .model = model.model,
                    .gpus = gpus,
                    .batch_size = model.batch_size,
                    .submit = AtSeconds(submit),
                    .duration = FromSeconds(iterations * model.iteration_seconds),
                    .iterations = iterations});
  }
  return jobs;
}

}  // namespace trainyard::trace
