// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/training_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace trainyard::profile {
namespace {

constexpr int kMostGpus = Application::kMostNodes * Application::kNodeGpus;
// Of a training that are looked at, and batch sizes at each of them.
constexpr int kTimes = 8;
constexpr int kBatches = 16;

class TrainingModel final : public ExecutionModel {
 public:
  TrainingModel(const Applications& applications, const TrainingRules& rules)
      : applications_(applications), levels_(kMostGpus) {
    std::iota(levels_.begin(), levels_.end(), 1);
    for (const Application& application : applications.all()) {
      std::vector<double>& rates = rates_.emplace_back();
      const int most = rules.Of(application.name()).fixed_batch > 0 ? 1 : kMostGpus;
      for (int gpus = 1; gpus <= most; ++gpus) {
        rates.push_back(MeanRate(application, rules, gpus));
      }
    }
  }

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    const Application& application = applications_.all()[Row(job)];
    return application.ProgressAfter(application.epochs());
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    const std::vector<double>& rates = rates_[Row(job)];
    return static_cast<std::size_t>(gpus) <= rates.size()
               ? rates[static_cast<std::size_t>(gpus) - 1]
               : 0;
  }
  // By the throughputs of one GPU of each type.
  [[nodiscard]] double RateOn(const JobSpec& job, int gpus, const GpuType& type) const override {
    const Application& application = applications_.all()[Row(job)];
    if (!application.has_types()) {
      return Rate(job, gpus) * type.speed;
    }
    const double first = application.On({}).OneGpuThroughput();
    if (!application.RunsOn(type.name) || type.name.empty() || first <= 0) {
      return 0;
    }
    return Rate(job, gpus) * (application.On(type.name).OneGpuThroughput() / first);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return std::span(levels_).first(rates_[Row(job)].size());
  }

 private:
  static std::size_t Row(const JobSpec& job) { return static_cast<std::size_t>(job.profile_row); }

  static double MeanRate(const Application& application, const TrainingRules& rules, int gpus) {
    const BatchLimits limits = LimitsUnder(rules, application);
    const Application::Placement placement(
        1, gpus);  // which is taken for as many nodes as were measured
    const int fixed = rules.Of(application.name()).fixed_batch;
    const auto least = static_cast<double>(std::max(limits.initial, limits.least_part * gpus));
    const double growth = std::pow(static_cast<double>(limits.most) / least, 1.0 / (kBatches - 1));
    double seconds = 0;  // of a unit of progress, summed
    for (int time = 0; time < kTimes; ++time) {
      const int epoch = application.epochs() * time / kTimes;
      double best = 0;
      double target = fixed > 0 ? fixed : least;
      for (int i = 0; i < kBatches; ++i, target *= growth) {
        const Batch batch = BatchFor(target, gpus, limits);
        if (batch.part > limits.most_part || batch.part < 1) {
          continue;
        }
        const auto samples = static_cast<double>(batch.On(gpus));
        const PassTimes pass = application.TimesOn(placement, batch.part);
        const double rate = application.NoiseAt(samples, epoch)
                                .Gain(samples / static_cast<double>(limits.initial)) /
                            (pass.step + pass.compute() * static_cast<double>(batch.accumulated));
        best = std::max(best, rate);
        if (fixed > 0) {
          break;
        }
      }
      if (best <= 0) {
        return 0;
      }
      seconds += 1 / best;
    }
    return kTimes / seconds / rules.Of(application.name()).slower;
  }

  const Applications& applications_;
  std::vector<int> levels_;
  std::vector<std::vector<double>> rates_;  // by application, then GPUs - 1
};

}  // namespace

std::unique_ptr<ExecutionModel> MakeTrainingModel(const Applications& applications,
                                                  const TrainingRules& rules) {
  return std::make_unique<TrainingModel>(applications, rules);
}

}  // namespace trainyard::profile
