// SPDX-License-Identifier: Apache-2.0
// Trainings as they were measured, of which simulations are made (Pollux, OSDI'21, section 5.3):
// how long an iteration takes on each placement, and what batches are worth at each epoch.
// docs/formats/profiles.md describes the files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/goodput/goodput_model.h"
#include "profile/goodput/pass_table.h"
#include "profile/goodput/step_times_fit.h"
#include "trainyard/status.h"

namespace trainyard::profile {

class Application {
 public:
  using Placement = PassTable::Placement;
  static constexpr int kNodeGpus = 4;  // of the machines that were measured without their type
  static constexpr int kMostNodes = PassTable::kMostNodes;

  explicit Application(std::string name) : name_(std::move(name)) {}
  // Reads placements.csv, scalability.csv and validation-BATCH.csv of a folder. Errors: those of
  // CsvTable; a file is missing, or has values that cannot be; epochs that are not those of the
  // other batches.
  [[nodiscard]] static Result<Application> Read(const std::string& name, const std::string& folder);

  [[nodiscard]] const std::string& name() const { return name_; }
  // Whether it was measured on GPUs of this type, or without looking at types.
  [[nodiscard]] bool RunsOn(std::string_view gpu_type) const;
  // Whether tables are those of types.
  [[nodiscard]] bool has_types() const { return !tables_.contains(""); }
  // REQUIRES, here and below: it runs on the type; none: the first that was measured.
  [[nodiscard]] const PassTable& On(std::string_view gpu_type) const;
  // As measured: the smallest and the largest batch, and the parts on any placement.
  [[nodiscard]] BatchLimits limits(std::string_view gpu_type = {}) const;
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
  [[nodiscard]] PassTimes TimesOn(const Placement& placement, std::int64_t part,
                                  std::string_view gpu_type = {}) const {
    return On(gpu_type).TimesOn(placement, part);
  }

  // While it is read: the table of a type, "" for all; and what an epoch with a batch comes to.
  [[nodiscard]] PassTable& TableOf(const std::string& gpu_type);
  void AddEpoch(std::int64_t batch, double progress, const GradientNoise& noise);
  // All has been added. Errors: there are no placements or no epochs, or another number of these
  // with another batch, or progress that does not grow. `where`: what messages begin with.
  [[nodiscard]] Status Close(const std::string& where);

 private:
  struct Epochs {
    std::vector<double> progress;
    std::vector<GradientNoise> noise;
  };

  std::string name_;
  std::vector<std::string> types_;                        // in the order in which they were read
  std::map<std::string, PassTable, std::less<>> tables_;  // by type; of "": of all
  std::vector<double> progress_;                          // by epochs done
  std::map<std::int64_t, Epochs> batches_;
};

// How trainings go on beside what was measured.
struct TrainingRules {
  // Published programs: epochs take whole seconds (the nearest even one of a half).
  bool whole_seconds = false;
  struct OfApplication {
    int most_part = 0;    // instead of the largest measured one; 0: that
    int fixed_batch = 0;  // it runs on one GPU with this batch, and does not adapt; 0: it does
    double slower = 1;    // it makes progress at its measured pace divided by this
  };
  std::map<std::string, OfApplication> applications;  // by name, or NAME.TYPE for one type of GPU
  // Instead of FitStepTimes; empty: that. For tests that give a training what another program has
  // fitted.
  std::function<StepTimes(std::string_view gpu_type, std::span<const MeasuredStep> measured)> fit{};

  [[nodiscard]] OfApplication Of(const std::string& application) const {
    const auto found = applications.find(application);
    return found == applications.end() ? OfApplication() : found->second;
  }
};

[[nodiscard]] BatchLimits LimitsUnder(const TrainingRules& rules, const Application& application,
                                      std::string_view gpu_type = {});

// All applications of a folder, by name.
class Applications {
 public:
  // Whether the folder has a folder `apps`, or is one, or has the tables of types.
  [[nodiscard]] static bool AreAt(const std::string& folder);
  // Beside `apps` or the tables of types there may be throughput_over4nodes.csv.gz,
  // PassTable::AddLarge of all. Errors: those of Application.
  [[nodiscard]] static Result<Applications> Read(const std::string& folder);

  [[nodiscard]] std::span<const Application> all() const { return applications_; }
  // The position in all(), or -1.
  [[nodiscard]] int Find(std::string_view name) const;

 private:
  [[nodiscard]] Status ReadTyped(const std::string& folder);
  [[nodiscard]] Status ReadTypedPlacements(const std::string& path);
  [[nodiscard]] Status ReadTypedSizes(const std::string& path);
  [[nodiscard]] Status ReadTypedEpochs(const std::string& path);
  [[nodiscard]] Status ReadLarge(const std::string& path);
  [[nodiscard]] Application& Add(std::string_view name);

  std::vector<Application> applications_;
};

}  // namespace trainyard::profile
