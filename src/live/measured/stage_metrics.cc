// SPDX-License-Identifier: Apache-2.0
#include "live/measured/stage_metrics.h"

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace trainyard::live
