// SPDX-License-Identifier: Apache-2.0
// Seeded numbers that are the same with every compiler: the standard fixes the output of its
// engines, but not that of its distributions. docs/generators.md gives the formulas.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

namespace trainyard::trace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // A stream of its own for each attribute, so that drawing more of one changes no other.
  // SplitMix64 (Steele, Lea, Flood 2014) makes near seeds and numbers far apart.
  [[nodiscard]] static Random Stream(std::uint64_t seed, std::uint64_t number) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
    return Random(Mix(Mix(seed + kGolden) + (number + 1) * kGolden));
  }

  // In [0, 1), with 53 random bits.
  double Uniform() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }
  double Uniform(double from, double to) { return from + (to - from) * Uniform(); }
  // With mean 1.
  double Exponential() { return -std::log(1 - Uniform()); }
  // With mean 0 and variance 1, by two draws (Box and Muller 1958).
  double Normal() {
    constexpr double kTwoPi = 6.283185307179586;
    const double radius = std::sqrt(2 * Exponential());
    return radius * std::cos(kTwoPi * Uniform());
  }
  std::size_t Below(std::size_t count) {
    return static_cast<std::size_t>(Uniform() * static_cast<double>(count));
  }

 private:
  static std::uint64_t Mix(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
    return z ^ (z >> 31U);
  }

  std::mt19937_64 engine_;
};

}  // namespace trainyard::trace
