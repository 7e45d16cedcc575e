// SPDX-License-Identifier: Apache-2.0
#include "world/training.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/rounding.h"

namespace trainyard::world {
namespace {

constexpr Duration kReports = std::chrono::minutes(1);

}  // namespace

Training::Training(const profile::Application& application, const profile::TrainingRules& rules)
    : application_(application),
      rules_(rules),
      limits_(LimitsUnder(rules, application)),
      fixed_batch_(rules.Of(application.name()).fixed_batch) {}

void Training::Start(TimePoint now, Duration delay, profile::Application::Placement placement) {
  CHECK(placement_.empty() && !placement.empty());
  placement_ = std::move(placement);
  nodes_ = static_cast<int>(
      std::count_if(placement_.begin(), placement_.end(), [](int gpus) { return gpus > 0; }));
  gpus_ = std::accumulate(placement_.begin(), placement_.end(), 0);
  ChooseBatch();
  BeginStretch(now + delay);
}

void Training::Stop(TimePoint now) {
  if (stretch_ && now > stretch_->from) {
    CHECK(now <= stretch_->until);
    progress_ = std::min(progress_ + Seconds(now - stretch_->from) * stretch_->rate,
                         application_.ProgressAfter(epoch_ + 1));
    Measure();
  }
  stretch_.reset();
  placement_.clear();
}

std::optional<TimePoint> Training::next() const {
  return stretch_ ? std::optional(stretch_->until) : std::nullopt;
}

void Training::EndStretch() {
  CHECK(stretch_);
  const TimePoint at = stretch_->until;
  if (stretch_->ends_epoch) {
    ++epoch_;
    progress_ = application_.ProgressAfter(epoch_);
  } else {
    progress_ += Seconds(at - stretch_->from) * stretch_->rate;
  }
  Measure();
  if (done()) {
    stretch_.reset();
    return;
  }
  ChooseBatch();
  BeginStretch(at);
}

void Training::BeginStretch(TimePoint from) {
  const profile::PassTimes pass = application_.TimesOn(placement_, batch_.part);
  const auto samples = static_cast<double>(batch_.On(gpus_));
  Stretch stretch{.from = from,
                  .noise = application_.NoiseAt(samples, epoch_),
                  .step = {.nodes = nodes_,
                           .gpus = gpus_,
                           .part = batch_.part,
                           .seconds = pass.step,
                           .compute = pass.compute()}};
  stretch.rate = stretch.noise.Gain(samples / static_cast<double>(limits_.initial)) /
                 (pass.step + pass.compute() * static_cast<double>(batch_.accumulated));
  stretch.until = base::NextMultiple(TimePoint{}, kReports, from + Duration{1});
  const double left = application_.ProgressAfter(epoch_ + 1) - progress_;
  if (left <= Seconds(stretch.until - from) * stretch.rate) {
    const double seconds = left / stretch.rate;
    stretch.ends_epoch = true;
    stretch.until = from + (rules_.whole_seconds ? FromSeconds(std::nearbyint(seconds))
                                                 : CeilFromSeconds(seconds));
  }
  stretch_ = stretch;
}

void Training::ChooseBatch() {
  const double least = static_cast<double>(std::max(limits_.initial, limits_.least_part * gpus_));
  batch_ = profile::BatchFor(fixed_batch_ > 0 ? fixed_batch_ : least, gpus_, limits_);
  if (const auto known = report(); known && fixed_batch_ == 0) {
    if (const profile::Goodput best = known->model.Best(nodes_, gpus_); best.value > 0) {
      batch_ = best.batch;
    }
  }
  const std::int64_t passes = batch_.accumulated + 1;
  batch_.part = std::clamp<std::int64_t>(
      batch_.part, 1, std::max<std::int64_t>(limits_.most / (gpus_ * passes), 1));
}

void Training::Measure() {
  noise_ = stretch_->noise;
  const profile::MeasuredStep& step = stretch_->step;
  const auto same = [&step](const profile::MeasuredStep& other) {
    return other.nodes == step.nodes && other.gpus == step.gpus && other.part == step.part;
  };
  if (std::none_of(measured_.begin(), measured_.end(), same)) {
    measured_.push_back(step);
    times_ = profile::FitStepTimes(measured_).times;
  }
}

std::optional<profile::GoodputReport> Training::report() const {
  if (measured_.empty()) {
    return std::nullopt;
  }
  int tried = 0;
  for (const profile::MeasuredStep& step : measured_) {
    tried = std::max(tried, step.gpus);
  }
  return profile::GoodputReport{.model = {.times = times_, .noise = noise_, .limits = limits_},
                                .tried_gpus = tried,
                                .most_gpus = fixed_batch_ > 0 ? 1 : 0};
}

}  // namespace trainyard::world
