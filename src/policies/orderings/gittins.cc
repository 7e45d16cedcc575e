// SPDX-License-Identifier: Apache-2.0
#include "policies/orderings/gittins.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace trainyard::policies {

GittinsIndex::GittinsIndex(std::vector<double> samples, double horizon)
    : samples_(std::move(samples)), horizon_(horizon) {
  CHECK(!samples_.empty());
  std::sort(samples_.begin(), samples_.end());
  sums_.push_back(0);
  for (const double sample : samples_) {
    sums_.push_back(sums_.back() + sample);
  }
}

std::size_t GittinsIndex::FirstAbove(double service) const {
  return static_cast<std::size_t>(std::upper_bound(samples_.begin(), samples_.end(), service) -
                                  samples_.begin());
}

double GittinsIndex::SumOf(std::size_t from, std::size_t to) const {
  return sums_[to] - sums_[from];
}

double GittinsIndex::Beyond(std::size_t from) const {
  return horizon_ * static_cast<double>(samples_.size() - from);
}

double GittinsIndex::At(double attained) const {
  const std::size_t from = FirstAbove(attained);
  const std::size_t to = FirstAbove(attained + horizon_);
  const double ending = static_cast<double>(to - from);
  const double service = SumOf(from, to) - attained * ending + Beyond(to);
  return ending > 0 ? ending / service : 0;
}

}  // namespace trainyard::policies
