// SPDX-License-Identifier: Apache-2.0
#include "policy/gittins.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace trainyard {
namespace {

double RoundTo(double value, double scale) { return std::nearbyint(value * scale) / scale; }

}  // namespace

GittinsIndex::GittinsIndex(std::vector<double> samples, double horizon, bool published)
    : samples_(std::move(samples)) {
  CHECK(!samples_.empty());
  std::sort(samples_.begin(), samples_.end());
  std::vector<double> sums(samples_.size() + 1, 0);  // of the first i samples
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    sums[i + 1] = sums[i] + samples_[i];
  }
  const auto first_above = [this](double value) {
    return static_cast<std::size_t>(std::upper_bound(samples_.begin(), samples_.end(), value) -
                                    samples_.begin());
  };
  const double last = samples_.back() - 1;
  for (const double sample : samples_) {
    const double attained = sample - 1;
    if (attained > last) {
      values_.push_back(0);
      continue;
    }
    const std::size_t from = first_above(attained);
    const std::size_t to =
        attained + horizon > last ? samples_.size() - 1 : first_above(attained + horizon);
    const auto left = static_cast<double>(samples_.size() - from);
    double chance = static_cast<double>(to - from) / left;
    double service =
        (sums[to] - sums[from] + horizon * static_cast<double>(samples_.size() - to)) / left;
    if (published) {
      chance = RoundTo(chance, 1e5);
      service = RoundTo(std::floor(service), 1e5);
    }
    const double value = chance * 1e6 / service;
    values_.push_back(published ? RoundTo(value, 1e4) : value);
  }
}

double GittinsIndex::At(double attained) const {
  const auto above = std::upper_bound(samples_.begin(), samples_.end(), attained);
  return above == samples_.end() ? 0 : values_[static_cast<std::size_t>(above - samples_.begin())];
}

}  // namespace trainyard
