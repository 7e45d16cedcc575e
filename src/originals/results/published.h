// SPDX-License-Identifier: Apache-2.0
// Metrics as the published programs define them, where that is not how docs/metrics.md does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "originals/results/original.h"
#include "results/metrics/metrics.h"

namespace trainyard::originals {

// Times in seconds; none where the quantity does not apply or is not in the files.
struct PublishedMetrics {
  std::int64_t jobs = 0;  // completed, of those that the program measures
  std::optional<double> jct_mean;
  std::optional<double> jct_p99;
  std::optional<double> makespan;
  std::optional<double> responsiveness_mean;  // Blox: first metric - submit
  std::optional<std::int64_t> accepted;       // ElasticFlow: deadlines met
  std::optional<std::int64_t> declined;
  std::optional<std::int64_t> preemptions;
};
[[nodiscard]] PublishedMetrics MeasureAsPublished(const OriginalResult& result);

// The 99th percentile of JCTs. REQUIRES: `sorted` is ascending and not empty.
[[nodiscard]] double PublishedP99(Original program, std::span<const double> sorted);

// Each in a few words, for people.
struct PublishedDefinitions {
  std::string_view jct;
  std::string_view p99;
  std::string_view makespan;
  std::string_view deadlines;
};
[[nodiscard]] PublishedDefinitions DefinitionsOf(Original program);

// One line for each metric: the program's value and ours, and how each is defined. Without a line
// end after the last. `ours` are those of RunOf(result).
[[nodiscard]] std::string PublishedTable(const std::string& label, const OriginalResult& result,
                                         const results::Metrics& ours);

}  // namespace trainyard::originals
