// SPDX-License-Identifier: Apache-2.0
#include "world/training.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/rounding.h"
#include "profile/goodput/batch_choice.h"

namespace trainyard::world {
namespace {

constexpr Duration kReports = std::chrono::minutes(1);

}  // namespace

Training::Training(const profile::Application& application, const profile::TrainingRules& rules)
    : application_(application),
      rules_(rules),
      limits_(LimitsUnder(rules, application)),
      fixed_batch_(rules.Of(application.name()).fixed_batch),
      slower_(rules.Of(application.name()).slower) {}

void Training::Start(TimePoint now, Duration delay, profile::Application::Placement placement,
                     std::string_view gpu_type) {
  CHECK(placement_.empty() && !placement.empty());
  type_ = application_.has_types() ? gpu_type : std::string_view();
  limits_ = LimitsUnder(rules_, application_, type_);
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
  const profile::PassTimes pass = application_.TimesOn(placement_, batch_.part, type_);
  const auto samples = static_cast<double>(batch_.On(gpus_));
  Stretch stretch{.from = from,
                  .noise = application_.NoiseAt(samples, epoch_),
                  .step = {.nodes = nodes_,
                           .gpus = gpus_,
                           .part = batch_.part,
                           .seconds = pass.step,
                           .compute = pass.compute()}};
  stretch.rate = stretch.noise.Gain(samples / static_cast<double>(limits_.initial)) /
                 (pass.step + pass.compute() * static_cast<double>(batch_.accumulated)) / slower_;
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
  const auto known = measured_.find(type_);
  batch_ = profile::ChooseBatch(application_, type_, placement_,
                                {.limits = limits_,
                                 .times = known == measured_.end() ? nullptr : &known->second.times,
                                 .noise = noise_,
                                 .fixed_batch = fixed_batch_});
}

void Training::Measure() {
  noise_ = stretch_->noise;
  measured_on_ = type_;
  const profile::MeasuredStep& step = stretch_->step;
  const auto same = [&step](const profile::MeasuredStep& other) {
    return other.nodes == step.nodes && other.gpus == step.gpus && other.part == step.part;
  };
  Measured& measured = measured_[type_];
  if (std::none_of(measured.steps.begin(), measured.steps.end(), same)) {
    measured.steps.push_back(step);
    measured.times = rules_.fit ? rules_.fit(type_, measured.steps)
                                : profile::FitStepTimes(measured.steps).times;
  }
}

std::optional<profile::GoodputReport> Training::report() const {
  if (measured_.empty()) {
    return std::nullopt;
  }
  const Measured& measured = measured_.at(measured_on_);
  int tried = 0;
  for (const profile::MeasuredStep& step : measured.steps) {
    tried = std::max(tried, step.gpus);
  }
  return profile::GoodputReport{
      .model = {.times = measured.times,
                .noise = noise_,
                .limits = LimitsUnder(rules_, application_, measured_on_)},
      .tried_gpus = tried,
      .most_gpus = fixed_batch_ > 0 ? 1 : 0,
      .gpu_type = profile::NumberOfType(measured_on_)};
}

}  // namespace trainyard::world
