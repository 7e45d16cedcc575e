// SPDX-License-Identifier: Apache-2.0
#include "policies/optimus/loss_curve.h"

#include <algorithm>
#include <cmath>

namespace trainyard::policies {

void LossCurve::Add(double work, double loss) {
  if (!points_.empty() && points_.back().loss == loss) {
    return;
  }
  if (points_.size() == kMostPoints) {
    for (std::size_t i = 0; i < kMostPoints / 2; ++i) {
      points_[i] = points_[2 * i + 1];
    }
    points_.resize(kMostPoints / 2);
  }
  points_.push_back({.work = work, .loss = loss});
  FitAgain();
}

std::optional<double> LossCurve::ConvergesAt(double rest) const {
  return halfway_ ? std::optional((1 / rest - 1) * *halfway_) : std::nullopt;
}

// For a given c, 1 / (loss - c) is a line over the work. Its least squares are weighted so that
// errors count as they come out in the loss: d loss = (loss - c)^2 d line.
std::optional<LossCurve::Fit> LossCurve::FitAbove(double c, double scale) const {
  double w = 0;
  double wx = 0;
  double wy = 0;
  double wxx = 0;
  double wxy = 0;
  for (const Point& point : points_) {
    const double x = point.work / scale;
    const double above = point.loss - c;
    const double weight = std::pow(above, 4);
    w += weight;
    wx += weight * x;
    wy += weight / above;
    wxx += weight * x * x;
    wxy += weight * x / above;
  }
  const double spread = w * wxx - wx * wx;
  Fit fit{.a = (w * wxy - wx * wy) / spread, .b = (wxx * wy - wx * wxy) / spread};
  if (!(spread > 0) || !(fit.a > 0) || !(fit.b > 0) || !std::isfinite(fit.a / fit.b)) {
    return std::nullopt;
  }
  for (const Point& point : points_) {
    const double off = 1 / (fit.a * point.work / scale + fit.b) + c - point.loss;
    fit.error += off * off;
  }
  return fit;
}

// The c that fits best: on a grid, then between its neighbours there.
void LossCurve::FitAgain() {
  halfway_.reset();
  if (points_.size() < kLeastPoints) {
    return;
  }
  double least = points_.front().loss;
  double scale = 0;
  for (const Point& point : points_) {
    least = std::min(least, point.loss);
    scale = std::max(scale, point.work);
  }
  if (!(least > 0) || !(scale > 0)) {
    return;
  }
  std::optional<Fit> best;
  double center = 0;
  const auto look_at = [&](double share) {
    const std::optional<Fit> fit = FitAbove(share * least, scale);
    if (fit && (!best || fit->error < best->error)) {
      best = fit;
      center = share;
    }
  };
  constexpr int kSteps = 50;
  double step = 1.0 / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    look_at(i * step);
  }
  constexpr int kHalvings = 30;
  for (int i = 0; i < kHalvings; ++i) {
    step /= 2;
    const double middle = center;
    look_at(std::max(0.0, middle - step));
    look_at(std::min(middle + step, 1 - 1e-9));
  }
  if (best) {
    halfway_ = best->b / best->a * scale;
  }
}

}  // namespace trainyard::policies
