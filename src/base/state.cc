// SPDX-License-Identifier: Apache-2.0
#include "trainyard/state.h"

#include <bit>

#include "base/varint.h"

namespace trainyard {

void StateStream::Fail() {
  good_ = false;
  rest_ = {};
}

std::size_t StateStream::Size(std::size_t size) {
  std::uint64_t number = size;
  Number(number);
  if (reading_ && number > rest_.size()) {
    Fail();
    return 0;
  }
  return static_cast<std::size_t>(number);
}

void StateStream::Number(std::uint64_t& value) {
  if (!reading_) {
    base::PutVarint(out_, value);
    return;
  }
  const std::optional<std::uint64_t> read = base::TakeVarint(rest_);
  value = read.value_or(0);
  if (!read) {
    Fail();
  }
}

// The bytes of round numbers end in zeros: those first, they cost little.
void StateStream::One(double& value) {
  std::uint64_t bits = __builtin_bswap64(std::bit_cast<std::uint64_t>(value));
  Number(bits);
  Set(value, std::bit_cast<double>(__builtin_bswap64(bits)));
}

void StateStream::One(std::string& text) {
  const std::size_t size = Size(text.size());
  if (reading_) {
    text = rest_.substr(0, size);
    rest_.remove_prefix(size);
  } else {
    out_ += text;
  }
}

}  // namespace trainyard
