// SPDX-License-Identifier: Apache-2.0
#include "profile/execution_model.h"

#include <optional>

#include "base/check.h"

namespace trainyard {
namespace {

class DurationModel final : public ExecutionModel {
 public:
  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    CHECK(job.duration.has_value());
    return Seconds(*job.duration);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return gpus == job.gpus ? 1 : 0;
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }
};

class ProfileModel final : public ExecutionModel {
 public:
  explicit ProfileModel(const ThroughputTable& table) : rows_(table.rows()) {}

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    CHECK(job.iterations.has_value());
    return *job.iterations;
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return Row(job).Rate(gpus);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return Row(job).levels;
  }

 private:
  [[nodiscard]] const ThroughputRow& Row(const JobSpec& job) const {
    CHECK(job.profile_row >= 0 && static_cast<std::size_t>(job.profile_row) < rows_.size());
    return rows_[static_cast<std::size_t>(job.profile_row)];
  }

  std::span<const ThroughputRow> rows_;
};

class MixedModel final : public ExecutionModel {
 public:
  explicit MixedModel(const ThroughputTable* table) {
    if (table != nullptr) {
      profiles_.emplace(*table);
    }
  }
  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    return Of(job).TotalWork(job);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return Of(job).Rate(job, gpus);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return Of(job).Levels(job);
  }

 private:
  [[nodiscard]] const ExecutionModel& Of(const JobSpec& job) const {
    if (profiles_ && job.profile_row >= 0) {
      return *profiles_;
    }
    return durations_;
  }

  DurationModel durations_;
  std::optional<ProfileModel> profiles_;
};

}  // namespace

std::unique_ptr<ExecutionModel> MakeMixedModel(const ThroughputTable* table) {
  return std::make_unique<MixedModel>(table);
}

std::unique_ptr<ExecutionModel> MakeDurationModel() { return std::make_unique<DurationModel>(); }

std::unique_ptr<ExecutionModel> MakeProfileModel(const ThroughputTable& table) {
  return std::make_unique<ProfileModel>(table);
}

}  // namespace trainyard
