// SPDX-License-Identifier: Apache-2.0
// The options of `trace generate` for the styles of src/trace/generators/workload.h.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>

#include "trace/generators/workload.h"
#include "trainyard/status.h"

namespace trainyard::cli {

// What is not given is that of the style.
struct OwnOptions {
  double days = 0;
  std::optional<double> day_swing;
  std::optional<double> peak_hour;
  std::optional<double> weekend_factor;
  std::optional<double> burst_share;
  std::optional<double> median_seconds;
  std::optional<double> spread;
  std::optional<int> users;
  std::optional<double> user_skew;
  std::optional<int> queues;
  double failure_share = 0;
  std::string gpu_mix;
  std::string models;
};

void AddWorkloadOptions(CLI::App& app, OwnOptions& own);

// Sets what is given, and cuts durations to their limits. `options` has what other styles have,
// too. Errors: an option does not fit.
[[nodiscard]] Status SetOwnOptions(const OwnOptions& own, trace::WorkloadOptions& options);

}  // namespace trainyard::cli
