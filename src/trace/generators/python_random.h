// SPDX-License-Identifier: Apache-2.0
// The numbers of Python's random.Random(seed) (CPython 3.2 and later), for published generators
// that draw from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace trainyard::trace {

class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed);

  // random(): in [0, 1), with 53 random bits.
  [[nodiscard]] double Random();
  // uniform(from, to)
  [[nodiscard]] double Uniform(double from, double to) { return from + (to - from) * Random(); }
  // The position that choice() takes of `count` elements. REQUIRES: 0 < count < 2^32.
  [[nodiscard]] std::uint32_t Below(std::uint32_t count);

 private:
  std::mt19937 engine_;
};

}  // namespace trainyard::trace
