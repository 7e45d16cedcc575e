// SPDX-License-Identifier: Apache-2.0
// A number that is most likely another one where any of the parts is (FNV-1a): to see whether
// something has changed, on every machine the same.
#pragma once

#include <bit>
#include <cstdint>

namespace trainyard::base {

class Fnv1a {
 public:
  void Add(std::uint64_t number) { value_ = (value_ ^ number) * 0x100000001B3U; }
  void Add(double number) { Add(std::bit_cast<std::uint64_t>(number)); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

}  // namespace trainyard::base
