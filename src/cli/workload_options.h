// SPDX-License-Identifier: Apache-2.0
// The options of `trace generate` for the styles of src/generate/workload.h.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generate/workload.h"
#include "trainyard/status.h"

namespace trainyard {

// Options that other styles have, too, and that were given.
struct SharedOptions {
  int jobs = 0;
  std::uint64_t seed = 0;
  double jobs_per_hour = 0;
  double load = 0;
  int cluster_gpus = 0;
  int largest_job = 0;
  double longest_hours = 0;
  double deadline_share = 0;
  double least_deadline_factor = 0;
  double most_deadline_factor = 0;
  double best_effort_share = 0;
  int data_sets = 0;
};

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

[[nodiscard]] std::vector<CLI::Option*> AddWorkloadOptions(CLI::App& app, OwnOptions& own);

// REQUIRES: the style is one of WorkloadStyles().
[[nodiscard]] Result<WorkloadOptions> WorkloadOptionsOf(const std::string& style,
                                                        const SharedOptions& shared,
                                                        const OwnOptions& own);

}  // namespace trainyard
