// SPDX-License-Identifier: Apache-2.0
// Random numbers that follow from their seed, for the search of allocations.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>

namespace trainyard::policies {

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : engine_(seed) {}

  // 0 <= number < 1.
  double Share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool Chance(double probability) { return Share() < probability; }
  // 0 to count - 1. REQUIRES: count >= 1.
  std::size_t Below(std::size_t count) {
    return static_cast<std::size_t>(Share() * static_cast<double>(count));
  }
  template <typename T>
  void Shuffle(std::span<T> items) {
    for (std::size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[Below(left)]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

// Which of many things, each taken with the same small probability, are taken: how many are passed
// over before the next one. As many numbers are drawn as things are taken.
class Skips {
 public:
  // REQUIRES: 0 < probability <= 1.
  explicit Skips(double probability) : log_passed_(std::log1p(-probability)) {}

  [[nodiscard]] std::size_t Next(RandomStream& random) const {
    if (log_passed_ == -std::numeric_limits<double>::infinity()) {
      return 0;
    }
    const double passed = std::floor(std::log(1 - random.Share()) / log_passed_);
    return passed < 1e15 ? static_cast<std::size_t>(passed) : std::size_t{1} << 50;
  }

 private:
  double log_passed_;
};

}  // namespace trainyard::policies
