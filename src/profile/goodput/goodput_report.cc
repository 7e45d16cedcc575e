// SPDX-License-Identifier: Apache-2.0
#include "profile/goodput/goodput_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/fnv.h"

namespace trainyard::profile {
namespace {

constexpr double kMostGpus = 1 << 20;
constexpr double kMostSamples = 1e12;
constexpr double kLeastSeconds = 1e-12;
constexpr double kMostSeconds = 1e9;
constexpr double kMostNoise = 1e300;
constexpr double kMostTypes = 1LL << 48;
constexpr std::string_view kTypeField = "gpu_type";

// One number of a report: how it is called, where it is, and between which values it may lie.
struct ReportField {
  std::string_view name;
  double (*get)(const GoodputReport& report);
  void (*set)(GoodputReport& report, double value);
  double least;
  double most;
  bool whole;
};

#define TRAINYARD_REPORT_FIELD(text, member, low, high, is_whole)                         \
  ReportField {                                                                           \
    text, [](const GoodputReport& report) { return static_cast<double>(report.member); }, \
        [](GoodputReport& report, double value) {                                         \
          report.member = static_cast<decltype(report.member)>(value);                    \
        },                                                                                \
        low, high, is_whole                                                               \
  }

constexpr std::array kFields{
    TRAINYARD_REPORT_FIELD("alpha_compute", model.times.alpha_compute, kLeastSeconds, kMostSeconds,
                           false),
    TRAINYARD_REPORT_FIELD("alpha_network", model.times.alpha_network, kLeastSeconds, kMostSeconds,
                           false),
    TRAINYARD_REPORT_FIELD("alpha_node", model.times.alpha_node, kLeastSeconds, kMostSeconds,
                           false),
    TRAINYARD_REPORT_FIELD("beta_compute", model.times.beta_compute, kLeastSeconds, kMostSeconds,
                           false),
    TRAINYARD_REPORT_FIELD("beta_network", model.times.beta_network, kLeastSeconds, kMostSeconds,
                           false),
    TRAINYARD_REPORT_FIELD("beta_node", model.times.beta_node, kLeastSeconds, kMostSeconds, false),
    TRAINYARD_REPORT_FIELD("gamma", model.times.gamma, 1, 10, false),
    TRAINYARD_REPORT_FIELD(kTypeField, gpu_type, 1, kMostTypes, true),
    TRAINYARD_REPORT_FIELD("initial_batch", model.limits.initial, 1, kMostSamples, true),
    TRAINYARD_REPORT_FIELD("least_part", model.limits.least_part, 1, kMostSamples, true),
    TRAINYARD_REPORT_FIELD("most_batch", model.limits.most, 1, kMostSamples, true),
    TRAINYARD_REPORT_FIELD("most_gpus", most_gpus, 0, kMostGpus, true),
    TRAINYARD_REPORT_FIELD("most_part", model.limits.most_part, 1, kMostSamples, true),
    TRAINYARD_REPORT_FIELD("square", model.noise.square, 0, kMostNoise, false),
    TRAINYARD_REPORT_FIELD("tried_gpus", tried_gpus, 1, kMostGpus, true),
    TRAINYARD_REPORT_FIELD("variance", model.noise.variance, 0, kMostNoise, false)};
#undef TRAINYARD_REPORT_FIELD
static_assert(kFields.size() <= kMaxMetrics);

}  // namespace

std::int64_t NumberOfType(std::string_view gpu_type) {
  if (gpu_type.empty()) {
    return 0;
  }
  base::Fnv1a hash;
  for (const char c : gpu_type) {
    hash.Add(std::uint64_t{static_cast<unsigned char>(c)});
  }
  const std::uint64_t number = hash.value();
  return static_cast<std::int64_t>(
      std::max<std::uint64_t>((number ^ (number >> 48U)) & ((std::uint64_t{1} << 48U) - 1), 1));
}

std::vector<Metric> MetricsOf(const GoodputReport& report) {
  std::vector<Metric> metrics;
  metrics.reserve(kFields.size());
  for (const ReportField& field : kFields) {
    if (field.name == kTypeField && report.gpu_type == 0) {
      continue;
    }
    metrics.push_back({.name = std::string(kGoodputPrefix) + std::string(field.name),
                       .value = field.get(report)});
  }
  return metrics;
}

std::optional<GoodputReport> GoodputReportIn(std::span<const Metric> reported) {
  GoodputReport report;
  auto next = reported.begin();
  for (const ReportField& field : kFields) {
    const auto found = std::find_if(next, reported.end(), [&](const Metric& metric) {
      return metric.name.starts_with(kGoodputPrefix) &&
             std::string_view(metric.name).substr(kGoodputPrefix.size()) == field.name;
    });
    if (found == reported.end() && field.name == kTypeField) {
      continue;
    }
    next = found;
    if (next == reported.end() || !(next->value >= field.least) || !(next->value <= field.most) ||
        (field.whole && next->value != std::floor(next->value))) {
      return std::nullopt;
    }
    field.set(report, next->value);
  }
  const BatchLimits& limits = report.model.limits;
  return limits.most >= limits.initial && limits.most_part >= limits.least_part
             ? std::optional(report)
             : std::nullopt;
}

}  // namespace trainyard::profile
