// SPDX-License-Identifier: Apache-2.0
// One published result: how to run it and how to compare (docs/golden.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "originals/results/original.h"
#include "scenario/scenario.h"
#include "trainyard/status.h"

namespace trainyard {

struct GoldenCase {
  std::string name;
  scenario::InputPaths inputs;
  scenario::PresetRequest names;
  std::string expected;  // path
  // Column names in `expected`, perhaps with an offset in seconds ("first_metric_s-300").
  std::string id_column;
  std::string start_column;
  std::string end_column;
  std::string outcome_column;
  std::string kind;  // exact, listed, metrics
  std::optional<double> tolerance_jct_mean;
  std::optional<double> tolerance_makespan;
  std::optional<double> tolerance_jct_p99;
  std::optional<double> tolerance_accepted;
  std::optional<double> jct_mean;
  std::optional<double> jct_p99;
  std::optional<double> makespan;
  std::optional<double> accepted;
  std::optional<double> declined;
  std::optional<double> original_cpu;   // seconds
  std::optional<double> original_wall;  // seconds, of a loaded machine
};

// `roots`: folders by name; "ref" is that of paths without a prefix, "here" that of the manifest.
[[nodiscard]] Result<std::vector<GoldenCase>> ReadManifest(
    const std::string& path, std::map<std::string, std::string> roots);

// What the original made of the jobs. `unit`: seconds in a unit of the file's times.
[[nodiscard]] Result<std::vector<originals::ResultRow>> ReadExpected(const GoldenCase& golden,
                                                                     double unit);

struct Comparison {
  bool supported = true;  // false: the format, preset or policy is not built
  bool equal = false;
  std::size_t jobs_equal = 0;
  std::size_t jobs_total = 0;
  double accepted = 0;     // as counted by CompareVerdicts
  double mean_off = 0;     // of the mean JCT, relative
  double cpu_seconds = 0;  // from reading the inputs to the last byte written
  std::string journal_digest;
  std::string note;  // the first difference, or why it could not be run
};

// `out`: where the run gets a folder for its files, by the name of the case; empty: nowhere.
[[nodiscard]] Comparison RunGolden(const GoldenCase& golden, const std::string& out = "");

// What a case that is known to differ may be off by (docs/fidelity.md); at least one is stated.
struct KnownDifference {
  std::optional<double> accepted_within;  // jobs that meet their deadline
  std::optional<double> mean_within;      // mean JCT, relative
};
[[nodiscard]] Result<std::map<std::string, KnownDifference>> ReadKnown(const std::string& path);
[[nodiscard]] bool IsNear(const KnownDifference& known, const GoldenCase& golden,
                          const Comparison& comparison);

}  // namespace trainyard
