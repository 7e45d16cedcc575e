// SPDX-License-Identifier: Apache-2.0
// Throughput profiles: iterations per second by model, global batch size and GPU count; and of two
// jobs on the same GPUs.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainyard/job.h"
#include "trainyard/status.h"

namespace trainyard::profile {

// Of one job.
inline constexpr int kMostProfiledGpus = 1 << 20;

// Where the profile of a (model, batch size) differs by GPU type.
struct TypedRates {
  std::string gpu_type;
  std::vector<double> rates;  // iterations per second, as many as the row's levels; 0: not there
};

// One (model, batch size) row. An empty, 'nan' or zero cell means that the model does not run so.
struct ThroughputRow {
  std::string model;
  std::int64_t batch_size = 0;
  std::vector<int> levels;    // GPU counts with a positive rate, ascending; at least one
  std::vector<double> rates;  // iterations per second, as many as levels; of the fastest type
  std::vector<int> columns;   // all GPU counts of the model's profile, ascending
  int largest_written = 0;    // the largest column whose cell is not the text 'nan'
  std::vector<TypedRates> by_type{};  // sorted by type; empty: the same on all

  // Iterations per second, 0 where there is no cell. O(log levels).
  [[nodiscard]] double Rate(int gpus) const;
  // The same on GPUs of one type. REQUIRES: by_type is not empty.
  [[nodiscard]] double RateOn(std::string_view gpu_type, int gpus) const;
  // The level with the highest rate (the smaller one of a tie): more GPUs do not help.
  [[nodiscard]] int UsefulMaximum() const;
  // Whether a level lies in the range.
  [[nodiscard]] bool RunsWithin(const GpuRange& range) const;
};

// "2 to 8", "2 or more", "8 or fewer". REQUIRES: an end is stated.
[[nodiscard]] std::string RangeText(const GpuRange& range);

class ThroughputTable {
 public:
  // Reads every `<model>.csv` and the native throughput.csv of a folder, or one file, native or in
  // Gavel's form; see docs/formats/profiles.md.
  // `gpu_types`: those that matter; rows that run on none of them are left out. Empty: all.
  // Errors: those of CsvTable; no profile there; a negative rate or no number; a cell twice; a
  // row that runs on no number of GPUs.
  [[nodiscard]] static Result<ThroughputTable> Read(const std::string& path,
                                                    std::span<const std::string> gpu_types = {});

  // Whether the folder has a native throughput.csv.
  [[nodiscard]] static bool IsAt(const std::string& folder);

  // Sorted by model, then batch size.
  [[nodiscard]] std::span<const ThroughputRow> rows() const { return rows_; }
  // The row's position, or -1.
  [[nodiscard]] int Find(std::string_view model, std::int64_t batch_size) const;
  [[nodiscard]] bool HasModel(std::string_view model) const;

  // Jobs that share all their GPUs with one other job of as many, by pairs of rows, the first one
  // no larger than the second; numbers of GPUs; and GPU types. Only tables in Gavel's form have
  // any.
  struct PairKey {
    int first = 0;
    int second = 0;
    int gpus = 0;
    std::string gpu_type;
    friend auto operator<=>(const PairKey&, const PairKey&) = default;  // NOLINT
  };
  struct PairRate {
    double first = 0;  // iterations per second, 0: does not run so
    double second = 0;
  };
  [[nodiscard]] const std::map<PairKey, PairRate>& pairs() const { return pairs_; }
  // Iterations per second of a job of `row` beside one of `other`; 0 where there is no cell.
  [[nodiscard]] double RateBeside(int row, int other, int gpus, std::string_view gpu_type) const;

 private:
  std::vector<ThroughputRow> rows_;
  std::map<PairKey, PairRate> pairs_;
};

}  // namespace trainyard::profile
