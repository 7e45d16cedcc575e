// SPDX-License-Identifier: Apache-2.0
#include "report/time_bins.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace trainyard {

void TimeBins::Add(double at, double amount) { amounts_[Cover(at)] += amount; }

void TimeBins::AddRate(double from, double to, double rate) {
  CHECK(from <= to);
  Cover(from);
  const std::size_t last = Cover(to);
  const std::size_t first = Cover(from);  // again, as bins may have moved
  if (first == last) {
    amounts_[first] += (to - from) * rate;
    return;
  }
  const auto begin = [this](std::size_t bin) {
    return (static_cast<double>(first_) + static_cast<double>(bin)) * width_;
  };
  amounts_[first] += (begin(first + 1) - from) * rate;
  amounts_[last] += (to - begin(last)) * rate;
  rates_[first + 1] += rate;
  rates_[last] -= rate;
}

std::vector<double> TimeBins::Amounts() const {
  std::vector<double> amounts = amounts_;
  double rate = 0;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    rate += rates_[i];
    amounts[i] += rate * width_;
  }
  return amounts;
}

std::size_t TimeBins::Cover(double at) {
  while (true) {
    const auto bin = static_cast<std::int64_t>(std::floor(at / width_));
    if (amounts_.empty()) {
      first_ = bin;
    }
    const std::int64_t before = std::max<std::int64_t>(first_ - bin, 0);
    const std::int64_t end = std::max(bin + 1, first_ + std::ssize(amounts_));
    if (end - std::min(first_, bin) <= static_cast<std::int64_t>(most_)) {
      amounts_.insert(amounts_.begin(), static_cast<std::size_t>(before), 0);
      rates_.insert(rates_.begin(), static_cast<std::size_t>(before), 0);
      first_ -= before;
      amounts_.resize(static_cast<std::size_t>(end - first_));
      rates_.resize(amounts_.size());
      return static_cast<std::size_t>(bin - first_);
    }
    Coarsen();
  }
}

void TimeBins::Coarsen() {
  const std::vector<double> old = Amounts();
  const std::int64_t old_first = first_;
  width_ *= 2;
  first_ = old_first >> 1U;
  const std::int64_t end = ((old_first + std::ssize(old) - 1) >> 1U) + 1;
  amounts_.assign(old.empty() ? 0 : static_cast<std::size_t>(end - first_), 0);
  rates_.assign(amounts_.size(), 0);
  for (std::size_t i = 0; i < old.size(); ++i) {
    const std::int64_t bin = (old_first + static_cast<std::int64_t>(i)) >> 1U;
    amounts_[static_cast<std::size_t>(bin - first_)] += old[i];
  }
}

}  // namespace trainyard
