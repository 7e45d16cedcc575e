// SPDX-License-Identifier: Apache-2.0
#include "profile/execution_model.h"

#include <optional>

#include "base/check.h"
#include "profile/stage_model.h"

namespace trainyard {
namespace {

class DurationModel final : public ExecutionModel {
 public:
  explicit DurationModel(double factor = 1) : factor_(factor) {}
  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    CHECK(job.duration.has_value());
    return Seconds(*job.duration);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return gpus == job.gpus ? factor_ : 0;
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }

 private:
  const double factor_;
};

class ProfileModel final : public ExecutionModel {
 public:
  explicit ProfileModel(const ThroughputTable& table) : rows_(table.rows()) {}

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    CHECK(job.iterations.has_value());
    return *job.iterations;
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return MayHave(job, gpus) ? Row(job).Rate(gpus) : 0;
  }
  [[nodiscard]] double RateOn(const JobSpec& job, int gpus, const GpuType& type) const override {
    if (!MayHave(job, gpus)) {
      return 0;
    }
    const ThroughputRow& row = Row(job);
    return row.by_type.empty() ? row.Rate(gpus) * type.speed : row.RateOn(type.name, gpus);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return Row(job).levels;
  }

 private:
  static bool MayHave(const JobSpec& job, int gpus) {
    return job.traits == nullptr || job.traits->range.Holds(gpus);
  }
  [[nodiscard]] const ThroughputRow& Row(const JobSpec& job) const {
    CHECK(job.profile_row >= 0 && static_cast<std::size_t>(job.profile_row) < rows_.size());
    return rows_[static_cast<std::size_t>(job.profile_row)];
  }

  std::span<const ThroughputRow> rows_;
};

class MixedModel final : public ModelByJob {
 public:
  MixedModel(const ThroughputTable* table, const GroupTimes::Rules& stages)
      : stages_(MakeStageModel(stages)) {
    if (table != nullptr) {
      profiles_.emplace(*table);
    }
  }

 private:
  [[nodiscard]] const ExecutionModel& Of(const JobSpec& job) const override {
    if (StatesStages(job)) {
      return *stages_;
    }
    if (profiles_ && job.profile_row >= 0) {
      return *profiles_;
    }
    return durations_;
  }

  DurationModel durations_;
  std::optional<ProfileModel> profiles_;
  std::unique_ptr<ExecutionModel> stages_;
};

}  // namespace

std::unique_ptr<ExecutionModel> MakeMixedModel(const ThroughputTable* table,
                                               const GroupTimes::Rules& stages) {
  return std::make_unique<MixedModel>(table, stages);
}

std::unique_ptr<ExecutionModel> MakeDurationModel(double factor) {
  return std::make_unique<DurationModel>(factor);
}

std::unique_ptr<ExecutionModel> MakeProfileModel(const ThroughputTable& table) {
  return std::make_unique<ProfileModel>(table);
}

}  // namespace trainyard
