// SPDX-License-Identifier: Apache-2.0
// Trainings as they were measured, of which simulations are made (Pollux, OSDI'21, section 5.3):
// how long an iteration takes on each placement, and what batches are worth at each epoch.
// docs/formats/profiles.md describes the files.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/goodput/goodput_model.h"
#include "trainyard/status.h"

namespace trainyard::profile {

// A pass that averages gradients, seconds.
struct PassTimes {
  double step = 0;  // in all, > 0
  double sync = 0;  // the part of it that averages gradients

  // Of a pass that averages none.
  [[nodiscard]] double compute() const { return step - sync; }
};

// Values by the samples of a GPU's part, ascending; in between lines, and at both ends lines go on.
class PassCurve {
 public:
  void Add(std::int64_t part, const PassTimes& times);
  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] std::int64_t least() const { return points_.front().first; }
  [[nodiscard]] std::int64_t most() const { return points_.back().first; }
  // REQUIRES: not empty.
  [[nodiscard]] PassTimes At(double part) const;

 private:
  std::vector<std::pair<std::int64_t, PassTimes>> points_;
};

class Application {
 public:
  // GPUs by node, as many as there are nodes; a node of more GPUs counts as several.
  using Placement = std::vector<int>;
  static constexpr int kNodeGpus = 4;  // of the machines that were measured
  static constexpr int kMostNodes = 16;

  // Reads placements.csv, scalability.csv and validation-BATCH.csv of a folder. Errors: those of
  // CsvTable; a file is missing, or has values that cannot be; epochs that are not those of the
  // other batches.
  [[nodiscard]] static Result<Application> Read(const std::string& name, const std::string& folder);

  [[nodiscard]] const std::string& name() const { return name_; }
  // As measured: the smallest and the largest batch, and the parts on any placement.
  [[nodiscard]] const BatchLimits& limits() const { return limits_; }
  [[nodiscard]] int epochs() const { return static_cast<int>(progress_.size()) - 1; }
  // Statistical progress after so many epochs, in iterations with the initial batch.
  // REQUIRES: 0 <= epoch <= epochs().
  [[nodiscard]] double ProgressAfter(int epoch) const {
    return progress_[static_cast<std::size_t>(epoch)];
  }
  // Of an iteration with so many samples after so many epochs; between measured batches lines, and
  // beyond them the nearest.
  [[nodiscard]] GradientNoise NoiseAt(double batch, int epoch) const;
  // REQUIRES: a node has GPUs.
  [[nodiscard]] PassTimes TimesOn(const Placement& placement, std::int64_t part) const;

  // What `TimesOn` says of so many nodes and GPUs, instead of interpolating between measured ones.
  void AddLarge(int nodes, int gpus, std::int64_t part, const PassTimes& times) {
    large_[{nodes, gpus}].Add(part, times);
  }

 private:
  [[nodiscard]] PassTimes Interpolated(int nodes, int gpus, double part) const;
  [[nodiscard]] Status ReadPlacements(const std::string& path);
  [[nodiscard]] Status ReadScalability(const std::string& path);
  [[nodiscard]] Status ReadValidations(const std::string& folder);

  std::string name_;
  BatchLimits limits_;
  std::map<std::string, PassCurve> by_placement_;  // digits, the smallest rotation
  // By nodes, then by GPUs: the mean of placements, and what was measured on more nodes.
  std::map<int, std::map<int, PassCurve>> by_size_;
  std::map<std::pair<int, int>, PassCurve> large_;            // of the table, by nodes and GPUs
  std::vector<double> progress_;                              // by epochs done
  std::map<std::int64_t, std::vector<GradientNoise>> noise_;  // by batch, then epoch
};

// How trainings go on beside what was measured.
struct TrainingRules {
  // Published programs: epochs take whole seconds (the nearest even one of a half).
  bool whole_seconds = false;
  struct OfApplication {
    int most_part = 0;    // instead of the largest measured one; 0: that
    int fixed_batch = 0;  // it runs on one GPU with this batch, and does not adapt; 0: it does
  };
  std::map<std::string, OfApplication> applications;  // by name

  [[nodiscard]] OfApplication Of(const std::string& application) const {
    const auto found = applications.find(application);
    return found == applications.end() ? OfApplication() : found->second;
  }
};

[[nodiscard]] BatchLimits LimitsUnder(const TrainingRules& rules, const Application& application);

// All applications of a folder, by name.
class Applications {
 public:
  // Whether the folder has a folder `apps`, or is one.
  [[nodiscard]] static bool AreAt(const std::string& folder);
  // Beside `apps` there may be throughput_over4nodes.csv.gz, Application::AddLarge of all. Errors:
  // those of Application.
  [[nodiscard]] static Result<Applications> Read(const std::string& folder);

  [[nodiscard]] std::span<const Application> all() const { return applications_; }
  // The position in all(), or -1.
  [[nodiscard]] int Find(std::string_view name) const;

 private:
  [[nodiscard]] Status ReadLarge(const std::string& path);

  std::vector<Application> applications_;
};

}  // namespace trainyard::profile
