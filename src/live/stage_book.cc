// SPDX-License-Identifier: Apache-2.0
#include "live/stage_book.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

namespace trainyard::live {
namespace {

constexpr std::array<std::string_view, 3> kMetrics{"stage/load_s", "stage/forward_s",
                                                   "stage/communication_s"};

// A stage of the protocol as one of those that jobs state.
std::size_t StatedStage(v1::Stage stage) {
  return stage == v1::COMMUNICATION ? 2 : stage == v1::FORWARD ? 1 : 0;
}

double TwoDigits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

}  // namespace

google::protobuf::RepeatedPtrField<v1::Metric> StageMetrics(const v1::AttemptReport& report) {
  std::array<double, kMetrics.size()> seconds{};
  for (const v1::StageSeconds& stage : report.stages()) {
    if (std::isfinite(stage.seconds()) && stage.seconds() > 0) {
      seconds.at(StatedStage(stage.stage())) += stage.seconds();
    }
  }
  google::protobuf::RepeatedPtrField<v1::Metric> metrics;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (seconds.at(i) > 0) {
      v1::Metric& metric = *metrics.Add();
      metric.set_name(std::string(kMetrics.at(i)));
      metric.set_value(TwoDigits(seconds.at(i)));
    }
  }
  return metrics;
}

std::optional<profile::Interleaving> InterleavingOf(std::span<const JobSpec* const> group) {
  std::vector<const StageTimes*> stages;
  for (const JobSpec* const job : group) {
    if (job->traits == nullptr || !job->traits->stages) {
      return std::nullopt;
    }
    stages.push_back(&*job->traits->stages);
  }
  const bool may = group.size() >= 2 && group.size() <= profile::kMostInterleaved;
  return may ? std::optional(profile::Interleave(stages, profile::StageOrder::kBest))
             : std::nullopt;
}

void StageBook::Note(const JobSpec& job, const std::vector<Metric>& metrics) {
  if (job.model.empty()) {
    return;
  }
  for (const Metric& metric : metrics) {
    const auto known = std::find(kMetrics.begin(), kMetrics.end(), metric.name);
    if (known == kMetrics.end() || metric.value <= 0) {
      continue;
    }
    std::vector<double>& seconds = seconds_[{job.model, job.gpus}];
    seconds.resize(kMetrics.size());
    seconds.at(static_cast<std::size_t>(known - kMetrics.begin())) = metric.value;
  }
}

void StageBook::Correct(const JobSpec& job, StageTimes& stated) const {
  const auto known = seconds_.find({job.model, job.gpus});
  if (known == seconds_.end() || stated.stages.size() != kMetrics.size()) {
    return;
  }
  const double before = std::accumulate(stated.stages.begin(), stated.stages.end(), 0.0);
  for (std::size_t i = 0; i < kMetrics.size(); ++i) {
    stated.stages[i] = known->second.at(i) > 0 ? known->second.at(i) : stated.stages[i];
  }
  const double after = std::accumulate(stated.stages.begin(), stated.stages.end(), 0.0);
  stated.iteration *= before > 0 ? after / before : 1;
}

}  // namespace trainyard::live
