// SPDX-License-Identifier: Apache-2.0
// Amounts over time in bins of equal width, in bounded memory: when there are too many bins, each
// two become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainyard {

class TimeBins {
 public:
  // `width` in seconds, > 0; `most` bins, even.
  TimeBins(double width, std::size_t most) : width_(width), most_(most) {}

  // At a time >= 0.
  void Add(double at, double amount);
  // So much each second. REQUIRES: from <= to.
  void AddRate(double from, double to, double rate);

  [[nodiscard]] double width() const { return width_; }
  // When the first bin begins.
  [[nodiscard]] double start() const { return static_cast<double>(first_) * width_; }
  [[nodiscard]] std::vector<double> Amounts() const;

 private:
  // Makes room for the bin at a time; gives its position.
  std::size_t Cover(double at);
  void Coarsen();

  double width_;
  std::size_t most_;
  std::int64_t first_ = 0;       // the number of the first bin, from time 0
  std::vector<double> amounts_;  // beside whole bins of rates
  std::vector<double> rates_;    // by which the rate of whole bins changes at their begin
};

}  // namespace trainyard
