// SPDX-License-Identifier: Apache-2.0
// The numbers of Python's random.Random(seed) (CPython 3.2 and later), for published generators
// and policies that draw from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "trainyard/state.h"

namespace trainyard::base {

class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed);

  // random(): in [0, 1), with 53 random bits.
  [[nodiscard]] double Random();
  // uniform(from, to)
  [[nodiscard]] double Uniform(double from, double to) { return from + (to - from) * Random(); }
  // The position that choice() takes of `count` elements. REQUIRES: 0 < count < 2^32.
  [[nodiscard]] std::uint32_t Below(std::uint32_t count);
  // shuffle()
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[Below(static_cast<std::uint32_t>(i))]);
    }
  }
  void Serialize(StateStream& state);

 private:
  [[nodiscard]] std::uint32_t Draw();

  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  std::mt19937 engine_;
};

}  // namespace trainyard::base
