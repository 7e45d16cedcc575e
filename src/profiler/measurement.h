// SPDX-License-Identifier: Apache-2.0
// The same run several times: what it gives on average, and how sure that is. A run that crashes,
// hangs, or lies too far from the others does not count; it is named and made again.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "profiler/run_book.h"
#include "profiler/trial.h"
#include "trainyard/status.h"

namespace trainyard::profiler {

struct Estimate {
  double mean = 0;
  double half_width = 0;  // of the 95 % confidence interval (Student's t); 0 of one value
};
[[nodiscard]] Estimate EstimateOf(std::span<const double> values);

struct Measured {
  Estimate iteration_s{};
  Estimate start_s{};
  Estimate stop_s{};
  Estimate change_s{};
  double loading_share = 0;  // means
  std::array<double, 3> stages_s{};
};

struct Repetition {
  int runs = 3;
  // How far a run may lie from the median of the others, as a part of that.
  double noise = 0.1;
  int spare = 6;  // so many runs may fail or be too far off
};

class Measurer {
 public:
  // What a run is judged by.
  using Value = double (*)(const TrialResult&);
  [[nodiscard]] static double IterationSeconds(const TrialResult& run) { return run.iteration_s; }
  [[nodiscard]] static double StartSeconds(const TrialResult& run) { return run.start_s; }
  [[nodiscard]] static double ChangeSeconds(const TrialResult& run) { return run.change_s; }

  // `remark` is told of each run that does not count. All must outlive the measurer.
  Measurer(TrialRunner& runner, RunBook& book, Repetition repetition,
           std::function<void(const std::string& remark)> remark)
      : runner_(runner), book_(book), repetition_(repetition), remark_(std::move(remark)) {}

  // Makes the runs that are not in the book. Errors: too many do not count; interrupted; the
  // book's.
  [[nodiscard]] Result<Measured> Measure(const Trial& trial, Value value = IterationSeconds);

  [[nodiscard]] std::size_t runs_made() const { return runs_made_; }
  [[nodiscard]] double seconds() const { return seconds_; }  // that these took
  // That all runs of what was measured took, those of earlier calls included.
  [[nodiscard]] double seconds_of_all() const { return seconds_of_all_; }

 private:
  TrialRunner& runner_;
  RunBook& book_;
  const Repetition repetition_;
  std::function<void(const std::string&)> remark_;
  std::size_t runs_made_ = 0;
  double seconds_ = 0;
  double seconds_of_all_ = 0;
};

}  // namespace trainyard::profiler
