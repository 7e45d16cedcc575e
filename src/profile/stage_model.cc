// SPDX-License-Identifier: Apache-2.0
#include "profile/stage_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace trainyard {
namespace {

constexpr double kOnEqualTerms = 2;  // times as long as alone

struct Stages {
  explicit Stages(const StageTimes& job)
      : load(job.stages[0]), gpu(job.stages[1]), network(job.stages[2]) {}
  double load;
  double gpu;
  double network;
};

// How often `part` fits into `whole`, and what is left. Where it fits exactly but for rounding, the
// two may disagree, as they do in the published program.
struct Division {
  Division(double whole, double part) {
    if (part > 0) {
      times = std::floor(whole / part);
      rest = std::fmod(whole, part);
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
  explicit StageModel(const GroupTimes::Rules& rules) : times_(rules) {}

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
      return times_.Of({group.data(), co_runners.group.size()});
    }
    double seconds = Alone(job);
    for (const JobSpec* const other : co_runners.collocated) {
      seconds = std::max(seconds, Beside(job, *other));
    }
    return seconds;
  }
  [[nodiscard]] double Alone(const JobSpec& job) const {
    const StageTimes* const alone = &TimesOf(job);
    return times_.Of({&alone, 1});
  }
  [[nodiscard]] double Beside(const JobSpec& job, const JobSpec& other) const {
    if (job.priority < other.priority) {
      return Alone(job);
    }
    const bool comparable =
        StatesStages(other) && TimesOf(job).stages.size() == 3 && TimesOf(other).stages.size() == 3;
    return job.priority == other.priority || !comparable
               ? kOnEqualTerms * Alone(job)
               : SecondsYielding(TimesOf(job), TimesOf(other), Alone(other));
  }

  mutable GroupTimes times_;  // keeps what has been computed; a model belongs to one run
};

}  // namespace

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

std::unique_ptr<ExecutionModel> MakeStageModel(const GroupTimes::Rules& rules) {
  return std::make_unique<StageModel>(rules);
}

}  // namespace trainyard
