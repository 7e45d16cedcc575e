// SPDX-License-Identifier: Apache-2.0
// For tests: a small generator of cases, the same on every machine.
#pragma once

namespace trainyard {

class Dice {
 public:
  explicit Dice(unsigned seed) : state_(seed * 2654435761U + 1U) {}
  // Uniform, both included.
  int From(int low, int high) {
    state_ = state_ * 1664525U + 1013904223U;
    return low + static_cast<int>((state_ >> 8U) % static_cast<unsigned>(high - low + 1));
  }

 private:
  unsigned state_;
};

}  // namespace trainyard
