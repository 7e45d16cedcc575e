// SPDX-License-Identifier: Apache-2.0
// The same run several times: what it gives on average, and how sure that is. A run that crashes,
// hangs, or lies too far from the others does not count; it is named and made again.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
      : runner_(&runner), book_(book), repetition_(repetition), remark_(std::move(remark)) {}
  // Makes no run: what it is asked to measure it counts, and answers from the book, or with a
  // second for everything.
  Measurer(RunBook& book, Repetition repetition) : book_(book), repetition_(repetition) {}

  // Makes the runs that are not in the book. Errors: one that will fail again, two that failed in
  // the same way one after the other; too many that do not count; interrupted; the book's.
  [[nodiscard]] Result<Measured> Measure(const Trial& trial, Value value = IterationSeconds);

  // Without a runner: what has been asked for.
  struct Plan {
    std::size_t runs = 0;
    std::size_t there = 0;  // of these, in the book
    std::size_t used = 0;   // runs of the book, those beyond what is needed included
  };
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] std::size_t runs_made() const { return runs_made_; }
  [[nodiscard]] double seconds() const { return seconds_; }  // that these took
  // That all runs of what was measured took, those of earlier calls included.
  [[nodiscard]] double seconds_of_all() const { return seconds_of_all_; }

 private:
  [[nodiscard]] Measured Planned(std::span<const TrialResult> counted);
  // Takes a run that has just been made into the book and among those that count.
  [[nodiscard]] Status Take(const Trial& trial, const TrialResult& run,
                            std::vector<TrialResult>& counted);

  TrialRunner* runner_ = nullptr;  // null: plans only
  RunBook& book_;
  const Repetition repetition_;
  std::function<void(const std::string&)> remark_;
  std::size_t runs_made_ = 0;
  double seconds_ = 0;
  double seconds_of_all_ = 0;
  Plan plan_;
  int made_ = 0;              // of the present trial
  std::string last_failure_;  // of its last run; empty: it counts
  std::string last_note_;
};

}  // namespace trainyard::profiler
