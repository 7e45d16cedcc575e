// SPDX-License-Identifier: Apache-2.0
// What a training that adapts its batch tells of itself, as metrics (trainyard/metric.h): the
// parameters of its goodput. Trainings of the simulated world report it; a training on a live
// cluster may (docs/policies/pollux.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "profile/goodput/goodput_model.h"
#include "trainyard/metric.h"

namespace trainyard::profile {

inline constexpr std::string_view kGoodputPrefix = "goodput.";

struct GoodputReport {
  GoodputModel model;
  int tried_gpus = 0;  // the most that it has measured itself on
  int most_gpus = 0;   // that it can use; 0: not stated
  // On which GPUs it has measured that: NumberOfType; 0: not stated.
  std::int64_t gpu_type = 0;

  friend bool operator==(const GoodputReport&, const GoodputReport&) = default;
};

// By which a report says the type of GPU: different for different names (FNV-1a, 48 bits); of the
// empty name 0.
[[nodiscard]] std::int64_t NumberOfType(std::string_view gpu_type);

// All of them, by name; a type that is not stated is left out.
[[nodiscard]] std::vector<Metric> MetricsOf(const GoodputReport& report);

// Nothing: one of the metrics is missing (but for the type), or has a value that it cannot have.
// `reported`: by name; others may be among them.
[[nodiscard]] std::optional<GoodputReport> GoodputReportIn(std::span<const Metric> reported);

}  // namespace trainyard::profile
