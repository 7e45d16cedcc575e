// SPDX-License-Identifier: Apache-2.0
#include "profile/execution_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "base/check.h"
#include "model/node_classes.h"

namespace trainyard::profile {
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

constexpr double kOnEqualTerms = 2;  // times as long as alone

struct Stages {
  explicit Stages(const StageTimes& job)
      : load(job.stages[0]), gpu(job.stages[1]), network(job.stages[2]) {}
  double load;
  double gpu;
  double network;
};

// How often `part` fits into `whole`, and what is left; infinitely often: there is no gap at all.
// Where it fits exactly but for rounding, the two may disagree, as they do in the published
// program.
struct Division {
  Division(double whole, double part) {
    if (part > 0) {
      times = std::floor(whole / part);
      rest = std::fmod(whole, part);
    } else if (whole > 0) {
      times = std::numeric_limits<double>::infinity();
    }
  }
  double times = 0;
  double rest = 0;
};

const StageTimes& TimesOf(const JobSpec& job) {
  CHECK(StatesStages(job));
  return *job.traits->stages;
}

class StageModel final : public ExecutionModel {
 public:
  explicit StageModel(const GroupTimes::Rules& rules)
      : times_(rules), published_gaps_(rules.published_gaps) {}

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    if (job.iterations) {
      return *job.iterations;
    }
    CHECK(job.duration.has_value());
    return Seconds(*job.duration) / TimesOf(job).iteration;
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return gpus == job.gpus ? 1 / Alone(job) : 0;
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override {
    Throughput throughput = Throughput::OfSeconds(SecondsPerUnit(job, co_runners));
    throughput.rate = grant.gpus == job.gpus ? throughput.rate : 0;
    return throughput;
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& /*job*/) const override { return {}; }

 private:
  [[nodiscard]] double SecondsPerUnit(const JobSpec& job, const CoRunners& co_runners) const {
    if (co_runners.group.size() > 1) {
      std::array<const StageTimes*, kMostInterleaved> group{};
      CHECK(co_runners.group.size() <= group.size());
      std::transform(co_runners.group.begin(), co_runners.group.end(), group.begin(),
                     [](const JobSpec* member) { return &TimesOf(*member); });
      return TimesOfGroup({group.data(), co_runners.group.size()});
    }
    double seconds = Alone(job);
    for (const JobSpec* const other : co_runners.collocated) {
      seconds = std::max(seconds, Beside(job, *other));
    }
    return seconds;  // infinite: a neighbour leaves it nothing
  }
  [[nodiscard]] double Alone(const JobSpec& job) const {
    const StageTimes* const alone = &TimesOf(job);
    return TimesOfGroup({&alone, 1});
  }
  [[nodiscard]] double TimesOfGroup(std::span<const StageTimes* const> group) const {
    const std::lock_guard lock(mutex_);
    return times_.Of(group);
  }
  [[nodiscard]] double Beside(const JobSpec& job, const JobSpec& other) const {
    if (job.priority < other.priority) {
      return Alone(job);
    }
    const bool comparable =
        StatesStages(other) && TimesOf(job).stages.size() == 3 && TimesOf(other).stages.size() == 3;
    if (job.priority == other.priority || !comparable) {
      return kOnEqualTerms * Alone(job);
    }
    const double in_gaps = SecondsYielding(TimesOf(job), TimesOf(other), Alone(other));
    return published_gaps_
               ? in_gaps
               : std::max(in_gaps, LeastSecondsBeside(TimesOf(job), TimesOf(other), Alone(other)));
  }

  mutable std::mutex mutex_;  // forks of an engine, on other threads, have the same model
  mutable GroupTimes times_;  // keeps what has been computed
  const bool published_gaps_;
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

class CpuJobsModel final : public ModelByJob {
 public:
  explicit CpuJobsModel(std::unique_ptr<ExecutionModel> others) : others_(std::move(others)) {}

 private:
  [[nodiscard]] const ExecutionModel& Of(const JobSpec& job) const override {
    if (job.gpus == 0) {
      return durations_;
    }
    return *others_;
  }

  const DurationModel durations_;
  const std::unique_ptr<ExecutionModel> others_;
};

class TypedModel final : public ExecutionModel {
 public:
  TypedModel(model::GpuTypes types, std::unique_ptr<ExecutionModel> plain)
      : types_(std::move(types)), plain_(std::move(plain)) {}

  [[nodiscard]] double TotalWork(const JobSpec& job) const override {
    return plain_->TotalWork(job);
  }
  [[nodiscard]] double Rate(const JobSpec& job, int gpus) const override {
    return Slowest(job, gpus, types_.Accepted(job));
  }
  [[nodiscard]] double RateOn(const JobSpec& job, int gpus, const GpuType& type) const override {
    return plain_->RateOn(job, gpus, type);
  }
  [[nodiscard]] Throughput ThroughputUnder(const JobSpec& job, const Grant& grant,
                                           const CoRunners& co_runners) const override {
    const double plain = plain_->Rate(job, grant.gpus);
    const Throughput under = plain_->ThroughputUnder(job, grant, co_runners);
    const double slowest = SlowestUnder(job, grant);
    return {.rate = under.rate == plain ? slowest : under.rate * (slowest / plain),
            .seconds_per_unit = under.seconds_per_unit * (plain / slowest)};
  }
  [[nodiscard]] Resources Preferred(const JobSpec& job) const override {
    return plain_->Preferred(job);
  }
  [[nodiscard]] std::span<const int> Levels(const JobSpec& job) const override {
    return plain_->Levels(job);
  }

 private:
  // Of those on which it runs; 0: on none.
  [[nodiscard]] double Slowest(const JobSpec& job, int gpus, model::GpuTypeSet among) const {
    double slowest = 0;
    model::ForEachOf(among, [&](std::size_t type) {
      const double rate = plain_->RateOn(job, gpus, types_.types()[type]);
      slowest = rate > 0 && (slowest == 0 || rate < slowest) ? rate : slowest;
    });
    return slowest;
  }

  [[nodiscard]] double SlowestUnder(const JobSpec& job, const Grant& grant) const {
    model::GpuTypeSet held = 0;
    for (const Slice& slice : grant.slices) {
      held |= model::GpuTypeSet{1} << types_.of(slice.node);
    }
    return Slowest(job, grant.gpus, held == 0 ? types_.Accepted(job) : held);
  }

  const model::GpuTypes types_;
  const std::unique_ptr<ExecutionModel> plain_;
};

}  // namespace

std::unique_ptr<ExecutionModel> MakeMixedModel(const ThroughputTable* table,
                                               const GroupTimes::Rules& stages) {
  return std::make_unique<MixedModel>(table, stages);
}

std::unique_ptr<ExecutionModel> WithCpuJobs(std::unique_ptr<ExecutionModel> others) {
  return std::make_unique<CpuJobsModel>(std::move(others));
}

std::unique_ptr<ExecutionModel> MakeDurationModel(double factor) {
  return std::make_unique<DurationModel>(factor);
}

std::unique_ptr<ExecutionModel> MakeProfileModel(const ThroughputTable& table) {
  return std::make_unique<ProfileModel>(table);
}

double SecondsYielding(const StageTimes& job, const StageTimes& other, double other_seconds) {
  Stages own(job);
  const Stages first(other);
  const Division loading(own.load, first.gpu + first.network);
  double iterations = loading.times;
  if (loading.rest > 0) {
    iterations += 1;
    own.gpu -= std::min({own.gpu, first.network, first.gpu + first.network - loading.rest});
  }
  const Division computing(own.gpu, first.load + first.network);
  iterations += computing.times;
  if (computing.rest > 0) {
    iterations += 1;
    if (computing.rest < first.load) {
      own.network -= std::min(own.network, first.load + first.gpu - computing.rest);
    }
  }
  const Division sending(own.network, first.load + first.gpu);
  iterations += sending.times + (sending.rest > first.load ? 1 : 0);
  return iterations * other_seconds;
}

double LeastSecondsBeside(const StageTimes& job, const StageTimes& other, double other_seconds) {
  double least = 0;
  for (std::size_t stage = 0; stage < job.stages.size(); ++stage) {
    const double needed = job.stages[stage];
    const double left = 1 - other.stages[stage] / other_seconds;
    if (needed > 0 && left <= 0) {
      return std::numeric_limits<double>::infinity();
    }
    if (needed > 0) {
      least = std::max(least, needed / left);
    }
  }
  return least;
}

std::unique_ptr<ExecutionModel> MakeStageModel(const GroupTimes::Rules& rules) {
  return std::make_unique<StageModel>(rules);
}

std::unique_ptr<ExecutionModel> OnTypesOf(const Cluster& cluster,
                                          std::unique_ptr<ExecutionModel> plain) {
  model::GpuTypes types(cluster);
  if (!types.several() && types.types().front().speed == 1) {
    return plain;
  }
  return std::make_unique<TypedModel>(std::move(types), std::move(plain));
}

}  // namespace trainyard::profile
