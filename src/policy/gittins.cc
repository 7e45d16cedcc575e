// SPDX-License-Identifier: Apache-2.0
#include "policy/gittins.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace trainyard {
namespace {

// Half away from zero, as Python 2 rounds.
double RoundTo(double value, double scale) { return std::round(value * scale) / scale; }

}  // namespace

GittinsIndex::GittinsIndex(std::vector<double> samples, double horizon, bool published)
    : samples_(std::move(samples)), horizon_(horizon) {
  CHECK(!samples_.empty());
  std::sort(samples_.begin(), samples_.end());
  sums_.push_back(0);
  for (const double sample : samples_) {
    sums_.push_back(sums_.back() + sample);
  }
  if (published) {
    for (const double sample : samples_) {
      published_.push_back(PublishedAt(sample - 1));
    }
  }
}

std::size_t GittinsIndex::FirstAbove(double service) const {
  return static_cast<std::size_t>(std::upper_bound(samples_.begin(), samples_.end(), service) -
                                  samples_.begin());
}

// The last sample never counts as ending, and the service is that of whole jobs, not of what is
// left of them.
double GittinsIndex::PublishedAt(double attained) const {
  const double last = samples_.back() - 1;
  if (attained > last) {
    return 0;
  }
  const std::size_t from = FirstAbove(attained);
  const std::size_t to =
      attained + horizon_ > last ? samples_.size() - 1 : FirstAbove(attained + horizon_);
  const auto left = static_cast<double>(samples_.size() - from);
  const double chance = RoundTo(static_cast<double>(to - from) / left, 1e5);
  const double beyond = horizon_ * static_cast<double>(samples_.size() - to);
  const double service = std::floor((sums_[to] - sums_[from] + beyond) / left);
  return chance > 0 && service > 0 ? RoundTo(chance * 1e6 / service, 1e4) : 0;
}

double GittinsIndex::At(double attained) const {
  const std::size_t from = FirstAbove(attained);
  if (from == samples_.size()) {
    return 0;
  }
  if (!published_.empty()) {
    return published_[from];
  }
  const std::size_t to = FirstAbove(attained + horizon_);
  const double ending = static_cast<double>(to - from);
  const double beyond = horizon_ * static_cast<double>(samples_.size() - to);
  const double service = sums_[to] - sums_[from] - attained * ending + beyond;
  return ending > 0 ? ending / service : 0;
}

}  // namespace trainyard
