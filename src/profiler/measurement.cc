// SPDX-License-Identifier: Apache-2.0
#include "profiler/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"

namespace trainyard::profiler {
namespace {

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// How far it lies from the median of the others, as a part of that.
double Deviation(std::span<const TrialResult> runs, std::size_t run, Measurer::Value value) {
  std::vector<double> others;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i != run) {
      others.push_back(value(runs[i]));
    }
  }
  const double median = others.empty() ? value(runs[run]) : MedianOf(std::move(others));
  return median > 0 ? std::abs(value(runs[run]) - median) / median : 0;
}

// Takes out the one that lies furthest off, as long as one lies too far. Of two runs that differ
// nobody knows which is the better one: both stay, until a third has been made.
std::vector<TrialResult> Agreeing(std::vector<TrialResult> runs, double noise,
                                  Measurer::Value value) {
  while (runs.size() > 2) {
    std::size_t furthest = 0;
    for (std::size_t i = 1; i < runs.size(); ++i) {
      if (Deviation(runs, i, value) > Deviation(runs, furthest, value)) {
        furthest = i;
      }
    }
    if (Deviation(runs, furthest, value) <= noise) {
      break;
    }
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(furthest));
  }
  return runs;
}

double Spread(std::span<const TrialResult> runs, Measurer::Value value) {
  double most = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    most = std::max(most, Deviation(runs, i, value));
  }
  return most;
}

// Of a small part as many digits as tell it from 0.
std::string Percent(double part) {
  constexpr double kWhole = 0.1;
  return part < kWhole ? fmt::format("{:.2g}", 100 * part) : fmt::format("{:.0f}", 100 * part);
}

Measured MeanOf(std::span<const TrialResult> runs) {
  const auto values = [runs](auto of) {
    std::vector<double> all;
    std::transform(runs.begin(), runs.end(), std::back_inserter(all), of);
    return all;
  };
  Measured measured{
      .iteration_s = EstimateOf(values([](const TrialResult& run) { return run.iteration_s; })),
      .start_s = EstimateOf(values([](const TrialResult& run) { return run.start_s; })),
      .stop_s = EstimateOf(values([](const TrialResult& run) { return run.stop_s; })),
      .change_s = EstimateOf(values([](const TrialResult& run) { return run.change_s; }))};
  measured.loading_share =
      EstimateOf(values([](const TrialResult& run) { return run.loading_share; })).mean;
  for (std::size_t stage = 0; stage < measured.stages_s.size(); ++stage) {
    measured.stages_s.at(stage) =
        EstimateOf(values([stage](const TrialResult& run) { return run.stages_s.at(stage); })).mean;
  }
  return measured;
}

}  // namespace

Estimate EstimateOf(std::span<const double> values) {
  if (values.empty()) {
    return {};
  }
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) {
    return {.mean = mean};
  }
  double squares = 0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  constexpr double kUpper = 0.975;
  const double t = boost::math::quantile(boost::math::students_t(n - 1), kUpper);
  return {.mean = mean, .half_width = t * std::sqrt(squares / (n - 1) / n)};
}

Measured Measurer::Planned(std::span<const TrialResult> counted) {
  const auto needed = static_cast<std::size_t>(repetition_.runs);
  plan_.runs += needed;
  plan_.there += std::min(needed, counted.size());
  plan_.used += counted.size();
  if (!counted.empty()) {
    return MeanOf(counted);
  }
  const Estimate second{.mean = 1};
  return {.iteration_s = second,
          .start_s = second,
          .stop_s = second,
          .change_s = second,
          .stages_s = {1, 1, 1}};
}

Status Measurer::Take(const Trial& trial, const TrialResult& run,
                      std::vector<TrialResult>& counted) {
  seconds_ += run.wall_s;
  ++made_;
  ++runs_made_;
  if (run.interrupted) {
    return Failed("interrupted; the same command goes on with the runs that are there");
  }
  RETURN_IF_ERROR(book_.Add(trial, run));
  if (run.hopeless) {
    return Failed(fmt::format("{}: {}", trial.name, run.failure));
  }
  if (!run.ok() && run.failure == last_failure_) {
    return Failed(
        fmt::format("{}: run {} failed in the same way; expected a command that does not, tried "
                    "without `trainyard profile`",
                    trial.name, made_));
  }
  last_failure_ = run.failure;
  if (run.ok()) {
    counted.push_back(run);
  } else {
    remark_(fmt::format("{}: run {} {}", trial.name, made_, run.failure));
  }
  if (run.ok() && !run.note.empty() && run.note != last_note_) {
    last_note_ = run.note;
    remark_(fmt::format("{}: {}", trial.name, run.note));
  }
  return {};
}

Result<Measured> Measurer::Measure(const Trial& trial, Value value) {
  const auto needed = static_cast<std::size_t>(repetition_.runs);
  std::vector<TrialResult> counted = book_.Of(trial);
  if (runner_ == nullptr) {
    return Planned(counted);
  }
  made_ = 0;
  last_failure_.clear();
  while (true) {
    const std::vector<TrialResult> agreeing = Agreeing(counted, repetition_.noise, value);
    if (agreeing.size() >= needed && Spread(agreeing, value) <= repetition_.noise) {
      seconds_of_all_ += book_.SecondsOf(trial);
      return MeanOf(agreeing);
    }
    const bool enough = made_ >= repetition_.runs + repetition_.spare;
    if (made_ > 0 && last_failure_.empty() && counted.size() >= needed) {
      remark_(fmt::format(
          "{}: the runs differ by {} %; expected at most {} % (--noise), or a machine on which "
          "nothing else runs{}",
          trial.name, Percent(Spread(counted, value)), Percent(repetition_.noise),
          enough ? "" : "; runs once more"));
    }
    if (enough) {
      return Failed(
          fmt::format("{}: too many runs did not count ({} were made)", trial.name, made_));
    }
    const auto start = std::chrono::steady_clock::now();
    TrialResult run = runner_->Run(trial);
    run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    RETURN_IF_ERROR(Take(trial, run, counted));
  }
}

}  // namespace trainyard::profiler
